"""Routes in a torus, dimension after dimension: each crosses consecutive links of one ring in every dimension."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray

IntArray = NDArray[np.int32]
NO_LINK: Final = -1
_NOISE: Final = 1e-9
"""Load, in messages of the largest size, that is due to rounding: loads are differences of sums along a ring."""


class Crossings(NamedTuple):
    """Loads of links by step."""

    link: NDArray[np.integer[Any]]
    """[entry]"""
    step: NDArray[np.integer[Any]]
    """[entry]"""
    load: FloatArray
    """[entry]: share of the load of the link in the step."""
    hops: NDArray[np.integer[Any]]
    """[message]: links of its route."""


class _Passage(NamedTuple):
    """Way of each message in one dimension; arrays are [message]."""

    dimension: int
    ring: IntArray
    """Number of the ring among those of the dimension."""
    start: IntArray
    """Place in the ring at which the message enters."""
    distance: IntArray
    """Links that it crosses."""
    upwards: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TorusRings:
    """Rings of a torus of extents `dims`, the first of them running fastest.

    Messages take the shorter way round, upwards where both are as long. Link
    `(node · dimensions + dimension) · 2 + way` leaves a node upwards (0) or downwards (1).
    """

    dims: tuple[int, ...]

    @property
    def strides(self) -> list[int]:
        """Distance in node numbers between neighbours of each dimension; the last is the number of nodes."""
        return [1, *accumulate(self.dims, mul)]

    def find(self, source: IntArray, destination: IntArray) -> IntArray:
        """Links [pair, hop] from sources to destinations, `NO_LINK` behind the last of each dimension."""
        links = []
        for passage in self._passages(source, destination):
            hop = np.arange(passage.distance.max(initial=0), dtype=np.int32)
            upwards = passage.upwards[:, None]
            place = (passage.start[:, None] + np.where(upwards, hop, -hop)) % self.dims[passage.dimension]
            first = self._first_link(passage.dimension, passage.ring[:, None], ~upwards)
            crossed = first + place * self._next(passage.dimension)
            links.append(np.where(hop < passage.distance[:, None], crossed, NO_LINK))
        return np.concatenate(links, axis=1)

    def crossings(
        self, source: IntArray, destination: IntArray, step: NDArray[np.int64], weights: FloatArray
    ) -> Crossings:
        """Loads of links in steps; each link occurs once in a step. Arrays are [message]."""
        parts, hops = [], np.zeros_like(source)
        for passage in self._passages(source, destination):
            parts.append(self._loads(passage, step, weights))
            hops = hops + passage.distance
        link, at, load = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Crossings(link, at, load, hops)

    def _passages(self, source: IntArray, destination: IntArray) -> Iterator[_Passage]:
        # Whole quotients of arrays are several times as fast as remainders.
        above, end_above, below = source, destination, np.zeros_like(destination)
        for at, (length, stride) in enumerate(zip(self.dims, self.strides, strict=False)):
            rest, end_rest = above // length, end_above // length
            place, end = above - rest * length, end_above - end_rest * length
            ahead = end - place + length * (end < place)
            upwards = 2 * ahead <= length
            yield _Passage(at, rest * stride + below, place, np.where(upwards, ahead, length - ahead), upwards)
            above, end_above, below = rest, end_rest, below + end * stride

    def _first_link(self, dimension: int, ring: Any, way: Any) -> Any:
        """Links that leave the first node of rings."""
        stride, length = self.strides[dimension], self.dims[dimension]
        node = ring + ring // stride * (length - 1) * stride
        return (node * len(self.dims) + dimension) * 2 + way

    def _next(self, dimension: int) -> int:
        """Distance in link numbers between neighbours in a ring."""
        return self.strides[dimension] * len(self.dims) * 2

    def _loads(
        self, passage: _Passage, step: NDArray[np.int64], weights: FloatArray
    ) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]], FloatArray]:
        """Links of a dimension, their steps and their loads."""
        at, moves = passage.dimension, np.flatnonzero(passage.distance)
        ring, start, distance = (item[moves] for item in (passage.ring, passage.start, passage.distance))
        upwards = passage.upwards[moves]
        length, count = self.dims[at], int(step.max(initial=0)) + 1
        first = np.where(upwards, start, (start - distance + 1) % length)
        rings, ring_number = numbered(ring * 2 + ~upwards, 2 * self.strides[-1] // length)
        rows, row = numbered(ring_number * count + step[moves], len(rings) * count)
        loads = _ring_sums(row, first, distance, weights[moves], (len(rows), length)).ravel()
        cells = np.flatnonzero(loads > _NOISE)
        row = cells // length
        links = self._first_link(at, rings // 2, rings % 2)[rows // count][row]
        return links + (cells - row * length) * self._next(at), (rows % count)[row], loads[cells]


def _ring_sums(
    row: NDArray[np.int64], first: IntArray, distance: IntArray, weights: FloatArray, shape: tuple[int, int]
) -> FloatArray:
    """Sums [row, place] of the weights of intervals, which may reach around the end of a row to its beginning."""
    length, size = shape[1], shape[0] * shape[1]
    last = first + distance
    change: FloatArray = np.bincount(row * length + first, weights, size).astype(np.float64, copy=False)
    change -= np.bincount(row * length + last % length, weights, size)
    sums, around = change.reshape(shape), last >= length
    sums[:, 0] += np.bincount(row[around], weights[around], shape[0])
    return sums.cumsum(axis=1, out=sums)


def numbered(items: NDArray[np.integer[Any]], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Items below `count` that occur, in ascending order, and the place of each entry among them."""
    occurs = np.zeros(count, dtype=np.bool_)
    occurs[items] = True
    used = np.flatnonzero(occurs)
    place = np.empty(count, dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    return used, place[items].astype(np.int64)
