"""Answers kept line by line, so that a computation that was ended goes on where it was.

JSON lines: first the question, `{"question": {..}}`, then one object for each answer. Every line is written at once; a
last line without its end is of a process that was killed while it wrote, and is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whatif.errors import UsageError
from whatif.importers.text import read_text, refuse
from whatif.schema.toml import shown_path


class KeptLines:
    """The answers to one question; `found` are those that were there, by the number of their line."""

    def __init__(self, path: Path, inputs: Mapping[str, Any], program: str) -> None:
        """Open a file to go on with, or begin it.

        Raise `UsageError` for a file of another question or one that cannot be written, `InvalidFileError` for a file
        that is none of `program`.
        """
        self.found: dict[int, dict[str, Any]] = {}
        self._path = path
        asked = json.loads(json.dumps({"question": inputs}))
        if not path.exists() or not read_text(path):
            self.add(asked)
            return
        raw = path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        self._read(whole.decode(), asked["question"], program)
        if whole != raw:
            os.truncate(path, len(whole))

    def add(self, line: Mapping[str, Any]) -> None:
        """Keep an answer."""
        try:
            with self._path.open("ab", buffering=0) as file:
                file.write((json.dumps(line) + "\n").encode())
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror}") from None

    def _read(self, text: str, asked: Mapping[str, Any], program: str) -> None:
        name = shown_path(self._path)
        lines = text.split("\n")
        said = _object(lines[0]).get("question")
        if not isinstance(said, dict):
            raise refuse(name, f"no file of `{program}`; it is left as it is: name another", 1)
        other = next((key for key in {**asked, **said} if said.get(key) != asked.get(key)), None)
        if other is not None:
            was = f"{other} was {_short(said.get(other))} and is {_short(asked.get(other))}"
            raise UsageError(f"{name}: answers another question: {was}; ask the same, or name another file")
        self.found = {number: _object(line) for number, line in enumerate(lines[1:-1], 2)}


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}.."
