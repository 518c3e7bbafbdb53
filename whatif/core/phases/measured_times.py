"""Collectives from tables of measured times."""

from __future__ import annotations

from whatif.core.context import Context
from whatif.core.rank_groups import group_of
from whatif.core.term import Reference
from whatif.errors import did_you_mean
from whatif.models.measured_collectives import TimesBySize, is_tabulated, tabulated_time
from whatif.models.ranks import members_in_domain
from whatif.schema.collective_phase import CollectivePhase
from whatif.schema.network_collectives import MeasuredTimes

TABLES = "platform.network.collectives.measured"


def wire_measured_times(context: Context, name: str, phase: CollectivePhase) -> str:
    """Wire the time of one operation from the tables of the platform; numbers of ranks without a table are refused."""
    stated = _tables(context, name, phase)
    group = group_of(context, f"application.phases.{name}.group", phase.group)
    placed = {**group, "domain_rank_count": context.sharing("inter_node")}
    ranks: dict[str, Reference] = {
        "rank_count": group["group_size"],
        "node_rank_count": context.wiring.add(f"{name}.node_member_count", members_in_domain, placed),
    }
    options = {"tables": tuple(map(_by_size, stated))}
    known = ", ".join(dict.fromkeys(map(_placement, stated)))
    reason = f"{phase.operation} was measured on {known} ({TABLES}, application.rank_count)"
    context.wiring.require(f"{name}.is_measured", reason, is_tabulated, ranks, options=options)
    inputs = {"message_size": f"application.phases.{name}.message_size", **ranks}
    note = "measured alone: groups that run at once share nothing" if phase.group else ""
    return context.wiring.add(f"{name}.operation_time", tabulated_time, inputs, options=options, note=note)


def _tables(context: Context, name: str, phase: CollectivePhase) -> list[MeasuredTimes]:
    """Tables of the operation and the library of a phase."""
    path, platform = f"application.phases.{name}", context.scenario.platform
    collectives, library = platform.network.collectives, "nccl" if phase.model == "nccl" else "mpi"
    of_library = [table for table in (collectives.measured.values() if collectives else ()) if table.library == library]
    known = list(dict.fromkeys(table.operation for table in of_library))
    if phase.operation is None:
        has = f"; {platform.name} has {', '.join(known)}" if known else ""
        context.wiring.problem(f"{path}.operation", f'missing: `algorithm = "measured"` needs the operation{has}')
    elif phase.operation not in known:
        has = f"it has {', '.join(known)}" if known else f"`whatif fit collectives` writes `[{TABLES}]`"
        reason = f"{platform.name} has no measured {phase.operation} of {library}{did_you_mean(phase.operation, known)}"
        context.wiring.problem(f"{path}.operation", f"{reason}; {has}")
    unused = {"distance": phase.distance, "channel_count": phase.channel_count}
    for key, value in {**unused, "imbalance": None if phase.imbalance == 1 else phase.imbalance}.items():
        if value is not None:
            context.wiring.problem(f"{path}.{key}", 'no effect with `algorithm = "measured"`')
    if context.is_simulated:
        context.wiring.problem("application.communication", f"`{name}` has measured times and cannot be simulated")
    context.wiring.raise_problems()
    return [table for table in of_library if table.operation == phase.operation]


def _by_size(table: MeasuredTimes) -> TimesBySize:
    return TimesBySize(float(table.rank_count), float(table.ranks_per_node or 0), *table.numbers())


def _placement(table: MeasuredTimes) -> str:
    return f"{table.rank_count} ranks" + (f", {table.ranks_per_node} of a node" if table.ranks_per_node else "")
