"""Collective phase during wiring, as its parts share it: its algorithm, group and buffer."""

from __future__ import annotations

from dataclasses import dataclass

from whatif.core.context import Context
from whatif.core.rank_groups import group_of
from whatif.core.term import Reference
from whatif.schema.collective_phase import CollectivePhase


@dataclass(frozen=True)
class CollectiveWiring:
    """Algorithm of a collective phase during wiring; the names of its terms begin with `name`."""

    context: Context
    phase_name: str
    phase: CollectivePhase
    algorithm: str
    name: str
    size: Reference

    @property
    def schedule(self) -> str:
        """Name of the algorithm in `collective_stages`, where a tree is either a broadcast or a reduction."""
        tree = self.algorithm == "binomial_tree" and self.phase.operation == "reduce"
        return "binomial_reduce" if tree else self.algorithm

    @property
    def group(self) -> dict[str, Reference]:
        """Size and stride of the groups."""
        return group_of(self.context, f"application.phases.{self.phase_name}.group", self.phase.group)
