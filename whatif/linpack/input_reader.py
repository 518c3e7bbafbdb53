"""HPL.dat: lists of parameters; every combination of them is a run.

A file has 31 lines, each with its values first and, after them, text that is ignored: two lines of heading, the name
of the output file and the device; then the count of a list on one line and its values on the next (N, NB, P with Q on
a third line, PFACT, NBMIN, NDIV, RFACT, BCAST, DEPTH), and single values between and after (PMAP before the grids, the
threshold of the residual after them, at the end SWAP, its threshold, the forms of L1 and U, equilibration, alignment).
A list has 1 to 20 values; those beyond its count are not read, nor are the lines after line 31, which HPCC adds.

HPL takes words for 0, codes it does not know for some other, and a line that is missing for a copy of the line before;
here they are errors. Source: HPL 2.3, `HPL_pdinfo`, `HPL_pddriver`; rocHPL reads the same lines.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final, TypeVar

from whatif.errors import InvalidFileError, Problem
from whatif.importers.numbers import is_number
from whatif.importers.text import read_text, reading, refuse
from whatif.linpack.simulation.configuration import Broadcast, Configuration, Looking, Mapping, RowSwap
from whatif.schema.toml import shown_path
from whatif.units import counted

LARGEST_INPUT: Final = 2**20
"""Bytes of an HPL.dat."""
MOST_VALUES: Final = 20
"""Values of a list, HPL's own limit."""
LARGEST_INTEGER: Final = 2**31 - 1
"""Largest value of an `int` of HPL."""

_OUTPUT: Final = re.compile(r"^T/V[ \t]+N[ \t]+NB\b", re.MULTILINE)
"""Heading of results, which an output of HPL has."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")

Code = TypeVar("Code", bound=IntEnum)
_Integers = tuple[int, ...]
_Lookings = tuple[Looking, ...]
_Lists = tuple[
    tuple[tuple[int, int], ...], _Integers, _Integers, _Integers, tuple[Broadcast, ...],
    _Lookings, _Lookings, _Integers, _Integers,
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class HPLInput:
    """Values of an HPL.dat, in the order of its lines."""

    output_file: str
    device: int
    """6 is standard output, 7 standard error, any other number the output file."""
    matrix_sizes: tuple[int, ...]
    block_sizes: tuple[int, ...]
    mapping: Mapping
    grids: tuple[tuple[int, int], ...]
    """P and Q of each grid."""
    threshold: float
    """Threshold of the scaled residual; 0 and below: the result is not checked."""
    panel_factorisations: tuple[Looking, ...]
    recursion_minima: tuple[int, ...]
    recursion_divisions: tuple[int, ...]
    recursive_factorisations: tuple[Looking, ...]
    broadcasts: tuple[Broadcast, ...]
    depths: tuple[int, ...]
    swap: RowSwap
    swap_threshold: int
    is_lower_transposed: bool
    is_upper_transposed: bool
    is_equilibrated: bool
    alignment: int
    """Alignment of buffers, in double precision words."""

    @property
    def configuration_count(self) -> int:
        """Runs that the lists make: the product of their lengths."""
        return math.prod(map(len, self._lists))

    def configurations(self) -> Iterator[Configuration]:
        """Every run in HPL's order: grids vary slowest, then N, NB, DEPTH, BCAST, RFACT, PFACT, NBMIN, last NDIV."""
        runs = itertools.product(*self._lists)
        for (rows, columns), size, block, depth, broadcast, recursive, panel, least, parts in runs:
            yield Configuration(
                matrix_size=size,
                block_size=block,
                process_rows=rows,
                process_columns=columns,
                broadcast=broadcast,
                depth=depth,
                swap=self.swap,
                swap_threshold=self.swap_threshold,
                panel_factorisation=panel,
                recursion_minimum=least,
                recursion_divisions=parts,
                recursive_factorisation=recursive,
                mapping=self.mapping,
            )

    @property
    def _lists(self) -> _Lists:
        return (
            self.grids, self.matrix_sizes, self.block_sizes, self.depths, self.broadcasts,
            self.recursive_factorisations, self.panel_factorisations, self.recursion_minima, self.recursion_divisions,
        )  # fmt: skip


def read_hpl_input(path: Path) -> HPLInput:
    """Values of the HPL.dat at a path, of at most 1 MiB; see `parse_hpl_input`."""
    with reading(path, "HPL.dat"):
        return parse_hpl_input(read_text(path, LARGEST_INPUT), shown_path(path))


def parse_hpl_input(text: str, file: str = "HPL.dat") -> HPLInput:
    """Values of the text of an HPL.dat.

    Raise `InvalidFileError` with every wrong value, its line and what was expected. A missing line or a wrong count
    ends the reading, since the meaning of the lines after it is unknown.
    """
    if _OUTPUT.search(text):
        verbs = f"`whatif hpl HPL.dat --measured {file}` compares it, `whatif import logs {file}` prints its runs"
        raise refuse(file, f"an output of HPL: {verbs}")
    lines = _Lines(text, file)
    for what in ("a heading", "a second line of heading"):
        lines.skip(what)
    found = HPLInput(
        output_file=next(iter(lines.skip("the name of the output file").split()), ""),
        device=lines.integer("the device of the output (6 is standard output)"),
        matrix_sizes=lines.integers("N", "Ns"),
        block_sizes=lines.integers("NB", "NBs"),
        mapping=lines.mapping(),
        grids=lines.grids(),
        threshold=lines.real("the threshold of the residual"),
        panel_factorisations=lines.codes("PFACT", Looking),
        recursion_minima=lines.integers("NBMIN", "NBMINs"),
        recursion_divisions=lines.integers("NDIV", "NDIVs", least=2),
        recursive_factorisations=lines.codes("RFACT", Looking),
        broadcasts=lines.codes("BCAST", Broadcast),
        depths=lines.integers("DEPTH", "DEPTHs", least=0),
        swap=lines.code("SWAP", RowSwap),
        swap_threshold=lines.integer("the threshold of SWAP"),
        is_lower_transposed=lines.code("the form of L1", _Form) is _Form.TRANSPOSED,
        is_upper_transposed=lines.code("the form of U", _Form) is _Form.TRANSPOSED,
        is_equilibrated=lines.code("equilibration", _Choice) is _Choice.YES,
        alignment=lines.integer("the memory alignment", least=1),
    )
    lines.refuse_problems()
    return found


