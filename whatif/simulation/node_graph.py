"""The links inside a node, and what copies get that share them (the extension that AHEAD proposes, Sec. IX)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whatif.errors import UsageError, did_you_mean
from whatif.models.quantities import FloatArray
from whatif.simulation.sharing import max_min, require_positive, routes_from_lists


@dataclass(frozen=True, slots=True)
class NodeGraph:
    """Processors, devices and switches by name such as `cpu0`, `gpu1`, `switch0`, and the links between them."""

    links: Mapping[str, tuple[str, str, float]]
    """Name of a link: its two ends, and its bandwidth in B/s, which it has in both directions at the same time."""

    def __post_init__(self) -> None:
        require_positive("bandwidth of link", np.array([bandwidth for *_, bandwidth in self.links.values()]))

    @property
    def ends(self) -> list[str]:
        """Ends of the links, in the order of the links."""
        return list(dict.fromkeys(end for one, other, _ in self.links.values() for end in (one, other)))

    def route(self, source: str, destination: str) -> list[int]:
        """Route with the fewest links between two ends: 2 l is link l from its first end to its second, 2 l + 1 back.

        Of several such routes it is the one whose links are stated first. Only switches and processors (ends not
        named `gpu..`) forward messages. Raises UsageError for ends that are unknown or not connected.
        """
        self._require(source)
        self._require(destination)
        came: dict[str, tuple[str, int]] = {source: (source, -1)}
        waiting = deque([source])
        while waiting and destination not in came:
            here = waiting.popleft()
            for there, direction in self._beside(here) if here == source or not here.startswith("gpu") else ():
                if there not in came:
                    came[there] = here, direction
                    waiting.append(there)
        if destination not in came:
            raise UsageError(f"no links lead from `{source}` to `{destination}`")
        return _walked(came, destination)

    def _beside(self, here: str) -> list[tuple[str, int]]:
        found = []
        for number, (one, other, _) in enumerate(self.links.values()):
            if here in (one, other):
                found.append((other, 2 * number) if here == one else (one, 2 * number + 1))
        return found

    def _require(self, end: str) -> None:
        if end not in self.ends:
            raise UsageError(f"no link of the node ends at `{end}`{did_you_mean(end, self.ends)}")


def _walked(came: Mapping[str, tuple[str, int]], destination: str) -> list[int]:
    """The directed links back from a destination to where the search began, in the order of travel."""
    route: list[int] = []
    here, direction = came[destination]
    while direction >= 0:
        route.append(direction)
        here, direction = came[here]
    return route[::-1]


def concurrent_bandwidths(
    graph: NodeGraph, transfers: Sequence[tuple[str, str]], rate_limits: FloatArray | None = None
) -> FloatArray:
    """Bandwidth in B/s of each of the transfers (source, destination) that all run at the same time.

    Max-min fair over the directed links of their routes; `rate_limits` [transfer] in B/s, > 0, is what each reaches
    alone, such as the `effective_bandwidth` of its size. A transfer within one end is limited by that alone.
    Raises UsageError for ends that are unknown or not connected.
    """
    routes = routes_from_lists([graph.route(source, destination) for source, destination in transfers])
    capacities = np.repeat(np.array([bandwidth for *_, bandwidth in graph.links.values()], dtype=np.float64), 2)
    return max_min(routes, capacities, rate_limits)
