"""The performance model normal form: `f(x) = c_0 + sum_k c_k prod_l x_l**i_kl * log2(x_l)**j_kl`.

Sources: A. Calotoiu, T. Hoefler, M. Poke, F. Wolf, "Using automated performance modeling to find scalability bugs in
complex codes", SC13, Eq. 1; A. Calotoiu et al., "Fast multi-parameter performance modeling", CLUSTER 2016, Eq. 2. The
exponents are the defaults of Extra-P 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Final

import numpy as np

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray

_POWERS: Final = {
    0: "1/4 1/3 1/2 2/3 3/4 4/5 1 5/4 4/3 3/2 5/3 7/4 2 9/4 7/3 5/2 8/3 11/4 3",
    1: "0 1/4 1/3 1/2 2/3 3/4 1 5/4 4/3 3/2 2 5/2 3",
    2: "0 1/4 1/3 1/2 2/3 3/4 1 3/2 2 5/2",
}
EXPONENTS: Final = tuple((Fraction(word), j) for j, words in _POWERS.items() for word in words.split())
"""The 42 pairs (i, j) of `x**i * log2(x)**j`."""
FALLING: Final = tuple((-i, j) for i, j in EXPONENTS if i and not j)
"""The 19 pairs with negative powers, those of Extra-P's option for strong scaling without its powers of 1/log2(x)."""


@dataclass(frozen=True, slots=True)
class Factor:
    """`name**power * log2(name)**logarithm`."""

    name: str
    power: Fraction
    logarithm: int = 0

    def __str__(self) -> str:
        """Text as an expression of a scenario or a formula."""
        whole = f"log2({self.name})"
        parts = [_raised(self.name, self.power)] if self.power else []
        parts += [_raised(whole, Fraction(self.logarithm))] if self.logarithm else []
        return " * ".join(parts)

    def __call__(self, x: FloatArray) -> FloatArray:
        """Values at x."""
        value: FloatArray = x ** float(self.power)
        return value * np.log2(x) ** self.logarithm if self.logarithm else value


Term = tuple[Factor, ...]
"""A product."""


def _raised(base: str, power: Fraction) -> str:
    if power == 1:
        return base
    # Thirds have no end as decimals.
    return f"{base}**({power})" if power.denominator % 3 == 0 else f"{base}**{float(power):g}"


def value_of(term: Term, variables: Mapping[str, FloatArray]) -> FloatArray:
    """Values of a product, of the shape of the variables."""
    return reduce(np.multiply, (factor(variables[factor.name]) for factor in term))


@dataclass(frozen=True, eq=False)
class Normal:
    """A model in the normal form, with how well it holds for the points it was fitted to."""

    factors: tuple[Term, ...]
    """The products, without their coefficients."""
    coefficients: FloatArray
    """Shape (1 + terms,), the constant first; they may be negative."""
    standard_errors: FloatArray
    """Standard errors, in the order of the coefficients."""
    term_f: FloatArray
    """Shape (terms,): F of each term against the same model without it."""
    f: float
    """F of all terms against the constant alone; NaN for the constant."""
    p: float
    smape: float
    """100 % mean of 2 |fitted - measured| / (|fitted| + |measured|)."""
    cross_validated: float
    """`smape` with each point predicted by the fit to all others; NaN if a point alone determines a coefficient."""
    r_squared: float
    freedom: int
    """Points less coefficients."""
    earned: bool
    """Whether every term earns its place: by its F, and by at least a little of some measured value."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The products as expressions, such as `x**0.5 * log2(x)`."""
        return tuple(" * ".join(map(str, term)) for term in self.factors)

    @property
    def text(self) -> str:
        """The model as an expression with its coefficients."""
        parts = [f"{float(self.coefficients[0])!r}"]
        parts += [f"{float(c)!r} * {term}" for c, term in zip(self.coefficients[1:], self.terms, strict=True)]
        return " + ".join(parts)

    def formula(self, response: str) -> str:
        """A formula of a regression, such as `time ~ x + I(x**2)`."""
        names = {factor.name for term in self.factors for factor in term}
        right = " + ".join(term if term in names else f"I({term})" for term in self.terms)
        return f"{response} ~ {right or '1'}"

    def __call__(self, variables: Mapping[str, FloatArray]) -> FloatArray:
        """Values at variables of one shape."""
        if not variables:
            raise UsageError("the model needs values of its variables")
        total = np.full(np.shape(next(iter(variables.values()))), float(self.coefficients[0]))
        for coefficient, term in zip(self.coefficients[1:], self.factors, strict=True):
            total += coefficient * value_of(term, variables)
        return total
