"""Shared parts: files for a GPU, a processor, a link or an interconnect, which many platforms extend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, create_model

from whatif.errors import InvalidFileError, did_you_mean
from whatif.schema.application import RegressionPhase, StructuredGridPhase
from whatif.schema.fields import StrictTable
from whatif.schema.gpu import GPU
from whatif.schema.network import Distance
from whatif.schema.platform_spec import CPU, FitRecord, FittedData, Host, Node, NVLink, PCIe, SocketMemory, Source
from whatif.schema.shipped import KINDS, find, is_name, names_in
from whatif.schema.toml import Document, KeyPath, Layer, dotted, read_document, without
from whatif.schema.transformer import Transformer

_MODELS: Final[Mapping[str, Mapping[str, type[BaseModel]]]] = {
    "gpu": {"": GPU},
    "cpu": {"": CPU},
    "host": {"": Host},
    "link": {"pcie": PCIe, "nvlink": NVLink},
    "distance": {"": Distance},
    "transformer": {"": Transformer},
    "phase": {"regression": RegressionPhase, "structured_grid": StructuredGridPhase},
}
_TOPOLOGY: Final = ("domain_topology", "switch_reduction")
_LINK_DOMAIN: Final[type[BaseModel]] = create_model(
    "LinkDomain", __base__=StrictTable, **{key: (Node.model_fields[key].annotation, ...) for key in _TOPOLOGY}
)  # type: ignore[call-overload]
_BESIDE: Final[Mapping[str, Mapping[str, type[BaseModel]]]] = {
    "cpu": {"host": SocketMemory},
    "link": {"node": _LINK_DOMAIN},
}
"""Other tables in which a part states values too: a processor determines the memory of its socket, a link between
devices how it connects them."""
_LINE_RATES: Final = {"edr": "100", "hdr": "200", "ndr": "400", "xdr": "800"}
"""Gbit/s of a port of InfiniBand by the name of its generation; the names of parts have the rate."""
_FITTED: Final = ("application", "phases"), ("application", "estimates")


def part_model(document: Document) -> type[BaseModel]:
    """Model of a part file: the complete table of its kind, with its own sources and fits."""
    if "extends" in document.data:
        raise InvalidFileError([document.problem(("extends",), "a part cannot extend another part")])
    part = str(document.data.get("part"))
    if part not in _MODELS:
        hint = did_you_mean(part, _MODELS)
        raise InvalidFileError([document.problem(("part",), f"must be one of {', '.join(_MODELS)}{hint}")])
    models = _MODELS[part]
    kind = document.data.get("kind", "")
    if kind not in models and "" not in models:
        message = f"a {part} needs `kind`, one of {', '.join(models)}{did_you_mean(str(kind), models)}"
        raise InvalidFileError([document.problem(("kind",), message)])
    return _file_model(models.get(kind, next(iter(models.values()))), part)


@cache
def _file_model(base: type[BaseModel], part: str) -> type[BaseModel]:
    """Model of a table in its own file; all keys of a phase are optional, as the scenario can state them."""
    extra: dict[str, Any] = {"part": (str, ...), "sources": (dict[str, Source], {}), "fits": (dict[str, FitRecord], {})}
    extra |= {name: (table | None, None) for name, table in _BESIDE.get(part, {}).items()}
    whole = part != "phase"
    if not whole:
        extra["data"] = (FittedData | None, None)
    for name, info in {} if whole else base.model_fields.items():
        extra[name] = (Annotated[info.annotation, info], None)
    return create_model(f"{base.__name__}File", __base__=base, **extra)


def kind_of_part(table: KeyPath) -> str | None:
    """Kind of part that a table of a scenario or platform can extend; None if it cannot extend any."""
    return "phase" if table[:-1] in _FITTED else KINDS.get(table[-1])


def extended_tables(layer: Layer) -> Iterator[tuple[KeyPath, str]]:
    """Tables of a layer that extend a part: their paths in its document, with the names of the parts."""
    data = layer.document.data
    # A scenario states its machine below `platform`, whose own `extends` names a platform.
    whole = layer.at or "platform" not in data
    roots: list[KeyPath] = [()] if whole else [("platform",), ("application",)]
    found = [item for root in roots for item in _extended(data.get(root[0], {}) if root else data, root)]
    # A part of the table next to it replaces what a processor states of that.
    yield from sorted(found, key=lambda item: item[0][-1] not in _BESIDE)


def _extended(data: Any, at: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    for key, value in data.items() if isinstance(data, dict) else ():
        if isinstance(value, dict) and key not in ("sources", "fits"):
            if "extends" in value:
                yield (*at, key), str(value["extends"])
            yield from _extended(value, (*at, key))


def part_layer(layer: Layer, table: KeyPath, name: str, folders: Sequence[Path]) -> Layer:
    """Layer of the part that a table extends; raise `InvalidFileError` if not found."""
    document, asked = layer.document, (*table, "extends")
    wanted = kind_of_part(table)
    if wanted is None:
        message = f"`{dotted((*layer.at, *table))}` cannot extend a part; {', '.join(KINDS)} and phases can"
        raise InvalidFileError([document.problem(asked, message, (*layer.at, *asked))])
    path = find(name, "parts", folders) if is_name(name) else None
    if path is None:
        hint = part_meant(name, parts_of(wanted, folders), "; state the values of another one in place of `extends`")
        raise InvalidFileError([document.problem(asked, f"`{name}`: part not found{hint}", (*layer.at, *asked))])
    part = read_document(path)
    part_model(part)
    if part.data["part"] != wanted:
        message = f"`{name}` is a {part.data['part']}, not a {wanted}"
        raise InvalidFileError([document.problem(asked, message, (*layer.at, *asked))])
    return Layer(part, (*layer.at, *table), part=True)


def placed(part: Layer) -> Iterator[Layer]:
    """Layers of a part: its own table, and its values of other tables, which merge with theirs."""
    document, beside = part.document, _BESIDE.get(part.document.data["part"], {})
    own = {key: value for key, value in document.data.items() if key not in beside}
    yield replace(part, document=replace(document, data=own))
    for name in beside.keys() & document.data.keys():
        if (at := _other_table(part.at, name)) is not None:
            data = {**document.data[name], "sources": _sources_below(document, name)}
            yield Layer(replace(document, data=data), at, beside=True)


def _other_table(at: KeyPath, name: str) -> KeyPath | None:
    """Path of another table of a part that is at a path; None without it: only links between devices have a domain."""
    if name != "node":
        return (*at[:-1], name)
    return at[:-1] if at[-1] == "peer_link" else None


def _sources_below(document: Document, table: str) -> dict[str, Any]:
    """Sources of the values of one table of a part, by their paths in it."""
    sources, lead = document.data.get("sources", {}), f"{table}."
    below = {name.removeprefix(lead): entry for name, entry in sources.items() if name.startswith(lead)}
    general = sources.get(table, sources.get("*"))
    return below if general is None else {"*": general, **below}


def part_meant(name: str, known: Iterable[str], remedy: str = "") -> str:
    """Hint at the part that is meant by an unknown name, or the known ones and a remedy.

    `infiniband-ndr` and `ndr` are `infiniband-400`.
    """
    known = list(known)
    rated = "-".join(_LINE_RATES.get(word, word) for word in name.casefold().split("-"))
    meant = next((part for part in (rated, f"infiniband-{rated}") if part in known), name)
    return did_you_mean(meant, known) or f"; known: {', '.join(known)}{remedy}"


def parts_of(wanted: str, folders: Sequence[Path]) -> dict[str, Document]:
    """Known parts of a kind, by name; files that cannot be read are left out."""
    found = ((name, _read(name, folders)) for name in names_in(folders, "parts"))
    return {name: document for name, document in found if document is not None and document.data.get("part") == wanted}


def _read(name: str, folders: Sequence[Path]) -> Document | None:
    path = find(name, "parts", folders)
    try:
        return None if path is None else read_document(path)
    except InvalidFileError:
        return None


def without_extends(layer: Layer, tables: Sequence[KeyPath]) -> Layer:
    """Layer without `extends` in the given tables."""
    data = layer.document.data
    for table in tables:
        data = without(data, (*table, "extends"))
    return Layer(replace(layer.document, data=data), layer.at)
