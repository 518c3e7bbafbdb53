"""Pages of the reference: verbs from the command line, functions of the library, keys of the files from the schema."""

from __future__ import annotations

import pkgutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from html import escape
from inspect import cleandoc
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import click
from pydantic import BaseModel

import whatif
import whatif.models
from docs.site.equations import functions
from whatif.cli.lazy_group import contexts_below, option_records
from whatif.cli.main import EPILOG, program
from whatif.core.term import signature
from whatif.schema.field_help import field_help
from whatif.schema.fields import QuantityField, quantity_field
from whatif.schema.parameters import KnownKey, table_keys
from whatif.schema.platform_spec import FitRecord, PlatformSpec
from whatif.schema.scenario_spec import ScenarioSpec
from whatif.schema.study_spec import StudySpec
from whatif.units import ONE, format_quantity

FILES: Final[Mapping[str, type[BaseModel]]] = {"scenario": ScenarioSpec, "platform": PlatformSpec, "study": StudySpec}
"""Kinds of files by the root of their schema."""


def verbs_page() -> str:
    """Every verb with its arguments and options."""
    root = click.Context(program, info_name="whatif", color=False)
    verbs = (line for context in contexts_below(root) for line in _verb(context))
    return "\n".join(["# Verbs", "", EPILOG, "", *verbs])


def _verb(context: click.Context) -> Iterator[str]:
    command, path = context.command, context.command_path
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"#{'#' * path.count(' ')} {path}\n\n{_plain(cleandoc(command.help or ''))}\n"
    yield f"```text\n{path} {usage}\n```\n"
    if records := option_records(context):
        yield "| option | meaning |\n|---|---|"
        yield from (
            f"| <code>{escape(names).replace('|', '&#124;')}</code> | {_plain(_cell(text))} |"
            for names, text in records
        )
        yield ""


def library_page() -> str:
    """Every exported name of the library, from its docstring."""
    names = sorted(name for name in whatif.__all__ if not name.startswith("_"))
    found = {name: getattr(whatif, name) for name in names}
    functions = [name for name in names if not isinstance(found[name], type)]
    parts = ["# Library", "", "Functions and types of the package; [an introduction](../library.md) has examples.", ""]
    for title, group in (("Functions", functions), ("Types", [name for name in names if name not in functions])):
        parts += [f"## {title}", "", *(f"::: whatif.{name}\n" for name in group)]
    return "\n".join(parts)


def keys_page(kind: str) -> str:
    """Every key of a kind of file by table, with unit, range, default and meaning."""
    others = {table: name for name, table in FILES.items() if name != kind}
    format_key = "Every file may state its [format](../file_format.md): `format = 1`."
    sections = [f"# Keys of a {kind} file", "", format_key, ""]
    for table, paths in _tables(FILES[kind], {}).items():
        where = ", ".join(f"`[{path}]`" for path in paths[:4]) + (", .." if len(paths) > 4 else "")
        sections += [f"## {table.__name__}" if paths[0] else "## Top level", "", where, "", _summary(table), ""]
        if table in others:
            sections += [f"The keys are those of a [{others[table]} file]({others[table]}.md).", ""]
        else:
            sections += [*_keys(table), ""]
    return "\n".join(sections)


def _summary(table: type[BaseModel]) -> str:
    return _plain(" ".join((table.__doc__ or "").split()))


def _tables(
    table: type[BaseModel], found: dict[type[BaseModel], list[str]], path: str = ""
) -> dict[type[BaseModel], list[str]]:
    """Tables below a table with the paths at which they stand, each described once."""
    known = table in found or (path and table in FILES.values())
    found.setdefault(table, []).append(path)
    for name, info in () if known else table.model_fields.items():
        key = f"{path}.{info.alias or name}".lstrip(".")
        for below, suffix in _inner(info.annotation):
            _tables(below, found, key + suffix)
    return found


def _inner(annotation: Any) -> Iterator[tuple[type[BaseModel], str]]:
    """Tables in the type of a key; those of a table with names of one's own are below `NAME`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, ""
    elif get_origin(annotation) in (Annotated, Union, UnionType):
        for part in get_args(annotation):
            yield from _inner(part)
    elif get_args(annotation):
        for below, suffix in _inner(get_args(annotation)[-1]):
            yield below, f".NAME{suffix}"


def _keys(table: type[BaseModel]) -> Iterator[str]:
    yield "| key | values | default | meaning |\n|---|---|---|---|"
    for name, key in table_keys(table):
        info = table.model_fields[name]
        default = "required" if info.is_required() else _default(info.get_default(call_default_factory=True), key.field)
        help_text = field_help(table).get(name) or " ".join(_summary(below) for below, _ in _inner(info.annotation))
        yield f"| `{info.alias or name}` | {_values(info.annotation, key)} | {default} | {_plain(_cell(help_text))} |"


def _values(annotation: Any, key: KnownKey) -> str:
    if key.field is not None:
        return _cell(key.allowed if key.field.dimension in (ONE, None) else f"{key.field.unit}: {key.allowed}")
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    below = list(dict.fromkeys(table.__name__ for table, _ in _inner(annotation)))
    return ", ".join(f"[{name}](#{name.lower()})" for name in below) or (
        "true or false" if annotation is bool else "text"
    )


def _default(value: Any, field: QuantityField | None) -> str:
    if value is None or value in ({}, (), "") or isinstance(value, BaseModel):
        return ""
    if isinstance(value, float) and field is not None and field.dimension is not None:
        return f"`{format_quantity(value, field.dimension)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def quantities_page() -> str:
    """Names of quantities by unit: one name has one meaning in files, functions and results."""
    rows = [
        f"| {'count or fraction' if unit == '1' else unit} | {', '.join(names)} |"
        for unit, names in quantity_names().items()
    ]
    head = "Keys of the files and arguments of the model functions. One name is one quantity everywhere."
    return "\n".join(["# Names of quantities", "", head, "", "| unit | names |", "|---|---|", *rows, ""])


def quantity_names() -> dict[str, list[str]]:
    """Names by unit, both sorted; `any` for parameters that take whatever they are given."""
    units: dict[str, set[str]] = defaultdict(set)
    for table in [*_tables(ScenarioSpec, {}), *_tables(PlatformSpec, {})]:
        for name, info in table.model_fields.items():
            field = quantity_field(info)
            if field is not None and table is not FitRecord:
                units["any" if field.unit == "None" else field.unit].add(name)
    for function in model_functions():
        for name, argument in signature(function).parameters.items():
            units[str(argument.dimension or "any")].add(name)
    # Money has no fixed unit where it enters a model.
    units["any"] -= {name for unit, names in units.items() if unit.startswith("money") for name in names}
    return {unit: sorted(names) for unit, names in sorted(units.items())}


def model_functions() -> Iterator[Any]:
    """Functions of `whatif.models` with an equation, in the order of their files."""
    for found in pkgutil.iter_modules(whatif.models.__path__):
        yield from functions(f"whatif.models.{found.name}")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _plain(text: str) -> str:
    """Text whose placeholders and brackets are not taken for markup."""
    return text.replace("<", "&lt;").replace("[", "\\[") if "`" not in text else text.replace("<", "&lt;")
