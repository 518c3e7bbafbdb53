"""Picture of the placement of a halo phase: ranks by node, and the messages of the busiest node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import Evaluation
from whatif.core.term import Program
from whatif.errors import InfeasiblePointError, UsageError, WhatifError, did_you_mean
from whatif.models import decomposition, placement
from whatif.models.decomposition import Boxes
from whatif.models.patterns import INTER_NODE, BoxPattern, GridPattern, Pattern, Ranks, domains, sockets
from whatif.schema.application import HaloPhase
from whatif.units import crossed
from whatif.vocabulary import DISTANCES

MOST_RANKS_SHOWN: Final = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class GridPart:
    """The ranks of a part of a grid [row, column], and which part it is."""

    ranks: Ranks
    shown: str
    """`16 x 12 of 48 x 32 ranks`, rows first; for boxes `24 x 80 samples of 1600 x 800 cells`."""
    plane: int
    plane_count: int
    plane_name: str
    """`x = 3`, for boxes a cell, `x = 400`; empty if the grid is one plane."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacementPicture:
    """A part of the grid with the node and the socket inside the node of each place [row, column].

    Nodes are numbered from 0, those of a mapping file in the order of its numbers. The busiest one is that which
    sends most messages to others (K_inter), the first of several; `sent` are its messages of one exchange by distance.
    """

    part: GridPart
    axes: tuple[str, ...]
    """The dimensions of rows and columns; of columns alone where the grid has no other."""
    nodes: Ranks
    sockets: Ranks
    busiest: NDArray[np.bool_]
    """Mask of the ranks of the busiest node."""
    busiest_node: int
    sent: Mapping[str, int]
    node_count: int


def halo_phases(program: Program) -> list[str]:
    """Names of the halo phases, in the order of the file."""
    phases = program.loaded.scenario.application.phases
    return [name for name, phase in phases.items() if isinstance(phase, HaloPhase)]


def halo_phase(program: Program, name: str) -> HaloPhase:
    """Halo phase of a name; raise `UsageError` if it does not exist."""
    phase = program.loaded.scenario.application.phases.get(name)
    if isinstance(phase, HaloPhase):
        return phase
    halos = halo_phases(program)
    known = f"; halo phases: {', '.join(halos)}" if halos else "; this application has none"
    raise UsageError(f"`{name}` is not a halo phase{did_you_mean(name, halos) or known}")


def halo_pattern(program: Program, evaluation: Evaluation, phase: str) -> Pattern:
    """Pattern of the messages of a halo phase at one point, from which they are counted.

    Raise `UsageError` if the phase is not a halo phase, `InfeasiblePointError` if the point is infeasible.
    """
    halo_phase(program, phase)
    if obstacle := evaluation.obstacle():
        raise InfeasiblePointError(f"infeasible: {obstacle}")
    term = program.terms[f"{phase}.rank_counts"]
    arrays = {key: evaluation.values[name] for key, name in term.inputs.items() if isinstance(name, str)}
    numbers = {key: tuple(int(number) for number in np.ravel(array)) for key, array in arrays.items()}
    names = ("ranks_per_node", "ranks_per_socket", "nodes_per_domain")
    sizes = [numbers.get(name, (1,))[0] for name in names]
    if term.function is placement.box_rank_message_counts:
        return placement.boxes_at((*numbers["rank_count"], *sizes, *numbers["cells"]))
    groups = [numbers.get(name, (1,))[0] for name in ("group_stride", "group_count")]
    return placement.grid_at((*numbers["dims"], *sizes, *groups), term.options)


