"""pydantic errors as messages in terms of the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from whatif.errors import did_you_mean
from whatif.schema.fields import KEY_PATTERN, KEY_RULE, LINK_END_PATTERN, StrictTable
from whatif.schema.shipped import KINDS
from whatif.schema.toml import KeyPath, dotted, entries, key_path
from whatif.vocabulary import COLLECTIVE_OPERATIONS, LIBRARY_ALGORITHMS, MESSAGE_ALGORITHMS, MESSAGE_MODELS

_PLAIN = {
    "string_type": "must be a text in quotes",
    "bool_type": "must be true or false",
    "int_type": "must be a number",
    "float_type": "must be a number",
    "list_type": "must be a list",
}
_MOST_LISTED: Final = 12
"""Most keys that a message about a table lists."""
_DEEPEST: Final = 4
"""Keys of a path at which a misplaced key is sought."""
_TABLE_ERRORS = ("dict_type", "model_type", "model_attributes_type")
_OTHER_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "bandwidth": ("dram_bandwidth", "memory_bandwidth"),
    "budget": ("capital",),
    "bytes": ("message_size", "transfer_size", "dram_size"),
    "clock": ("sustained_clock",),
    "dram_bytes": ("dram_size",),
    "flop": ("operations",),
    "flops": ("operations", "peak_double_rate"),
    "fp32": ("peak_single_rate",),
    "fp64": ("peak_double_rate",),
    "max_nodes": ("node_count",),
    "memory": ("memory_size",),
    "nics": ("port_count",),
    "ppn": ("ranks_per_node",),
    "precision": ("dominant_operation",),
    "price_per_node": ("node_price",),
    "pue": ("power_usage_effectiveness",),
    "share": ("weight",),
    "size": ("message_size", "transfer_size", "dram_size"),
    "tasks_per_node": ("ranks_per_node",),
    "tdp": ("power", "power_cap"),
    "threads": ("threads_per_rank",),
    "time": ("kernel_time", "overhead_time"),
    "title": ("question",),
    "type": ("kind",),
    "years": ("lifetime",),
}
"""Keys by other words that users write for them; `gpus`, `num_gpus` and `gpus_per_node` are counts, `gpu_count`."""
_COUNTED = re.compile(r"^(?:num(?:ber_of)?_|n_)?(\w+?)s?(?:_per_\w+)?$")
_PATTERNS = {KEY_PATTERN: KEY_RULE, LINK_END_PATTERN: "must be `cpu`, `gpu` or `switch` and a number, such as `gpu0`"}


def path_of(document: Mapping[str, Any], error: Mapping[str, Any]) -> KeyPath:
    """Key path of an error in the document, without the union tags that pydantic adds."""
    context = error.get("ctx", {})
    if "path" in context:
        return key_path(context["path"])
    path: list[str] = []
    value: Any = document
    for index, step in enumerate(error["loc"]):
        last = index == len(error["loc"]) - 1
        if isinstance(value, Mapping) and step in value:
            path.append(str(step))
            value = value[step]
        elif last and error["type"] == "missing" and isinstance(value, Mapping):
            path.append(str(step))
    if (tag := str(context.get("discriminator", "")).strip("'")) and tag in value:
        path.append(tag)
    return (*path, context["key"]) if "key" in context else tuple(path)


def message_of(model: type[BaseModel], document: Mapping[str, Any], path: KeyPath, error: Mapping[str, Any]) -> str:
    """Message of an error: what is wrong, what is allowed, and what was probably meant."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"`{path[-1]}`: unknown key{_meant_key(model, document, path)}"
    if kind in ("literal_error", "union_tag_invalid"):
        other = _valued(model, document, path, context["tag"]) if "tag" in context else ""
        return _choice_message(error, context, other, lambda choices: _suited(document, path, choices))
    if kind == "missing":
        return _missing_message("missing key", _choices(model, document, path))
    if kind == "union_tag_not_found":
        return _missing_message("missing key `kind`", _tags(model, document, path)) + _other_tables(document, path)
    if kind in _TABLE_ERRORS:
        named = any(get_origin(option) is dict for option in types_at(model, document, path[:-1]))
        return _table_message(error["input"], path, named, known_keys(model, document, path))
    rule = _PATTERNS.get(context["pattern"]) if kind == "string_pattern_mismatch" else _PLAIN.get(kind)
    return f"`{_short(error['input'])}` {rule}" if rule else str(error["msg"])


