"""Edits that outlive the program: what is not saved lies in a file of its own until it is saved or given up."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

HEADER: Final = "# whatif: edits that were not saved; `whatif open SCENARIO --replay` this file brings them back\n"


@dataclass(frozen=True, slots=True)
class Lost:
    """Edits that an earlier program left behind."""

    path: Path
    lines: tuple[str, ...]


class Recovery:
    """The commands that lead from a scenario's file to the present study, kept on disk while they are not saved."""

    def __init__(self, scenario: Path, folder: Path | None = None) -> None:
        self.folder = folder_of_state() if folder is None else folder
        name = hashlib.sha256(str(scenario).encode()).hexdigest()[:12]
        self._pattern = f"*-{name}-*.journal"
        self._path = self.folder / f"{scenario.stem}-{name}-{os.getpid()}-{time.time_ns()}.journal"
        self._file: IO[str] | None = None

    def keep(self, lines: Sequence[str]) -> None:
        """Write the commands down; without any, leave no file. A full or read-only disk must not stop the work."""
        with suppress(OSError):
            if lines:
                self._write(HEADER + "".join(f"{line}\n" for line in lines))
            else:
                self.forget()

    def _write(self, text: str) -> None:
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            # The lock lasts as long as the program, however it ends: whose file is not locked is lost.
            self._file = self._path.open("w", encoding="utf-8")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._file.seek(0)
        self._file.write(text)
        self._file.truncate()
        self._file.flush()

    def forget(self) -> None:
        """Everything is saved, or nobody wants it."""
        if self._file is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let go of the file; what it holds can be found again."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def lost(self) -> Lost | None:
        """The newest edits of this scenario that no running program holds."""
        with suppress(OSError):
            found = sorted(self.folder.glob(self._pattern), key=lambda path: path.stat().st_mtime)
            for path in reversed(found):
                lines = _unlocked_lines(path)
                if lines:
                    return Lost(path, lines)
        return None


def _unlocked_lines(path: Path) -> tuple[str, ...]:
    with suppress(OSError, UnicodeDecodeError), path.open(encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return tuple(line for line in file.read().splitlines() if line and not line.startswith("#"))
    return ()


def folder_of_state() -> Path:
    """Where programs keep what should outlive them."""
    from platformdirs import user_state_path  # noqa: PLC0415 - only an edit needs it

    return user_state_path("whatif") / "recovery"
