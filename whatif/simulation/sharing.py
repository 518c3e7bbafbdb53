"""Links shared by flows: max-min fair rates by progressive filling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.simulation.flat_lists import list_starts


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """The links that each of many flows crosses, flow after flow."""

    start: NDArray[np.int64]
    """[flow + 1]: index of the first link of a flow."""
    link: NDArray[np.int32]
    """Numbers of links, those of one flow in crossing order."""

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def hop_count(self) -> NDArray[np.int64]:
        """[flow]: how many links it crosses."""
        return np.diff(self.start)

    @property
    def flow(self) -> NDArray[np.int64]:
        """[entry]: the flow that an entry of `link` belongs to."""
        return np.repeat(np.arange(len(self)), self.hop_count)

    def sums(self, values: FloatArray) -> FloatArray:
        """[flow]: the sum of a value of each link, such as its latency, over the route."""
        sums: FloatArray = np.bincount(self.flow, weights=values[self.link], minlength=len(self)).astype(np.float64)
        return sums


def routes_from_lists(lists: list[list[int]]) -> Routes:
    """Routes out of a list of links for each flow."""
    lengths = np.array([len(links) for links in lists], dtype=np.int64)
    return Routes(list_starts(lengths), np.array([link for links in lists for link in links], dtype=np.int32))


def max_min(routes: Routes, capacities: FloatArray, rate_limits: FloatArray | None = None) -> FloatArray:
    """Max-min fair rate of each flow in B/s: no rate can grow unless that of a flow with no more gets less.

    `capacities` [link] in B/s, > 0, may be infinite; `rate_limits` [flow] in B/s, > 0. A flow without links or limits
    has an infinite rate. Raises UsageError for other values.
    Source: Bertsekas, Gallager, "Data Networks", Sec. 6.5.2; links that are bottlenecks of all their flows are
    filled at the same time, so that the rounds are few.
    """
    flow, link = routes.flow, routes.link
    limits = np.full(len(routes), np.inf) if rate_limits is None else np.array(rate_limits, dtype=np.float64)
    for name, values in (("capacity", capacities), ("rate limit", limits)):
        require_positive(name, values)
    held = np.isfinite(capacities)[link]
    return _fill(flow[held], link[held], capacities, limits)


def _fill(flow: NDArray[np.int64], link: NDArray[np.int32], capacities: FloatArray, limits: FloatArray) -> FloatArray:
    rates, remaining = limits.copy(), capacities.copy()
    while len(flow):
        usage = np.bincount(link, minlength=len(capacities))
        levels = np.divide(remaining, usage, out=np.full(len(capacities), np.inf), where=usage > 0)
        flow_levels = limits.copy()
        np.minimum.at(flow_levels, flow, levels[link])
        lowest = np.full(len(capacities), np.inf)
        np.minimum.at(lowest, link, flow_levels[flow])
        # No link gets less for the others later, so a limit that is lower than all of them is final.
        settled = (flow_levels == limits)[flow] | ((levels[link] == flow_levels[flow]) & (lowest[link] == levels[link]))
        done = np.zeros(len(rates), dtype=np.bool_)
        done[flow[settled]] = True
        rates[done] = flow_levels[done]
        gone = done[flow]
        remaining -= np.bincount(link[gone], weights=rates[flow[gone]], minlength=len(capacities))
        np.maximum(remaining, 0.0, out=remaining)
        flow, link = flow[~gone], link[~gone]
    return rates


def require_positive(name: str, values: FloatArray) -> None:
    """Raise UsageError unless all values are > 0; NaN is not."""
    bad = np.flatnonzero(~(np.asarray(values) > 0))
    if len(bad):
        raise UsageError(f"{name} {bad[0]} is {np.asarray(values).flat[bad[0]]:g}: must be > 0")