def _table_message(value: object, path: KeyPath, named: bool, known: list[str]) -> str:
    """Message of another value in the place of a table with known keys; it has a name of the user's if `named`."""
    if isinstance(value, str) and path[-1] in KINDS:
        return f'must be a table, or a part (`whatif list parts`): `{path[-1]}.extends = "{_short(value)}"`'
    if isinstance(value, str) and (key := re.match(r"\s*\{\s*([\w-]+)\s*=", value)):
        return f"`{_short(value)}` is a text, not a table; set its keys, such as {dotted(path)}.{key[1]}"
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        return f"is a list of tables, `[[{dotted(path)}]]`; write `[{dotted(path)}.NAME]`, each with a name"
    if named:
        return f"must be a table with a name: write `[{dotted(path[:-1])}.NAME]`, and this key in it"
    keys = _listed(known) if len(known) <= _MOST_LISTED else ""
    return f"`{_short(value)}` must be a table{_of_directions(value, path[-1]) or keys}"


def _of_directions(value: object, key: str) -> str:
    """Hint at the table of a list of up to three numbers, such as cells; empty for other values."""
    if not isinstance(value, list) or not 0 < len(value) <= 3:
        return ""
    cells = ", ".join(f"{name} = {item}" for name, item in zip("xyz", value, strict=False))
    return f": `{key} = {{ {cells} }}`"


def _meant_key(model: type[BaseModel], document: Mapping[str, Any], path: KeyPath) -> str:
    """Hint at the key that is meant by an unknown one, or the known ones."""
    word, known = path[-1], known_keys(model, document, path[:-1])
    other = word.casefold()
    count = _COUNTED.sub(r"\1_count", other)
    meant = [key for key in (count, *_OTHER_WORDS.get(other, ())) if key in known]
    if path == ("extends",):
        # Scenarios, platforms and parts have this key.
        return "; a study extends no other: copy the file and change it"
    advice = (
        table.meant.get(other) for table in _models_at(model, document, path[:-1]) if issubclass(table, StrictTable)
    )
    if stated := next(filter(None, advice), ""):
        return stated
    elsewhere = _whole_path(document, word) or _in_schema(model, word) if len(path) == 1 else ""
    near = did_you_mean(meant[0] if meant else word, known) or elsewhere
    return near or _kinds_with(model, document, path) or _listed(known)


def _kinds_with(model: type[BaseModel], document: Mapping[str, Any], path: KeyPath) -> str:
    """Hint at the other kinds of a table that have a key, or another word for it; empty without any."""
    options = _models_at(model, document, path[:-1], by_kind=False)
    words = (path[-1], *_OTHER_WORDS.get(path[-1].casefold(), ()))
    found = ((key, _kind(option)) for key in words for option in options if key in option.model_fields)
    texts = [f"`{key}` is a key of the kind `{kind}`" for key, kind in dict.fromkeys(found) if kind]
    return f"; {', '.join(texts)}" if texts else ""


def _whole_path(document: Mapping[str, Any], name: str) -> str:
    """Hint at the values and tables of a name further down, such as `application.rank_count`; empty without any."""
    paths = (path for path, _ in entries(document) if name == path[-1] != path[0] and "fits" not in path)
    # The keys of the application are those that a scenario states itself.
    found = [dotted(path) for path in sorted(paths, key=lambda path: (path[0] != "application", len(path)))]
    return f"; did you mean {' or '.join(f'`{path}`' for path in found[:3])}?" if found else ""


def _in_schema(model: type[BaseModel], name: str) -> str:
    """Hint at the tables below that have a key of a name, those of the fewest keys; empty without any."""
    level: list[tuple[KeyPath, Any]] = [((), model)]
    for _ in range(_DEEPEST):
        level = [((*path, key), child) for path, option in level for key, child in _tables_in(option)]
        known = [(path, option) for path, option in level if _is_model(option) and name in option.model_fields]
        if found := list(dict.fromkeys(dotted((*path, name)) for path, _ in known)):
            return f"; did you mean {' or '.join(f'`{path}`' for path in found[:2])}?"
    return ""


def _tables_in(option: Any) -> Iterator[tuple[str, Any]]:
    """Tables below a table, by key; those of any name have the key `NAME`."""
    fields = option.model_fields.items() if _is_model(option) else ()
    named = [("NAME", get_args(option)[1])] if get_origin(option) is dict else []
    for key, annotation in (*((key, field.annotation) for key, field in fields), *named):
        yield from ((key, child) for child in _unpacked(annotation))


def _missing_message(words: str, choices: list[str]) -> str:
    return f"{words}; one of {', '.join(choices)}" if choices else words


def _choice_message(
    error: Mapping[str, Any], context: Mapping[str, Any], hint: str, suited: Callable[[list[str]], list[str]]
) -> str:
    expected = str(context.get("expected") or context.get("expected_tags"))
    choices = suited([word.strip().strip("'") for word in expected.replace(" or ", ", ").split(",")])
    value = context.get("tag", error["input"])
    return f"`{_short(value)}` is not one of {', '.join(choices)}{did_you_mean(str(value), choices) or hint}"


