"""Pickles between the explorer and its worker processes: what was sent comes back as a reference, not as a copy."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Sequence
from typing import IO, Any


class _Pickler(pickle.Pickler):
    def __init__(self, file: IO[bytes], sent: Iterable[object]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers = {id(item): number for number, item in enumerate(sent)}

    def persistent_id(self, item: object) -> int | None:
        return self._numbers.get(id(item))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], own: Sequence[object]) -> None:
        super().__init__(file)
        self._own = own

    def persistent_load(self, number: int) -> object:
        return self._own[number]


def answer_to_bytes(value: Any, sent: Iterable[object]) -> bytes:
    """Pickle of an answer, in which the objects that were sent with its question are references."""
    file = io.BytesIO()
    _Pickler(file, sent).dump(value)
    return file.getvalue()


def answer_from_bytes(data: bytes, own: Sequence[object]) -> Any:
    """Answer of a worker process, with the objects of this process for its references."""
    return _Unpickler(io.BytesIO(data), own).load()
