"""Comparisons of the models with measurements and other simulators, by topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from whatif.errors import UsageError, did_you_mean
from whatif.limits import VALIDATION_TOPICS
from whatif.plotting.presentable import Presentable
from whatif.table import Table
from whatif.validation.tables import TABLES


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(Presentable):
    """Tables by topic, each computed when it is first used: iterate for `(topic, table)`."""

    topics: tuple[str, ...]

    @classmethod
    def of(cls, topics: Sequence[str]) -> Comparisons:
        """Comparisons of some topics, of all of them without any. Raise `UsageError` for an unknown topic."""
        for topic in topics:
            if topic not in TABLES:
                raise UsageError(f"`{topic}`: no such topic{did_you_mean(topic, TABLES)}")
        return cls(tuple(topics) or VALIDATION_TOPICS)

    def __iter__(self) -> Iterator[tuple[str, Table]]:
        for topic in self.topics:
            yield topic, self._tables.get(topic) or self._compute(topic)

    def __getitem__(self, topic: str) -> Table:
        return self._tables.get(topic) or self._compute(topic)

    def table(self) -> Table:
        """Table of the only topic. Raise `UsageError` for several topics, whose columns differ."""
        if len(self.topics) > 1:
            raise UsageError(f"name one topic: {', '.join(self.topics)}")
        return self[self.topics[0]]

    def __repr__(self) -> str:
        return f"<Comparisons: {', '.join(self.topics)}>"

    @cached_property
    def _tables(self) -> dict[str, Table]:
        return {}

    def _compute(self, topic: str) -> Table:
        self._tables[topic] = TABLES[topic]()
        return self._tables[topic]
