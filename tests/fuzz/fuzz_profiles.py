# ruff: noqa: SIM105 - a context manager for each call would be measured too
"""Profiles by coverage-guided fuzzing; only `InvalidFileError` may be raised. Needs `pip install atheris`.

Run `python tests/fuzz/fuzz_profiles.py nvprof|nsys|kineto|rocprof -max_total_time=60 [FOLDER]`. It begins with the
profiles of tests/data/profiles, as far as they suit, and with those of the folder.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

import atheris

from tests.paths import DATA as TEST_DATA

with atheris.instrument_imports(include=["whatif.importers"]):
    from whatif.errors import InvalidFileError
    from whatif.profiles.formats import is_profile, read_profile

DATA = TEST_DATA / "profiles"
KERNEL_TRACE = (
    b'"Kind","Agent_Id","Stream_Id","Kernel_Name","Start_Timestamp","End_Timestamp"\n"K","Agent 4",1,"add",1000,1400\n'
)
COPY_TRACE = b"Direction,Source_Agent_Id,Destination_Agent_Id,Start_Timestamp,End_Timestamp\nHOST_TO_DEVICE,0,4,1,2\n"
TRACE = (
    b'{"traceEvents": [{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 1, "dur": 2,'
    b' "args": {"bytes": 8, "correlation": 1}}, {"ph": "X", "cat": "kernel", "name": "k", "ts": 3.5, "dur": 1}]}'
)
SEEDS = {
    "nvprof": lambda: [(DATA / "ahead" / "lammps_summit.nvvp").read_bytes()],
    "nsys": lambda: [(DATA / "nsys" / "saxpy_a100.sqlite").read_bytes()],
    "kineto": lambda: [TRACE, gzip.compress(TRACE, 0)],
    "rocprof": lambda: [KERNEL_TRACE, COPY_TRACE, (DATA / "rocprof" / "timestamps.csv").read_bytes()],
}


def main() -> None:
    kind, folder = sys.argv[1], Path(tempfile.mkdtemp())
    seeds = folder / "seeds"
    seeds.mkdir()
    for number, content in enumerate(SEEDS[kind]()):
        (seeds / str(number)).write_bytes(content)
    path = folder / "profile_kernel_trace.csv"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        for function in (is_profile, read_profile):
            try:
                function(path)
            except InvalidFileError:
                pass

    atheris.Setup([sys.argv[0], *sys.argv[2:], str(seeds), "-max_len=200000"], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
