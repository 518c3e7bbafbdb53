"""Expressions such as `"= 8 B * n"`: parsed into a tree of plain data and evaluated with numpy; no code is executed.

Grammar: `+ - * / **`, parentheses, numbers with units, names from the `[parameters]` table, dotted paths of parameters,
and the functions of `FUNCTIONS`. Anything else is an error that shows where parsing stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from whatif.errors import did_you_mean
from whatif.units import BYTE, FLOP, ONE, UNIT_WORD, UNITS, UNSIGNED, Dimension, Quantity, UnitError, parse_quantity

FUNCTIONS = {"min": 2, "max": 2, "ceil": 1, "floor": 1, "log": 1, "log2": 1, "sqrt": 1}
_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
    "negative": np.negative,
    "ceil": np.ceil,
    "floor": np.floor,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
}
MAXIMUM_LENGTH = 500
MAXIMUM_DEPTH = 50

_COUNTED = (ONE, BYTE, FLOP)
_TOKEN = re.compile(rf"\s*(?:(?P<number>{UNSIGNED})|(?P<name>[A-Za-z_]\w*(?:\.\w+)*)|(?P<operator>\*\*|[-+*/(),]))")
_UNIT_AFTER_NUMBER = re.compile(rf"\s*(?:1/)?({UNIT_WORD})(?:\^-?\d)?")
_UNIT_AFTER_UNIT = re.compile(rf"/({UNIT_WORD})(?:\^-?\d)?")


class ExpressionError(ValueError):
    """An expression with a syntax error, or with dimensions that do not agree."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name from the `[parameters]` table, or the dotted path of a parameter."""

    path: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator applied to arguments."""

    function: str
    arguments: tuple[Node, ...]


Node = Quantity | Name | Call


@dataclass(frozen=True, slots=True)
class Expression:
    """The text as written (with its `=`) and its tree."""

    text: str
    tree: Node

    def names(self) -> tuple[str, ...]:
        """Names and paths in the expression, in order of appearance, without repetition."""
        return tuple(dict.fromkeys(_names(self.tree)))


def _names(node: Node) -> Iterator[str]:
    if isinstance(node, Name):
        yield node.path
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from _names(argument)


@lru_cache(maxsize=1024)
def parse_expression(text: str) -> Expression:
    """Expression of a text such as `"= max(n, 1) * 8 B"`; raise `ExpressionError` with the offending part."""
    body = text.removeprefix("=")
    if len(body) > MAXIMUM_LENGTH:
        raise ExpressionError(f"an expression may have at most {MAXIMUM_LENGTH} characters")
    parser = _Parser(list(_tokens(body)))
    tree = parser.sum(0)
    if parser.tokens[parser.position][1]:
        raise ExpressionError(f"unexpected `{parser.tokens[parser.position][1]}` in `{text}`")
    return Expression(text, tree)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            part = text[position:].strip()[:20]
            hint = "; a power is `**`" if part.startswith("^") else ""
            raise ExpressionError(f"cannot read `{part}` in `={text}`{hint}")
        position = _end_of_unit(text, match.end()) if match["number"] else match.end()
        yield str(match.lastgroup), text[match.start() : position].strip()
    yield "end", ""


def _end_of_unit(text: str, position: int) -> int:
    """End of the unit that follows a number: `8 B/s` takes both words, `8 B/n` only the first."""
    unit = _UNIT_AFTER_NUMBER.match(text, position)
    while unit is not None and unit[1] in UNITS:
        position = unit.end()
        unit = _UNIT_AFTER_UNIT.match(text, position)
    return position


class _Parser:
    """Precedence climbing over a list of tokens."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.position = 0

    def take(self, *wanted: str) -> str:
        """Consume and return the next token if it is one of `wanted`; otherwise an empty text."""
        text = self.tokens[self.position][1]
        if text not in wanted or not text:
            return ""
        self.position += 1
        return text

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            raise ExpressionError(f"expected `{wanted}` {self._before(self.position)}")

    def _before(self, position: int) -> str:
        """Place of a token: before which text, or at the end."""
        text = self.tokens[position][1]
        return f"before `{text}`" if text else "at the end"

    def sum(self, depth: int) -> Node:
        return self._chain(self.product, ("+", "-"), depth)

    def product(self, depth: int) -> Node:
        return self._chain(self.factor, ("*", "/"), depth)

    def _chain(self, operand: Callable[[int], Node], operators: tuple[str, ...], depth: int) -> Node:
        node = operand(depth)
        while operator := self.take(*operators):
            node = Call(operator, (node, operand(depth)))
        return node

    def factor(self, depth: int) -> Node:
        if depth > MAXIMUM_DEPTH:
            raise ExpressionError(f"more than {MAXIMUM_DEPTH} levels of nesting")
        if self.take("-"):
            return _negative(self.factor(depth + 1))
        base = self.atom(depth)
        return Call("**", (base, self.factor(depth + 1))) if self.take("**") else base

    def atom(self, depth: int) -> Node:
        kind, text = self.tokens[self.position]
        self.position += kind != "end"
        if kind == "number":
            return _number(text)
        if kind == "name":
            return self._call(text, depth) if self.take("(") else Name(text)
        if text != "(":
            raise ExpressionError(f"expected a number, a name or `(` {self._before(self.position - (kind != 'end'))}")
        node = self.sum(depth + 1)
        self.expect(")")
        return node

    def _call(self, function: str, depth: int) -> Node:
        if function not in FUNCTIONS:
            allowed = ", ".join(FUNCTIONS)
            raise ExpressionError(
                f"unknown function `{function}`; allowed: {allowed}{did_you_mean(function, FUNCTIONS)}"
            )
        arguments = [self.sum(depth + 1)]
        while self.take(","):
            arguments.append(self.sum(depth + 1))
        self.expect(")")
        if FUNCTIONS[function] == 1 and len(arguments) != 1:
            raise ExpressionError(f"`{function}` takes one argument")
        return Call(function, tuple(arguments))