def _valued(model: type[BaseModel], document: Mapping[str, Any], path: KeyPath, value: str) -> str:
    """Hint at the kinds with a key that can have a value, such as `operation = "allreduce"`; empty without any."""
    table = path[:-1] if path[-1] == "kind" else path
    options = _models_at(model, document, table, by_kind=False)
    fields = ((option, key, field) for option in options for key, field in option.model_fields.items() if key != "kind")
    found = ((_kind(option), key) for option, key, field in fields if value in _fixed(field))
    texts = [f'`kind = "{kind}"` with `{key} = "{value}"`' for kind, key in dict.fromkeys(found)]
    return f"; write {' or '.join(texts[:2])}" if texts else ""


def _fixed(field: FieldInfo) -> list[Any]:
    """Values that a field can have, if they are fixed."""
    inner = (field.annotation, *get_args(field.annotation))
    return [value for annotation in inner if get_origin(annotation) is Literal for value in get_args(annotation)]


def _kind(option: type[BaseModel]) -> str:
    """Kind of the table that a model of a union describes; empty for other models."""
    field = option.model_fields.get("kind")
    return str(get_args(field.annotation)[0]) if field is not None and get_args(field.annotation) else ""


def _tags(model: type[BaseModel], document: Mapping[str, Any], path: KeyPath) -> list[str]:
    return list(dict.fromkeys(map(_kind, _models_at(model, document, path, by_kind=False))))


def _choices(model: type[BaseModel], document: Mapping[str, Any], path: KeyPath) -> list[str]:
    """Values that a key can have, if they are fixed."""
    fields = [option.model_fields.get(path[-1]) for option in _models_at(model, document, path[:-1])]
    found = dict.fromkeys(str(value) for field in fields if field is not None for value in _fixed(field))
    return _suited(document, path, list(found))


def _suited(document: Mapping[str, Any], path: KeyPath, choices: list[str]) -> list[str]:
    """Choices of a key; of the algorithms of a collective those of its operation and model, where these are stated."""
    for step in path[:-1]:
        document = document.get(step, {})
    operation, model = document.get("operation"), document.get("model")
    if path[-1] != "algorithm" or operation not in COLLECTIVE_OPERATIONS:
        return choices
    by_messages = () if model == "nccl" else MESSAGE_ALGORITHMS[operation]
    by_library = () if model in MESSAGE_MODELS else LIBRARY_ALGORITHMS.get(operation, ())
    known = {"best", "measured", *by_messages, *by_library}
    return [choice for choice in choices if choice in known]


def _other_tables(document: Mapping[str, Any], path: KeyPath) -> str:
    """Hint at the other tables of its parent for a table without a kind, which may be mistyped."""
    for step in path[:-1]:
        document = document.get(step, {})
    others = [name for name, value in document.items() if name != path[-1] and isinstance(value, Mapping)]
    return did_you_mean(path[-1], others) or (f"; the other tables are {', '.join(others)}" if others else "")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _listed(known: list[str]) -> str:
    return f"; known keys: {', '.join(known)}" if known else ""


def known_keys(model: type[BaseModel], document: Mapping[str, Any], path: KeyPath) -> list[str]:
    """Allowed keys of the table at a path."""
    return sorted({key for option in _models_at(model, document, path) for key in option.model_fields})


def _models_at(
    model: type[BaseModel], document: Mapping[str, Any], path: KeyPath, by_kind: bool = True
) -> list[type[BaseModel]]:
    """Models that describe the table at a path; several for a union."""
    return [option for option in types_at(model, document, path, by_kind) if _is_model(option)]


def types_at(model: type[BaseModel], document: Mapping[str, Any], path: KeyPath, by_kind: bool = True) -> list[Any]:
    """Models and dicts that describe the table at a path."""
    options: list[Any] = [model]
    value: Any = document
    for step in path:
        options = [child for option in options for child in _children(option, step)]
        value = value.get(step, {}) if isinstance(value, Mapping) else {}
        if by_kind and isinstance(value, Mapping) and "kind" in value:
            options = [option for option in options if _has_kind(option, value["kind"])] or options
    return options


def _children(option: Any, step: str) -> list[Any]:
    """Types allowed at a key of a model, or of a dict of models."""
    if _is_model(option):
        field: FieldInfo | None = option.model_fields.get(step)
        return [] if field is None else _unpacked(field.annotation)
    return _unpacked(get_args(option)[1]) if get_origin(option) is dict else []


def _unpacked(annotation: Any) -> list[Any]:
    """Models and dicts inside `Annotated` and unions."""
    if _is_model(annotation) or get_origin(annotation) is dict:
        return [annotation]
    return [inner for argument in get_args(annotation) for inner in _unpacked(argument)]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _has_kind(option: Any, kind: object) -> bool:
    field = option.model_fields.get("kind") if _is_model(option) else None
    return field is not None and kind in get_args(field.annotation)
