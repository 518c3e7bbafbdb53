"""Reading measurements: MB of text per second, against a loop over lines and against pandas on the same file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, median_seconds

FILE_SIZE = 50_000_000
OSU_HEADING = "# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
IMB_HEADING = (
    "# Intel(R) MPI Benchmarks 2021.2, MPI-1 part\n# Benchmarking PingPong\n# #processes = 2\n"
    "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
)
CSV_HEADING = "size (bytes),iterations,time (seconds),throughput (MB/s)\n"
MAPPING = {"message_size": "size", "time": "time", "bandwidth": "throughput"}


def reading() -> Iterator[Row]:
    """Rate of reading OSU, IMB, SimGrid and plain CSV files of 50 MB, against lists or data frames of numbers."""
    from whatif.importers.imb import read_imb
    from whatif.importers.mapped_csv import read_columns
    from whatif.importers.osu import read_osu
    from whatif.importers.simgrid import read_simgrid

    with tempfile.TemporaryDirectory() as folder:
        yield _row("OSU", _written(folder, "osu", OSU_HEADING, _osu_row), read_osu, _loop, "a loop over lines")
        yield _row("IMB", _written(folder, "imb", IMB_HEADING, _imb_row), read_imb, _loop, "a loop over lines")
        simgrid = _written(folder, "simgrid", "", _simgrid_row)
        yield _row("SimGrid CSV", simgrid, read_simgrid, _pandas, "pandas.read_csv of the same columns")
        yield _row("SimGrid CSV", simgrid, read_simgrid, _csv_loop, "a loop over lines")
        plain = _written(folder, "plain", "", _csv_row, CSV_HEADING)
        yield _row(
            "plain CSV", plain, lambda path: read_columns(path, MAPPING), _pandas, "pandas.read_csv, all columns"
        )
        yield _row("plain CSV", plain, lambda path: read_columns(path, MAPPING), _csv_loop, "a loop over lines")


def _row(
    name: str, path: Path, read: Callable[[Path], object], other: Callable[[Path], object], alternative: str
) -> Row:
    size = path.stat().st_size / 1e6
    seconds, others = median_seconds(lambda: read(path), 5), median_seconds(lambda: other(path), 3)
    return Row(
        f"read {name} output, {size:.0f} MB",
        f"{size / seconds:.0f} MB/s",
        f"{size / others:.0f} MB/s",
        others / seconds,
        alternative,
    )


def _written(folder: str, name: str, heading: str, row: Callable[[int, float], str], start: str = "") -> Path:
    """Text of many runs, each with a heading and rows of sizes from 1 B to 4 MiB with distinct times."""
    path, generator = Path(folder) / name, np.random.default_rng(1)
    with path.open("w") as file:
        file.write(start)
        while file.tell() < FILE_SIZE:
            times = generator.uniform(1, 9999, (100, 23)).tolist()
            file.write("".join(heading + "".join(row(1 << at, time) for at, time in enumerate(run)) for run in times))
    return path


def _osu_row(size: int, time: float) -> str:
    return f"{size:<10d}{time:23.2f}\n"


def _imb_row(size: int, time: float) -> str:
    return f"{size:13d}{1000:13d}{time:13.2f}{size / time:13.2f}\n"


def _simgrid_row(size: int, time: float) -> str:
    pair = (f"MPI_{name},{size},{time:.6f},{time * 1e-6:.6e}" for name in ("Send", "Recv"))
    return "\n".join(pair) + "\n"


def _csv_row(size: int, time: float) -> str:
    return f"{size},4194304,{time * 1e-6!r},{size / time:.6f}\n"


def _loop(path: Path) -> list[list[float]]:
    with path.open() as file:
        return [[float(word) for word in line.split()] for line in file if "#" not in line]


def _csv_loop(path: Path) -> list[list[float]]:
    with path.open() as file:
        return [[float(word) for word in line.split(",")[1:]] for line in file if line[:4] != "size"]


def _pandas(path: Path) -> object:
    import pandas as pd

    return pd.read_csv(path, header="infer" if path.name == "plain" else None)
