"""Profiles of GPU programs of any supported tool, recognised by their content."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from whatif.errors import InvalidFileError
from whatif.importers.sqlite import head_of, is_sqlite, open_database, other_format, refused
from whatif.importers.text import reading, refuse
from whatif.profiles.kineto import is_kineto, read_head, read_kineto
from whatif.profiles.nsight_systems import is_nsight_systems, nsight_systems_profile
from whatif.profiles.nvprof import is_nvprof, nvprof_profile
from whatif.profiles.profile_data import Profile
from whatif.profiles.rocprof import is_rocprof, read_rocprof
from whatif.schema.toml import shown_path

_EXPECTED: Final = (
    "a profile: SQLite of nvprof (`nvprof -o FILE.nvvp`) or of Nsight Systems (`nsys export --type sqlite`), CSV of"
    " rocprof or rocprofv3, JSON of Kineto"
)


def read_profile(path: Path) -> Profile:
    """The operations and devices of a profile.

    Raise `InvalidFileError` for any other file, and for one that cannot be read.
    """
    with reading(path, "a profile"):
        return _read(path)


def _read(path: Path) -> Profile:
    if is_sqlite(path):
        return _read_database(path)
    text = read_head(path).decode("utf-8", "replace")
    if is_kineto(text):
        return read_kineto(path)
    if is_rocprof(_first_line(text)):
        return read_rocprof(path)
    raise refuse(shown_path(path), f"{_said(path, text)}; expected {_EXPECTED}")


def is_profile(path: Path) -> bool:
    """Whether a file is a profile of one of these tools, by its tables, its columns or its first events."""
    if is_sqlite(path):
        try:
            with open_database(path) as database:
                return is_nsight_systems(database) or is_nvprof(database)
        except InvalidFileError:
            return False
    text = read_head(path).decode("utf-8", "replace")
    return is_kineto(text) or is_rocprof(_first_line(text))


def _read_database(path: Path) -> Profile:
    with open_database(path, _EXPECTED) as database:
        if is_nsight_systems(database):
            return nsight_systems_profile(database)
        if is_nvprof(database):
            return nvprof_profile(database)
        some = ", ".join(f"`{name[:40]}`" for name in sorted(database.tables)[:5]) or "none"
        raise refused(database, f"an SQLite database, but not a profile: its tables are {some}; expected {_EXPECTED}")


def _first_line(text: str) -> str:
    return text.removeprefix("\ufeff").partition("\n")[0].rstrip("\r")


def _said(path: Path, text: str) -> str:
    """Description of a file that is not a profile; `text` is its unpacked start."""
    start = text[:1024].lstrip().lower()
    if start.startswith(("<!doctype html", "<html")):
        return "this is a web page (HTML), perhaps an error page that was saved under this name"
    if start.startswith(("{", "[")):
        return "it is JSON, but not a trace: there is no `traceEvents` at its beginning"
    return f"not a profile: {other_format(path, head_of(path))}"
