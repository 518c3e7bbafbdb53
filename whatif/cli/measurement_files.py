"""Files of measurements as the command line names them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whatif.errors import UsageError

if TYPE_CHECKING:
    from whatif.table import Table


def once(files: Sequence[Path]) -> list[Path]:
    """The files without those that are named twice: their points would count twice."""
    return list({path.resolve(): path for path in reversed(files)}.values())[::-1]


def in_folders(files: Sequence[Path]) -> list[Path]:
    """The files, with those of folders in the place of the folders, each once."""
    return once([item for path in files for item in (_files_of(path) if path.is_dir() else [path])])


def _files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def read_messages(files: Sequence[Path], columns: str | None, where: Sequence[str]) -> Table:
    """Measurements of messages from files and folders; `columns` and `where` are for CSV files."""
    from whatif.importers.mapping import parse_mapping
    from whatif.importers.message_files import read_networks

    mapping = parse_mapping(columns) if columns is not None else None
    return read_networks(once(files), mapping, _filters(where))


def read_run_files(files: Sequence[Path], columns: str | None, where: Sequence[str], long: str | None) -> Table:
    """Measured runs from files and folders; the options are those of `whatif import runs`."""
    from whatif.importers.mapping import parse_mapping
    from whatif.importers.run_files import read_runs

    mapping = parse_mapping(columns) if columns is not None else None
    pair = None if long is None else _pair(long, "--long", "METRIC=VALUE")
    return read_runs(in_folders(files), mapping, _filters(where), pair)


def _filters(where: Sequence[str]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for heading, value in map(_pair, where):
        if heading in found:
            raise UsageError(f"--where {heading}={value}: {heading} is given already, as {found[heading]}")
        found[heading] = value
    return found or None


def _pair(text: str, option: str = "--where", expected: str = "HEADING=VALUE") -> tuple[str, str]:
    heading, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not heading:
        raise UsageError(f"{option} {text}: expected {expected}")
    return heading, value


def read_transfers(files: Sequence[Path]) -> Table:
    """Copies between host and device: one profile, or one summary as CSV."""
    from whatif.importers.rows import joined
    from whatif.profiles.nvprof import is_database, read_copies, read_copy_summary

    return joined([read_copies(path) if is_database(path) else read_copy_summary(path) for path in files])
