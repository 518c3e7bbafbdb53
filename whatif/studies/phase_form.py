"""Form of a phase: every key of its kind, stated or not, and errors in typed texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.errors import InvalidFileError, WhatifError
from whatif.schema.fields import QuantityField
from whatif.schema.parameters import KnownKey, table_keys
from whatif.schema.relative import is_relative
from whatif.schema.stated_tables import REMOVED
from whatif.schema.toml import key_path
from whatif.studies.choice_lists import Choice, value_choices
from whatif.units import ONE, customary_unit, format_quantity

PHASES: Final = "application.phases"
REQUIRED: Final = "is required"


@dataclass(frozen=True, slots=True)
class FormField:
    """Field of a form: a key with the text of its value, empty if it is not stated."""

    path: str
    label: str
    text: str = ""
    default: str = ""
    """Value that applies while the text is empty; empty without a default."""
    unit: str = ""
    allowed: str = ""
    help: str = ""
    choices: tuple[Choice, ...] = ()
    required: bool = False
    quantity: QuantityField | None = None

    def problem(self, text: str) -> str:
        """Error message for a text, without regard to the other fields; empty for a good one."""
        if not text:
            return REQUIRED if self.required else ""
        if self.quantity is None or is_relative(text):
            return ""
        try:
            self.quantity.parse(text)
        except ValueError as error:
            return str(error)
        return ""


def phase_form(program: Program, phase: str) -> tuple[FormField, ...]:
    """Fields of a phase, stated ones first, without its kind, which determines them."""
    table = program.loaded.scenario.application.phases[phase]
    at = f"{PHASES}.{phase}"
    keys = ((f"{at}.{name}", key, getattr(table, name)) for name, key in table_keys(type(table)) if name != "kind")
    fields = [_field(program, path, key, value) for item in keys for path, key, value in _rows(program, *item)]
    return tuple(sorted(fields, key=lambda field: not (field.text or field.required)))


def _rows(program: Program, path: str, key: KnownKey, value: Any) -> Iterator[tuple[str, KnownKey, Any]]:
    """The key itself; of a table by dimensions of the grid, a row for each of these, and for what else is stated."""
    if not isinstance(value, dict):
        yield path, key, value
        return
    grid = program.loaded.scenario.application.grid
    names = (*value, *(grid.cells if grid is not None and key.field is not None else ()))
    for name in dict.fromkeys(names):
        yield f"{path}.{name}", key, value.get(name)


def _field(program: Program, path: str, key: KnownKey, value: Any) -> FormField:
    parameter = program.parameters.get(path)
    stated = parameter is not None and program.loaded.layers.origin(key_path(path)) is not None
    known = key if parameter is None else parameter
    return FormField(
        path,
        path.removeprefix(f"{PHASES}.").partition(".")[2],
        parameter.text() if parameter is not None and stated else "",
        "" if stated else _default(value, key.field),
        _unit(known.field),
        known.allowed,
        " ".join(key.description.split()),
        value_choices(key),
        _is_required(key, path),
        known.field,
    )


def _unit(field: QuantityField | None) -> str:
    """Unit of a number, without a prefix; empty for a plain number and for a text."""
    return "" if field is None or field.dimension in (ONE, None) else customary_unit(0.0, field.dimension)[0]


def _default(value: Any, field: QuantityField | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and field is not None and field.dimension is not None:
        return format_quantity(value, field.dimension)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_required(key: KnownKey, path: str) -> bool:
    if key.declared is None or not path.endswith(f".{key.declared[1]}"):
        return False
    return key.declared[0].model_fields[key.declared[1]].is_required()


def form_values(fields: Iterable[FormField], texts: Mapping[str, str]) -> dict[str, str]:
    """Overrides by path that the changed texts of a form mean: an empty text removes a value."""
    changed = {field.path: texts.get(field.path, field.text).strip() for field in fields}
    return {field.path: changed[field.path] or REMOVED for field in fields if changed[field.path] != field.text}


def form_problems(scenario: Scenario, fields: tuple[FormField, ...], texts: Mapping[str, str]) -> dict[str, str]:
    """Errors in the texts of a form, by the path of the field; under an empty path those of no single field."""
    alone = {field.path: field.problem(texts.get(field.path, field.text).strip()) for field in fields}
    found = {path: problem for path, problem in alone.items() if problem}
    if found:
        return found
    try:
        _ = scenario.with_overrides(form_values(fields, texts)).program
    except InvalidFileError as error:
        known = {field.path for field in fields}
        for problem in error.problems:
            path = problem.key if problem.key in known else ""
            found.setdefault(path, problem.message if path else str(problem))
    except WhatifError as error:
        found[""] = str(error)
    return found
