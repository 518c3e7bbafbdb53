"""Parts of a grid that workers evaluate: the tasks, their results, and the fingerprint of their inputs."""

from __future__ import annotations

import hashlib
import json
import pickle
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from whatif import __version__
from whatif.axes import Grid
from whatif.core.executors import Place
from whatif.core.grid_run import Evaluator
from whatif.core.result import Result
from whatif.core.scenario import EvaluationRequest, Scenario
from whatif.core.uncertainty import Sampling
from whatif.errors import UsageError

_PARTS: Final = 64
_MOST_POINTS: Final = 4 * 65_536
_LARGE: Final = 10**6
"""Grids with more points than this cannot have slow ones."""
_FEW_PARTS, _MOST_WRITTEN = 16, 2**20

_thread = threading.local()
"""Evaluator of the latest scenario of a worker's thread: the next part may share terms with it."""


@dataclass(frozen=True)
class GridTask:
    """Part of a grid with everything that its evaluation by a worker needs; `scenario` is pickled."""

    number: int
    grid: Grid
    scenario: bytes
    sampling: Sampling | None = None
    version: str = __version__

    def results(self) -> Iterator[Result]:
        """Results in chunks. Raise `UsageError` if the worker has another version of the program."""
        if self.version != __version__:
            raise UsageError(
                f"whatif {self.version} sent a part to a worker with whatif {__version__}; install the same version"
            )
        key = self.scenario, self.sampling
        if getattr(_thread, "key", None) != key:
            # The sender is the same program as the worker.
            _thread.evaluator = Evaluator(pickle.loads(self.scenario), self.sampling)  # noqa: S301
            _thread.key = key
        evaluator: Evaluator = _thread.evaluator
        return evaluator.run(self.grid)


def part_points(grid: Grid, *, written: bool = False) -> int:
    """Default number of points in a part: enough parts for a few workers, none of them very long.

    `written` by workers, a part of a large grid may be larger, since its fixed costs matter less.
    """
    if written and grid.size > _LARGE:
        return min(-(-grid.size // _FEW_PARTS), _MOST_WRITTEN)
    return min(max(1, -(-grid.size // _PARTS)), _MOST_POINTS)


def parts_of(request: EvaluationRequest, grids: Iterable[tuple[int, Grid]]) -> Iterator[GridTask]:
    """Tasks for numbered parts of a request's grid; its scenario is compiled for it."""
    latest: Scenario | None = None
    pickled = b""
    for number, grid in grids:
        own = request.scenario.of_part(grid)
        if latest is None or own.choices != latest.choices:
            latest, pickled = own, pickle.dumps(own, pickle.HIGHEST_PROTOCOL)
        yield GridTask(number, grid, pickled, request.sampling)


def run_on(place: Place, request: EvaluationRequest, points: int) -> Iterator[Result]:
    """Results from workers, in the order of the points."""
    parts = parts_of(request.compiled(), enumerate(request.grid.chunks(points)))
    for _, results in place.outcomes(_results, parts, ordered=True):
        yield from results


def _results(part: GridTask) -> list[Result]:
    return list(part.results())


def fingerprint(request: EvaluationRequest, points: int) -> dict[str, Any]:
    """Inputs that the results of a compiled request depend on; large ones as hashes."""
    scenario, grid = request.scenario, request.grid
    drawn = {} if request.sampling is None else {"samples": str(request.sampling)}
    merged = [program.loaded.layers.merged for program in scenario.programs]
    values = hashlib.sha256()
    for axis in grid.axes:
        for path, array in axis.parameters.items():
            values.update(f"{path} {array.tolist()}".encode())
    return {
        "program": f"whatif {__version__} run",
        "scenario": scenario.programs[0].loaded.name,
        "platform": scenario.programs[0].loaded.scenario.platform.name,
        "sweep": {" + ".join(axis.parameters): len(axis) for axis in grid.axes},
        "values of the sweep": values.hexdigest(),
        "files and changes": hashlib.sha256(json.dumps(merged, default=str).encode()).hexdigest(),
        "points of a part": points,
        **drawn,
    }