def placement_picture(
    program: Program, evaluation: Evaluation, phase: str, width: int, height: int, plane: int | None = None
) -> PlacementPicture:
    """The nodes of the ranks of a halo phase at one point, in at most `height` rows and `width` columns.

    Rows and columns run along the last two dimensions; `plane` is the index in the others, limited to their
    range; without it, it is where the busiest node is. Of a larger grid the picture is a window around this node;
    the boxes of a bisection are sampled at as many cells as fit. Raise what `halo_pattern` raises,
    and `WhatifError` for more than `MOST_RANKS_SHOWN` ranks.
    """
    pattern = halo_pattern(program, evaluation, phase)
    if pattern.rank_count > MOST_RANKS_SHOWN:
        most = f"at most {MOST_RANKS_SHOWN:,} are drawn (application.rank_count)"
        raise WhatifError(f"{pattern.rank_count:,} ranks are too many for a picture: {most}")
    node = pattern.nodes()
    busiest, sent = busiest_node(pattern)
    members = np.flatnonzero(node == busiest)
    grid = program.loaded.scenario.application.grid
    axes = tuple(grid.cells) if grid is not None else ()
    view = _View(axes, max(height, 1), max(width, 1), plane, int(members[len(members) // 2]))
    part = _boxes(pattern, view) if isinstance(pattern, BoxPattern) else _grid(pattern, view)
    return PlacementPicture(
        part,
        axes[-2:],
        node[part.ranks],
        _local_sockets(node, pattern.ranks_per_socket)[part.ranks],
        node[part.ranks] == busiest,
        busiest,
        dict(zip(DISTANCES, sent, strict=True)),
        int(node.max()) + 1,
    )


@lru_cache(maxsize=16)
def busiest_node(pattern: Pattern) -> tuple[int, tuple[int, ...]]:
    """The node that sends most messages to others, the first of several, and its messages by distance."""
    node, (outer, inner) = pattern.nodes(), domains(pattern)
    sent = np.zeros((int(node.max()) + 1, len(DISTANCES)), dtype=np.int64)
    for _, sender, receiver in pattern.messages():
        start, end = sender[sender != receiver], receiver[sender != receiver]
        distance = (inner[start] != inner[end]).astype(np.int64) + (outer[start] != outer[end])
        sent += np.bincount(node[start] * 3 + distance, minlength=sent.size).reshape(sent.shape)
    busiest = int(sent[:, INTER_NODE].argmax())
    return busiest, tuple(int(count) for count in sent[busiest])


def _local_sockets(node: Ranks, ranks_per_socket: int) -> Ranks:
    """The number inside its node of the socket of each rank [rank]; the first rank of a node is on its first one."""
    number = sockets(node, ranks_per_socket)
    local: Ranks = number - number[np.unique(node, return_index=True)[1]][node]
    return local


@dataclass(frozen=True, slots=True)
class _View:
    """View of a layout: axes of the grid, available room, chosen plane, and the rank in its centre."""

    axes: tuple[str, ...]
    height: int
    width: int
    plane: int | None
    centre: int

    def plane_of(self, centre_plane: int, count: int) -> int:
        """Number of the plane to draw: the chosen one within the range, else that of the centre."""
        return centre_plane if self.plane is None else min(max(self.plane, 0), count - 1)

    def named(self, places: Sequence[int]) -> str:
        """Label of a plane: its index along each of the other dimensions."""
        return ", ".join(f"{axis} = {place}" for axis, place in zip(self.axes, places, strict=False))


def _grid(pattern: GridPattern, view: _View) -> GridPart:
    """A window on a plane of a Cartesian grid."""
    extents = _at_least_two(pattern.dims)
    planes = pattern.grid_of(view.centre).reshape(-1, *extents[-2:])
    centre_plane, row, column = (int(place[0]) for place in np.nonzero(planes == view.centre))
    plane = view.plane_of(centre_plane, len(planes))
    ranks = planes[plane, _window(row, view.height, extents[-2]), _window(column, view.width, extents[-1])]
    drawn, whole = (crossed(shape[-len(pattern.dims) :]) for shape in (ranks.shape, extents[-2:]))
    shown = f"{whole} ranks" if drawn == whole else f"{drawn} of {whole} ranks"
    places = [int(place) for place in np.unravel_index(plane, extents[:-2])]
    return GridPart(ranks, shown, plane, len(planes), view.named(places))


def _at_least_two(extents: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of a grid, with a row for one that has only columns."""
    return extents if len(extents) > 1 else (1, *extents)


def _window(centre: int, size: int, extent: int) -> slice:
    """Range of `size` indices around a centre, moved into an extent."""
    start = min(max(centre - size // 2, 0), max(extent - size, 0))
    return slice(start, min(start + size, extent))


def _boxes(pattern: BoxPattern, view: _View) -> GridPart:
    """Ranks whose boxes hold the cells of a raster; all planes between two cuts are one."""
    boxes = decomposition.bisection(pattern.box_count, pattern.cells, rule=pattern.rule)
    if len(pattern.cells) == 1:
        boxes = np.insert(boxes, 0, [0, 1], axis=1)
    extents = _at_least_two(pattern.cells)
    filled = np.flatnonzero((boxes[:, :, 0] < boxes[:, :, 1]).all(axis=1))
    cuts = [np.unique(boxes[filled, dimension, 0]) for dimension in range(len(extents) - 2)]
    counts = tuple(len(cut) for cut in cuts)
    plane = view.plane_of(_plane_at(boxes[view.centre, :, 0], cuts), prod(counts))
    places = [int(cut[place]) for cut, place in zip(cuts, np.unravel_index(plane, counts), strict=True)]
    ranks = _raster(boxes, filled, places, _samples(view.height, extents[-2]), _samples(view.width, extents[-1]))
    drawn, whole = (crossed(shape[-len(pattern.cells) :]) for shape in (ranks.shape, extents[-2:]))
    shown = f"{whole} cells" if drawn == whole else f"{drawn} samples of {whole} cells"
    return GridPart(ranks, shown, plane, prod(counts), view.named(places))


def _plane_at(begin: NDArray[np.int64], cuts: Sequence[NDArray[np.int64]]) -> int:
    """The number of the plane that a box begins in; one without cells may begin behind the last."""
    plane = 0
    for cut, cell in zip(cuts, begin, strict=False):
        plane = plane * len(cut) + int(np.searchsorted(cut, cell, side="right")) - 1
    return plane


def _samples(size: int, extent: int) -> NDArray[np.int64]:
    """At most `size` cells of an extent, evenly spread."""
    count = min(size, extent)
    return np.asarray((np.arange(count) + 0.5) * extent / count, dtype=np.int64)


def _raster(
    boxes: Boxes, filled: NDArray[np.int64], places: Sequence[int], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> Ranks:
    """The rank of the box that holds each cell [row, column] of the plane at `places`."""
    for dimension, cell in enumerate(places):
        filled = _at(boxes, filled, dimension, cell)
    ranks = np.empty((len(rows), len(columns)), dtype=np.int32)
    for index, cell in enumerate(rows):
        line = _at(boxes, filled, len(places), cell)
        line = line[np.argsort(boxes[line, -1, 0])]
        ranks[index] = line[np.searchsorted(boxes[line, -1, 0], columns, side="right") - 1]
    return ranks


def _at(boxes: Boxes, chosen: NDArray[np.int64], dimension: int, cell: int) -> NDArray[np.int64]:
    """Chosen boxes that hold a cell along a dimension."""
    begin, end = boxes[chosen, dimension, 0], boxes[chosen, dimension, 1]
    return np.asarray(chosen[(begin <= cell) & (cell < end)])
