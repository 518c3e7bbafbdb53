"""Messages in as many ranges of sizes as a calibration has (M'), and the modes of their time (N').

A ping-pong measures a message there and back; a `send` or `isend`, and a `recv` of a message that has arrived,
measure the time that the two processes are busy. Where the sender does not wait for the receiver,
one way = send_overhead + n / send_bandwidth + latency + n / bandwidth + receive_overhead + n / receive_bandwidth;
where it waits, its call lasts as long as the message, and latency + n / bandwidth is all. Breakpoints are common to
all calls (`whatif.fitting.segments`). Source: Cornebize et al. 2019, section 6.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.fitting.fit_result import Fit, range_of, root_mean_square
from whatif.fitting.input_checks import POOR, falls, refuse_invalid_numbers
from whatif.fitting.linear import bounded_line, covariance, moments, non_negative
from whatif.fitting.mixture import Mixture, mixture
from whatif.fitting.segments import Segments, segmented
from whatif.models.quantities import FloatArray
from whatif.table import Column, Table, share_column
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, SECOND, counted

MOST_PIECES: Final = 10
FEWEST_OF_PIECE: Final = 6
"""Different sizes of a piece."""
MODE_NOISES: Final = ("N-0", "N'")
_PING_PONG: Final = ("pingpong", "ping_pong", "ping-pong")
_SENDS: Final = ("send", "isend")
_WORDS: Final = {"way": "pingpong", "send": "send", "receive": "recv"}
_WAITING: Final = 0.5
"""Share of a message's time from which a send counts as waiting for it."""
_BOTH_WAYS: Final = 1.5
"""Times the longest receives: ping-pongs that take longer were timed there and back."""
_ROUNDING: Final = 1e-9
_LEAST_SLOPE: Final = 1e-3
"""Share of the time of a byte that the way between the two processes has at least."""


@dataclass(frozen=True, eq=False)
class PiecesFit:
    """The pieces of one distance."""

    path: str
    """`network.inter_node.pieces`."""
    fits: tuple[Fit, ...]
    """One for each piece, `PATH.piece1`, and one for each mode of it, `PATH.piece1.modes.mode1`."""
    comparison: Table
    """`piece_count`, `breaks`, `criterion` (BIC), and `error` of all calls, in units of the scatter of each call."""
    points: Table
    """The ping-pongs: `message_size`, `time` one way, `fitted_time`, `residual`."""
    remarks: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Calls:
    """Times of one call by size; of a ping-pong one way."""

    size: FloatArray
    time: FloatArray
    scatter: float
    """Relative, about its own best lines."""

    @property
    def weights(self) -> FloatArray:
        return (self.scatter * self.time) ** -2.0


@dataclass(frozen=True, eq=False)
class _Line:
    """Overhead or latency, and time of a byte, of some messages."""

    values: FloatArray
    covariance: FloatArray

    def __call__(self, size: FloatArray) -> FloatArray:
        line: FloatArray = self.values[0] + self.values[1] * size
        return line


_NOTHING: Final = _Line(np.zeros(2), np.full((2, 2), np.nan))


@dataclass(frozen=True, eq=False)
class _Piece:
    start: float
    size: FloatArray
    time: FloatArray
    way: _Line
    send: _Line
    receive: _Line
    share: float
    """Counted part of the receiver's call, which alone may take longer than a ping-pong leaves for it."""
    bound: bool
    """Whether the time of a byte between the processes is only the least there may be."""
    modes: Mixture

    @property
    def fitted(self) -> FloatArray:
        return self.send(self.size) + self.way(self.size) + self.receive(self.size)

    @property
    def error(self) -> float:
        """Root mean square of the relative residuals."""
        return root_mean_square(self.fitted / self.time - 1)


