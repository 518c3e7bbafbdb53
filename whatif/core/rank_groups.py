"""Groups of ranks: sizes and strides of nested axes, wired when a collective names one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whatif.core.term import Reference
from whatif.errors import did_you_mean
from whatif.models.ranks import is_multiple, ranks_together
from whatif.units import ONE, Quantity

if TYPE_CHECKING:
    from whatif.core.context import Context

_DIVIDE = "groups divide"


def group_of(context: Context, path: str, name: str | None) -> dict[str, Reference]:
    """Size and stride of the groups that the parameter at a path names; all ranks without a name."""
    if name is None:
        return {"group_size": context.placed_count, "group_stride": Quantity(1.0, ONE)}
    groups = context.scenario.application.groups
    if name not in groups:
        known = f"; known: {', '.join(groups)}" if groups else "; state `[application.groups]`"
        reason = f"`{name}`: no such group{did_you_mean(name, groups) or known}"
        context.wiring.refuse(path, reason)
    return {"group_size": f"application.groups.{name}.size", "group_stride": _strides(context)[name]}


def _strides(context: Context) -> dict[str, Reference]:
    """Distance between the ranks of each kind of groups; all kinds together divide the ranks."""
    strides: dict[str, Reference] = {}
    spanned: Reference = Quantity(1.0, ONE)
    for key in context.scenario.application.groups:
        strides[key] = spanned
        inputs: dict[str, Reference] = {"group_stride": spanned, "group_size": f"application.groups.{key}.size"}
        spanned = context.once(f"groups.{key}.spanned_count", ranks_together, **inputs)
    if _DIVIDE not in context.wiring.terms:
        reason = "the groups do not divide the ranks (application.groups, application.rank_count)"
        checked = {"count": context.rank_count, "divisor": spanned}
        context.wiring.require(_DIVIDE, reason, is_multiple, checked)
    return strides
