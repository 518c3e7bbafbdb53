"""Results kept line by line, so that an interrupted computation can continue.

JSON lines: first the inputs, `{"question": {..}}`, then one object for each result. Every line is written at once; an
incomplete last line is from a process that was killed while writing, and is dropped. A file that ends within its first
line is begun anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whatif.atomic import writable
from whatif.errors import UsageError
from whatif.importers.text import read_text, refuse
from whatif.schema.toml import shown_path


class KeptLines:
    """Results for one set of inputs; `found` are those read from the file, by line number."""

    def __init__(self, path: Path, inputs: Mapping[str, Any], program: str) -> None:
        """Open a file to continue, or create it.

        Raise `UsageError` for a file of other inputs or one that cannot be written, `InvalidFileError` for a file that
        `program` did not write.
        """
        self.found: dict[int, dict[str, Any]] = {}
        self._path = path
        head = json.loads(json.dumps({"question": inputs}))
        raw = path.read_bytes() if path.exists() and read_text(path) else b""
        whole = raw[: raw.rfind(b"\n") + 1]
        if whole or not _written(head).startswith(raw):
            self._read(whole.decode(errors="replace"), head["question"], program)
        if whole != raw:
            os.truncate(path, len(whole))
        if not whole:
            self.add(head)

    def add(self, line: Mapping[str, Any]) -> None:
        """Append a result."""
        with writable(self._path), self._path.open("ab", buffering=0) as file:
            file.write(_written(line))

    def _read(self, text: str, inputs: Mapping[str, Any], program: str) -> None:
        name = shown_path(self._path)
        lines = text.split("\n")
        stored = _object(lines[0]).get("question")
        if not isinstance(stored, dict):
            raise refuse(name, f"not a file of `{program}`, not overwritten; choose another file", 1)
        other = next((key for key in {**inputs, **stored} if stored.get(key) != inputs.get(key)), None)
        if other is not None:
            was = f"{other} was {_short(stored.get(other))} and is {_short(inputs.get(other))}"
            raise UsageError(f"{name}: was written for other inputs: {was}; use the same inputs, or name another file")
        self.found = {number: _object(line) for number, line in enumerate(lines[1:-1], 2)}


def _written(line: Mapping[str, Any]) -> bytes:
    return (json.dumps(line) + "\n").encode()


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}.."