def fit_pieces(table: Table, distance: str = "inter_node", noise: str | None = None) -> PiecesFit:
    """Fit pieces to the times of single calls: `test` (`pingpong`, `send`, `isend`, `recv`), `message_size`, `time`.

    The number of pieces is that of least criterion, up to `MOST_PIECES`; lines are fitted to relative residuals, with
    neither latency nor time of a byte below zero. `noise` N' or None: the modes of each piece's relative residuals are
    1 to 4 normals by the criterion, a single one is not stored; N-0: none. The standard errors of latency and
    bandwidth take the overheads as exact. Raise `UsageError` if there is no ping-pong, too few sizes, and for times
    that are impossible or fall with the size.
    """
    if noise not in (None, *MODE_NOISES):
        raise UsageError(f"unknown noise of messages `{noise}`; there are {', '.join(MODE_NOISES)}")
    calls, remarks = _calls(table)
    tried = tuple(item for item in _segmented(calls) if _shown(item, calls["way"].size))
    starts = _starts(min(tried, key=lambda item: item.criterion))
    pieces = [
        _piece(calls, start, end, most_modes=1 if noise == "N-0" else 4)
        for start, end in zip(starts, [*starts[1:], np.inf], strict=True)
    ]
    path = f"network.{distance}.pieces"
    return PiecesFit(
        path,
        tuple(fit for at, piece in enumerate(pieces, 1) for fit in _fits(f"{path}.piece{at}", piece)),
        _comparison(tried, sum(len(item.size) for item in calls.values())),
        _points(pieces),
        (*remarks, *_waits(pieces)),
        tuple(_doubts(pieces)),
    )


def _calls(table: Table) -> tuple[dict[str, _Calls], list[str]]:
    """`way`, `send` and `receive` as far as they were measured; ping-pongs timed there and back are halved."""
    columns = table.arrays
    tests = np.array([str(test).lower().removeprefix("mpi_") for test in columns["test"]])
    ways = np.isin(tests, _PING_PONG)
    if not ways.any():
        raise UsageError(f"no rows `pingpong` among the tests {', '.join(sorted(set(tests)))}: latencies are theirs")
    sent = next((name for name in _SENDS if (tests == name).any()), "send")
    masks = {"way": ways, "send": tests == sent, "receive": tests == "recv"}
    size = columns["message_size"]
    # A call of a size that no ping-pong has says nothing about a message.
    inside = (size >= size[ways].min()) & (size <= size[ways].max())
    calls = {
        name: _of(size[mask & inside], columns["time"][mask & inside], name)
        for name, mask in masks.items()
        if mask.any()
    }
    remarks, both_ways = ["no rows `recv`: ping-pongs are taken as timed there and back, so half of it counts"], True
    if "receive" in calls:
        ratio = _ratio(calls["way"], calls["receive"])
        both_ways = ratio > _BOTH_WAYS
        timed = "there and back, so half of it counts" if both_ways else "one way"
        remarks = [f"ping-pongs take {ratio:.2g} times as long as the longest receives: timed {timed}"]
    if both_ways:
        calls["way"] = _Calls(calls["way"].size, calls["way"].time / 2, calls["way"].scatter)
    if beyond := int(sum((mask & ~inside).sum() for mask in masks.values())):
        remarks.append(f"not used: {counted(beyond, 'call')} shorter or longer than all ping-pongs")
    unused = sorted(set(tests[~np.logical_or.reduce(list(masks.values()))]))
    return calls, [*remarks, *([f"not used: {', '.join(unused)}"] if unused else [])]


def _of(size: FloatArray, time: FloatArray, name: str) -> _Calls:
    refuse_invalid_numbers(_WORDS[name], size, time)
    different = len(np.unique(size))
    if different < FEWEST_OF_PIECE:
        among = "" if name == "way" else " among those of the ping-pongs"
        raise UsageError(f"{_WORDS[name]}: {different} message sizes{among}; at least {FEWEST_OF_PIECE} are needed")
    if name == "way" and falls(size, time):
        raise UsageError("the times of ping-pongs go down with message size: are the columns mixed up?")
    own = segmented(size, time, weights=time**-2.0, most_segments=MOST_PIECES, fewest=FEWEST_OF_PIECE)
    best = min(own, key=lambda item: item.criterion)
    return _Calls(size, time, max(float(np.sqrt(best.rest / len(size))), 1e-6))


