"""Random bytes for the importers of traces, guided by what they cover: only `InvalidFileError` may come out.

    python -m pip install atheris
    python tests/fuzz/fuzz_traces.py FORMAT [-max_total_time=60] [CORPUS ..]

FORMAT is dumpi, simgrid, goal, binary or any; the small traces of tests/data/traces are where it starts. Any further
argument is one of libFuzzer's. Archives of OTF2 are read in a process of their own, and are left to the tests.
"""

from __future__ import annotations

import struct
import sys
import tempfile
from pathlib import Path

import atheris

from tests.paths import DATA as TEST_DATA

with atheris.instrument_imports(include=["whatif"]):
    from whatif.errors import InvalidFileError
    from whatif.importers.dumpi import read_dumpi
    from whatif.importers.goal import read_goal
    from whatif.importers.simgrid_actions import read_actions
    from whatif.importers.trace_formats import read_trace

DATA = TEST_DATA / "traces"
READERS = {"dumpi": read_dumpi, "simgrid": read_actions, "goal": read_goal, "binary": read_goal, "any": read_trace}
HEADER = struct.pack("<QIBB", 4223, 1, 1, 1)


def first_inputs(name, folder):
    """Small real inputs, as files of a folder."""
    texts = [file.read_bytes() for file in (DATA / name).glob("*.*") if file.is_file() and "LICEN" not in file.name]
    if name == "dumpi":
        texts = [text[:3500].replace(b"int size=4", b"int size=1") for text in texts]
    if name == "binary":
        one = struct.pack("<IBIQIBBIIII", 0, 3, 0, 5, 0, 0, 0, 1, 0, 0, 1)
        two = struct.pack("<IBIQIBBIIII", 1, 1, 0, 5, 0, 0, 0, 0, 1, 0, 1)
        body = struct.pack("<III", 2, 1, 0) + one + two + struct.pack("<I", 1)
        texts = [HEADER + struct.pack("<QQ", 22, 22 + len(body)) + body]
    for number, text in enumerate(texts):
        (folder / f"first-{number}").write_bytes(text)


def main():
    name = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if name not in READERS:
        sys.exit(f"which format? one of {', '.join(READERS)}")
    folder = Path(tempfile.mkdtemp())
    corpus = folder / "corpus"
    corpus.mkdir()
    for kind in READERS if name == "any" else [name]:
        first_inputs(kind, corpus)
    file = folder / "t-0000.txt"

    def read(data):
        file.write_bytes(data)
        try:
            READERS[name](file)
        except InvalidFileError as error:
            str(error)

    atheris.Setup([*sys.argv, str(corpus)], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
