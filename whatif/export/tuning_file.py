"""What a search has played, kept line by line so that a search that was ended goes on where it was.

JSON lines: first the question, `{"question": {..}}`, then one object for each run with the parameters in HPL's numbers
and its time in s: `{"matrix_size": 20000, .., "broadcast": 1, .., "time": 13.5}`. Every line is written at once; a last
line without its end is of a process that was killed while it wrote, and is dropped.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from whatif.errors import UsageError
from whatif.importers.text import read_text, refuse
from whatif.schema.toml import shown_path
from whatif.simulation.hpl.configuration import Broadcast, Configuration, Looking, Swap
from whatif.simulation.hpl.configuration import Mapping as RankMapping

_CODES: Final[Mapping[str, Any]] = {
    "broadcast": Broadcast, "swap": Swap, "panel_factorisation": Looking, "recursive_factorisation": Looking,
    "mapping": RankMapping,
}  # fmt: skip
_NAMES: Final = {field.name for field in fields(Configuration)}


class TuningFile:
    """The runs of one question; `times` are the seconds of those that are known."""

    def __init__(self, path: Path, question: Mapping[str, Any]) -> None:
        """Open a file to go on with, or begin it.

        Raise `UsageError` for a file of another question or one that cannot be written, `InvalidFileError` for a file
        that is none of a search.
        """
        self.times: dict[Configuration, float] = {}
        self._path = path
        asked = json.loads(json.dumps({"question": question}))
        if not path.exists() or not read_text(path):
            self._write(asked)
            return
        raw = path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        self._read(whole.decode(), asked["question"])
        if whole != raw:
            os.truncate(path, len(whole))

    def add(self, configuration: Configuration, time: float) -> None:
        """Keep a run."""
        self.times[configuration] = time
        self._write({**{name: int(value) for name, value in asdict(configuration).items()}, "time": time})

    def _write(self, line: Mapping[str, Any]) -> None:
        try:
            with self._path.open("ab", buffering=0) as file:
                file.write((json.dumps(line) + "\n").encode())
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror}") from None

    def _read(self, text: str, asked: Mapping[str, Any]) -> None:
        name = shown_path(self._path)
        lines = text.split("\n")
        said = _object(lines[0]).get("question")
        if not isinstance(said, dict):
            raise refuse(name, "no file of `whatif tune`; it is left as it is: name another", 1)
        other = next((key for key in {**asked, **said} if said.get(key) != asked.get(key)), None)
        if other is not None:
            was = f"{other} was {_short(said.get(other))} and is {_short(asked.get(other))}"
            raise UsageError(f"{name}: answers another question: {was}; ask the same, or name another file")
        for number, line in enumerate(lines[1:-1], 2):
            found = _object(line)
            time = found.pop("time", None)
            try:
                configuration = _configuration(found)
            except (TypeError, ValueError, UsageError):
                raise refuse(name, "no run of HPL: was the file changed by hand?", number) from None
            if not (isinstance(time, float) and 0 < time < math.inf):
                raise refuse(name, "the time is no number above 0", number)
            self.times[configuration] = time


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _configuration(found: Mapping[str, Any]) -> Configuration:
    if found.keys() != _NAMES or not all(type(value) is int for value in found.values()):
        raise ValueError
    return Configuration(**{name: _CODES.get(name, int)(value) for name, value in found.items()})


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}.."