def _negative(node: Node) -> Node:
    """Negated node: `-1` becomes a number, as an exponent must be; anything else is negated on evaluation."""
    return Quantity(-node.value, node.dimension) if isinstance(node, Quantity) else Call("negative", (node,))


def _number(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except UnitError as error:
        raise ExpressionError(str(error)) from None


def dimension_of(node: Node, lookup: Callable[[str], Dimension]) -> Dimension:
    """Dimension of a tree, given those of the names; raise `ExpressionError` if they do not agree."""
    if isinstance(node, Quantity):
        return node.dimension
    if isinstance(node, Name):
        return lookup(node.path)
    dimensions = [dimension_of(argument, lookup) for argument in node.arguments]
    return _combine(node, dimensions)


def _combine(node: Call, dimensions: list[Dimension]) -> Dimension:
    first, last = dimensions[0], dimensions[-1]
    if node.function == "*":
        return first * last
    if node.function == "/":
        return first / last
    if node.function == "**":
        return _power(node, first, last)
    if node.function in ("log", "log2", "sqrt") and first != ONE:
        raise ExpressionError(f"`{node.function}` needs a number without a unit, not {first}")
    if node.function in ("ceil", "floor") and first not in _COUNTED:
        advice = f"divide by a unit, as in `{node.function}(x / 1 {first}) * 1 {first}`"
        raise ExpressionError(f"`{node.function}` needs a number without a unit, or bytes, not {first}; {advice}")
    if any(dimension != first for dimension in dimensions):
        raise ExpressionError(f"`{node.function}` joins different units: {' and '.join(map(str, dimensions))}")
    return first


def _power(node: Call, base: Dimension, exponent: Dimension) -> Dimension:
    power = node.arguments[1]
    if base == ONE and exponent == ONE:
        return ONE
    if isinstance(power, Quantity) and exponent == ONE and power.value == int(power.value):
        return base ** int(power.value)
    raise ExpressionError("`**` on a quantity with a unit needs a whole number as its exponent")


def value_of(node: Node, lookup: Callable[[str], Any]) -> Any:
    """Value of a tree, given those of the names: numbers or arrays in base units. Elementwise."""
    if isinstance(node, Quantity):
        return np.float64(node.value)
    if isinstance(node, Name):
        return lookup(node.path)
    return _OPERATIONS[node.function](*(value_of(argument, lookup) for argument in node.arguments))
