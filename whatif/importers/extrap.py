"""Measurements in the formats of Extra-P: its text, its JSON (old and new), its JSON lines, and those of TaLPas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from pydantic import BaseModel, BeforeValidator, Strict

from whatif.importers.json_text import parse_json, shaped
from whatif.importers.numbers import MOST_ROWS, number_of
from whatif.importers.run_columns import REPETITION, run_table
from whatif.importers.text import refuse, text_of
from whatif.table import Table

TOOL: Final = "Extra-P"
REGION: Final = "region"
UNNAMED_METRIC: Final = "value"
"""The column of a metric that has no name."""
TEXT: Final = re.compile(r"\A\s*(?:#[^\n]*\n\s*)*(?:PARAMETER|POINTS|REGION|METRIC|DATA)\b")
"""Start of a text of Extra-P."""

_TALPAS_SEPARATOR: Final = re.compile(r'([}\]"\w])\s*;\s*"')


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Number = Annotated[float, Strict()]
Numbers = Annotated[list[Number], BeforeValidator(_as_list)]


class _Measured(BaseModel):
    point: Numbers
    values: Numbers


class _New(BaseModel):
    parameters: list[str]
    measurements: dict[str, dict[str, list[_Measured]]]


class _Name(BaseModel):
    id: int
    name: str


class _Pair(BaseModel):
    parameter_id: int
    parameter_value: Number


class _Coordinate(BaseModel):
    id: int
    parameter_value_pairs: list[_Pair]


class _Value(BaseModel):
    callpath_id: int
    coordinate_id: int
    metric_id: int
    value: Number


class _Old(BaseModel):
    parameters: list[_Name]
    coordinates: list[_Coordinate]
    callpaths: list[_Name]
    metrics: list[_Name]
    measurements: list[_Value]


class _Line(BaseModel):
    params: dict[str, Number]
    callpath: str = ""
    metric: str = UNNAMED_METRIC
    value: Numbers


@dataclass
class _Runs:
    """Measured values of the repetitions, by region and point and by metric."""

    file: str
    parameters: list[str] = field(default_factory=list)
    found: dict[tuple[str, tuple[float, ...]], dict[str, list[float]]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add(self, region: str, point: Sequence[float], metric: str, values: Iterable[float], line: int = 0) -> None:
        if len(point) != len(self.parameters):
            raise refuse(self.file, f"a point of {len(point)} values with {len(self.parameters)} parameters", line)
        self.found.setdefault((region, tuple(point)), {}).setdefault(metric, []).extend(values)

    def table(self) -> Table:
        """Table with a row for each region, point and repetition; missing values are NaN."""
        metrics = list(dict.fromkeys(metric for by_metric in self.found.values() for metric in by_metric))
        self._check(metrics)
        counts = [max(map(len, by_metric.values())) for by_metric in self.found.values()]
        if not sum(counts):
            raise refuse(self.file, "; ".join(["no measurements in this file", *self.warnings]))
        if sum(counts) > MOST_ROWS:
            raise refuse(self.file, f"more than {MOST_ROWS:,} rows: split the file")
        points = np.array([point for _, point in self.found], dtype=float).reshape(len(counts), -1)
        columns: dict[str, Any] = {name: np.repeat(points[:, at], counts) for at, name in enumerate(self.parameters)}
        columns[REGION] = np.repeat(np.array([region for region, _ in self.found], dtype=object), counts)
        for metric in metrics:
            cells = [
                (by_metric.get(metric, []) + [np.nan] * count)[:count]
                for by_metric, count in zip(self.found.values(), counts, strict=True)
            ]
            columns[metric] = np.concatenate([np.array(row) for row in cells])
        columns[REPETITION] = np.concatenate([np.arange(1.0, count + 1) for count in counts])
        return run_table(columns, {"file": self.file, "tool": TOOL}, self.warnings, {})

    def _check(self, metrics: Sequence[str]) -> None:
        names = [*self.parameters, *metrics, REGION, REPETITION]
        if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
            raise refuse(self.file, f"`{twice[:80]}` is the name of two columns")


def read_extrap(source: str | Path, file: str = "<text>") -> Table:
    """Measurements of a file in any of the formats, or of its text: parameters, `region`, a column a metric.

    A row is a point, region and repetition. Raise `InvalidFileError` with the place.
    """
    text, file = text_of(source, file)
    if TEXT.match(text):
        return _of_text(text, file).table()
    if (first := next((line for line in text.splitlines() if line.strip()), "")) and is_extrap_line(first):
        return _of_lines(text, file).table()
    return extrap_document(parse_json(text, file), file)


def is_extrap_line(line: str) -> bool:
    """Whether a line is one of Extra-P's JSON lines, or one of TaLPas."""
    return line.lstrip().startswith("{") and line.rstrip().endswith("}") and '"param' in line and '"value"' in line


