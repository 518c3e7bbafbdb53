"""Expression parameters as term functions: a tree of plain data, evaluated with numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from whatif.models.quantities import Citation, FloatArray
from whatif.schema.expressions import Expression, Name
from whatif.schema.expressions import Node as Tree
from whatif.units import Quantity

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


@dataclass(frozen=True)
class ExpressionFunction:
    """Function of an expression: its arguments are the values of `Expression.names`, in that order."""

    expression: Expression
    source: str = "expression in the file"

    @property
    def citation(self) -> Citation:
        """Citation: the expression is the equation."""
        return Citation(self.expression.text.removeprefix("=").strip(), self.source, verbatim=True)

    def __call__(self, *values: FloatArray) -> FloatArray:
        """Value of the expression, elementwise."""
        result: FloatArray = _value(self.expression.tree, dict(zip(self.expression.names(), values, strict=True)))
        return result


def _value(node: Tree, names: Mapping[str, FloatArray]) -> Any:
    if isinstance(node, Quantity):
        return np.float64(node.value)
    if isinstance(node, Name):
        return names[node.path]
    return _OPERATIONS[node.function](*(_value(argument, names) for argument in node.arguments))
