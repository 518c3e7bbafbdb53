"""Fitted values written into a platform file, with their source and uncertainty; comments and order stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.atomic import write_text
from whatif.errors import InvalidFileError, UsageError, abridged
from whatif.files.scenario_edits import put_text
from whatif.fitting.fit_result import Fit
from whatif.fitting.message_parameters import NetworkFit
from whatif.paths import is_file
from whatif.schema.load import load_platform_document
from whatif.schema.parameters import covers, provenance
from whatif.schema.platform_spec import Grade, PlatformSpec
from whatif.schema.shipped import shipped_folder
from whatif.schema.toml import FORMAT_LINE, Document, KeyPath, Layers, key_path, parse_document, read_document, walk
from whatif.schema.toml_sections import with_values
from whatif.schema.toml_text import rounded, toml_value
from whatif.table import Table
from whatif.units import BYTE, ONE, Dimension, format_quantity
from whatif.vocabulary import PROTOCOLS

_DIGITS: Final = 6
_TABLE: Final = 2
"""Keys of the smallest table that has a source: `node.gpu`, `network.inter_node`."""
# Dimensions of the variables of the points, for the range of a fit.
_VARIABLES: Final[Mapping[str, Dimension]] = {"message_size": BYTE, "array_size": BYTE}


@dataclass(frozen=True)
class PlatformChange:
    """Changes of a platform file: values by parameter path, and their uncertainty by table path."""

    values: Mapping[str, str]
    source: str
    fits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sources: Mapping[str, tuple[Grade, str]] = field(default_factory=dict)
    """Grades and sources other than `source`, by the path of a table or of a parameter."""
    grade: Grade = "measured"
    """Grade of the values of `source`."""
    lists: Mapping[str, list[str]] = field(default_factory=dict)
    """Values of tables of measurements, by path."""
    other_models: Mapping[str, str] = field(default_factory=dict)
    """The same values as parameters of other message models, for platforms that assume those."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of all values."""
        return *self.values, *self.lists

    def source_of(self, parameter: str) -> str:
        """Text of `[sources]` for a value."""
        over = [path for path in self.sources if f"{parameter}.".startswith(f"{path}.")]
        return self.sources[max(over, key=len)][1] if over else self.source


def change_of(fits: Iterable[Fit], source: str, values: Mapping[str, str] | None = None) -> PlatformChange:
    """The values and uncertainties of fits, and further values such as protocol limits, for a platform file."""
    stated = dict(values or {})
    records: dict[str, dict[str, Any]] = {}
    sources: dict[str, tuple[Grade, str]] = {}
    for fit in fits:
        for name, value, dimension in zip(fit.dimensions, fit.values, fit.dimensions.values(), strict=True):
            stated[f"{fit.path}.{name}"] = format_quantity(float(value), dimension, _DIGITS)
        if fit.borrowed:
            words = f"as {fit.borrowed} messages, as this protocol has too few of its own: {source}"
            sources[fit.path] = "assumed", words
        elif record := _record(fit):
            records[fit.path] = _joined(records.get(fit.path), record)
        sources |= {
            f"{fit.path}.{name}": ("assumed", f"at least: the points do not reach it; {source}")
            for name in fit.undetermined
        }
    return PlatformChange(stated, source, records, sources)


def merged(changes: Iterable[PlatformChange]) -> PlatformChange:
    """Changes as one, each value with the grade and source of its own."""
    values: dict[str, str] = {}
    sources: dict[str, tuple[Grade, str]] = {}
    fits: dict[str, Mapping[str, Any]] = {}
    lists: dict[str, list[str]] = {}
    others: dict[str, str] = {}
    for change in changes:
        others |= change.other_models
        values |= change.values
        lists |= change.lists
        sources |= {_place(path): (change.grade, change.source) for path in change.paths} | dict(change.sources)
        fits |= {path: _joined(fits.get(path), dict(record)) for path, record in change.fits.items()}
    return PlatformChange(values, "", fits, sources, lists=lists, other_models=others)


def _place(parameter: str) -> str:
    """Path of `[sources]` for a parameter: a kernel or a distance as a whole, anything else by itself."""
    keys = parameter.split(".")
    return ".".join(keys[:_TABLE]) if keys[0] in ("kernels", "network") else parameter


def network_change(fit: NetworkFit, source: str) -> PlatformChange:
    """The protocol limits and all parameters of a distance."""
    base = f"network.{fit.distance}"
    limits = {"short_limit": fit.short_limit, "eager_limit": fit.eager_limit}
    texts = {f"{base}.{name}": format_quantity(limit, BYTE, _DIGITS) for name, limit in limits.items()}
    change = change_of(fit.fits, source, texts)
    return replace(change, other_models=dict(_as_other_models(change, base))) if fit.is_alone else change


