"""Files of fitted phases, and scenarios in the same folder; other files are never overwritten."""

from __future__ import annotations

from pathlib import Path

from whatif.atomic import write_text
from whatif.errors import UsageError
from whatif.paths import is_file
from whatif.schema.shipped import is_name
from whatif.schema.toml import read_document


def write_part(path: Path, text: str, kind: str) -> None:
    """Write a part; raise `UsageError` as `refuse_part`."""
    refuse_part(path, kind)
    write_text(path, text)


def refuse_part(path: Path, kind: str) -> None:
    """Raise `UsageError` for a name that no phase could extend, and for a file with other content."""
    if path.suffix != ".toml" or not is_name(path.stem):
        raise UsageError(f"{path}: phases extend it by its name: call the file NAME.toml")
    if is_file(path) and read_document(path).data.get("kind") != kind:
        raise UsageError(f"{path}: already exists and holds something else; not overwritten")


def write_scenario(path: Path, text: str, part: Path) -> None:
    """Write a scenario whose phase extends a part in its folder. Raise `UsageError` as `refuse_scenario`."""
    refuse_scenario(path, text, part)
    write_text(path, text)


def refuse_scenario(path: Path, text: str, part: Path) -> None:
    """Raise `UsageError` for a scenario in another folder, and for a file with other content."""
    if path.resolve() == part.resolve():
        raise UsageError(f"{path}: the part and the scenario need two files")
    if path.resolve().parent != part.resolve().parent:
        raise UsageError(f"{path}: the scenario needs {part.name} in its folder: write both into one folder")
    if is_file(path) and path.read_bytes() != text.encode():
        raise UsageError(f"{path}: already exists; not overwritten")
