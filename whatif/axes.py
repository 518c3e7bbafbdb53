"""Axes and grids of a sweep: parameters as dimensions of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Axis:
    """Axis of a sweep: the parameters that change together along it, and their values.

    A numeric parameter has a float64 array; a structural parameter has an object array of texts. `texts` are the values
    of each parameter as written by the user.
    """

    name: str
    parameters: dict[str, NDArray[Any]]
    texts: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    @property
    def structural(self) -> bool:
        """Whether any parameter on the axis determines which terms exist."""
        return any(values.dtype == object for values in self.parameters.values())

    def slice(self, part: slice | NDArray[np.intp]) -> Axis:
        """Axis with a part of the values, by a slice or by their places."""
        return Axis(self.name, {path: values[part] for path, values in self.parameters.items()}, self.texts)


@dataclass(frozen=True, eq=False)
class Grid:
    """Product of axes; the first one varies slowest."""

    axes: tuple[Axis, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values along each axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of points; 1 without axes."""
        size = 1
        for axis in self.axes:
            size *= len(axis)
        return size

    def parameters(self) -> tuple[str, ...]:
        """Paths of the swept parameters, in the order of the axes."""
        return tuple(path for axis in self.axes for path in axis.parameters)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Values of the numeric parameters by path, of shape (1, .., n, .., 1) with n at the position of the axis."""
        return {
            path: values.astype(np.float64).reshape(self._position(index))
            for index, axis in enumerate(self.axes)
            for path, values in axis.parameters.items()
            if values.dtype != object
        }

    def _position(self, index: int) -> tuple[int, ...]:
        return tuple(len(axis) if i == index else 1 for i, axis in enumerate(self.axes))

    def spread(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """Array broadcast to the full shape of the grid, as a view."""
        return np.broadcast_to(array, self.shape)

    def coordinate(self, path: str) -> NDArray[Any]:
        """Value of a swept parameter at every point, as a view with the full shape of the grid."""
        for index, axis in enumerate(self.axes):
            if path in axis.parameters:
                return np.broadcast_to(axis.parameters[path].reshape(self._position(index)), self.shape)
        raise KeyError(path)

    def join(
        self, parts: Iterable[tuple[tuple[slice, ...], Grid, Mapping[str, NDArray[np.float64]]]]
    ) -> dict[str, NDArray[np.float64]]:
        """Arrays by name, joined from parts of this grid; NaN where no part provides a value."""
        whole: dict[str, NDArray[np.float64]] = {}
        for where, part, arrays in parts:
            for name, array in arrays.items():
                whole.setdefault(name, np.full(self.shape, np.nan))[where] = part.spread(array)
        return whole

    def chunks(self, points: int) -> Iterator[Grid]:
        """Parts of the grid with at most `points` points, in order; split along the leading axis if that suffices."""
        if self.size <= points or not self.axes:
            yield self
            return
        leading, rest = self.axes[0], Grid(self.axes[1:])
        step = max(1, points // rest.size)
        for start in range(0, len(leading), step):
            part = leading.slice(slice(start, start + step))
            for inner in rest.chunks(points):
                yield Grid((part, *inner.axes))


def first_number(values: ArrayLike) -> float:
    """Number at the first point of an array: the only one of a scenario that is not swept."""
    return float(np.ravel(values)[0])
