"""Communicators of a DUMPI trace, matched over the ranks by the order of their creation.

All members of a communicator create others from it in the same order (MPI demands it), so that the n-th creation on
one rank is the n-th on each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from whatif.importers.operations import MESSAGES, Operations
from whatif.importers.text import refuse
from whatif.simulation.rank_programs import COLLECTIVES

WORLD: Final = 0
ALONE: Final = 1
"""Number of MPI_COMM_SELF and all communicators created from it, whose calls take no time."""
NONE: Final = -1
"""MPI_COMM_NULL: the rank is not a member of the new communicator."""


@dataclass(frozen=True, slots=True)
class Creation:
    """Creation of a communicator as one rank records it: `number` is the new one's on this rank, or `NONE`.

    `call` without MPI_; `group` is the colour of a split, the dimensions of a grid, or those that remain of one.
    """

    call: str
    parent: int
    number: int
    group: tuple[int, ...] = ()
    key: int = 0


class Communicators:
    """Communicators of the trace, 0 being the world, by number on each rank."""

    def __init__(self, file: str, creations: Sequence[Sequence[Creation]]) -> None:
        self.file = file
        self.members: list[list[int]] = [list(range(len(creations)))]
        self._dims: dict[int, tuple[int, ...]] = {}
        self._numbers = [{WORLD: 0} for _ in creations]
        by_parent: list[dict[int, list[Creation]]] = [defaultdict(list) for _ in creations]
        for rank, own in enumerate(creations):
            for creation in own:
                by_parent[rank][creation.parent].append(creation)
        self._local = {0: [WORLD] * len(creations)}
        for index, members in enumerate(self.members):  # the list grows during the loop
            local = self._local.pop(index)
            made = (by_parent[rank][number] for rank, number in zip(members, local, strict=True))
            for created in zip(*made, strict=False):  # ends where the file of a rank was cut off
                self._create(index, members, created)

    def resolve(self, rank: int, operations: Operations) -> None:
        """Turn peers and roots into ranks of the world, and numbers on a rank into those of the trace."""
        number, peer = np.asarray(operations.communicator), np.asarray(operations.peer)
        named, own = operations.is_kind([*MESSAGES, *COLLECTIVES]), number.copy()
        for local in np.unique(own[named]).tolist():
            here = named & (own == local)
            index = self._numbers[rank].get(local)
            if index is None:
                raise refuse(self.file, f"rank {rank} uses a communicator that the other ranks did not create with it")
            members = np.array(self.members[index], dtype=np.int32)
            if int(peer[here].max()) >= len(members):
                message = f"rank {rank} names rank {int(peer[here].max())} of a communicator of {len(members)}"
                raise refuse(self.file, message)
            peer[here] = np.where(peer[here] < 0, peer[here], members[peer[here]])
            number[here] = index

    def _create(self, parent: int, members: list[int], creations: Sequence[Creation]) -> None:
        call = creations[0].call
        other = next((rank for rank, creation in zip(members, creations, strict=True) if creation.call != call), None)
        if other is not None:
            raise refuse(self.file, f"rank {members[0]} calls MPI_{call} where rank {other} calls another function")
        groups = self._groups(parent, members, creations)
        for chosen in groups.values():
            index = len(self.members)
            self.members.append([members[place] for place in chosen])
            self._local[index] = [creations[place].number for place in chosen]
            for place in chosen:
                self._numbers[members[place]][creations[place].number] = index
            if call == "Cart_create":
                self._dims[index] = creations[0].group

    def _groups(
        self, parent: int, members: list[int], creations: Sequence[Creation]
    ) -> dict[tuple[int, ...], list[int]]:
        """The places in the parent of the members of each new communicator, in the order of their new ranks."""
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        kept = self._kept_coordinates(parent, members, creations)
        for place, creation in enumerate(creations):
            if creation.number != NONE:
                groups[kept[place]].append(place)
        for chosen in groups.values():
            chosen.sort(key=lambda place: creations[place].key)
        return groups

    def _kept_coordinates(
        self, parent: int, members: list[int], creations: Sequence[Creation]
    ) -> list[tuple[int, ...]]:
        """Key that the members of one new communicator share, for each place."""
        if creations[0].call == "Comm_split":
            return [creation.group for creation in creations]
        if creations[0].call != "Cart_sub":
            return [()] * len(creations)
        dims, remain = self._dims.get(parent, ()), creations[0].group
        if len(dims) != len(remain) or prod(dims) != len(members):
            raise refuse(self.file, f"MPI_Cart_sub on rank {members[0]}: the grid is not known")
        coordinates = np.stack(np.unravel_index(np.arange(len(members)), dims), axis=1)
        fixed = coordinates[:, np.array(remain) == 0]
        return [tuple(row) for row in fixed.tolist()]
