"""Values relative to the present one: `x2`, `*2`, `2x`, `/2`, `+10 %`, `-10 %`, `200 %`.

A percentage without a sign is a share of the present value of counts and quantities with a unit. Of other plain numbers
(fractions, factors) it is the value: `10 %` is 0.1, while `+10 %` is relative.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from whatif.errors import InvalidFileError, Problem, UsageError
from whatif.schema.expressions import Expression
from whatif.schema.load import Loaded
from whatif.schema.parameters import Parameter, parameter_table
from whatif.units import ONE, UNSIGNED, format_quantity

_FORMS: Final = re.compile(
    rf"\s*(?:[x×*]\s*(?P<times>{UNSIGNED})|(?P<fold>{UNSIGNED})\s*[x×]|/\s*(?P<by>{UNSIGNED})"
    rf"|(?P<change>[+-]\s*{UNSIGNED})\s*%|(?P<share>{UNSIGNED})\s*%|(?P<sum>\+\s*[\d.][^%]*))\s*"
)
_DIGITS: Final = 12


def is_relative(text: object) -> bool:
    """Whether a text changes the present value of a number."""
    return isinstance(text, str) and _FORMS.fullmatch(text) is not None


def absolute(parameter: Parameter, text: Any) -> Any:
    """Value that a text gives a parameter, as a text without reference to the present value.

    A distribution keeps its relative width. Raise `UsageError` for a value outside the domain, and for a sum: `+2` may
    be meant as 2 or as 2 more.
    """
    found = _FORMS.fullmatch(text) if isinstance(text, str) else None
    if found is None or parameter.field is None:
        return text
    if found["sum"]:
        raise UsageError(f"`{text.strip()}`: no sums; state the value, a factor (`x2`) or a change (`+10 %`)")
    plain = parameter.dimension == ONE and not parameter.field.domain.whole
    if found["share"] and plain:
        return f"{float(found['share']) / 100:.{_DIGITS}g}"
    factor = _factor(found)
    if isinstance(parameter.value, Expression):
        return f"= {factor:.{_DIGITS}g} * ({parameter.value.text.lstrip().removeprefix('=').strip()})"
    return _scaled(parameter, factor, text.strip())


def _factor(found: re.Match[str]) -> float:
    """Factor on the present value."""
    if found["by"]:
        number = float(found["by"])
        if not number:
            raise UsageError(f"`{found[0].strip()}`: division by 0")
        return 1 / number
    if found["change"]:
        return 1 + float("".join(found["change"].split())) / 100
    return float(found["share"]) / 100 if found["share"] else float(found["times"] or found["fold"])


def _scaled(parameter: Parameter, factor: float, text: str) -> str:
    """Text of the present value times a factor."""
    present = parameter.text()
    assert parameter.field is not None  # noqa: S101 - `absolute` has checked it
    domain, value = parameter.field.domain, float(f"{float(parameter.value) * factor:.{_DIGITS}g}")

    def write(number: float) -> str:
        return format_quantity(number, parameter.dimension, _DIGITS)

    result = write(value)
    if not domain.accepts(value):
        near = domain.whole and math.isfinite(value) and domain.accepts(round(value))
        hint = f"; did you mean {round(value)}?" if near else ""
        allowed = domain.describe(parameter.dimension, value)
        raise UsageError(f"`{text}` of {present} is {result}; it must be {allowed}{hint}")
    return result if parameter.distribution is None else parameter.distribution.scaled(factor, write)


def absolute_overrides(overrides: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Loaded]) -> dict[str, Any]:
    """Overrides without reference to present values, which are those that `load` gives with the other overrides.

    Raise `InvalidFileError`, as for other overrides, for a relative value outside the domain, and for a sum such as
    `+2`.
    """
    relative = {path: text for path, text in overrides.items() if is_relative(text)}
    if not relative:
        return dict(overrides)
    known = parameter_table(load({path: text for path, text in overrides.items() if path not in relative}))
    return {path: _override(known, path, text) if path in relative else text for path, text in overrides.items()}


def _override(known: Mapping[str, Parameter], path: str, text: str) -> Any:
    try:
        return absolute(known[path], text) if path in known else text
    except UsageError as problem:
        raise InvalidFileError([Problem(f"--set {path}={text}", 0, 0, path, str(problem))]) from None
