"""Message sizes at which the protocol changes, found among the breaks of a segmented regression.

Times bend within a protocol too, where copying or pipelining sets in, so lines are allowed to break more often than
there are protocols, as the information criterion decides. Up to two breaks are the limits. Of more, those are
chosen at which the time jumps: a library changes the protocol where the next one costs more to start and less a
byte. The jump is taken at the first size above the break, where a mere bend falls below the line so far: the eager
limit is the last break without a fall, the short limit the one below it with the largest jump; unless the best lines
with at most two breaks fit decisively better than those between these limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from whatif.errors import UsageError
from whatif.fitting.points import MessagePoints
from whatif.fitting.segments import Segments, segmented, segments_at
from whatif.models.quantities import FloatArray
from whatif.units import BYTE, UnitError, parse_quantity

MOST_SEGMENTS: Final = 5
MOST_PROTOCOLS: Final = 3
DECISIVE: Final = 10.0
"""Difference of the criterion that decides for the lower one (Kass and Raftery 1995)."""
FEWEST_SIZES_OF_SEGMENT: Final = 3
"""Different sizes in a segment: a line through two has no residual."""
FLOOR: Final = 0.014**2
"""Variance of relative residuals that no protocol has to explain: times are read to one or two per cent."""
LARGEST_EAGER: Final = 2.0**20
"""Largest eager limit of known MPI libraries: breaks beyond are those of caches."""
LEAST_JUMP: Final = -0.1
"""Least relative jump of a time: with doubling sizes, the next bend hides a drop as large as this."""
SIZES_PER_OCTAVE: Final = 4
"""Sizes closer together than this share the deviation of a line from the truth: they count as one."""
FIRST_EAGER: Final = 1024.0
"""A lone limit above this is the eager limit, one up to it the short limit."""


@dataclass(frozen=True)
class Segmentation:
    """One way to divide the message sizes, and how well a line for each part fits there."""

    kind: Literal["found", "given", "lines"]
    """`found`: protocol limits; `given`: limits of the user; `lines`: the best lines, without meaning as limits."""
    limits: tuple[float, ...]
    """The largest measured size of each part but the last, ascending."""
    criterion: float
    """Bayesian information criterion: the lowest is the best."""
    error: float
    """Root mean square of the relative residuals."""


@dataclass(frozen=True)
class ProtocolLimits:
    """Protocol limits as a platform file has them: the largest size still sent as short, as eager."""

    short: float
    eager: float
    found: bool


def find_limits(points: MessagePoints) -> tuple[Segmentation, ...]:
    """The protocol limits, then the best lines with 0, 1, .. breaks by criterion, the best first."""
    typical = _typical(points)
    tried = segmented(
        typical.message_size,
        typical.time,
        weights=typical.weights("relative"),
        groups=typical.process_count,
        most_segments=MOST_SEGMENTS,
        fewest=FEWEST_SIZES_OF_SEGMENT,
        floor=FLOOR,
        effective_count=_effective_count(typical),
    )
    tried = tuple(sorted(tried, key=lambda segments: segments.criterion))
    found = segmentation(points, _changes(tried), "found")
    fewer = next(segments for segments in tried if len(segments) <= MOST_PROTOCOLS)
    if fewer.criterion < found.criterion - DECISIVE:
        found = segmentation(points, _limits(fewer), "found")
    lines = tuple(_segmentation("lines", segments, len(typical)) for segments in tried)
    return (found, *lines)


def segmentation(points: MessagePoints, limits: tuple[float, ...], kind: Literal["found", "given"]) -> Segmentation:
    """The lines between some limits; those that leave a part without a size are left out."""
    typical = _typical(points)
    segments = segments_at(
        typical.message_size,
        typical.time,
        limits,
        weights=typical.weights("relative"),
        groups=typical.process_count,
        floor=FLOOR,
        effective_count=_effective_count(typical),
    )
    return _segmentation(kind, segments, len(typical))


def parse_limits(text: str) -> tuple[float, float]:
    """Short and eager limit in B, of a text such as `128 B, 64 KiB`. Raise `UsageError` for another text."""
    try:
        sizes = [parse_quantity(part) for part in text.split(",")]
    except UnitError as error:
        raise UsageError(f"protocol limits `{text}`: {error}") from None
    unknown = any(size.value and size.dimension != BYTE for size in sizes)
    if unknown or len(sizes) != 2 or sizes[0].value > sizes[1].value:
        expected = "expected two sizes, the smaller one first, such as `128 B, 64 KiB`"
        raise UsageError(f"protocol limits `{text}`: {expected}")
    return sizes[0].value, sizes[1].value


def protocol_limits(found: tuple[float, ...], sizes: FloatArray) -> tuple[float, float]:
    """Short and eager limit from none, one or two limits.

    A missing short protocol has the limit 0, a missing rendezvous protocol begins above the largest size.
    """
    largest = float(sizes.max())
    if len(found) == 2:
        return found[0], found[1]
    if len(found) == 1 and found[0] > FIRST_EAGER:
        return 0.0, found[0]
    return (found[0], largest) if found else (0.0, largest)


def _segmentation(kind: Literal["found", "given", "lines"], segments: Segments, count: int) -> Segmentation:
    error = float(np.sqrt(segments.rest / count))
    return Segmentation(kind, tuple(segments.breaks.tolist()), segments.criterion, error)


def _typical(points: MessagePoints) -> MessagePoints:
    """The median time of each size and count: repetitions are one measurement, stragglers do not count."""
    order = np.lexsort((points.time, points.process_count, points.message_size))
    size, count, time = points.message_size[order], points.process_count[order], points.time[order]
    new = np.ones(len(size), dtype=bool)
    new[1:] = (np.diff(size) != 0) | (np.diff(count) != 0)
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(size))
    median = (time[(starts + ends - 1) // 2] + time[(starts + ends) // 2]) / 2
    return MessagePoints(size[starts], count[starts], median)


def _effective_count(typical: MessagePoints) -> float:
    """Independent points: sizes in steps of a fraction of an octave, for each count."""
    octave = np.round(SIZES_PER_OCTAVE * np.log2(np.maximum(typical.message_size, 0.5)))
    return float(len(np.unique(np.stack((octave, typical.process_count)), axis=1).T))


def _changes(tried: tuple[Segments, ...]) -> tuple[float, ...]:
    """The limits, ascending, from the segmentations that were tried, the best first."""
    best = tried[0]
    inside = best.breaks <= LARGEST_EAGER
    if inside.sum() > 2:
        jumps = np.where(inside, _jumps(best), -np.inf)
        eager = np.flatnonzero(jumps > LEAST_JUMP)
        if len(eager) and eager[-1] > 0:
            return float(best.breaks[np.argmax(jumps[: eager[-1]])]), float(best.breaks[eager[-1]])
        best = next(segments for segments in tried if len(segments) <= MOST_PROTOCOLS)
    return _limits(best)


def _limits(segments: Segments) -> tuple[float, ...]:
    """Breaks that can be limits of protocols."""
    return tuple(segments.breaks[segments.breaks <= LARGEST_EAGER].tolist())


def _jumps(segments: Segments) -> FloatArray:
    """Relative rise of the time at the first size after each break; a start-up time that falls is no jump.

    Of the fewest pairs, where sharing hides least.
    """
    after = segments.next_values
    intercepts, slopes = segments.intercepts[0], segments.slopes[0]
    before = intercepts[:-1] + slopes[:-1] * after
    beyond = intercepts[1:] + slopes[1:] * after
    return np.where(np.diff(intercepts) > 0, beyond / before - 1.0, -np.inf)
