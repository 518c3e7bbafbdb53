"""Collectives of the groups of ranks of a transformer: ranks, those in a link domain, buffer and time of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from whatif.core.term import Program, Reference
from whatif.units import Quantity

_END: Final = ".operation_time"


class GroupCollective(NamedTuple):
    """One collective of a group, in base units."""

    name: str
    ranks: float
    """Ranks of the group."""
    in_domain: float
    """Ranks of the group in one link domain."""
    size: float
    """Bytes of the buffer."""
    time: float
    """Time of one operation."""
    whole: float
    """Time of all operations of a step, or of a prompt, whether or not computation hides them."""
    hidden: float | None
    """Share of it that computation hides; None if the plan states none."""


def group_collectives(program: Program, values: Mapping[str, Any]) -> Iterator[GroupCollective]:
    """Collectives that take time, in the order of their terms."""

    def number(reference: Reference) -> float:
        return float(reference.value if isinstance(reference, Quantity) else values[reference])

    for term, entry in program.terms.items():
        name = term.removesuffix(_END)
        if term == name or "rank_count" not in entry.inputs:
            continue
        known = (f"{name}.communication_time", f"{name}.operation_times", name)
        whole = next((float(values[item]) for item in known if item in values), 0.0)
        if not whole > 0:
            continue
        ranks, members, size = (
            number(entry.inputs[key]) for key in ("rank_count", "domain_rank_count", "message_size")
        )
        hidden = 1 - float(values[name]) / whole if known[0] in values else None
        words = name.replace("_", " ").replace(".", " ")
        yield GroupCollective(words, ranks, members, size, float(values[term]), whole, hidden)
