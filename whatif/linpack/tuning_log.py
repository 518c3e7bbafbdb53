"""Simulated runs of a search, kept so that an interrupted search continues (see `KeptLines`).

Each line holds a run's parameters in HPL's numbers and its time in s: `{"matrix_size": 20000, .., "broadcast": 1, ..,
"time": 13.5}`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from whatif.errors import UsageError
from whatif.files.resumable_lines import KeptLines
from whatif.importers.text import refuse
from whatif.linpack.simulation.configuration import Broadcast, Configuration, Looking, RowSwap
from whatif.linpack.simulation.configuration import Mapping as RankMapping
from whatif.schema.toml import shown_path

_CODES: Final[Mapping[str, Any]] = {
    "broadcast": Broadcast, "swap": RowSwap, "panel_factorisation": Looking, "recursive_factorisation": Looking,
    "mapping": RankMapping,
}  # fmt: skip
_NAMES: Final = {field.name for field in fields(Configuration)}


class TuningFile:
    """Runs of one search; `times` are the known ones in s."""

    def __init__(self, path: Path, search: Mapping[str, Any]) -> None:
        """Open a file to continue from, or create it; errors as those of `KeptLines`."""
        self._lines = KeptLines(path, search, "whatif tune")
        self.times: dict[Configuration, float] = {}
        for number, found in self._lines.found.items():
            configuration, time = _run(found, shown_path(path), number)
            self.times[configuration] = time

    def add(self, configuration: Configuration, time: float) -> None:
        """Write a run to the file."""
        self.times[configuration] = time
        self._lines.add({**{name: int(value) for name, value in asdict(configuration).items()}, "time": time})


def _run(found: dict[str, Any], name: str, number: int) -> tuple[Configuration, float]:
    time = found.pop("time", None)
    try:
        configuration = _configuration(found)
    except (TypeError, ValueError, UsageError):
        raise refuse(name, "not a run of HPL: was the file changed by hand?", number) from None
    if not (isinstance(time, float) and 0 < time < math.inf):
        raise refuse(name, "the time is not a number above 0", number)
    return configuration, time


def _configuration(found: Mapping[str, Any]) -> Configuration:
    if found.keys() != _NAMES or not all(type(value) is int for value in found.values()):
        raise ValueError
    return Configuration(**{name: _CODES.get(name, int)(value) for name, value in found.items()})