def is_extrap_document(document: Any) -> bool:
    """Whether a JSON document looks like one of Extra-P."""
    return isinstance(document, dict) and {"parameters", "measurements"} <= document.keys()


def extrap_document(document: Any, file: str) -> Table:
    """The measurements of a JSON document, old or new."""
    runs = _Runs(file)
    if isinstance(document, dict) and "coordinates" in document:
        _add_old(shaped(document, _Old, file), runs)
        return runs.table()
    new = shaped(document, _New, file)
    runs.parameters = new.parameters
    for region, metrics in new.measurements.items():
        for metric, points in metrics.items():
            for measured in points:
                runs.add(region, measured.point, metric, measured.values)
    return runs.table()


def _add_old(old: _Old, runs: _Runs) -> None:
    runs.parameters = [parameter.name for parameter in old.parameters]
    points = {
        at.id: {pair.parameter_id: pair.parameter_value for pair in at.parameter_value_pairs} for at in old.coordinates
    }
    regions, metrics = ({item.id: item.name for item in items} for items in (old.callpaths, old.metrics))
    try:
        for item in old.measurements:
            values = points[item.coordinate_id]
            point = [values[parameter.id] for parameter in old.parameters]
            runs.add(regions[item.callpath_id], point, metrics[item.metric_id], [item.value])
    except KeyError as error:
        raise refuse(runs.file, f"a measurement names the id {error.args[0]}, which nothing has") from None


def _of_lines(text: str, file: str) -> _Runs:
    runs = _Runs(file)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        # TaLPas separates by `;` where JSON has `,`.
        document = parse_json(_TALPAS_SEPARATOR.sub(r'\1,"', line), file, number)
        if isinstance(document, dict) and "parameters" in document:
            document["params"] = document.pop("parameters")
        item = shaped(document, _Line, file, number)
        runs.parameters = runs.parameters or list(item.params)
        if item.params.keys() != set(runs.parameters):
            raise refuse(file, f"other parameters than above, {', '.join(runs.parameters)}", number)
        runs.add(item.callpath, [item.params[name] for name in runs.parameters], item.metric, item.value, number)
    return runs


class _TextReader:
    """State of reading a text line by line: parameters, points, region and metric of the next `DATA`."""

    def __init__(self, file: str) -> None:
        self.runs = _Runs(file)
        self.points: list[list[float]] = []
        self.region, self.metric = "", UNNAMED_METRIC
        self.at = self.line = 0

    def read(self, keyword: str, rest: str) -> None:
        """Read one line; raise `InvalidFileError`."""
        if keyword == "PARAMETER":
            self.runs.parameters += rest.split()
        elif keyword == "POINTS":
            self._read_points(rest)
        elif keyword in ("REGION", "METRIC"):
            self.close()
            self.region, self.metric = (rest, self.metric) if keyword == "REGION" else (self.region, rest)
        elif keyword == "DATA":
            if self.at >= len(self.points):
                raise self._wrong(f"more lines of DATA than the {len(self.points)} points")
            self.runs.add(self.region, self.points[self.at], self.metric, self._numbers(rest), self.line)
            self.at += 1
        else:
            raise self._wrong(f"`{keyword[:40]}` is not one of PARAMETER, POINTS, REGION, METRIC and DATA")

    def close(self) -> None:
        """End the lines of DATA of a metric; missing points cause a warning."""
        if 0 < self.at < len(self.points):
            what = " ".join(filter(None, (self.region, self.metric)))
            message = f"{what[:80]} has DATA for {self.at} of {len(self.points)} points"
            self.runs.warnings.append(f"{self.runs.file}:{self.line}: {message}")
        self.at = 0

    def _read_points(self, rest: str) -> None:
        width = len(self.runs.parameters)
        if not width:
            raise self._wrong("POINTS before any PARAMETER")
        if "(" in rest:
            self.points += [self._numbers(inside) for inside in re.findall(r"\(([^()]*)\)", rest)]
        else:
            numbers = self._numbers(rest)
            self.points += [numbers[at : at + width] for at in range(0, len(numbers), width)]
        if wrong := next((point for point in self.points if len(point) != width), None):
            raise self._wrong(f"a point of {len(wrong)} values with {width} parameters")

    def _numbers(self, text: str) -> list[float]:
        return [number_of(word, self.runs.file, self.line) for word in text.split()]

    def _wrong(self, message: str) -> Exception:
        return refuse(self.runs.file, message, self.line)


def _of_text(text: str, file: str) -> _Runs:
    reader = _TextReader(file)
    for number, line in enumerate(text.splitlines(), 1):
        keyword, *rest = line.split(None, 1)[:2] or [""]
        if keyword and not keyword.startswith("#"):
            reader.line = number
            reader.read(keyword, "".join(rest).strip())
    reader.close()
    return reader.runs
