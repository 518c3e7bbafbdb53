"""Traces of MPI programs; the format is recognised by content, never by the name alone."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import Final, Literal

from whatif.errors import NO_TRACE, InvalidFileError
from whatif.importers.dumpi import is_dumpi, meta_files, read_dumpi
from whatif.importers.dumpi_binary import BINARY_START
from whatif.importers.goal import is_goal, read_goal
from whatif.importers.goal_binary import MAGIC
from whatif.importers.otf2_archive import START, anchor_of, read_otf2
from whatif.importers.simgrid_actions import index_files, is_actions, read_actions
from whatif.importers.text import UNPACKING_ERRORS, chunks, open_unpacked, readable, reading, refuse
from whatif.schema.toml import shown_path
from whatif.simulation.rank_programs import Trace

Format = Literal["dumpi", "goal", "otf2", "simgrid", ""]

_HEAD: Final = 2**16
_KNOWN: Final = (
    "readable formats: DUMPI (binary, or text of `dumpi2ascii`), SimGrid's time-independent traces, GOAL and OTF2"
)
_STARTS: Final[tuple[tuple[bytes, Format], ...]] = (
    (MAGIC, "goal"),
    (START, "otf2"),
    (BINARY_START, "dumpi"),
)


def is_trace(path: Path) -> bool:
    """Whether a file or folder looks like a trace, from its first bytes; False for one that cannot be opened."""
    try:
        return bool(trace_format(path))
    except OSError:
        return False
    except InvalidFileError:
        return True  # of several, one must be named


def read_trace(path: Path) -> Trace:
    """Trace of a file or folder. Raise `InvalidFileError` for what is not a trace, or what its importer refuses."""
    name = shown_path(path)
    with readable(path):
        found = trace_format(path)
    if not found:
        raise refuse(name, f"{NO_TRACE}: {_what_it_is(path)}; {_KNOWN}")
    with reading(path, f"a trace ({found})"):
        return _read_as(found, path)


def _read_as(found: Format, path: Path) -> Trace:
    if found == "dumpi":
        return read_dumpi(path)
    if found == "simgrid":
        return read_actions(path)
    return read_goal(_only_schedule(path)) if found == "goal" else read_otf2(path)


def trace_format(path: Path) -> Format:
    """Format of a file or folder, empty if it is not a trace; raise `OSError` if it cannot be opened."""
    if path.is_dir():
        if anchor_of(path):
            return "otf2"
        found = [kind for file in sorted(path.iterdir()) if file.is_file() and (kind := _file_format(_read(file)))]
        return next((kind for kind in found if kind in ("dumpi", "simgrid")), next(iter(found), ""))
    if not stat.S_ISREG(path.stat().st_mode):
        return ""
    head = _read(path)
    if path.suffix == ".meta" and b"numprocs=" in head:
        return next((kind for file in meta_files(path) if (kind := _file_format(_read(file)))), "")
    return _file_format(head) or ("simgrid" if _is_index(path, head) else "")


def trace_files(path: Path) -> list[Path]:
    """Files of the trace at a path, perhaps with others from their folder, in a fixed order.

    Of a folder all that are in it and in the folders within. Raise `OSError` if the path cannot be opened.
    """
    found = [*path.glob("*"), *path.glob("*/*")] if path.is_dir() else [path, *_other_files(path)]
    return sorted({file for file in found if file == path or file.is_file()})


def _other_files(path: Path) -> Iterator[Path]:
    """Other files of the trace at a path: ranks, definitions, files of an index."""
    match trace_format(path):
        case "dumpi" if path.suffix == ".meta":
            yield from meta_files(path)
        case "dumpi":
            yield from path.parent.glob(f"{escape(path.stem.rstrip('0123456789'))}*{escape(path.suffix)}")
        case "otf2":
            yield path.with_suffix(".def")
            yield from path.with_suffix("").glob("*")
        case "simgrid" if not _file_format(_read(path)):
            yield from index_files(path, "".join(chunks(path)))


def _only_schedule(path: Path) -> Path:
    """A file, or the only schedule (GOAL) in a folder."""
    inside = [path] if path.is_file() else sorted(path.iterdir())
    files = [file for file in inside if file == path or (file.is_file() and trace_format(file) == "goal")]
    if len(files) > 1:
        raise refuse(shown_path(path), f"{len(files)} schedules: name one, as {files[0].name}")
    return files[0]


def _read(path: Path) -> bytes:
    try:
        with open_unpacked(path) as file:
            return file.read(_HEAD)
    except UNPACKING_ERRORS as error:
        raise OSError(0, f"the packed file is damaged or cut off: {error}") from None


def _file_format(head: bytes) -> Format:
    for start, kind in _STARTS:
        if head.startswith(start):
            return kind
    if b"\0" in head:
        return ""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    if is_goal(text):
        return "goal"
    if is_dumpi(text):
        return "dumpi"
    return "simgrid" if is_actions(text) else ""


def _is_index(path: Path, head: bytes) -> bool:
    files = index_files(path, head.decode("utf-8", "replace"))
    return bool(files) and _file_format(_read(files[0])) == "simgrid"


def _what_it_is(path: Path) -> str:
    if not path.is_file():
        return "no file in this folder is one" if path.is_dir() else "neither a file nor a folder"
    head = _read(path)
    start = head[:1024].lstrip().lower()
    others = {
        "the file is empty": not head,
        "a web page (HTML), perhaps an error page": start.startswith((b"<!doctype html", b"<html")),
        "UTF-16 text; save it as UTF-8": head.startswith((b"\xff\xfe", b"\xfe\xff")),
        "an SQLite database, as profiles of GPU programs are": head.startswith(b"SQLite format 3\0"),
        "a part of an OTF2 archive; name its anchor file, such as traces.otf2": path.suffix in (".evt", ".def"),
        "a binary file of another kind": b"\0" in head,
    }
    return next((name for name, matches in others.items() if matches), "text of another kind")
