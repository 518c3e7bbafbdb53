"""Profiles of Caliper and Thicket as JSON: json-split and plain json of `cali-query`, `Thicket.to_json`."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from whatif.importers.caliper import TOOL
from whatif.importers.json_text import shaped
from whatif.importers.run_records import REGION, paths_of, records_table
from whatif.importers.text import refuse
from whatif.table import Table

Cell = float | str | None
_PATH: Final = "path"
_PROFILE: Final = "profile"


class _About(BaseModel):
    is_value: bool = True
    alias: str = Field("", alias="attribute.alias")
    unit: str = Field("", alias="attribute.unit")


class _Node(BaseModel):
    label: str
    column: str
    parent: StrictInt | None = None


class _Split(BaseModel):
    model_config = ConfigDict(extra="allow")
    data: list[list[Cell]]
    columns: list[str]
    column_metadata: list[_About]
    nodes: list[_Node]


class _Records(BaseModel):
    records: list[dict[str, Any]]
    globals: dict[str, Any] = {}
    attributes: dict[str, _About] = {}


class _Frame(BaseModel):
    name: str = ""


class _Call(BaseModel):
    data: _Frame
    children: list[StrictInt] = []


class _Thicket(BaseModel):
    graph: list[dict[int, _Call]]
    dataframe: list[dict[str, Any]]
    metadata: list[dict[str, Any]] = []


def caliper_document(document: Any, file: str) -> Table:
    """Regions of a JSON document of Caliper or Thicket, or runs of a list of objects with plain values, or of one.

    Columns are the run attributes, `region`, and the metrics with the units of the document. Raise `InvalidFileError`
    for another shape.
    """
    if isinstance(document, list):
        document = {"records": document}
    if isinstance(document, dict) and "dataframe" in document:
        return _of_thicket(shaped(document, _Thicket, file), file)
    if isinstance(document, dict) and "records" in document:
        return _of_records(shaped(document, _Records, file), file)
    if isinstance(document, dict) and "column_metadata" in document:
        return _of_split(shaped(document, _Split, file), file)
    if (
        isinstance(document, dict)
        and document
        and not any(isinstance(value, dict | list) for value in document.values())
    ):
        return _of_records(_Records(records=[document]), file)
    raise refuse(file, "JSON, but neither of Extra-P, Caliper or Thicket nor a list of runs")


def _of_records(found: _Records, file: str) -> Table:
    units = {name: about.unit for name, about in found.attributes.items() if about.unit}
    rows = [
        found.globals | {REGION if name == _PATH else name: value for name, value in row.items()}
        for row in found.records
    ]
    tool = {"tool": TOOL} if any(_PATH in row for row in found.records) else {}
    return records_table(rows, {"file": file, **tool}, units)


def _of_split(found: _Split, file: str) -> Table:
    if len(found.columns) != len(found.column_metadata):
        raise refuse(file, f"{len(found.column_metadata)} column_metadata of {len(found.columns)} columns")
    labels = {at: node.label for at, node in enumerate(found.nodes)}
    parents = {at: node.parent for at, node in enumerate(found.nodes) if node.parent is not None}
    paths = paths_of(labels, parents, file)
    aliases = [about.alias for about in found.column_metadata]
    names = [
        REGION if name == _PATH else alias if alias and aliases.count(alias) == 1 else name
        for name, alias in zip(found.columns, aliases, strict=True)
    ]
    known = {name: value for name, value in (found.model_extra or {}).items() if name not in names}
    rows = []
    for at, cells in enumerate(found.data):
        if len(cells) != len(names):
            raise refuse(file, f"{len(cells)} cells of {len(names)} columns", 0, f"data.{at}")
        row: dict[str, Any] = dict(known)
        for name, cell, about in zip(names, cells, found.column_metadata, strict=True):
            row[name] = cell if about.is_value else _path(cell, paths, file)
        rows.append(row)
    units = {name: about.unit for name, about in zip(names, found.column_metadata, strict=True) if about.unit}
    return records_table(rows, {"file": file, "tool": TOOL}, units, {REGION})


def _path(cell: Cell, paths: dict[int, str], file: str) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, float) or cell not in paths:
        raise refuse(file, f"`{str(cell)[:40]}` is not the number of a node")
    return paths[int(cell)]


def _of_thicket(found: _Thicket, file: str) -> Table:
    calls = {number: call for tree in found.graph for number, call in tree.items()}
    parents = {child: number for number, call in calls.items() for child in call.children}
    paths = paths_of({number: call.data.name for number, call in calls.items()}, parents, file)
    known = {str(row.get(_PROFILE)): row for row in found.metadata}
    rows = []
    for at, row in enumerate(found.dataframe):
        if not isinstance(row.get("node"), int) or row["node"] not in paths:
            raise refuse(file, "its `node` is not in the graph", 0, f"dataframe.{at}")
        values = {name: value for name, value in row.items() if name not in ("node", "nid", "name")}
        rows.append({**known.get(str(row.get(_PROFILE)), {}), REGION: paths[row["node"]], **values})
    return records_table(rows, {"file": file, "tool": "Thicket"}, {}, {REGION, _PROFILE})
