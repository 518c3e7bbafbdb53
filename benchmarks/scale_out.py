"""Large grids: ten million points to Parquet in one process, and with parallel workers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import Row
from benchmarks.model import BANDWIDTH, MEMORY, OVERHEAD
from whatif.axes import Grid
from whatif.core.executors import Place, opened
from whatif.core.grid_run import run
from whatif.core.partition import part_points
from whatif.core.scenario import EvaluationRequest, Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.files.data_set import DataSet
from whatif.files.result_writers import write_file

AXES = (
    f"{BANDWIDTH} = 1 GB/s .. 100 GB/s log 1000",
    f"{MEMORY} = 100 GB/s .. 3000 GB/s log 100",
    f"{OVERHEAD} = 0 us .. 1 ms linear 100",
)
_WORKERS = 2
_REPEATS = 3


def ten_million_points() -> Iterator[Row]:
    """Time of Jacobi2D to Parquet, against pandas writing the same numbers; two started workers against one process."""
    scenario = Scenario.open("jacobi2d")
    grid = grid_of([parse_option(text, scenario.program, 10**7) for text in AXES], 10**7)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "whole.parquet"
        alone = _best(lambda _: write_file(run(scenario, grid), "parquet", file))
        other = _pandas_seconds(file)
        yield Row("10^7 points to Parquet", f"{alone:.1f} s", f"{other:.1f} s", other / alone, "pandas, writing only")
        for on in ("threads", "processes", "local"):
            began = time.perf_counter()
            with opened(on, _WORKERS) as place:
                _fill(place, scenario, grid_of(grid.axes[2:], 100), Path(name) / f"{on} started")
                started = time.perf_counter() - began
                seconds = _best(lambda number, on=on: _fill(place, scenario, grid, Path(name) / f"{on} {number}"))
            what = f"the same, two workers at {on} ({started:.1f} s to start)"
            yield Row(what, f"{seconds:.1f} s", f"{alone:.1f} s", alone / seconds, "one process")


def _fill(place: Place, scenario: Scenario, grid: Grid, folder: Path) -> None:
    for _ in DataSet(folder, EvaluationRequest(scenario, grid), part_points(grid, written=True)).fill(place):
        pass


def _best(action: Callable[[int], None]) -> float:
    """Minimum of a few times, as other load on the machine only adds to them."""
    times = []
    for number in range(_REPEATS):
        began = time.perf_counter()
        action(number)
        times.append(time.perf_counter() - began)
    return min(times)


def _pandas_seconds(file: Path) -> float:
    import pandas as pd

    frame = pd.read_parquet(file)
    return _best(lambda _: frame.to_parquet(file.with_name("pandas.parquet")))
