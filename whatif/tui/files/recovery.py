"""Recovery of unsaved edits: a file per running explorer, locked as long as its program runs."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Final

from whatif.plotting.description import shorten
from whatif.tui.commands.explorer_commands import Pin, Revert

HEADER: Final = "# whatif: unsaved edits; restore them with `whatif open SCENARIO --replay` and this file\n"
_LOCKED_BYTE: Final = 1 << 30
"""Windows denies reading a locked byte, so one far behind the text is locked."""


@dataclass(frozen=True, slots=True)
class LostEdits:
    """Unsaved edits of a program that ended, and the file that holds them."""

    path: Path
    lines: tuple[str, ...]

    @property
    def question(self) -> str:
        """Text that asks whether to restore them, with the first edits; without the commands that make the baseline."""
        pin = Pin().line()
        edits = self.lines[self.lines.index(pin) + 1 :] if pin in self.lines else self.lines
        shown = (shorten(line, 76) for line in edits[:12] if line != Revert().line())
        return "\n".join(("An earlier session ended with edits that were not saved:", "", *shown))


class Recovery:
    """File with the commands that lead from a scenario's file to the current state, kept while they are unsaved."""

    def __init__(self, scenario: Path, folder: Path | None = None) -> None:
        self.folder = folder_of_state() if folder is None else folder
        name = hashlib.sha256(str(scenario).encode()).hexdigest()[:12]
        self._pattern = f"*-{name}-*.journal"
        self._path = self.folder / f"{scenario.stem}-{name}-{os.getpid()}-{time.time_ns()}.journal"
        self._file: IO[str] | None = None

    def keep(self, lines: Sequence[str]) -> None:
        """Write the commands, or delete the file without commands. A full or read-only disk is ignored."""
        with suppress(OSError):
            if lines:
                self._write(HEADER + "".join(f"{line}\n" for line in lines))
            else:
                self.forget()

    def _write(self, text: str) -> None:
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            # The lock lasts as long as the program, however it ends: an unlocked file has lost its program.
            self._file = self._path.open("w", encoding="utf-8")
            _lock(self._file)
        self._file.seek(0)
        self._file.write(text)
        self._file.truncate()
        self._file.flush()

    def forget(self) -> None:
        """Delete the file: everything is saved or discarded."""
        if self._file is not None:
            # Windows deletes closed files only; an empty one is never offered for recovery.
            with suppress(OSError):
                self._file.truncate(0)
            self.close()
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file and keep it for recovery."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def lost(self) -> LostEdits | None:
        """Newest unsaved edits of this scenario whose program no longer runs; None if there are none."""
        with suppress(OSError):
            found = sorted(self.folder.glob(self._pattern), key=lambda path: path.stat().st_mtime)
            for path in reversed(found):
                lines = _unlocked_lines(path)
                if lines:
                    return LostEdits(path, lines)
        return None


def _unlocked_lines(path: Path) -> tuple[str, ...]:
    with suppress(OSError, UnicodeDecodeError), path.open("r+", encoding="utf-8") as file:
        _lock(file)
        return tuple(line for line in file.read().splitlines() if line and not line.startswith("#"))
    return ()


def _lock(file: IO[str]) -> None:
    """Lock a file until it is closed or the program ends; raise `OSError` if another program holds it."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        msvcrt = import_module("msvcrt")
        os.lseek(file.fileno(), _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        os.lseek(file.fileno(), 0, os.SEEK_SET)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def folder_of_state() -> Path:
    """Folder of recovery files, by the convention of the operating system."""
    from platformdirs import user_state_path  # noqa: PLC0415 - only an edit needs it

    return user_state_path("whatif") / "recovery"
