"""Options of a study: named changes of its values, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whatif.errors import WhatifError
from whatif.schema.study_spec import flattened

if TYPE_CHECKING:
    from whatif.studies.procurement.study import Study


@dataclass(frozen=True, eq=False)
class Option:
    """A named change, and the study with it."""

    name: str
    study: Study

    def worth(self, before: Study, bid: str) -> float:
        """Amount by which a node may cost more with the option for the same throughput per money.

        As money buys nodes in proportion, it is the price of a node times the ratio of the throughputs per node, less
        the price. NaN for a bid without a price, and where the option does not move the throughput.
        """
        one, other = before.outcomes[bid], self.study.outcomes[bid]
        each = one.bought_node_price
        ratio = (other.throughput[0] / other.node_count[0]) / (one.throughput[0] / one.node_count[0])
        moves = math.isfinite(each * ratio) and not math.isclose(ratio, 1.0, rel_tol=1e-9)
        return float(each * (ratio - 1)) if moves else math.nan


def options(study: Study) -> Iterator[Option]:
    """Options that the study names, in its order. Raise `InvalidFileError` at an option that cannot be evaluated."""
    from whatif.studies.procurement.study import study_of
    from whatif.studies.procurement.sweeping import absolute_values

    for name, tables in study.file.spec.options.items():
        document = study.file.document
        try:
            overrides = absolute_values(document, dict(flattened(tables)), study.overrides)
            changed = study_of(document, overrides, cache=study.cache)
        except WhatifError as problem:
            raise study.file.refused(f"options.{name}", str(problem).removeprefix("--set ")) from None
        yield Option(name, changed)
