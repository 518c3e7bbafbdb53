"""Output of applications as runs: a pattern names the columns and finds their values by regular expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import prod
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field, model_validator

from whatif.errors import InvalidFileError, UsageError, abridged, did_you_mean
from whatif.extras import install_command
from whatif.importers.cell_numbers import numbers_of
from whatif.importers.run_columns import has_known_unit, run_table
from whatif.importers.text import chunks, refuse
from whatif.schema.fields import StrictTable
from whatif.schema.toml import Layer, Layers, key_path, read_document, shown_path
from whatif.schema.validated import validate
from whatif.table import Table
from whatif.units import counted

MOST_LOGS: Final = 100_000
"""Files read together."""
_TIME: Final = "total_time"
"""Column that every run has that came to its end."""
LONGEST: Final = 500
"""Characters of a line that are searched."""
MOST_LETTERS: Final = 500
"""Letters of a regular expression of a user."""
_FOLDER: Final = Path(str(files("whatif.importers") / "log_patterns"))
Row = dict[str, str]
"""Texts of one run by column."""


class LogColumn(StrictTable):
    """A column of runs: found in a line or in the name of the file, or a product of others."""

    line: str = ""
    """Regular expression of a line; its only group is the value."""
    file_name: str = ""
    """Regular expression of the file's name; its only group is the value."""
    product: list[str] = Field(default_factory=list)
    """Columns whose product it is, such as `ranks` of the rows and columns of a grid of processes."""
    since: str = ""
    """Regular expression of an earlier line with a number that is subtracted, such as the time of the start; without
    that line the value is missing."""
    take: Literal["first", "last", "sum"] = "last"
    """Value of a run that has several: `first`, `last`, or their `sum`."""
    unit: str = ""
    """Unit of the numbers; none for counts."""
    text: bool = False
    """Whether the values are texts."""

    @model_validator(mode="after")
    def _one_place(self) -> LogColumn:
        if sum(map(bool, (self.line, self.file_name, self.product))) != 1:
            raise ValueError("a column has one of `line`, `file_name` and `product`")
        if self.unit and not has_known_unit(f"x [{self.unit}]"):
            raise ValueError(f"`{self.unit}` is not a known unit")
        return self


class LogPattern(StrictTable):
    """Pattern of the output of one application."""

    title: str
    """Name of the application."""
    recognise: str
    """Regular expression of a line that only this application writes."""
    run: str = ""
    """Regular expression of the last line of a run, where a file holds several; by default a file is one run."""
    failed: str = ""
    """Regular expression of a line after the values of a run by which the program reports that it failed."""
    columns: dict[Annotated[str, Field(pattern=r"^[A-Za-z]\w*$")], LogColumn] = Field(min_length=1)
    """Columns of the table by name."""


@dataclass(frozen=True)
class Pattern:
    """A pattern with compiled expressions."""

    name: str
    spec: LogPattern
    expressions: Mapping[str, Any]
    """Compiled expressions by their path in the file, such as `columns.time.line`."""

    @classmethod
    def read(cls, path: Path) -> Pattern:
        """Pattern of a file. Raise `InvalidFileError` for unknown keys and for expressions that are not allowed."""
        document = read_document(path)
        spec = validate(LogPattern, Layers.of([Layer(document)]))
        texts = {"recognise": spec.recognise, "run": spec.run, "failed": spec.failed}
        for name, column in spec.columns.items():
            texts |= {f"columns.{name}.{key}": getattr(column, key) for key in ("line", "file_name", "since")}
            if unknown := next((other for other in column.product if other not in spec.columns), ""):
                raise InvalidFileError([document.problem(("columns", name, "product"), f"no column `{unknown}`")])
        compiled = shipped_expression if path.parent == _FOLDER else user_expression
        found: dict[str, Any] = {}
        for at, text in texts.items():
            try:
                found |= {at: checked(compiled(text), text, int(at.startswith("columns.")))} if text else {}
            except ValueError as error:
                raise InvalidFileError([document.problem(key_path(at), str(error))]) from None
        return cls(path.stem, spec, found)

    def runs(self, lines: Iterable[str], file_name: str) -> tuple[list[Row], int]:
        """Runs of one file, and the number of failed ones, which are left out."""
        collector = _Collector(self, file_name)
        for line in lines:
            collector.add(line)
        rows = collector.finished()
        good = [row for at, row in enumerate(rows) if at not in collector.failed]
        return good, len(rows) - len(good)


