"""Difference of a result between two scenarios."""

from __future__ import annotations

from dataclasses import replace

from whatif.core.scenario import Scenario
from whatif.errors import require_choice, require_least
from whatif.studies.attribution import Attribution, attribute
from whatif.studies.bar_charts import names_of
from whatif.vocabulary import GROUPINGS, Grouping


def difference_study(first: Scenario, second: Scenario, result: str, by: Grouping, seed: int) -> Attribution:
    """Attribution of the difference in a result to the parameters, or tables of parameters, that changed."""
    require_choice("by", by, GROUPINGS)
    require_least("seed", seed, 0)
    found = attribute(first.program, second.program, result, by_table=by == "table", seed=seed)
    return replace(found, names=names_of(first, second)).about(first, second)
