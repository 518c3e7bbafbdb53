"""Questions to the vendors as a part of the page of a study: assumed values by their effect, and what else is open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from whatif.reporting.sections import ReportItem, ReportTable, Section
from whatif.reporting.study_sections import sheet
from whatif.studies.procurement.questions import STEP, Assumption, assumptions, other_questions
from whatif.studies.procurement.study import Study
from whatif.units import counted

_LEAST: Final = 0.0005
"""Effect on the throughput below which it is shown as none."""
_PLATFORM: Final = "platform."


@dataclass(frozen=True, slots=True)
class BidQuestions:
    """Questions to one vendor."""

    bid: str
    sentences: tuple[str, ...]
    section: Section


def questions(found: Study) -> tuple[BidQuestions, ...]:
    """Questions by bid."""
    known, others = assumptions(found), list(other_questions(found))
    items = [
        BidQuestions(
            bid,
            tuple(text for name, text in others if name == bid),
            _section([item for item in known if item.bid == bid]),
        )
        for bid in found.bids
    ]
    return tuple(item for item in items if item.sentences or item.section)


def _section(items: list[Assumption]) -> Section:
    telling = [item for item in items if item.weight >= _LEAST]
    rest = [item for item in items if item.weight < _LEAST]
    parts = []
    if telling:
        parts.append(ReportItem(title="Assumed values that the throughput of the mix follows", sheet=_telling(telling)))
    if rest:
        title = (
            f"{counted(len(rest), 'other assumed value')}: counts, values of 0, and values that change the "
            f"throughput by less than {_LEAST:.2%} if they are {STEP:.0%} lower or higher"
        )
        heads = ("value", "assumed", "meaning")
        rows = [(_path(item), item.text, _meaning(item)) for item in rest]
        parts.append(ReportItem(title=title, sheet=sheet(heads, rows, heads[-1:])))
    return tuple(parts)


def _telling(items: list[Assumption]) -> ReportTable:
    heads = ("value", "assumed", f"{STEP:.0%} lower", f"{STEP:.0%} higher", "meaning")
    rows = [(_path(item), item.text, _effect(item.lower), _effect(item.higher), _meaning(item)) for item in items]
    return sheet(heads, rows, heads[-1:])


def _path(item: Assumption) -> str:
    return item.parameter.path.removeprefix(_PLATFORM)


def _meaning(item: Assumption) -> str:
    return " ".join(item.parameter.description.split())


def _effect(change: float) -> str:
    """Change of the throughput of the mix."""
    return f"{change:+.1%}" if math.isfinite(change) else "-"