class _Collector:
    """Values of the runs of one file, line by line."""

    def __init__(self, pattern: Pattern, file_name: str) -> None:
        self.pattern = pattern
        self.columns = pattern.spec.columns
        self.expressions = pattern.expressions
        self.lines = [
            (at.split(".")[1], at.endswith("since"), expression)
            for at, expression in pattern.expressions.items()
            if at.endswith((".line", ".since"))
        ]
        self.fixed = {
            name: match[1]
            for name in self.columns
            if (named := self.expressions.get(f"columns.{name}.file_name")) and (match := named.search(file_name))
        }
        self.row: Row = {}
        self.starts: dict[str, str] = {}
        self.rows: list[Row] = []
        self.failed: set[int] = set()
        """Positions of the failed runs."""

    def add(self, line: str) -> None:
        for name, is_start, expression in self.lines:
            if match := expression.search(line):
                if is_start:
                    self.starts[name] = match[1]
                else:
                    self._take(name, match[1])
        if self._is("run", line):
            self.rows.append(self._row())
            # What is stated once, above all runs, belongs to each of them; sums begin anew.
            self.row = {name: value for name, value in self.row.items() if self.columns[name].take != "sum"}
        if self._is("failed", line):
            self.failed.add(max(len(self.rows) - 1, 0))

    def _is(self, kind: str, line: str) -> bool:
        expression = self.expressions.get(kind)
        return expression is not None and bool(expression.search(line))

    def _take(self, name: str, value: str) -> None:
        take = self.columns[name].take
        if self.columns[name].since:
            if name not in self.starts:
                return
            value = self._combined(lambda ends: ends[1] - ends[0], [(name, self.starts[name]), (name, value)])
        if take == "first":
            self.row.setdefault(name, value)
        else:
            total = self.row.get(name, "0")
            self.row[name] = self._combined(sum, [(name, total), (name, value)]) if take == "sum" else value

    def finished(self) -> list[Row]:
        """The runs; one for the whole file if no line ends a run."""
        return self.rows or ([self._row()] if self.row else [])

    def _row(self) -> Row:
        row = {**self.fixed, **self.row}
        for name, column in self.columns.items():
            if column.product and all(other in row for other in column.product):
                row[name] = self._combined(prod, [(other, row[other]) for other in column.product])
        return row

    def _combined(self, function: Callable[[Sequence[float]], float], cells: Iterable[tuple[str, str]]) -> str:
        """Number of several cells, given with their columns; a cell that is not a number, which the table refuses."""
        found = [(text, numbers_of([text], _heading(column, self.columns[column]))) for column, text in cells]
        wrong = next((text for text, numbers in found if numbers.wrong), None)
        return repr(function([float(numbers.values[0]) for _, numbers in found])) if wrong is None else wrong


def _heading(name: str, column: LogColumn) -> str:
    return f"{name} [{column.unit}]" if column.unit else name


def shipped_expression(text: str) -> re.Pattern[str]:
    """Compiled expression of the program; tests search lines made to be slow with it."""
    return re.compile(text, re.ASCII)


def user_expression(text: str) -> Any:
    """Compiled expression of a user, which takes time in proportion to the line (extra `logs`).

    Raise `ValueError` for one that RE2 does not know, such as a reference or a look-ahead.
    """
    try:
        import re2
    except ImportError:
        raise UsageError(f"patterns of your own need RE2: {install_command('logs')}") from None
    if len(text) > MOST_LETTERS:
        raise ValueError(f"longer than {MOST_LETTERS} letters")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise ValueError(f"`{text}` is not a regular expression of RE2: {reason}") from None


def checked(expression: Any, text: str, groups: int) -> Any:
    """Expression with a number of groups. Raise `ValueError` for another number."""
    if groups and expression.groups < groups:
        raise ValueError(f"`{text}` has no group: put the value in parentheses, `time: (\\S+) s`")
    if groups and expression.groups > groups:
        raise ValueError(f"`{text}` has {expression.groups} groups: `(?:..)` is one that is not a value")
    return expression


def shipped_patterns() -> tuple[str, ...]:
    """Names of the patterns that are part of the program."""
    return tuple(sorted(Path(item.name).stem for item in _FOLDER.iterdir() if item.name.endswith(".toml")))


