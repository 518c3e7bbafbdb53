"""Expression parameters as term functions."""

from __future__ import annotations

from dataclasses import dataclass

from whatif.models.quantities import Citation, FloatArray
from whatif.schema.expressions import Expression, value_of


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
        named = dict(zip(self.expression.names(), values, strict=True))
        result: FloatArray = value_of(self.expression.tree, named.__getitem__)
        return result
