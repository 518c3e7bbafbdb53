"""Arguments in the records of binary DUMPI files: `dumpi_records.txt` lists them by function."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from struct import Struct, calcsize, error
from typing import Any, Final, NamedTuple

STATUSES: Final = 3
"""Bits of the mask of a record; with one of them it has statuses."""

_COUNT: Final = Struct(">I")
_STATUS_SIZE: Final = 14
_OF_ONE_SIZE: Final = "bhiq"
Values = dict[str, Sequence[int]]


class Field(NamedTuple):
    """An argument: its name, empty if nobody reads it, its code, and whether only the record of the root has it."""

    name: str
    code: str
    at_root: bool

    @property
    def is_number(self) -> bool:
        """Whether it is one number in the records of all ranks."""
        return self.code in _OF_ONE_SIZE and not self.at_root


class Function(NamedTuple):
    """A function: its name, and its arguments in groups, with the structure of those that are numbers."""

    name: str
    groups: tuple[tuple[Struct | None, tuple[Field, ...]], ...]


@cache
def functions() -> tuple[Function, ...]:
    """The functions by their number."""
    text = files(__package__).joinpath("dumpi_records.txt").read_text("ascii")
    return tuple(_function(*line.split()) for line in text.splitlines() if not line.startswith("#"))


def _function(name: str, *words: str) -> Function:
    fields = [Field(word.lstrip("?").rpartition(":")[0], word[-1], word.startswith("?")) for word in words]
    groups = ((is_number, tuple(group)) for is_number, group in groupby(fields, lambda field: field.is_number))
    return Function(
        name, tuple((Struct(">" + "".join(field.code for field in group)) if is_number else None, group)
                    for is_number, group in groups)
    )  # fmt: skip


class Cursor:
    """A position in bytes; all that reads beyond their end raises `struct.error`."""

    def __init__(self, data: memoryview, position: int) -> None:
        self.data, self.position = data, position

    def take(self, structure: Struct) -> tuple[Any, ...]:
        """The numbers of a structure."""
        found = structure.unpack_from(self.data, self.position)
        self.position += structure.size
        return found

    def skip(self, size: int) -> None:
        """Pass some bytes."""
        if size > len(self.data) - self.position:
            raise error
        self.position += size

    def count(self, size: int) -> int:
        """Number of elements that follow, of at least some bytes each."""
        (count,) = self.take(_COUNT)
        if count * size > len(self.data) - self.position:
            raise error
        return int(count)

    def arguments(self, function: Function, mask: int) -> Values:
        """The named arguments of a function, after which the position is."""
        values: Values = {}
        for structure, fields in function.groups:
            if structure:
                numbers = self.take(structure)
                values.update({field.name: (number,) for field, number in zip(fields, numbers, strict=True)})
                continue
            for field in fields:
                if not field.at_root or values.get("commrank", values.get("oldcommrank")) == values["root"]:
                    values[field.name] = self._value(field.code, mask)
        return values

    def _value(self, code: str, mask: int) -> Sequence[int]:
        """An argument by its code; nothing of strings and statuses, which nobody reads."""
        if code in _OF_ONE_SIZE:
            return self.take(Struct(">" + code))
        if code in "BHI":
            code = code.lower()
            count = self.count(calcsize(code))
            return self.take(Struct(f">{count}{code}"))
        if code == "s":
            self.skip(self.count(1))
        elif code != "X":
            for _ in range(self.count(_COUNT.size)):
                self._value({"M": "I", "S": "s", "T": "S"}[code], mask)
        elif mask & STATUSES:
            self.skip(_STATUS_SIZE * self.count(_STATUS_SIZE))
        return ()
