"""Messages of a collective in rounds, and the operations of a member that take their place.

Where the arithmetic of a reduction is counted, a computation follows each message whose receiver combines it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation.flat_lists import list_starts
from whatif.simulation.schedule import Step

Members = NDArray[np.integer[Any]]
Shares = FloatArray | float


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """Messages of members, [member, round], -1 for none; the shares broadcast to that shape.

    A member sends and receives at the same time in a round, and a round starts when the one before has
    ended for the member; `together` makes all of it one round. Where it `combines`, the member then combines
    what it received with its own data.
    """

    source: Members
    source_share: Shares
    target: Members
    target_share: Shares
    together: bool = False
    combines: bool | NDArray[np.bool_] = False


Algorithm = Callable[[Members, int, int], list[Rounds]]


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """Operations in place of a collective, member after member; a join waits for the `wait_count` before it.

    A computation combines a received block.
    """

    start: NDArray[np.int64]
    """[member + 1]"""
    step: NDArray[np.uint8]
    blocking: NDArray[np.bool_]
    peer: Members
    """The other member."""
    share: FloatArray
    """Its size over that of the collective."""
    wait_count: NDArray[np.int32]


def expand(algorithm: Algorithm, members: Members, process_count: int, root: int, combines: bool = False) -> Expansion:
    """The operations of `members`, each in program order: a message alone in its round blocks, several are joined.

    With `combines` there are computations in place of the arithmetic of a reduction.
    """
    rounds = algorithm(members, process_count, root)
    if not combines:
        rounds = [replace(part, combines=False) for part in rounds]
    parts = [_slots(part) for part in rounds]
    present, blocking, peer, share, wait_count, step = (
        np.concatenate([part[column] for part in parts], axis=1) for column in range(6)
    )
    return Expansion(
        start=list_starts(present.sum(axis=1)),
        step=step[present].astype(np.uint8),
        blocking=blocking[present].astype(np.bool_),
        peer=peer[present].astype(np.int64),
        share=share[present].astype(np.float64),
        wait_count=wait_count[present].astype(np.int32),
    )


def slot_count(algorithm: Algorithm, process_count: int) -> int:
    """The most operations that a member may need, for the size of intermediate arrays."""
    widths = [(part.source.shape[1], part.together) for part in algorithm(np.zeros(1, np.int64), process_count, 0)]
    return sum(3 * width + 1 if together else 4 * width for width, together in widths)


Slots = tuple[NDArray[np.generic], ...]
_TYPES: Final = (np.bool_, np.bool_, np.int64, np.float64, np.int32, np.uint8)
"""Types of the columns of slots."""


def _slots(rounds: Rounds) -> Slots:
    """Columns [member, slot] of `Expansion`, led by which slots are used: receive, send, join, combination of a round.

    Those of messages `together`: all receives, all sends, one join, all combinations.
    """
    receives, sends = rounds.source >= 0, rounds.target >= 0
    if rounds.together:
        wait_count = (receives.sum(axis=1) + sends.sum(axis=1))[:, np.newaxis]
        joins, alone = wait_count > 1, wait_count == 1
    else:
        joins, wait_count = receives & sends, np.array(2)
        alone = ~joins
    columns: tuple[tuple[Any, Any, Any, Any], ...] = (
        (receives, sends, joins, receives & rounds.combines),
        (alone, alone, True, True),
        (rounds.source, rounds.target, 0, 0),
        (rounds.source_share, rounds.target_share, 0.0, rounds.source_share),
        (0, 0, wait_count, 0),
        (Step.RECEIVE, Step.SEND, Step.JOIN, Step.COMPUTE),
    )
    widths = [part.shape[1] for part in (receives, sends, joins, receives)]
    ends = np.cumsum(widths).tolist()
    places = [slice(end - width, end) if rounds.together else slice(at, None, len(widths))
              for at, (width, end) in enumerate(zip(widths, ends, strict=True))]  # fmt: skip
    shape = len(receives), ends[-1]
    return tuple(_filled(shape, dtype, places, parts) for dtype, parts in zip(_TYPES, columns, strict=True))


def _filled(
    shape: tuple[int, int], dtype: type[np.generic], places: list[slice], parts: tuple[Any, ...]
) -> NDArray[np.generic]:
    """Column of slots with a part at each of some places."""
    column = np.empty(shape, dtype)
    for place, part in zip(places, parts, strict=True):
        column[:, place] = part
    return column
