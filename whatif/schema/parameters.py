"""The parameter table: every value of a scenario by its dotted path, with unit, domain, help, source and grade."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from whatif.errors import Problem, did_you_mean
from whatif.schema.distributions import Distribution, Uncertain, is_distribution
from whatif.schema.expressions import Expression
from whatif.schema.fields import QuantityField, quantity_field
from whatif.schema.load import Loaded
from whatif.schema.platform_spec import GRADES, Grade
from whatif.schema.toml import Document, KeyPath, Layer, Layers, key_path
from whatif.units import ONE, Dimension, Quantity, exact_quantity, format_quantity, parse_quantity

# Tables that describe the files, not the machine or the application.
_NO_PARAMETERS = {"sources", "sweep", "fits", "runs", "accuracy"}
_SAID_OF_PARAMETERS = {("platform", "sources"), ("platform", "fits")}
STATED: Final = "stated"
DEFAULT: Final = "default of the model"


@dataclass(frozen=True, slots=True)
class FittedParameter:
    """Uncertainty of a fitted value, from its fit."""

    standard_error: float
    """In base units."""
    ranges: Mapping[str, tuple[float, float]]
    """Smallest and largest value of each variable of the points, such as `message_size`, in base units."""
    correlation: Mapping[str, float]
    """Correlation with each value of the same fit, by path."""
    point_count: int
    """Number of fitted points."""
    residual: float
    """Root mean square of the relative residuals."""


class Declared:
    """Base of what the schema declares: its help text and the values that it accepts."""

    __slots__ = ()
    field: QuantityField | None
    choices: tuple[str, ...]
    declared: tuple[type[BaseModel], str] | None

    @property
    def description(self) -> str:
        """Help text of the schema; empty for a value without a field there."""
        from whatif.schema.field_help import field_help

        return "" if self.declared is None else field_help(self.declared[0]).get(self.declared[1], "")

    @property
    def allowed(self) -> str:
        """Values that it accepts, in words."""
        if self.field is None:
            return " | ".join(self.choices) or "any text"
        return "any quantity" if self.field.dimension is None else self.field.domain.describe(self.field.dimension)


@dataclass(frozen=True, slots=True)
class KnownKey(Declared):
    """Definition of a value in the schema, stated or not."""

    field: QuantityField | None = None
    choices: tuple[str, ...] = ()
    declared: tuple[type[BaseModel], str] | None = None


@dataclass(frozen=True, slots=True)
class Parameter(Declared):
    """One parameter: numeric (it has a `field`) or structural (it determines which terms exist)."""

    path: str
    value: Any
    field: QuantityField | None
    dimension: Dimension
    choices: tuple[str, ...]
    declared: tuple[type[BaseModel], str] | None
    """Table and name of its field in the schema."""
    source: str
    grade: Grade | Literal["stated"]
    fitted: FittedParameter | None = None
    """Uncertainty, if its file states the fit."""

    @property
    def structural(self) -> bool:
        """Whether a change can add or remove terms."""
        return self.field is None

    @property
    def independent(self) -> bool:
        """Whether it is a number of its own, not one that is computed from others."""
        return self.field is not None and not isinstance(self.value, Expression)

    @property
    def distribution(self) -> Distribution | None:
        """Distribution stated by the file or an override; None for a plain number."""
        return self.value.distribution if isinstance(self.value, Uncertain) else None

    def text(self, digits: int | None = 6) -> str:
        """Value as written in a file, with its unit; None: in the digits that read back as the same value."""
        if isinstance(self.value, Expression):
            return self.value.text
        if self.distribution is not None:
            return self.distribution.text
        if self.field is None:
            return str(self.value).lower() if isinstance(self.value, bool | None) else str(self.value)
        if digits is None:
            return exact_quantity(float(self.value), self.dimension)
        return format_quantity(float(self.value), self.dimension, digits)


def parameter_table(loaded: Loaded) -> dict[str, Parameter]:
    """Parameters of a scenario by path, in the order of the schema."""
    return stated_parameters(loaded.scenario, loaded.layers)


def stated_parameters(spec: BaseModel, layers: Layers) -> dict[str, Parameter]:
    """Parameters of the tables of a file by path, in the order of the schema."""
    found: dict[str, Parameter] = {}
    for path, value, known in _walk(spec, ()):
        if path[0] not in _NO_PARAMETERS and path[:2] not in _SAID_OF_PARAMETERS:
            parameter = _parameter(path, value, known, layers)
            found[parameter.path] = parameter
    return found


_NOTHING: Final = KnownKey()
_PLAIN: Final = frozenset((float, int, str, bool))
"""Types of most values; whether a value is a table takes longer to find out."""


@cache
def table_keys(kind: type[BaseModel]) -> tuple[tuple[str, KnownKey], ...]:
    """Keys of a table with their definitions; cached, as scenarios have hundreds of values and are compiled often."""
    return tuple(
        (name, KnownKey(quantity_field(info), _choices(info), (kind, name))) for name, info in kind.model_fields.items()
    )


def _walk(value: Any, path: KeyPath, known: KnownKey = _NOTHING) -> list[tuple[KeyPath, Any, KnownKey]]:
    """Values with their paths and definitions; a list, as nested generators take a fifth of the time of a table."""
    found: list[tuple[KeyPath, Any, KnownKey]] = []
    if type(value) in _PLAIN:
        found.append((path, value, known))
    elif isinstance(value, BaseModel):
        for name, below in table_keys(type(value)):
            if (item := getattr(value, name)) is not None:
                found += _walk(item, (*path, name), below)
    elif isinstance(value, dict):
        for key, item in value.items():
            found += _walk(item, (*path, key), known)
    elif value is not None:
        found.append((path, value, known))
    return found


def _parameter(path: KeyPath, value: Any, known: KnownKey, layers: Layers) -> Parameter:
    field = known.field
    dimension = field.dimension if field is not None and field.dimension is not None else ONE
    if isinstance(value, Quantity):
        value, dimension = value.value, value.dimension
        field = QuantityField(dimension, field.domain) if field is not None else None
    layer = layers.origin(path)
    source, grade = _provenance(path, layers, layer)
    fitted = None if field is None or layer is None else _fitted(path, layer)
    return Parameter(".".join(path), value, field, dimension, known.choices, known.declared, source, grade, fitted)


def _choices(info: FieldInfo) -> tuple[str, ...]:
    if info.annotation is bool:
        return ("true", "false")
    # An optional choice: `Literal[..] | None`.
    kinds = (info.annotation, *get_args(info.annotation))
    return next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())


def provenance(path: KeyPath, layers: Layers) -> tuple[str, Grade | Literal["stated"]]:
    """Source and grade of a value, from the file that states it.

    Without a source, a value of the platform is `assumed` and a value of the application is `stated`.
    """
    return _provenance(path, layers, layers.origin(path))


def _provenance(path: KeyPath, layers: Layers, layer: Layer | None) -> tuple[str, Grade | Literal["stated"]]:
    unsourced: Grade | Literal["stated"] = "assumed" if path[0] == "platform" else STATED
    if layer is None:
        return DEFAULT, unsourced
    entry = _entry(layer, layers, path[len(layer.at) :])
    if entry is not None:
        grade: Grade = entry["grade"]
        return str(entry["source"]), grade
    return layer.document.name, unsourced


def _fitted(path: KeyPath, layer: Layer) -> FittedParameter | None:
    """Uncertainty of a fitted value, from the file that states the value; None if that file states no fit of it."""
    fits, within = layer.document.data.get("fits"), path[len(layer.at) :]
    if not fits and path[0] == "platform" and not layer.at:
        fits, within = layer.stated(("platform", "fits")), within[1:]
    if not fits:
        return None
    table, entry = _record_of(fits, within)
    name = ".".join(within[len(table) :])
    if entry is None or name not in entry["parameters"]:
        return None
    at = entry["parameters"].index(name)
    if "values" in entry and _number(entry["values"][at]) != _number(layer.stated(path)):
        return None
    error = _number(entry["standard_errors"][at])
    ranges = {name: (_number(low), _number(high)) for name, (low, high) in entry.get("ranges", {}).items()}
    above = path[: len(path) - len(within) + len(table)]
    paths = (".".join((*above, name)) for name in entry["parameters"])
    correlation = dict(zip(paths, entry["correlation"][at], strict=True))
    return FittedParameter(error, ranges, correlation, entry["point_count"], entry["error"])


def _record_of(fits: Mapping[str, Any], path: KeyPath) -> tuple[KeyPath, Any]:
    """Record of the fit of a value: that of its table or of the nearest table around it, and the path of that table."""
    for length in range(len(path) - 1, -1, -1):
        if (entry := fits.get(".".join(path[:length]))) is not None:
            return path[:length], entry
    return path[:-1], None


def _number(text: str | float) -> float:
    """Number of a quantity in a file; NaN, which equals nothing, for an expression or a distribution."""
    if not isinstance(text, str):
        return text
    return math.nan if text.lstrip().startswith("=") or is_distribution(text) else parse_quantity(text).value


def _entry(layer: Layer, layers: Layers, path: KeyPath) -> Mapping[str, Any] | None:
    """Most specific `[sources]` entry that covers a path: the longest, at equal length the one with fewer `*`."""
    sources: Mapping[str, Any] = layer.document.data.get("sources", {})
    best = _best(tuple(sources), path)
    if best is None:
        return None
    # The rest of an entry may be in the file that this one extends.
    whole: Mapping[str, Any] = {}
    if not layer.of_part:
        whole = layers.merged
        for key in (*layer.at, "sources", best):
            whole = whole[key]
    return {**whole, **sources[best]}


@lru_cache(maxsize=16384)
def _best(patterns: tuple[str, ...], path: KeyPath) -> str | None:
    covering = [pattern for pattern in patterns if covers(key_path(pattern), path)]
    return max(covering, key=lambda pattern: (pattern.count("."), -pattern.count("*")), default=None)


def covers(pattern: KeyPath, path: KeyPath) -> bool:
    """Whether a pattern of `[sources]` covers a path: it is a prefix of it, with `*` for any one key."""
    if "*" not in pattern:
        return path[: len(pattern)] == pattern
    return len(pattern) <= len(path) and all(a in ("*", b) for a, b in zip(pattern, path, strict=False))


def unused_sources(document: Document) -> list[Problem]:
    """Entries of `[sources]` that cover no value of their file, as after a misspelt path."""
    sources = document.data.get("sources", {})
    stated = [path for path in document.paths if path[0] != "sources"]
    unused = [pattern for pattern in sources if not any(covers(key_path(pattern), path) for path in stated)]
    known = [".".join(path) for path in stated]
    return [
        document.problem(("sources", name), f"`{name}` is not stated in this file{did_you_mean(name, known)}")
        for name in unused
    ]


def sources_of(parameters: Iterable[Parameter]) -> dict[str, dict[str, str]]:
    """`[sources]` table with the source and grade of every parameter; a uniform table is one entry."""
    known = {
        key_path(parameter.path): (parameter.source, parameter.grade)
        for parameter in parameters
        if parameter.source != DEFAULT
    }
    table: dict[str, dict[str, str]] = {}
    pending: list[KeyPath] = [("platform",), ("application",)]
    while pending:
        path = pending.pop(0)
        below = {key: entry for key, entry in known.items() if covers(path, key)}
        entries = set(below.values())
        if len(entries) == 1 and (only := entries.pop())[1] != STATED:
            table[".".join(path)] = {"grade": only[1], "source": only[0]}
        elif len(entries) > 1:
            pending.extend(dict.fromkeys(key[: len(path) + 1] for key in below))
    return table


def fits_of_parts(layers: Layers) -> dict[str, Any]:
    """`[fits]` table of the whole document, from the merged parts."""
    parts = [layer for layer in layers.items if layer.part]
    return {
        ".".join((*layer.at, *filter(None, [table]))): fit
        for layer in parts
        for table, fit in layer.document.data.get("fits", {}).items()
    }


def worst(grades: Iterable[str]) -> str:
    """Weakest of several grades; `stated` does not count."""
    ranked = [GRADES.index(grade) for grade in grades if grade in GRADES]
    return GRADES[max(ranked)] if ranked else STATED
