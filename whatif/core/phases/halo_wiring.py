"""Halo phase during wiring, as its parts share it: modelled, simulated and congested exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from whatif.core.context import Context
from whatif.core.phases.device_messages import distance_time, from_memory
from whatif.core.phases.message import message_time
from whatif.core.term import Reference
from whatif.models import placement
from whatif.models.phase import busy_time
from whatif.schema.application import HaloPhase

_GRID_COUNTS: Final[Mapping[str, Callable[..., Any]]] = {
    "rank_counts": placement.rank_message_counts,
    "node_counts": placement.node_message_counts,
    "inter_node_count": placement.inter_node_count,
    "total_count": placement.total_count,
}
_BOX_COUNTS: Final[Mapping[str, Callable[..., Any]]] = {
    "rank_counts": placement.box_rank_message_counts,
    "node_counts": placement.box_node_message_counts,
    "inter_node_count": placement.box_inter_node_count,
    "total_count": placement.box_total_count,
}


@dataclass(frozen=True)
class HaloWiring:
    """Halo phase during wiring: its path, and the inputs of its counting functions."""

    context: Context
    name: str
    phase: HaloPhase
    placed: Mapping[str, Reference]
    options: Mapping[str, Any]
    sizes: str

    @property
    def is_concurrent(self) -> bool:
        """Whether the messages of a rank travel at once; those of `node_aware` follow one another."""
        return self.phase.concurrency == "concurrent" and self.phase.model != "node_aware"

    def count(self, quantity: str) -> str:
        """A term that counts messages from the placement: on the grid, or between boxes of a bisection."""
        boxes = self.context.grid.decomposition == "bisection"
        function = _BOX_COUNTS[quantity] if boxes else _GRID_COUNTS[quantity]
        return self.context.wiring.add(f"{self.name}.{quantity}", function, self.placed, options=self.options)

    def message_time(self, model: str, distance: str, process_count: Reference) -> str:
        """The time of a message of each kind over a distance."""
        return distance_time(self.context, self.name, model, distance, self.sizes, process_count)

    def busy_time(self, distance: str) -> str:
        """The time that a rank is busy with a message of each kind inside its node."""
        context, shared = self.context, self.context.sharing(distance)

        def busy() -> str:
            time = message_time(context, self.name, "postal", distance, self.sizes, shared)
            return context.wiring.add(f"{self.name}.{distance}.busy_time", busy_time, {"message_time": time})

        return self.from_memory(distance, busy)

    def from_memory(self, distance: str, sent: Callable[[], str]) -> str:
        """A time of messages over a distance, with their path from the memory that holds their data."""
        return from_memory(self.context, f"{self.name}.{distance}", distance, self.sizes, sent)
