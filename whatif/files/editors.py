"""Text editor of the user: its command line, and the file and line of a parameter."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from whatif.errors import UsageError
from whatif.schema.load import Loaded
from whatif.schema.shipped import shipped_folder
from whatif.schema.toml import key_path

_USUAL: Final = ("+{line}", "{file}")
_PLACE: Final = "{file}:{line}"
_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("code", "code-insiders", "codium", "cursor"), ("--wait", "-g", _PLACE)),
    **dict.fromkeys(("subl", "zed"), ("--wait", _PLACE)),
    **dict.fromkeys(("hx", "helix"), (_PLACE,)),
    **dict.fromkeys(("idea", "pycharm"), ("--wait", "--line", "{line}", "{file}")),
    "mate": ("--wait", "--line", "{line}", "{file}"),
    "kate": ("--block", "--line", "{line}", "{file}"),
    "notepad": ("{file}",),
    "notepad++": ("-n{line}", "{file}"),
}
"""Arguments of editors that do not take `+LINE FILE`, or do not wait until the file is closed."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A line of a file."""

    file: Path
    line: int


def editor_command(environment: Mapping[str, str], place: FilePlace) -> list[str]:
    """Command that opens a file at a line in $VISUAL, else in $EDITOR; raise `UsageError` if neither is set."""
    name = "VISUAL" if environment.get("VISUAL", "").strip() else "EDITOR"
    text = environment.get(name, "").strip()
    if not text:
        raise UsageError("no editor is set; name one before the start, such as `export EDITOR=nano`")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"${name} = `{text}`: {str(error).lower()}") from None
    form = _FORMS.get(Path(words[0]).stem.lower(), _USUAL)
    arguments = (part.format(file=place.file, line=place.line) for part in form if part not in words)
    return [*words, *arguments]


def place_of(path: str, loaded: Loaded, scenario: Path) -> FilePlace | None:
    """Line that states a parameter, or the nearest table around it, in the files of the user; else the `scenario`.

    Files that came with the program are left out, as a scenario states other values for them; None if there are no
    others.
    """
    key = key_path(path)
    own = [layer for layer in loaded.layers.items if layer.document.folder is not None]
    own = [layer for layer in own if not came_with_program(Path(layer.document.name))]
    for length in range(len(key), 0, -1):
        for layer in reversed(own):
            if layer.stated(key[:length]) is not None:
                line, _ = layer.document.locate(key[len(layer.at) :])
                return FilePlace(Path(layer.document.name).resolve(), max(line, 1))
    return None if came_with_program(scenario) else FilePlace(scenario, 1)


def came_with_program(file: Path) -> bool:
    """Whether a file came with the program."""
    folders = [shipped_folder(kind).resolve() for kind in ("scenarios", "platforms", "parts")]
    return any(folder in file.resolve().parents for folder in folders)
