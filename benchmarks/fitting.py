"""Network fits: `python -m benchmarks.fitting` times them; with `validation` it prints the tables of docs/fits.md.

The data are in the developer data folder next to the project (see NOTICE for what may be copied); missing data sets
are skipped with a message.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, median_seconds
from whatif.errors import WhatifError
from whatif.fitting.fit_result import Fit
from whatif.fitting.forms import Form, form_of
from whatif.fitting.message_parameters import PROTOCOLS, NetworkFit, fit_network
from whatif.fitting.segments import segmented
from whatif.importers.message_files import read_network
from whatif.importers.message_tables import measurements
from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.units import BYTE, format_quantity
from whatif.vocabulary import PointWeighting

DATA = Path(__file__).parents[2] / "shared" / "data"
POINT_COUNT = 100_000


@dataclass(frozen=True)
class Source:
    """Measurements of one machine and distance, and the protocol limits stated by its operators."""

    name: str
    path: str
    known: str = "not stated"
    mapping: Mapping[str, str] | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    test: str | None = None

    def read(self) -> Table:
        """The measurements."""
        return read_network(DATA / self.path, self.mapping, self.where)


_LASSEN = {
    "test": "ping_pong",
    "pair_count": "1",
    "message_size": "bytes [B]",
    "time": "oneway_us_maxrank_mean [us]",
}
_SHARED = {"test": "ping_pong", "pair_count": "k_pairs_per_node", "message_size": "bytes [B]", "time": "oneway_us [us]"}
_FUGAKU = {"test": "ping_pong", "pair_count": "1", "message_size": "size (bytes)", "time": "time (seconds)"}
_CRAY = {"test": "ping_pong", "pair_count": "k_pairs", "message_size": "bytes [B]", "time": "oneway_s [s]"}
_OSU = {"test": "ping_pong", "pair_count": "1", "message_size": "bytes [B]", "time": "value [us]"}
_PING_PONG = "choi/network/pingpong_oneway.csv"
_MAX_RATE = "choi/network/maxrate_measured.csv"
_ZHUANG = "network/osu/zhuang_osu_stats.csv"
_STAMPEDE = "network/simgrid_calibration/data/stampede_17_06_01-17:14/calibration/testplatform_PingPong.csv"
_POINT_TO_POINT = "network/fugaku_imb/benchmarks/mpi-point-to-point"


def _osu(site: str, case: str) -> dict[str, str]:
    return {"site": site, "test": "lat", "mpi_case": case, "stat": "mean"}


SOURCES = (
    Source("Lassen between nodes", _PING_PONG, "128 B, 64 KiB", _LASSEN, {"mode": "inter-node"}),
    Source("Lassen between sockets", _PING_PONG, "128 B, 8 or 12 KiB", _LASSEN, {"mode": "inter-socket"}),
    Source("Lassen in a socket", _PING_PONG, "128 B, 8 or 12 KiB", _LASSEN, {"mode": "intra-socket"}),
    Source("Lassen between nodes, 1 to 4 pairs", _MAX_RATE, "128 B, 64 KiB", _SHARED, {"mode": "inter-node"}),
    Source("Lassen between sockets, 1 or 2 pairs", _MAX_RATE, "128 B, 8 or 12 KiB", _SHARED, {"mode": "inter-socket"}),
    Source("Summit between nodes, Netgauge", "network/netgauge/netgauge-summit-one_one.out", "128 B, 64 KiB"),
    Source("Stampede between nodes, 490 random sizes", _STAMPEDE, "17420 B (eager)"),
    Source("Fugaku, IMB in Julia", f"{_POINT_TO_POINT}/julia_imb_pingpong.csv", mapping=_FUGAKU),
    Source("Fugaku, IMB of its owners", f"{_POINT_TO_POINT}/riken_imb_pingpong.csv", mapping=_FUGAKU),
    Source("Pleiades, OSU over InfiniBand", _ZHUANG, mapping=_OSU, where=_osu("pleiades", "Native RDMA")),
    Source("Pleiades, OSU over TCP", _ZHUANG, mapping=_OSU, where=_osu("pleiades", "TCP")),
    Source("AWS c5n, OSU over EFA", _ZHUANG, mapping=_OSU, where=_osu("aws_c5n", "impi_efa")),
    Source("AWS c5n, OSU over TCP", _ZHUANG, mapping=_OSU, where=_osu("aws_c5n", "impi_tcp")),
    Source(
        "Blue Waters, 1 to 16 pairs",
        "network/bluewaters/bluewaters_maxrate.csv",
        "8 KiB (default of its MPI, with headers)",
        _CRAY,
        {"file": "orig/max_rate1"},
    ),
)
# Choi et al., ICS 2020: latency in s, then s/B (Table 2, 3) or B/s (Table 4).
PRINTED = {
    ("postal", "inter-node"): ((1.21e-6, 1.19e-9), (2.86e-6, 1.52e-10), (8.81e-6, 7.18e-11)),
    ("postal", "inter-socket"): ((8.24e-7, 1.05e-9), (1.11e-6, 2.16e-10), (2.54e-6, 1.24e-10)),
    ("postal", "intra-socket"): ((3.61e-7, 1.16e-10), (5.21e-7, 6.44e-11), (2.92e-6, 3.49e-11)),
    ("max_rate", "inter-node"): ((1.55e-6, 8.84e-10), (2.36e-6, 4.92e9, 2.31e9), (1.06e-5, 1.79e10, 2.22e9)),
    ("max_rate", "inter-socket"): ((1.08e-6, 1.45e-9), (1.53e-6, 4.70e9, 3.84e9), (3.41e-6, 8.41e9, 7.09e9)),
}


def available() -> Iterator[tuple[Source, NetworkFit]]:
    """Fits of all available sources."""
    for source in SOURCES:
        if (DATA / source.path).exists():
            yield source, fit_network(source.read(), test=source.test)
        else:
            print(f"left out: {source.name} (no {source.path} in the developer data folder)", file=sys.stderr)


def limits_table() -> Iterator[str]:
    """Table of the limits found and the stated limits, with the error of one line per protocol."""
    yield "| measurements | stated | found (next size) | error | best lines break at | error |"
    yield "|---|---|---|---:|---|---:|"
    for source, fit in available():
        found, lines = fit.segmentations[0], next(tried for tried in fit.segmentations if tried.kind == "lines")
        pairs = zip(found.limits, found.next_sizes, strict=True)
        shown = ", ".join(f"{_size(limit)} ({_size(following)})" for limit, following in pairs) or "none"
        breaks = ", ".join(map(_size, lines.limits)) or "none"
        yield f"| {source.name} | {source.known} | {shown} | {found.error:.1%} | {breaks} | {lines.error:.1%} |"


def sharing_table() -> Iterator[str]:
    """Table of both forms of sharing, with their errors at held-out pair counts or sizes."""
    yield "| measurements | held out: max_rate | injection | recommended | R_Ci of rendezvous, bounded | unbounded |"
    yield "|---|---:|---:|---|---:|---:|"
    for source, fit in available():
        if fit.shared is None:
            continue
        errors = " | ".join(f"{error:.1%}" for error in fit.held_out_errors.values())
        bounded = fit.fit_of("max_rate", "rendezvous").values[2]
        rates = f"{bounded / 1e9:.2f} GB/s | {_unbounded(fit) / 1e9:.2f} GB/s"
        yield f"| {source.name} | {errors} | {fit.recommended} | {rates} |"


def _unbounded(fit: NetworkFit) -> float:
    """R_Ci of rendezvous messages by unbounded least squares, from `scipy.optimize.curve_fit`."""
    from scipy.optimize import curve_fit

    points = fit.points_of("max_rate")
    chosen = points.where(points.message_size > fit.eager_limit)

    def scaled(x: FloatArray, latency: float, base: float, additional: float) -> FloatArray:
        result: FloatArray = latency * 1e-6 + x[0] * x[1] / ((base + (x[1] - 1) * additional) * 1e9)
        return result

    x = np.stack((chosen.message_size, chosen.process_count))
    values, _ = curve_fit(scaled, x, chosen.time, p0=(5, 5, 0.1), sigma=chosen.time)
    return float(values[2]) * 1e9


def paper_table() -> Iterator[str]:
    """Rows of Tables 2 to 4 of paper 1 for Lassen: printed values, our fits with both weightings, and their errors."""
    yield "| table | protocol | printed | its weighting, our fit | relative, our fit | error printed | ours |"
    yield "|---|---|---|---|---|---:|---:|"
    for (model, mode), printed in PRINTED.items():
        weighting: PointWeighting = "uniform" if model == "postal" else "sqrt_size"
        for protocol, values in zip(PROTOCOLS, printed, strict=True):
            own, limits = _own_rows(model, mode, protocol)
            fits = [fit_network(own, limits=limits, weighting=way) for way in (weighting, "relative")]
            parts = [fit.fit_of(model, protocol) for fit in fits]  # type: ignore[arg-type]
            form = form_of(model, protocol)
            stated = np.array([values[0], 1 / values[1]] if len(values) == 2 else values)
            shown = " | ".join(_values(part.values) for part in parts)
            error = f"{_error(form, stated, fits[0], parts[0]):.1%} | {parts[1].error:.1%}"
            yield f"| {_TABLES[model, protocol]}, {mode} | {protocol} | {_values(stated)} | {shown} | {error} |"


_TABLES = {("postal", protocol): 2 for protocol in PROTOCOLS} | {
    ("max_rate", "short"): 3,
    ("max_rate", "eager"): 4,
    ("max_rate", "rendezvous"): 4,
}


def _logged(folder: Path) -> Table:
    """Mean over both ranks and all iterations by size."""
    tables = {int(path.stem[:-1]): read_network(path) for path in folder.glob("*b.out")}
    sizes = sorted(tables)
    times = [float(np.mean(tables[size].columns["time"].values)) for size in sizes]
    return measurements({"test": "ping_pong", "message_size": sizes, "time": times, "pair_count": 1.0}, {})


def _own_rows(model: str, mode: str, protocol: str) -> tuple[Table, tuple[float, float]]:
    """Rows that the authors assigned to a protocol, with limits that assign them to it here."""
    limits = {"short": (1e9, 1e9), "eager": (0.0, 1e9), "rendezvous": (0.0, 0.0)}[protocol]
    if model == "max_rate":
        return read_network(DATA / _MAX_RATE, _SHARED, {"mode": mode, "protocol": protocol}), limits
    off_node = mode == "inter-node"
    folder = DATA / "choi/network/raw" / f"lassen-{mode}"
    table = read_network(DATA / _PING_PONG, _LASSEN, {"mode": mode}) if off_node else _logged(folder)
    # Inside the node the authors leave out 4 MiB, which exceeds the caches.
    bounds = (0.0, 128.0, 65536.0 if off_node else 8192.0, 2.0**22 if off_node else 2.0**21)
    place, size = PROTOCOLS.index(protocol), table.columns["message_size"].values
    chosen = (size > bounds[place]) & (size <= bounds[place + 1])
    return measurements({name: column.values[chosen] for name, column in table.columns.items()}, {}), limits


def _error(form: Form, values: FloatArray, fit: NetworkFit, part: Fit) -> float:
    points = fit.points if ".postal." in part.path or fit.shared is None else fit.shared
    times = form.time(points.message_size, points.process_count, values)
    return float(np.sqrt(np.mean((times / points.time - 1.0) ** 2)))


def _values(values: FloatArray) -> str:
    rates = ", ".join(f"{rate / 1e9:.3g}" for rate in values[1:])
    return f"{values[0] * 1e6:.3g} µs, {rates} GB/s"


def _size(size: float) -> str:
    return format_quantity(size, BYTE)


def fitting() -> Iterator[Row]:
    """Time to read and fit all network data, to move one limit, and to find segments among 10^5 points."""
    start = time.perf_counter()
    fits = list(available())
    if fits:
        elapsed = time.perf_counter() - start
        yield Row(f"{len(fits)} sets of network data read and fitted", f"{elapsed:.2f} s")
        shared = next((fit for source, fit in fits if "1 to 16" in source.name), fits[0][1])
        seconds = median_seconds(lambda: shared.with_limits(512, 8192), 9)
        yield Row("a protocol limit moved, all refitted", f"{seconds * 1e3:.1f} ms")
    yield from segments()


def segments() -> Iterator[Row]:
    """Time to find three segments among 10^5 points, with fewer points for slower libraries."""
    random = np.random.default_rng(1)
    x = np.sort(random.uniform(0, 1, POINT_COUNT))
    y = np.where(x < 0.2, 1 + x, np.where(x < 0.7, 2 + 3 * x, 5 + x)) + random.normal(0, 0.05, POINT_COUNT)
    ours = median_seconds(lambda: segmented(x, y, most_segments=3), 3)
    for name, other, count in (("ruptures", _ruptures, 2000), ("pwlf", _pwlf, POINT_COUNT)):
        step = POINT_COUNT // count
        same = median_seconds(lambda step=step: segmented(x[::step], y[::step], most_segments=3), 3)  # type: ignore[misc]
        try:
            started = time.perf_counter()
            other(x[::step], y[::step])
            elapsed = time.perf_counter() - started
        except ImportError:
            print(f"left out: {name} is not installed", file=sys.stderr)
            continue
        what = f"three segments among {count:,} points"
        yield Row(what, f"{same * 1e3:.0f} ms", f"{elapsed:.2f} s", elapsed / same, f"{name}, the same points")
    yield Row(f"three segments among {POINT_COUNT:,} points", f"{ours:.2f} s")


def _ruptures(x: FloatArray, y: FloatArray) -> None:
    import ruptures

    signal = np.column_stack((y, x, np.ones_like(x)))
    ruptures.Dynp(model="linear", min_size=2, jump=max(len(x) // 200, 1)).fit(signal).predict(n_bkps=2)


def _pwlf(x: FloatArray, y: FloatArray) -> None:
    import pwlf

    pwlf.PiecewiseLinFit(x, y).fitfast(3, pop=3)


def main() -> None:
    """Print the benchmark; with `validation`, the tables of docs/fits.md."""
    if sys.argv[1:] == ["validation"]:
        for title, lines in (("Limits", limits_table), ("Sharing", sharing_table), ("Tables 2 to 4", paper_table)):
            print(f"## {title}\n\n" + "\n".join(lines()) + "\n")
        return
    for row in fitting():
        ratio = f"{row.ratio:,.1f} x" if row.alternative else ""
        print(f"{row.what:58} {row.this:>14} {row.other:>14} {ratio:>10}  {row.alternative}")


if __name__ == "__main__":
    try:
        main()
    except WhatifError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
