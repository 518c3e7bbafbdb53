"""Which values a result follows most: the elasticities of a result, as they cross from one process to another."""

from __future__ import annotations

from dataclasses import dataclass

from whatif.core.session import SessionInputs
from whatif.errors import InfeasiblePointError
from whatif.studies.elasticity import Elasticity, elasticities
from whatif.tui.labels import reason_of


@dataclass(frozen=True, slots=True)
class Leverage:
    """The elasticities of a result in the parameters, the largest first, or the reason for their absence."""

    result: str
    items: tuple[Elasticity, ...]
    reason: str = ""


def leverage(inputs: SessionInputs, result: str) -> Leverage:
    """The elasticities of a result column or `terms.PHASE` at the present values."""
    try:
        return Leverage(result, elasticities(inputs.program, result))
    except InfeasiblePointError as problem:
        reason = reason_of(problem).removesuffix(": it has no elasticity")
        return Leverage(result, (), reason)


def written(item: Elasticity) -> str:
    """An elasticity with its sign in six cells; a plain 0 where the result does not follow the value."""
    value = item.elasticity
    if item.reason or not value:
        return "–" if item.reason else "0"
    return f"{value:+.2f}" if abs(value) >= 0.1 else f"{value:+.3f}" if abs(value) >= 0.001 else f"{value:+.0e}"


def sentence(item: Elasticity, result: str, *, timed: bool = True) -> str:
    """Meaning of an elasticity of a time, or of another result, in one sentence."""
    more, less, long = ("longer", "shorter", "long") if timed else ("more", "less", "much")
    parameter, value = f"{item.path}, now {item.value},", item.elasticity
    if item.reason:
        return f"{parameter} cannot be varied: {item.reason}."
    if not value:
        return f"{parameter} makes no difference to {result} here."
    if "%" in item.change:
        return f"1 % more of {parameter} makes {result} {abs(value):.2g} % {more if value > 0 else less}."
    if item.change == "x2":
        return f"Twice {parameter} makes {result} {2**value:.3g} times as {long}."
    if item.change == "/2":
        return f"Half of {parameter} makes {result} {2**-value:.3g} times as {long}."
    return f"From half to twice {parameter} each doubling makes {result} {2**value:.3g} times as {long}."
