"""Values of slow terms kept in a file, so that an interrupted study continues (see `KeptLines`).

A line holds the value of a term, all of its points, and a hash of what it depends on: files, changes, and inputs.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.core.evaluate import Called, Values, value_of_term
from whatif.core.term import Program, Term
from whatif.files.resumable_lines import KeptLines
from whatif.importers.text import refuse
from whatif.models.quantities import FloatArray
from whatif.schema.toml import shown_path

SLOW: Final = 0.01
"""Time in s from which the value of a term is kept."""


class KeptTerms:
    """Evaluator of terms that knows slow ones from a file: a function for `whatif.core.evaluate.VALUE_OF_TERM`."""

    def __init__(self, path: Path, version: str) -> None:
        """Open a file to continue, or create it; errors as those of `KeptLines`, for a file of another version."""
        self._lines = KeptLines(path, {"program": f"whatif {version}"}, "--log")
        self._known = dict(_term(found, path, number) for number, found in self._lines.found.items())
        self._digests: dict[int, tuple[Program, bytes]] = {}

    def __call__(self, program: Program, term: Term, values: Values) -> Called:
        """Value of a term, computed if it is not in the file."""
        key = self._key(program, term, values)
        if key in self._known:
            return self._known[key], None
        began = time.perf_counter()
        value, reasons = value_of_term(program, term, values)
        if time.perf_counter() - began >= SLOW and reasons is None:
            self._known[key] = value
            self._lines.add({"term": term.name, "key": key, "shape": value.shape, "value": value.ravel().tolist()})
        return value, reasons

    def _key(self, program: Program, term: Term, values: Values) -> str:
        digest = hashlib.sha256(self._digest(program))
        # A file that a term reads has its stamps.
        digest.update(repr([term.name, *(getattr(item, "stamps", "") for item in term.options.values())]).encode())
        for name, reference in term.inputs.items():
            if isinstance(reference, str):
                array = np.ascontiguousarray(values[reference])
                digest.update(f"{name} {array.shape}".encode() + array.tobytes())
        return digest.hexdigest()

    def _digest(self, program: Program) -> bytes:
        """Hash of the merged files and changes of a program."""
        if id(program) not in self._digests:
            merged = json.dumps(program.loaded.layers.merged, default=str).encode()
            # The program is kept too: its identity must not be that of a later one.
            self._digests[id(program)] = (program, hashlib.sha256(merged).digest())
        return self._digests[id(program)][1]


def _term(found: dict[str, Any], path: Path, number: int) -> tuple[str, FloatArray]:
    try:
        value = np.array(found["value"], dtype=np.float64).reshape(found["shape"])
        return str(found["key"]), value
    except (KeyError, TypeError, ValueError, OverflowError):
        raise refuse(shown_path(path), "not the value of a term: was the file changed by hand?", number) from None
