"""Latencies of the protocols of assumed networks: `python -m benchmarks.protocol_latencies`.

It prints the table of docs/fits.md. A network is described by the latency L of its short messages and the bandwidth R
of its long ones; eager and rendezvous messages take longer by overheads of the software, which are fitted to the other
networks. The data are those of `benchmarks.fitting`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import least_squares

from benchmarks.fitting import available
from whatif.models.quantities import FloatArray

LIMITS = {
    "Summit between nodes, Netgauge": (128, 65536),
    "Lassen between nodes": (128, 65536),
    "Stampede between nodes, 490 random sizes": (128, 17420),
    "Fugaku, IMB in Julia": (16, 8192),
    "Pleiades, OSU over InfiniBand": (128, 16384),
    "AWS c5n, OSU over EFA": (128, 8192),
    "Blue Waters, 1 to 16 pairs": (128, 8192),
}
"""Networks and their short and eager limits, as stated or found (docs/fits.md)."""
HELD_OUT_TOGETHER = ({"Summit between nodes, Netgauge", "Lassen between nodes"},)
"""Networks of the same kind, of which none is fitted to the others."""
SHARES = np.array([0.087 / 1.01, 0.087 / 0.155, 1.0])
"""Bandwidth of each protocol over that of rendezvous messages on Summit (Choi et al., Table 2)."""
RATIOS = np.array([1.0, 2.86 / 1.24, 7.59 / 1.24])
"""Latency of each protocol over that of short messages there."""
MIDDLE = 128, 65536
"""Sizes in B of the column of errors of eager messages: above the first, up to the second."""
MICRO = 1e-6


@dataclass(frozen=True)
class Network:
    """Ping-pongs of one pair: the median time of each half octave of sizes."""

    size: FloatArray
    time: FloatArray
    limits: tuple[int, int]

    @property
    def latency(self) -> float:
        """Time of the shortest messages, L."""
        return float(np.median(self.time[self.size <= 16]))

    @property
    def bandwidth(self) -> float:
        """Bandwidth of the longest messages, R."""
        longest = self.size >= self.size.max() / 2
        return float(np.median(self.size[longest] / self.time[longest]))

    def residuals(self, latencies: FloatArray) -> FloatArray:
        """Logarithms of predicted over measured times with a latency of each protocol."""
        protocol = np.searchsorted(self.limits, self.size)
        predicted = latencies[protocol] + self.size / (SHARES[protocol] * self.bandwidth)
        return np.asarray(np.log(predicted / self.time))

    def added(self, overheads: Iterable[float]) -> FloatArray:
        """Latencies of the protocols: those of eager and rendezvous messages exceed L by overheads."""
        return self.latency + np.array([0.0, *overheads]) * MICRO


def networks() -> dict[str, Network]:
    """Networks whose data are available."""
    found = {}
    for source, fit in available():
        if source.name in LIMITS:
            points = fit.points_of("postal")
            chosen = (points.message_size >= 1) & (points.message_size <= 2**22)
            size, time = points.message_size[chosen], points.time[chosen]
            step = np.round(2 * np.log2(size))
            middle = [np.exp(np.median(np.log([size[step == at], time[step == at]]), axis=1)) for at in np.unique(step)]
            sizes, times = np.array(middle).T
            found[source.name] = Network(sizes, times, LIMITS[source.name])
    return found


def overheads_of(chosen: Iterable[Network]) -> FloatArray:
    """Overheads of eager and rendezvous messages in us that fit all networks best, each with the same weight."""
    kept = list(chosen)

    def residuals(overheads: FloatArray) -> FloatArray:
        return np.concatenate([net.residuals(net.added(overheads)) / math.sqrt(len(net.size)) for net in kept])

    return np.asarray(least_squares(residuals, [1.0, 5.0], loss="soft_l1", f_scale=0.1).x)


def table() -> Iterator[str]:
    """Rows of docs/fits.md: overheads fitted to other networks, and the errors with them, held out."""
    found = networks()
    columns = (
        "network",
        "L",
        "R",
        "added, by the others",
        "error",
        "bias",
        "129 B to 64 KiB",
        "bias",
        "in ratio to L",
        "bias",
    )
    yield f"| {' | '.join(columns)} |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    rows = []
    for name, net in found.items():
        away = next((group for group in HELD_OUT_TOGETHER if name in group), {name})
        overheads = overheads_of(other for key, other in found.items() if key not in away)
        rows.append([*_errors(net, net.added(overheads)), *_errors(net, net.latency * RATIOS)[2:]])
        described = f"{net.latency / MICRO:.2f} us | {net.bandwidth / 1e9:.2f} GB/s"
        added = ", ".join(f"{overhead:.2f}" for overhead in overheads)
        yield f"| {name} | {described} | {added} us | {_cells(rows[-1])} |"
    added = ", ".join(f"{overhead:.2f}" for overhead in overheads_of(found.values()))
    yield f"| mean; fitted to all | | | {added} us | {_cells(np.mean(rows, axis=0))} |"


def _errors(net: Network, latencies: FloatArray) -> list[float]:
    """Mean absolute error and bias over all sizes, and over those of the eager protocol."""
    error = np.exp(net.residuals(latencies)) - 1
    middle = error[(net.size > MIDDLE[0]) & (net.size <= MIDDLE[1])]
    return [float(part) for errors in (error, middle) for part in (np.abs(errors).mean(), errors.mean())]


def _cells(row: Iterable[float]) -> str:
    shown = (partial("{:.0%}".format), partial("{:+.0%}".format))
    return " | ".join(shown[at % 2](value) for at, value in enumerate(row))


if __name__ == "__main__":
    print("\n".join(table()))