class _Form(IntEnum):
    TRANSPOSED = 0
    NOT_TRANSPOSED = 1


class _Choice(IntEnum):
    NO = 0
    YES = 1


class _Lines:
    """Lines of a file, read in order; problems are collected and reported together."""

    def __init__(self, text: str, file: str) -> None:
        self._lines = text.removesuffix("\n").split("\n") if text else []
        self._file = file
        self._number = 0
        self._problems: list[Problem] = []

    def refuse_problems(self) -> None:
        """Raise `InvalidFileError` with the collected problems, if there are any."""
        if self._problems:
            raise InvalidFileError(self._problems)

    def skip(self, what: str) -> str:
        """Next line, with any text. Raise `InvalidFileError` at the end of the file."""
        if self._number == len(self._lines):
            before = f"the file ends after line {self._number} of 31" if self._number else "the file is empty"
            self._stop(f"{before}; expected {what}")
        self._number += 1
        return self._lines[self._number - 1]

    def word(self, what: str) -> str:
        """First word of the next line; empty for an empty line."""
        words = self.skip(what).split()
        if not words:
            self._add_problem(f"the line is empty; expected {what}")
        return words[0] if words else ""

    def integer(self, what: str, least: int = 0) -> int:
        """Integer at the start of the next line."""
        word = self.word(what)
        return self._integer(word, what, least) if word else least

    def real(self, what: str) -> float:
        """Number at the start of the next line."""
        word = self.word(what)
        if word and not (is_number(word) and math.isfinite(float(word))):
            self._add_problem(f"`{word[:40]}` is not a number; expected {what}", word)
            return 0.0
        return float(word or 0)

    def integers(self, what: str, plural: str, least: int = 1) -> tuple[int, ...]:
        """Values of a list: a line with their count, and a line with the values."""
        return self._values(self._count(f"the number of {plural}"), what, least)

    def codes(self, what: str, kind: type[Code]) -> tuple[Code, ...]:
        """Codes of a list."""
        return tuple(self._code(value, what, kind) for value in self.integers(what, f"{what}s", least=0))

    def code(self, what: str, kind: type[Code]) -> Code:
        """Code at the start of the next line."""
        return self._code(self.integer(what), what, kind)

    def mapping(self) -> Mapping:
        """PMAP, which the first version of HPL did not have."""
        following = self._lines[self._number] if self._number < len(self._lines) else ""
        if "grids" in following.lower():
            self._number += 1
            self._stop("the line PMAP is missing before the number of process grids; HPL 1.0 had none: insert `0 PMAP`")
        return self.code("PMAP", Mapping)

    def grids(self) -> tuple[tuple[int, int], ...]:
        """Process grids of three lines: their number, their Ps, their Qs."""
        count = self._count("the number of process grids")
        rows, columns = (self._values(count, what, 1) for what in ("P", "Q"))
        return tuple(zip(rows, columns, strict=False))

    def _count(self, what: str) -> int:
        word = self.word(what)
        if not (re.fullmatch(r"\+?[0-9]{1,9}", word) and 1 <= int(word) <= MOST_VALUES):
            line = self._lines[self._number - 1].strip()[:60]
            self._stop(f"expected {what}, 1 to {MOST_VALUES}; is a line above missing? The line is `{line}`")
        return int(word)

    def _values(self, count: int, what: str, least: int) -> tuple[int, ...]:
        words = self.skip(f"the {count} values of {what}").split()[:count]
        values = list(itertools.takewhile(_INTEGER.fullmatch, words))
        if len(values) < count:
            other = words[len(values)] if len(values) < len(words) else ""
            comes = f", then `{other[:40]}`" if other else ""
            wanted = f"{counted(count, 'value')} of {what}"
            self._add_problem(f"expected {wanted}, found {len(values)}{comes}", other)
        return tuple(self._integer(word, what, least) for word in values)

    def _integer(self, word: str, what: str, least: int) -> int:
        if not _INTEGER.fullmatch(word):
            self._add_problem(f"`{word[:40]}` is not an integer; expected {what}", word)
        elif not least <= int(word) <= LARGEST_INTEGER:
            limit = f"at least {least}" if int(word) < least else f"at most {LARGEST_INTEGER}"
            self._add_problem(f"{what} is {word} and must be {limit}", word)
        else:
            return int(word)
        return least

    def _code(self, value: int, what: str, kind: type[Code]) -> Code:
        if value in list(kind):
            return kind(value)
        known = ", ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in kind)
        self._add_problem(f"{value} is not a code of {what}; expected {known}", str(value))
        return next(iter(kind))

    def _add_problem(self, message: str, word: str = "") -> None:
        place = re.search(rf"(?<!\S){re.escape(word)}(?!\S)", self._lines[self._number - 1]) if word else None
        self._problems.append(Problem(self._file, self._number, place.start() + 1 if place else 1, "", message))

    def _stop(self, message: str) -> None:
        self._problems.append(Problem(self._file, self._number, 1 if self._number else 0, "", message))
        raise InvalidFileError(self._problems)
