"""The tree of parameters as rows: which tables and parameters a list shows, in which order and how deep."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from whatif.core.term import Program
from whatif.schema.parameters import Parameter


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One line: a table (folded or not) or a parameter, by dotted path."""

    path: str
    name: str
    depth: int
    table: bool
    folded: bool = False


@dataclass(slots=True)
class _Table:
    """A table of the files: its parameters by name and the tables in it."""

    path: str
    parameters: list[str] = field(default_factory=list)
    tables: dict[str, _Table] = field(default_factory=dict)

    def add(self, path: str) -> None:
        """Take in a parameter, at whatever depth."""
        words = path.removeprefix(f"{self.path}.").split(".")
        if len(words) == 1:
            self.parameters.append(path)
        else:
            place = f"{self.path}.{words[0]}" if self.path else words[0]
            self.tables.setdefault(words[0], _Table(place)).add(path)


def with_parts(paths: Iterable[str], parts: Iterable[str]) -> Iterator[str]:
    """Paths with those of parts, each before the first path of its table."""
    waiting = {part.removesuffix("extends"): part for part in parts}
    for path in paths:
        for table in [table for table in waiting if path.startswith(table)]:
            yield waiting.pop(table)
        yield path


def outline(paths: Iterable[str], folded: Collection[str] = (), words: str = "") -> tuple[TreeRow, ...]:
    """The rows of all parameters whose path has every one of `words`, parameters before tables; a search unfolds
    all."""
    wanted = words.lower().split()
    root = _Table("")
    for path in paths:
        if all(word in path.lower() for word in wanted):
            root.add(path)
    return tuple(_rows(root, 0, () if wanted else folded))


def _rows(table: _Table, depth: int, folded: Collection[str]) -> Iterator[TreeRow]:
    for path in table.parameters:
        yield TreeRow(path, path.rpartition(".")[2], depth, table=False)
    for name, inner in table.tables.items():
        # A table that holds one table only is not worth a line.
        while not inner.parameters and len(inner.tables) == 1:
            word, inner = next(iter(inner.tables.items()))  # noqa: PLW2901
            name = f"{name}.{word}"  # noqa: PLW2901
        yield TreeRow(inner.path, name, depth, table=True, folded=inner.path in folded)
        if inner.path not in folded:
            yield from _rows(inner, depth + 1, folded)


def matters(program: Program, parameter: Parameter) -> bool:
    """Whether another value could make a difference: it reaches a term, or it is a real choice."""
    return parameter.path in program.reached or (parameter.structural and len(parameter.choices) > 1)


def idle_tables(program: Program) -> frozenset[str]:
    """The tables without any parameter that matters: folded until somebody looks."""
    tables = {table for path in program.parameters for table in ancestors(path)}
    busy = {
        table
        for path, parameter in program.parameters.items()
        if matters(program, parameter)
        for table in ancestors(path)
    }
    return frozenset(tables - busy)


def ancestors(path: str) -> Iterator[str]:
    """The tables around a parameter, the outermost first."""
    words = path.split(".")
    return (".".join(words[:size]) for size in range(1, len(words)))
