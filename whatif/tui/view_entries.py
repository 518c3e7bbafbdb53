"""Fields of view dataclasses as text, the form in which the journal writes and reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from whatif.errors import UsageError, did_you_mean
from whatif.units import Dimension, UnitError, exact_quantity, parse_quantity


@dataclass(frozen=True, slots=True)
class PageView:
    """State of one page that undo, the journal and replay keep; each page has a subclass with its own fields."""

    PAGE: ClassVar[str] = ""
    """Name of the page; empty for a page without fields."""

    def unsaved(self) -> dict[str, str]:
        """Changes by name that the page can save to a file of its own and has not."""
        return {}


V = TypeVar("V", bound=PageView)


class _Rules(NamedTuple):
    """Constraints on a field beyond its type."""

    choices: tuple[object, ...] = ()
    none: str = ""
    unit: Dimension | None = None
    check: Callable[[Any], bool] | None = None
    expected: str = ""


_KEY: Final = "rules"


def entry(
    default: Any,
    *,
    choices: tuple[object, ...] = (),
    none: str = "",
    unit: Dimension | None = None,
    check: Callable[[Any], bool] | None = None,
    expected: str = "",
) -> Any:
    """Dataclass field with constraints: `none` is the text of None, `unit` the dimension of numbers.

    `check` returns whether a value is allowed; otherwise the error reads `expected EXPECTED`.
    """
    return field(default=default, metadata={_KEY: _Rules(choices, none, unit, check, expected)})


class _Entry(NamedTuple):
    """Type and rules of one field."""

    hint: Any
    rules: _Rules
    default: object

    @property
    def choices(self) -> tuple[object, ...]:
        return self.rules.choices or (get_args(self.hint) if get_origin(self.hint) is Literal else ())


@cache
def _entries(kind: type) -> Mapping[str, _Entry]:
    hints = get_type_hints(kind)
    known = (item for item in fields(kind) if item.default is not MISSING)
    return {item.name: _Entry(hints[item.name], item.metadata.get(_KEY, _Rules()), item.default) for item in known}


def entry_names(kind: type) -> tuple[str, ...]:
    """Names of the fields of a view that have a text."""
    return tuple(_entries(kind))


def choices(kind: type, name: str) -> tuple[object, ...]:
    """Values allowed for a field; empty if it is not a choice."""
    return _entries(kind)[name].choices


def stated_entries(view: PageView) -> dict[str, str]:
    """Texts of the fields of a view that differ from their defaults, by name."""
    kind: type = type(view)
    values = {name: getattr(view, name) for name in entry_names(kind)}
    return {name: to_text(kind, name, value) for name, value in values.items() if value != _entries(kind)[name].default}


def to_text(kind: type, name: str, value: object) -> str:
    """Text of a value of a field, which `from_text` reads back exactly."""
    rules = _entries(kind)[name].rules
    if value is None:
        return rules.none
    items = value if isinstance(value, tuple) else (value,)
    if rules.unit is not None:
        return ", ".join(exact_quantity(float(number), rules.unit) for number in items)
    return ", ".join(map(str, items))


def from_text(kind: type, name: str, text: str) -> Any:
    """Value of a field from its text; raise `UsageError` if the text does not fit the field."""
    item, text = _entries(kind)[name], text.strip()
    if item.choices:
        texts = {to_text(kind, name, choice): choice for choice in item.choices}
        if text not in texts:
            raise UsageError(f"`{text}` is not one of {', '.join(texts)}{did_you_mean(text, texts)}")
        return texts[text]
    hint, optional = _without_none(item.hint)
    if optional and text == item.rules.none:
        return None
    try:
        value = _parse(hint, item.rules, text)
    except (UnitError, ValueError) as problem:
        known = f"expected {item.rules.expected}" if item.rules.expected else str(problem)
        raise UsageError(f"`{text}`: {known}") from None
    if item.rules.check is not None and not item.rules.check(value):
        raise UsageError(f"`{text}`: expected {item.rules.expected}")
    return value


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return kinds[0], len(kinds) < len(get_args(hint))
    return hint, False


def _parse(hint: Any, rules: _Rules, text: str) -> Any:
    if get_origin(hint) is not tuple:
        return _parse_one(hint, rules, text)
    kind, *others = get_args(hint)
    words = [word.strip() for word in text.split(",") if word.strip()]
    if others[0] is not Ellipsis and len(words) != 1 + len(others):
        raise ValueError(f"expected {1 + len(others)} values, separated by commas")
    return tuple(_parse_one(kind, rules, word) for word in words)


def _parse_one(kind: Any, rules: _Rules, text: str) -> Any:
    if rules.unit is None:
        return kind(text)
    quantity = parse_quantity(text)
    if quantity.dimension != rules.unit:
        raise ValueError(f"expected a quantity in {rules.unit}")
    return quantity.value
