"""Every reader of other people's files: its function, the verb that calls it, and small real files of its formats."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.importers import test_gpu_benchmarks, test_message_files, test_nsight_compute, test_run_files
from tests.importers.test_trace_formats import WHOLE
from tests.paths import DATA, ROOT
from tests.shipped.test_damaged_files import sensible
from whatif.api.measurements import import_gpu, import_kernels, import_model, import_network, import_runs
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.fitting.formula import parse_formula
from whatif.importers.dumpi_binary import read_binary_rank
from whatif.importers.host_benchmarks import read_host
from whatif.importers.measurement_files import read_calibration_files
from whatif.importers.trace_formats import read_trace
from whatif.linpack.input_reader import read_hpl_input
from whatif.linpack.output_reader import read_hpl_output
from whatif.profiles.copy_files import read_transfer_files
from whatif.profiles.formats import read_profile
from whatif.schema.load import load_platform

LARGEST_SEED = 20_000
"""Bytes of a text that a seed is cut to: a random change of a large file hits nothing."""
MOST_SEEDS = 6
MOST_EDITS = 20
"""Cells of a database that an input changes."""
COLUMNS = {name: np.arange(1.0, 9.0) for name in ("time", "n", "p")}

Reader = Callable[[Path], object]


@dataclass(frozen=True)
class Target:
    """A reader of files, the seeds to begin with, the verb that reads such files, and what a file is called.

    Seeds are patterns below tests/data, or contents. Some formats are told by the name of the file.
    """

    read: Reader
    seeds: tuple[str | bytes, ...]
    verb: tuple[str, ...] = ()
    name: str = "input.txt"

    def contents(self) -> Iterator[bytes]:
        """Contents of the seeds."""
        for seed in self.seeds:
            if isinstance(seed, bytes):
                yield seed
                continue
            files = [path for path in DATA.glob(seed) if path.is_file() and "LICEN" not in path.name]
            assert files, f"no file {seed}"
            for path in sorted(files, key=lambda path: (path.stat().st_size, path))[:MOST_SEEDS]:
                yield _shortened(path.read_bytes())


def _shortened(content: bytes) -> bytes:
    """The first lines of a long text; any other content as it is."""
    is_table = b"\0" not in content[:1024] and not content.startswith((b"\x1f\x8b", b"{", b"[", b"<"))
    return content[:LARGEST_SEED].rpartition(b"\n")[0] + b"\n" if is_table and len(content) > LARGEST_SEED else content


def _columns(path: Path) -> object:
    return import_network(path, columns="message_size=size (bytes),time=time (seconds)")


def _metrics(path: Path) -> object:
    return import_runs(path, long="metric=value")


def _kernels(path: Path) -> object:
    return import_kernels(path).to_toml()


def _scenario(path: Path) -> object:
    program = Scenario.open(str(path)).program
    return evaluate(program) if sensible(program) else None


def _platform(path: Path) -> object:
    return load_platform(str(path))


def _formula(path: Path) -> object:
    return parse_formula(path.read_text("utf-8", "replace"), COLUMNS).design(COLUMNS)


def _edited(seed: Path) -> Reader:
    """Reader of a copy of a profile in SQLite with other cells: a line of the input is a column, a row and a value.

    A changed byte of a database hardly ever changes a value; the rest of the file does not open.
    """
    with closing(sqlite3.connect(f"{seed.as_uri()}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = [(table, row[1]) for table in tables for row in database.execute(f'PRAGMA table_info("{table}")')]

    def read(path: Path) -> object:
        copy = path.with_name(seed.name)
        shutil.copy(seed, copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = OFF")
            for line in path.read_text("utf-8", "replace").splitlines()[:MOST_EDITS]:
                _edit(database, columns, line)
        return read_profile(copy)

    return read


def _edit(database: sqlite3.Connection, columns: Sequence[tuple[str, str]], line: str) -> None:
    """Set one cell, or all cells of a column where no row has the number."""
    found = re.fullmatch(r"(\d{1,6}) (\d{1,6}|-) ?(.*)", line)
    if found is None:
        return
    table, column = columns[int(found[1]) % len(columns)]
    where = "" if found[2] == "-" else f" WHERE rowid = {found[2]}"
    if found[3] == "gone":
        database.execute(f'DELETE FROM "{table}"{where}')  # noqa: S608 - a table of the seed
    else:
        with suppress(sqlite3.IntegrityError):
            database.execute(f'UPDATE OR REPLACE "{table}" SET "{column}" = ?{where}', [_value(found[3])])  # noqa: S608


def _value(text: str) -> object:
    """Value of a cell: nothing, a number, bytes after `x`, else the text."""
    if text in ("null", ""):
        return None
    for kind, most in ((int, 18), (float, 30)):
        with suppress(ValueError):
            return kind(text[:most])
    return text[1:].encode() if text.startswith("x") else text


def _messages(*seeds: str | bytes) -> Target:
    return Target(import_network, seeds, ("import", "network"))


def _rates(*seeds: str | bytes) -> Target:
    return Target(import_gpu, seeds, ("import", "gpu"))


def _profiled(*seeds: str | bytes) -> Target:
    return Target(_kernels, seeds, ("import", "kernels"))


def _runs(*seeds: str | bytes) -> Target:
    return Target(import_runs, seeds, ("import", "runs"))


def _trace(*seeds: str | bytes, name: str = "input.txt") -> Target:
    return Target(read_trace, seeds, ("import", "trace"), name)


def _profile(*seeds: str | bytes, name: str) -> Target:
    return Target(read_profile, seeds, ("import", "profile"), name)


def _texts(*texts: str) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)


def _shipped(kind: str, *names: str) -> tuple[bytes, ...]:
    return tuple((ROOT / kind / f"{name}.toml").read_bytes() for name in names)


_NCU = test_nsight_compute
_IMB = (test_message_files.IMB_OLD, test_message_files.IMB_NEW, test_message_files.IMB_GROUPS)
_EVENTS = [
    {"ph": "X", "cat": "kernel", "name": "k", "ts": 3.5, "dur": 1, "args": {"device": 0, "stream": 7}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 1, "dur": 2, "args": {"bytes": 8}},
]
_KERNELS = "Kind,Agent_Id,Stream_Id,Kernel_Name,Start_Timestamp,End_Timestamp\nK,Agent 4,1,add,10,14\n"
_FIRST_CALLS = (DATA / "traces/dumpi/testtrace-0000.txt").read_text()[:3500].replace("int size=4", "int size=1")
_ONE_RANK = re.sub(r"int (dest|source)=\d", r"int \1=0", _FIRST_CALLS)

EDITS = _texts("3 1 -1\n17 2 9223372036854775807\n", "40 - null\n5 - x\n", "60 - gone\n8 3 text\n9 1 1e308\n")

TARGETS = {
    "osu": _messages("importers/network/cscs/*.txt"),
    "imb": _messages(*_texts(*_IMB)),
    "netgauge": _messages(*_texts(test_message_files.NETGAUGE, test_message_files.LOGGP)),
    "ping-pong": _messages("importers/network/blue_waters/*.txt"),
    "nccl-tests": _messages("importers/network/nccl/*.txt"),
    "simgrid": _messages("importers/network/simgrid/*.csv"),
    "simgrid-xml": _messages("importers/network/simgrid/*.xml", "hpl_platforms/*.xml"),
    "columns": Target(_columns, ("importers/network/fugaku/riken*.csv",)),
    "gpuroofperf": _rates("gpuroofperf/gpu_params/*.csv"),
    "mixbench": _rates(*_texts(test_gpu_benchmarks.MIXBENCH)),
    "babelstream": _rates("importers/gpu/babelstream/*.txt"),
    "gpuroofperf-kernels": _profiled("gpuroofperf/kernel_params/**/*.json"),
    "nsight-compute": _profiled(*_texts(_NCU.long_form(), _NCU.raw_page())),
    "host": Target(read_host, ("importers/host/*.txt", "processors/*.csv")),
    "runs": _runs("runs/caliper/*.csv", "sasidharan/table06*.csv", *_texts(test_run_files.SMALL)),
    "long-runs": Target(_metrics, _texts(test_run_files.LONG)),
    "nvidia-smi": _runs(*_texts(test_run_files.QUERY, test_run_files.MONITOR)),
    "caliper": _runs("runs/caliper/*.cali"),
    "thicket": _runs(*_texts(json.dumps(test_run_files.THICKET), json.dumps(test_run_files.SPLIT))),
    "extra-p": _runs("runs/extrap/text/*.txt", "runs/extrap/json*/*"),
    "calibration": Target(read_calibration_files, ("kernels/*.csv",)),
    "model": Target(import_model, ("importers/models/*.json",), ("import", "model"), "config.json"),
    "dumpi": _trace(*_texts(_ONE_RANK), name="input-0000.txt"),
    "dumpi-binary": Target(read_binary_rank, ("traces/dumpi/*.bin",), name="input-0000.bin"),
    "goal": _trace("traces/goal/*.goal"),
    "goal-binary": _trace(WHOLE),
    "actions": _trace("traces/simgrid/*.txt"),
    "nvprof": _profile("profiles/ahead/*.nvvp", name="input.nvvp"),
    "nsight-systems": _profile("profiles/nsys/*.sqlite", name="input.sqlite"),
    "nvprof-cells": Target(_edited(DATA / "profiles/ahead/lammps_summit.nvvp"), EDITS),
    "nsight-cells": Target(_edited(DATA / "profiles/nsys/saxpy_a100.sqlite"), EDITS),
    "kineto": _profile("profiles/kineto/*.gz", *_texts(json.dumps({"traceEvents": _EVENTS})), name="input.json"),
    "rocprof": _profile("profiles/rocprof/timestamps.csv", *_texts(_KERNELS), name="input_kernel_trace.csv"),
    "copies": Target(read_transfer_files, ("ahead/*.csv", "importers/transfer/*.nvvp"), ("import", "transfer")),
    "hpl-input": Target(read_hpl_input, ("hpl/HPL.dat.*",), ("hpl",)),
    "hpl-output": Target(read_hpl_output, ("hpl/hpccoutf.txt",)),
    "scenario": Target(_scenario, _shipped("scenarios", "jacobi2d", "minife"), ("check",), "input.toml"),
    "platform": Target(_platform, _shipped("platforms", "summit", "lassen"), ("check",), "input.toml"),
    "formula": Target(_formula, _texts("time ~ (n + I(n**2)) * p", "log(time) ~ log(n) + poly(p, 2)", "n ~ I(p*1e-3)")),
}
"""Readers by name."""