def _ratio(way: _Calls, receive: _Calls) -> float:
    """Ping-pong over receive, of the longest quarter of the sizes that both have."""
    most = receive.size.max()
    least = min(np.quantile(receive.size, 0.75), way.size[way.size <= most].max())
    masks = [(item.size >= least) & (item.size <= most) for item in (way, receive)]
    rates = [np.median(item.time[its] / item.size[its]) for item, its in zip((way, receive), masks, strict=True)]
    return float(rates[0] / rates[1])


def _segmented(calls: dict[str, _Calls]) -> tuple[Segments, ...]:
    size, time, weights = (
        np.concatenate([getattr(item, name) for item in calls.values()]) for name in ("size", "time", "weights")
    )
    owner = np.repeat(np.arange(len(calls)), [len(item.size) for item in calls.values()])
    fewest = min(FEWEST_OF_PIECE, len(np.unique(size)))
    return segmented(size, time, weights=weights, groups=owner, most_segments=MOST_PIECES, fewest=fewest)


def _starts(found: Segments) -> list[float]:
    """Starts of the pieces of a segmentation."""
    return [0.0, *map(_start, found.breaks.tolist(), found.next_values.tolist())]


def _shown(found: Segments, size: FloatArray) -> bool:
    """Whether every piece has a ping-pong, of which there are these sizes."""
    return bool(np.histogram(size, [*_starts(found), np.inf])[0].min() > 0)


def _start(last: float, first: float) -> float:
    """Start of a piece between two sizes: a power of two, as for changes of protocol, else the middle."""
    power = 2.0 ** np.ceil(np.log2(max(last, 1.0)))
    return float(power) if last < power <= first else round((last + first) / 2)


def _piece(calls: dict[str, _Calls], start: float, end: float, most_modes: int) -> _Piece:
    inside = {name: (item.size >= start) & (item.size < end) for name, item in calls.items()}
    size, time = (getattr(calls["way"], name)[inside["way"]] for name in ("size", "time"))
    whole = _line(size, time, time)
    lines = {
        name: _line(item.size[inside[name]], item.time[inside[name]], item.time[inside[name]])
        for name, item in calls.items()
        if name != "way" and inside[name].any()
    }
    send, receive = (lines.get(name, _NOTHING) for name in ("send", "receive"))
    if float(np.median(send(size) / whole(size))) >= _WAITING or "send" not in lines:
        send = receive = _NOTHING
    share = _share(size, time, time - send(size), receive)
    receive = _Line(receive.values * share, receive.covariance * share**2)
    way = _line(size, time - send(size) - receive(size), time)
    least = _LEAST_SLOPE * float(whole.values[1] or time.max() / max(size.max(), 1.0))
    bound = bool(way.values[1] < least)
    if bound:
        way = _Line(np.array([way.values[0], least]), way.covariance)
    fitted = send(size) + way(size) + receive(size)
    return _Piece(start, size, time, way, send, receive, share, bound, mixture(time / fitted - 1, most_modes))


def _share(size: FloatArray, time: FloatArray, left: FloatArray, receive: _Line) -> float:
    """Share of a receive that fits into the time left by a send: 1 if a latency remains."""
    if receive is _NOTHING or _line(size, left - receive(size), time).values[0] > 0:
        return 1.0
    share = non_negative(np.stack((receive(size), size), axis=1), left, time)[0]
    return min(float(share), 1.0)


def _line(size: FloatArray, time: FloatArray, scale: FloatArray) -> _Line:
    """A line with relative weights, nothing of it below zero."""
    weights = scale**-2.0
    intercept, slope, _ = bounded_line(moments(size, time, weights).sum(axis=0))
    values = np.array([float(intercept), float(slope)])
    # What rounding parameters of a latency, or of a time of a byte, is none.
    values[values < _ROUNDING * scale.min() / np.array([1.0, max(float(size.max()), 1.0)])] = 0.0
    jacobian = np.stack((np.ones_like(size), size), axis=1)
    free = (values > 0) & np.array([True, float(np.ptp(size)) > 0])
    return _Line(values, covariance(jacobian, weights, time - jacobian @ values, free))