def _as_other_models(change: PlatformChange, base: str) -> Iterator[tuple[str, str]]:
    """Latencies and bandwidths of one process alone, as parameters of the models in which several share."""
    for protocol in PROTOCOLS:
        latency, bandwidth = (change.values[f"{base}.postal.{protocol}.{name}"] for name in ("latency", "bandwidth"))
        names = {"max_rate": "bandwidth" if protocol == "short" else "base_bandwidth", "injection": "process_bandwidth"}
        for model, name in names.items():
            yield f"{base}.{model}.{protocol}.latency", latency
            yield f"{base}.{model}.{protocol}.{name}", bandwidth


def on_platform(
    change: PlatformChange, platform: PlatformSpec, layers: Layers, document: Document | None = None
) -> PlatformChange:
    """Change with the parameters of other models that a platform assumes, or that its file has from an earlier fit."""
    networks = {} if document is None else document.data.get("network", {})

    def is_replaced(path: str) -> bool:
        keys = key_path(path)
        _, distance, model, protocol, _ = keys
        if getattr(getattr(platform.network, distance), model, None) is None:
            return False
        own = networks.get(distance, {})
        if protocol in own.get(model, {}):
            # An earlier fit of one process wrote the same latency to both tables.
            return bool(own[model][protocol].get("latency") == own.get("postal", {}).get(protocol, {}).get("latency"))
        return provenance(keys, layers)[1] == "assumed"

    more = {path: text for path, text in change.other_models.items() if is_replaced(path)}
    return replace(change, values={**change.values, **more}, other_models={})


def _record(fit: Fit) -> dict[str, Any] | None:
    """Entry of `[fits]` for a fit; parameters without a standard error are left out."""
    known = [index for index, error in enumerate(fit.standard_errors) if np.isfinite(error)]
    if not known:
        return None
    names, dimensions = list(fit.dimensions), list(fit.dimensions.values())
    errors, correlation = fit.standard_errors, fit.correlation
    return {
        "parameters": [names[index] for index in known],
        "values": [format_quantity(float(fit.values[index]), dimensions[index], _DIGITS) for index in known],
        "standard_errors": [format_quantity(float(errors[index]), dimensions[index], 3) for index in known],
        "correlation": [[round(float(correlation[row, column]), 4) for column in known] for row in known],
        "ranges": {name: [_bound(name, bound) for bound in bounds] for name, bounds in fit.ranges.items()},
        "point_count": fit.point_count,
        "error": rounded(fit.error),
    }


def _bound(variable: str, value: float) -> str:
    return format_quantity(value, _VARIABLES.get(variable, ONE), _DIGITS)


