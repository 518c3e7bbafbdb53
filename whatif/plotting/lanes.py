"""Lanes as data: the activity of ranks in a window of time, one lane each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray

PARTS: Final = 1024
"""Parts of a window; each shows the longest activity of a rank in it."""
Window = tuple[float, float]
Ranks32 = NDArray[np.int32]


class Kinds(NamedTuple):
    """Kinds of activity of lanes, by the numbers in `Lanes.group`: 0 is idle."""

    names: tuple[str, ...]
    """Names, without that of number 0."""
    styles: tuple[str, ...]
    letters: str
    """Letter of each kind without colours."""
    capitals: str
    """The same on the critical path."""


@dataclass(frozen=True, slots=True, eq=False)
class MessageLines:
    """Messages of a window in the order of their sends; `sent`: a send began, `received`: a receive ended, in s."""

    sender: Ranks32
    receiver: Ranks32
    sent: FloatArray
    received: FloatArray


_NOBODY: Final = np.empty(0, dtype=np.int32)
NO_MESSAGES: Final = MessageLines(_NOBODY, _NOBODY, np.empty(0), np.empty(0))
NO_PATH: Final = np.full(PARTS, -1, dtype=np.int32)
"""`Lanes.critical` without a critical path."""


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """Some ranks in a window of time, reduced to `PARTS` parts of it."""

    window: Window
    first_rank: int
    node: Ranks32
    """[lane]"""
    group: NDArray[np.uint8]
    """[lane, part]: number of a kind of activity, 0 where most of the part is idle."""
    critical: NDArray[np.int32]
    """[part]: the rank on which the critical path spends most of it; -1 for none."""
    messages: MessageLines
    """Messages of the chosen rank, or of all lanes; none if there are too many to mark."""


@dataclass(frozen=True, slots=True, eq=False)
class LaneChart:
    """Lanes with a title and the names of their kinds of activity."""

    title: str
    lanes: Lanes
    kinds: Kinds
