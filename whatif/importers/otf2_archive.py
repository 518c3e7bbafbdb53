"""OTF2 archives (Score-P, Extrae, ..): an anchor file `traces.otf2`, definitions, and the events of each location.

MPI ranks compute between the calls of MPI, which themselves take no time; messages, collectives and communicators are
those that were recorded, with the sources and sizes that receives had in the end. Other threads are left out.
Read with the `otf2` package, which is not a part of a plain installation. Source: OTF2 3, `otf2.reader`.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Final

from whatif.errors import InvalidFileError
from whatif.extras import install_command
from whatif.importers.operations import sequential_trace
from whatif.importers.otf2_events import Read
from whatif.importers.text import readable, refuse
from whatif.schema.toml import shown_path
from whatif.simulation.rank_programs import Trace

SUFFIX: Final = ".otf2"
"""Ending of the anchor file's name."""
START: Final = b"\x03BOTF2"
"""First bytes of the anchor file."""


def anchor_of(path: Path) -> Path | None:
    """The anchor file of a path that is one, or a folder with one; None for others."""
    if path.is_dir():
        found = sorted(file for file in path.glob(f"*{SUFFIX}") if file.is_file())
        if len(found) > 1:
            raise refuse(shown_path(path), f"{len(found)} archives: name one, as {found[0].name}")
        return found[0] if found else None
    with readable(path), path.open("rb") as file:
        return path if file.read(len(START)) == START else None


def read_otf2(path: Path) -> Trace:
    """Trace of an archive, given by its anchor file or the folder with it.

    Raise `InvalidFileError` if it is damaged, or the events of a rank or the package `otf2` are missing.
    """
    anchor = anchor_of(path)
    if anchor is None:
        raise refuse(shown_path(path), f"no anchor file of an OTF2 archive (`traces{SUFFIX}`)")
    if importlib.util.find_spec("otf2") is None:
        raise refuse(shown_path(path), f"reading OTF2 needs the package `otf2`: {install_command('otf2')}")
    ranks, members, warnings = _read_in_worker(anchor)
    notes = {"tool": "OTF2", "file": shown_path(anchor)}
    return sequential_trace(ranks, members, notes, warnings)


def _read_in_worker(anchor: Path) -> Read:
    """Trace read by a worker process; see `whatif.importers.otf2_events`."""
    places = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(  # noqa: S603 - this program's own module
        [sys.executable, "-P", "-m", "whatif.importers.otf2_events", str(anchor.resolve())],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": places},
        check=False,
    )
    if done.returncode or not done.stdout:
        rows = done.stderr.decode("utf-8", "replace").splitlines()
        message = next(
            (row.partition("error: ")[2] for row in rows if row.startswith("[OTF2]")), "its records are no sense"
        )
        raise refuse(shown_path(anchor), f"the archive is damaged or cut off: {message[:200]}")
    answer: Read | InvalidFileError = pickle.loads(done.stdout)  # noqa: S301 - written by our own process
    if isinstance(answer, InvalidFileError):
        raise answer
    return answer