def pattern_of(name: str) -> Pattern:
    """Pattern by the name of a shipped one, or by the path of a file. Raise `UsageError` for an unknown name."""
    if Path(name).suffix == ".toml":
        return Pattern.read(Path(name))
    if name not in (known := shipped_patterns()):
        hint = did_you_mean(name, known)
        raise UsageError(f"--pattern {name}: no such pattern{hint}; {', '.join(known)}, or a file NAME.toml")
    return Pattern.read(_FOLDER / f"{name}.toml")


def read_logs(paths: Sequence[Path], pattern: str | None = None) -> Table:
    """Runs of the output of one application, a row each, with the name of their file.

    Without the name of a pattern, or the path of one, the application is recognised by content; files of no known one
    and failed runs are left out with a warning. Raise `UsageError` for files of several applications,
    `InvalidFileError` for files without runs.
    """
    if len(paths) > MOST_LOGS:
        raise UsageError(f"more than {MOST_LOGS:,} files: read a part of them")
    known = None if pattern is None else pattern_of(pattern)
    warnings: list[str] = []
    found: list[tuple[Path, Pattern]] = []
    candidates = [] if known else [pattern_of(name) for name in shipped_patterns()]
    for path in paths:
        recognised = known or _recognised(_lines(path), candidates)
        if recognised is None:
            warnings.append(f"{shown_path(path)}: not the output of a known application, left out")
        else:
            found.append((path, recognised))
    names = list(dict.fromkeys(one.name for _, one in found))
    if not names:
        if not any(next(chunks(path), "") for path in paths):
            raise refuse(shown_path(paths[0]), "the file is empty")
        known_names = ", ".join(shipped_patterns())
        raise UsageError("; ".join([*warnings, f"known are {known_names}; --pattern FILE.toml reads others"]))
    if len(names) > 1:
        raise UsageError(f"output of {' and '.join(names)}: choose one with --pattern, or give the files of one")
    return _table([path for path, _ in found], found[0][1], warnings)


def is_log(path: Path) -> bool:
    """Whether the beginning of a file is the output of an application with a shipped pattern."""
    head = next(chunks(path), "") if path.is_file() else ""
    lines = (line[:LONGEST] for line in head.split("\n"))
    return _recognised(lines, [pattern_of(name) for name in shipped_patterns()]) is not None


def _recognised(lines: Iterable[str], patterns: Sequence[Pattern]) -> Pattern | None:
    for line in lines:
        for pattern in patterns:
            if pattern.expressions["recognise"].search(line):
                return pattern
    return None


def _lines(path: Path) -> Iterator[str]:
    """Lines of a file, those that are too long for a regular expression cut off."""
    for piece in chunks(path):
        for line in piece.split("\n"):
            yield line[:LONGEST]


def _table(paths: Sequence[Path], pattern: Pattern, warnings: list[str]) -> Table:
    rows: list[Row] = []
    sources: list[str] = []
    for path in paths:
        runs, failed = pattern.runs(_lines(path), path.name)
        if failed:
            warnings.append(f"{shown_path(path)}: {counted(failed, 'run')} left out, reported as failed by the program")
        elif not runs:
            warnings.append(f"{shown_path(path)}: no run of {pattern.spec.title}, left out")
        rows += runs
        sources += [shown_path(path)] * len(runs)
    if not rows:
        raise refuse(shown_path(paths[0]), "; ".join(["no runs", *warnings]))
    columns: dict[str, Any] = {}
    units: dict[str, str] = {}
    for name, spec in pattern.spec.columns.items():
        cells = [row.get(name, "") for row in rows]
        if any(cells):
            columns[name] = _column(cells, name, spec, sources, warnings)
            units |= {name: spec.unit} if spec.unit else {}
        elif name == _TIME:
            doubt = "the run did not end, or writes its time in other words"
            warnings.append(f"{abridged(sources, 1)}: no `{name}`: {doubt}")
    columns["file"] = np.array(sources, dtype=object)
    notes = {"file": "; ".join(map(shown_path, paths[:3])), "tool": pattern.spec.title}
    return run_table(columns, notes, warnings, units)


def _column(cells: list[str], name: str, spec: LogColumn, sources: Sequence[str], warnings: list[str]) -> Any:
    missing = [source for cell, source in zip(cells, sources, strict=True) if not cell]
    if missing:
        warnings.append(f"{abridged(missing, 1)}: no `{name}`, taken as missing")
    if spec.text:
        return np.array(cells, dtype=object)
    found = numbers_of(cells, _heading(name, spec))
    if found.wrong is not None:
        raise refuse(sources[found.wrong[0]], found.wrong[1], 0, name)
    return found.values