def _fits(path: str, piece: _Piece) -> Iterator[Fit]:
    from scipy.linalg import block_diag

    parts = {"": piece.way, "send_": piece.send, "receive_": piece.receive}
    dimensions, values, spreads = {"smallest_size": BYTE}, [piece.start], [np.full((1, 1), np.nan)]
    for lead, line in parts.items():
        known = [True, bool(line.values[1] > 0)]
        names = (f"{lead}overhead" if lead else "latency", f"{lead}bandwidth")
        rate = 1.0 / line.values[1] if known[1] else np.inf
        # The bandwidth is the reciprocal of the time of a byte, and so is its standard error, relative to it.
        scale = np.array([1.0, -(rate**2) if known[1] else 1.0])
        spread = line.covariance * np.outer(scale, scale)
        kept = np.flatnonzero(known)
        dimensions |= {names[at]: (SECOND, BYTE_PER_SECOND)[at] for at in kept}
        values += [(line.values[0], rate)[at] for at in kept]
        spreads.append(spread[np.ix_(kept, kept)])
    ranges = {"message_size": range_of(piece.size)}
    bounds = ("bandwidth",) if piece.bound else ()
    # What was fitted apart is not correlated.
    whole = block_diag(*spreads)
    yield Fit(path, dimensions, np.array(values), whole, ranges, len(piece.size), piece.error, undetermined=bounds)
    if len(piece.modes) > 1:
        yield from _modes(f"{path}.modes", piece, ranges)


def _modes(path: str, piece: _Piece, ranges: dict[str, tuple[float, float]]) -> Iterator[Fit]:
    found, count = piece.modes, len(piece.size)
    for at, (weight, mean, deviation) in enumerate(zip(found.weights, found.means, found.deviations, strict=True), 1):
        variances = [weight * (1 - weight) / count, deviation**2 / (weight * count)]
        values = np.array([weight, 1 + mean])
        spread = np.diag(variances)
        yield Fit(f"{path}.mode{at}", {"weight": ONE, "factor": ONE}, values, spread, ranges, count, piece.error)


def _comparison(tried: tuple[Segments, ...], count: int) -> Table:
    rows = [
        (len(item), ", ".join(f"{at:g}" for at in item.breaks), item.criterion, float(np.sqrt(item.rest / count)))
        for item in tried
    ]
    kinds = {"piece_count": ONE, "breaks": None, "criterion": ONE, "error": ONE}
    return Table.of_rows(kinds, rows)


def _points(pieces: list[_Piece]) -> Table:
    size, time, fitted = (
        np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("size", "time", "fitted")
    )
    numbers: NDArray[np.float64] = np.repeat(np.arange(1.0, len(pieces) + 1), [len(piece.size) for piece in pieces])
    return Table(
        {
            "piece": Column(numbers, ONE),
            "message_size": Column(size, BYTE),
            "time": Column(time, SECOND),
            "fitted_time": Column(fitted, SECOND),
            "residual": share_column(fitted / time - 1),
        }
    )


def _waits(pieces: list[_Piece]) -> Iterator[str]:
    waiting = [piece.start for piece in pieces if piece.send is _NOTHING]
    if waiting and waiting[0] > 0:
        yield f"from {waiting[0]:g} B the sender waits for the receiver: its call is part of the message's time"


def _doubts(pieces: list[_Piece]) -> Iterator[str]:
    for at, piece in enumerate(pieces, 1):
        if piece.error > POOR:
            yield f"piece{at}: the ping-pongs scatter by {piece.error:.0%}"
        if piece.share < 1 - POOR:
            share = f"{piece.share:.0%} of it is counted"
            yield f"piece{at}: a receive alone takes longer than ping-pongs leave for it; {share}"
        if piece.bound:
            yield f"piece{at}: the calls alone take as long for a byte as the whole way; its bandwidth is a bound"
