"""Comparisons of the models with measurements and other simulators, by topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property

from whatif.errors import ToleranceError, UsageError, did_you_mean
from whatif.limits import LONG_TOPICS, TOPIC_GROUPS, VALIDATION_TOPICS
from whatif.linpack.threads import Share, silent
from whatif.plotting.presentable import Presentable
from whatif.table import Table
from whatif.units import ONE
from whatif.validation.measured_kinds import ErrorTable
from whatif.validation.tables import TABLES


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(Presentable):
    """Tables by topic, each computed when it is first used: iterate for `(topic, table)`."""

    topics: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Topics that take minutes and were not asked for."""

    @classmethod
    def of(cls, topics: Sequence[str]) -> Comparisons:
        """Comparisons of some topics, by default all that take seconds. Raise `UsageError` for an unknown topic."""
        known = (*TABLES, *TOPIC_GROUPS)
        for topic in topics:
            if topic not in known:
                raise UsageError(f"`{topic}`: no such topic{did_you_mean(topic, known)}")
        if topics:
            return cls(tuple(dict.fromkeys(name for topic in topics for name in TOPIC_GROUPS.get(topic, (topic,)))))
        return cls(tuple(topic for topic in VALIDATION_TOPICS if topic not in LONG_TOPICS), LONG_TOPICS)

    @property
    def notes(self) -> tuple[str, ...]:
        """Topics that were left out."""
        named = " ".join(self.left_out)
        return (f"left out, as they take minutes: `whatif validate {named}`",) if named else ()

    def __iter__(self) -> Iterator[tuple[str, ErrorTable]]:
        for topic in self.topics:
            yield topic, self[topic]

    def __getitem__(self, topic: str) -> ErrorTable:
        return self.compute(topic)

    def table(self) -> Table:
        """Table of the only topic. Raise `UsageError` for several topics, whose columns differ."""
        if len(self.topics) > 1:
            raise UsageError(f"name one topic: {', '.join(self.topics)}")
        return self[self.topics[0]]

    def mean_errors(self) -> Table:
        """Number of rows, mean absolute error and bias by topic and kind of rows.

        The bias is missing where only absolute errors are known, the bound where none is stated.
        """
        columns = {"topic": None, "kind": None, "rows": ONE, "mean_absolute_error": ONE, "bias": ONE, "bound": ONE}
        cells = [(topic, *astuple(mean)) for topic, table in self for mean in table.means]
        return Table.of_rows(
            columns, cells, {"title": "mean errors of the models"}, ("mean_absolute_error", "bias", "bound")
        )

    def raise_if_beyond(self) -> None:
        """Raise `ToleranceError` if a mean error is beyond the bound of its table."""
        beyond = [f"{topic}: {text}" for topic, table in self if (text := table.notes.get("beyond"))]
        if beyond:
            raise ToleranceError("; ".join(beyond))

    def __repr__(self) -> str:
        return f"<Comparisons: {', '.join(self.topics)}>"

    @cached_property
    def _tables(self) -> dict[str, ErrorTable]:
        return {}

    def compute(self, topic: str, progress: Share = silent) -> ErrorTable:
        """Table of a topic; `progress` receives the finished share of one that takes minutes."""
        if topic not in self._tables:
            self._tables[topic] = TABLES[topic](progress) if topic in LONG_TOPICS else TABLES[topic]()
        return self._tables[topic]