def _joined(old: Mapping[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """One entry for the values of a table that were fitted one by one: those of different fits are not correlated."""
    kept = [] if old is None else [at for at, name in enumerate(old["parameters"]) if name not in new["parameters"]]
    if old is None or not kept:
        return new
    count, size = len(kept), len(new["parameters"])
    correlation = [[old["correlation"][row][column] for column in kept] + [0.0] * size for row in kept]
    correlation += [[0.0] * count + row for row in new["correlation"]]
    points = old["point_count"] + new["point_count"]
    squares = old["point_count"] * old["error"] ** 2 + new["point_count"] * new["error"] ** 2
    values = {"values": [old["values"][at] for at in kept] + new["values"]} if "values" in old else {}
    return {
        "parameters": [old["parameters"][at] for at in kept] + new["parameters"],
        **values,
        "standard_errors": [old["standard_errors"][at] for at in kept] + new["standard_errors"],
        "correlation": correlation,
        # The ranges of the fits differ: no range holds for all of them.
        "ranges": new["ranges"] if old["ranges"] == new["ranges"] else {},
        "point_count": points,
        "error": rounded((squares / points) ** 0.5),
    }


def platform_text(document: Document, change: PlatformChange) -> str:
    """The text of a platform file with a change; everything else stays as it is, to the byte."""
    old_fits: Mapping[str, Any] = document.data.get("fits", {})
    values: dict[KeyPath, str | None] = {key_path(path): _literal(text) for path, text in change.values.items()}
    values |= {key_path(path): toml_value(items) for path, items in change.lists.items()}
    entry = toml_value({"grade": change.grade, "source": change.source})
    values = {**dict.fromkeys(_removed(document.data, values)), **values}
    values |= {("sources", pattern): entry for pattern in _patterns(change, document.data)}
    for path, (grade, source) in change.sources.items():
        values["sources", path] = toml_value({"grade": grade, "source": source})
        if grade != "measured":
            values["fits", path] = None
    for path, record in change.fits.items():
        values["fits", path] = toml_value(_joined(old_fits.get(path), dict(record)))
    try:
        return with_values(document.text, values)
    except ValueError:
        raise UsageError(f"{document.name}: written in a way that only an editor can change") from None


def _removed(data: Mapping[str, Any], paths: Iterable[KeyPath]) -> Iterator[KeyPath]:
    """Tables that a file removes by "none", and that have values among some paths."""
    for path, value in walk(data):
        if value == "none" and any(other[: len(path)] == path != other for other in paths):
            yield path


def _literal(text: str) -> str:
    return text if text.isdigit() else toml_value(text)


def _patterns(change: PlatformChange, data: Mapping[str, Any]) -> list[str]:
    """The `[sources]` entries that values need: each covers as much as it can without other values of the file."""
    patterns: dict[str, None] = {}
    fitted = {key_path(path) for path in change.paths if change.source_of(path) == change.source}
    others = [path for path, _ in walk(data) if path not in fitted and path[0] not in ("sources", "fits")]
    present = [key_path(pattern) for pattern in data.get("sources", {})]
    for keys in fitted:
        deepest = max((len(item) for item in present if covers(item, keys)), default=0)
        least = max(deepest, _TABLE)
        depths = range(least, len(keys) + 1)
        depth = next((at for at in depths if not any(other[:at] == keys[:at] for other in others)), len(keys))
        patterns[".".join(keys[:depth])] = None
    return sorted(patterns)


def source_text(files: Sequence[Path], tables: Sequence[Table]) -> str:
    """Text for `[sources]`: the files that values were fitted to, and the tools that wrote these."""
    names = abridged([path.name for path in files], 3)
    tools = [tool for tool in dict.fromkeys(_tool(table.notes) for table in tables) if tool]
    return f"fitted to {names} ({', '.join(tools)})" if tools else f"fitted to {names}"


def _tool(notes: Mapping[str, str]) -> str:
    return " ".join(notes[key] for key in ("tool", "version", "date") if notes.get(key))


def write_platform(path: Path, change: PlatformChange, extends: str | None, folders: Sequence[Path]) -> None:
    """Update a platform file, or make one that extends another platform.

    The new text is loaded first and must have the changed values. Raise `UsageError` or `InvalidFileError`
    for a file that is not a platform, for a new one that extends nothing, and where it cannot be written; then nothing
    is changed.
    """
    document = present(path, extends)
    text = verified_text(path, document, change, folders)
    if is_file(path):
        put_text(path, document, text)
    else:
        write_text(path, text)


def present(path: Path, extends: str | None) -> Document:
    """Platform file, or the beginning of a new one. Raise `UsageError` for a file that cannot be written."""
    if path.suffix != ".toml":
        raise UsageError(f"{path}: platforms are found by their name: call the file NAME.toml")
    if path.resolve().is_relative_to(shipped_folder("platforms").resolve()):
        raise UsageError(f"{path}: this platform is shipped with the program; write to a file of your own")
    if is_file(path):
        document = read_document(path)
        if extends not in (None, document.data.get("extends")):
            stated = document.data.get("extends", "nothing")
            raise UsageError(f"{path}: it extends {stated}, not {extends}; omit --extends to update it")
        return document
    if extends is None:
        raise UsageError(
            f"{path}: no such file; a new one must extend a platform (--extends) for all that was not measured"
        )
    text = f"{FORMAT_LINE}\nextends = {toml_value(extends)}\nname = {toml_value(path.stem.replace('_', ' '))}\n"
    return parse_document(text, str(path), path.parent)


def verified_text(path: Path, document: Document, change: PlatformChange, folders: Sequence[Path] = ()) -> str:
    """Text of a platform file with a change.

    Raise `UsageError` for a text that does not load, or whose values do not come from the measurements.
    """
    text = platform_text(document, change)
    try:
        _, layers = load_platform_document(parse_document(text, document.name, path.parent), folders)
    except InvalidFileError as error:
        raise UsageError(f"{path}: not written: it would not load: {error}") from None
    for parameter in change.paths:
        if provenance(key_path(parameter), layers)[0] != change.source_of(parameter):
            raise UsageError(f"{path}: not written: `{parameter}` is written in a way that only an editor can change")
    return text
