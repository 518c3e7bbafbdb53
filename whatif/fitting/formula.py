"""Formulas of regressions, as R writes them: `time ~ (x1 + I(x1**2)) * x2`, `log(time) ~ log(nodes)`.

A formula is data: its algebra (`+ - * : / ** ()`) is worked out by formulaic, which evaluates nothing, and what each
factor is (`x1`, `I(x1**2)`, `log(x1)`, `poly(x1, 2)`) is read by the grammar of expressions in scenario files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from math import prod
from typing import Any, Final

import numpy as np

from whatif.core.expression_terms import ExpressionFunction
from whatif.errors import UsageError, did_you_mean
from whatif.models.quantities import FloatArray
from whatif.schema.expressions import FUNCTIONS, Expression, ExpressionError, parse_expression
from whatif.units import Quantity

MOST_VARIABLES: Final = 12
"""Their interactions are 4,096 terms."""
MOST_TERMS: Final = 200
MOST_LENGTH: Final = 1000
LINKS: Final = {"": "identity", "log": "log"}
_TOKENS: Final = re.compile(r"(?:[A-Za-z_]\w*+|\d++(?:\.\d*+)?+(?:[eE][+-]?\d++)?+|[-+*/:^(),~\s])*+")
_NAME: Final = re.compile(rf"(?<![\w.])(?!(?:I|poly|{'|'.join(FUNCTIONS)})\s*\()[A-Za-z_]\w*")
"""Name of a column: not the exponent of `1e-3`, nor a function that is called."""
_RESPONSE: Final = re.compile(r"\s*(?:(\w+)\(\s*)?([A-Za-z_]\w*)\s*\)?\s*")
_QUOTIENT: Final = re.compile(r"(?<![\w.])(?:[\d.]+\s*/\s*[A-Za-z_]\w*|[A-Za-z_]\w*\s*/\s*[\d.]+)")
_CALL: Final = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_POLYNOMIAL: Final = re.compile(r"([A-Za-z_]\w*)\s*,\s*([1-5])")
_RICH: Final = re.compile(r"\x1b\[[0-9;]*m|[⧛⧚]")


@dataclass(frozen=True)
class DesignTerm:
    """One column of the design: its name as R prints it, an identifier, and the expression it is computed by."""

    name: str
    key: str
    text: str

    @cached_property
    def expression(self) -> Expression:
        """The expression, read."""
        return parse_expression(self.text)


@dataclass(frozen=True)
class Formula:
    """A formula with its terms worked out for some runs."""

    text: str
    response: str
    link: str
    """identity, or log: what the terms give is the natural logarithm of the response."""
    terms: tuple[DesignTerm, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that some term reads, in order of appearance."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.expression.names()))

    def design(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """The terms at some points, of shape (points, terms)."""
        count = max((len(columns[name]) for name in self.variables), default=len(next(iter(columns.values()), ())))
        with np.errstate(all="ignore"):
            parts = [ExpressionFunction(term.expression)(*map(columns.__getitem__, term.expression.names()))
                     for term in self.terms]  # fmt: skip
        return np.stack([np.broadcast_to(part, count) for part in parts], axis=-1)


def parse_formula(text: str, columns: Mapping[str, FloatArray | None]) -> Formula:
    """Read a formula for runs with these columns, None for texts; raise `UsageError` for what it may not hold.

    `poly(x, k)` is worked out for the values of its column, as orthogonal polynomials (W. J. Kennedy and J. E. Gentle,
    Statistical Computing, 1980, pp. 343 to 344; R's `poly`): each is a polynomial in x and is written as one.
    """
    if len(text) > MOST_LENGTH or not _TOKENS.fullmatch(text):
        at = text[_TOKENS.match(text).end() :][:20]  # type: ignore[union-attr]
        raise UsageError(
            f"`{text[:80]}`: a formula holds no `{at}`" if at else f"a formula of {len(text):,} characters"
        )
    left, tilde, right = text.partition("~")
    match = _RESPONSE.fullmatch(left)
    if not tilde or "~" in right or match is None or (match[1] or "") not in LINKS:
        raise UsageError(f"`{text}`: expected `RESPONSE ~ TERMS` or `log(RESPONSE) ~ TERMS`, such as `time ~ x1 * x2`")
    names = set(_NAME.findall(text))
    if len(names - {match[2]}) > MOST_VARIABLES:
        raise UsageError(f"`{text}` explains by {len(names - {match[2]})} columns: at most {MOST_VARIABLES}")
    _check_names(text, sorted(names), columns)
    every = (term for factors in _factors(text) for term in _terms(factors, columns))
    terms = list(islice(every, MOST_TERMS + 1))
    if not terms:
        raise UsageError(f"`{text}` has no terms")
    if len(terms) > MOST_TERMS:
        raise UsageError(f"`{text}` has more than {MOST_TERMS} terms")
    return Formula(text.strip(), match[2], LINKS[match[1] or ""], tuple(_distinct(terms)))


def _check_names(text: str, names: Sequence[str], columns: Mapping[str, FloatArray | None]) -> None:
    bare = _without_calls(text)
    if prod(int(power) for power in re.findall(r"(?:\*\*|\^)\s*(\d+)", bare)) > MOST_VARIABLES:
        raise UsageError(f"`{text}`: powers of sums are products of all their terms; at most {MOST_VARIABLES} together")
    if quotient := _QUOTIENT.search(bare):
        raise UsageError(f"`{quotient[0]}` in a formula nests terms: write `I({quotient[0]})` for the quotient")
    if "Intercept" in names:
        raise UsageError(
            "column name `Intercept` is reserved for the constant term; rename it with --columns NAME=Intercept"
        )
    for name in names:
        if re.search(rf"\b{name}\s*\(", text):
            known = ["I", "poly", *FUNCTIONS]
            raise UsageError(f"`{name}(..)`: no such function; allowed: {', '.join(known)}{did_you_mean(name, known)}")
        if name not in columns:
            hint = did_you_mean(name, columns) or f"; the columns are {', '.join(columns)}"
            raise UsageError(f"`{name}`: the runs have no such column{hint}")
        if columns[name] is None:
            raise UsageError(
                f"`{name}` holds texts: correct cells that should be numbers, or keep the runs of one text with "
                f"--where {name}=TEXT"
            )
        if re.search(rf"\b{name}\s*(\*\*|\^)", bare):
            raise UsageError(f"`{name}**` in a formula is `{name}` itself: write `I({name}**2)` for its square")


def _without_calls(text: str) -> str:
    """Formula without the arguments of calls such as `I(..)`."""
    kept, depth = [], 0
    for at, letter in enumerate(text):
        inside = depth > 0
        depth += letter == "(" and (inside or text[at - 1 : at].isalnum())
        depth -= letter == ")" and inside
        kept.append("" if inside else letter)
    return "".join(kept)


def _factors(text: str) -> Iterator[list[str]]:
    """The factors of each term, as texts."""
    import formulaic

    try:
        parsed: Any = formulaic.Formula(text)
        terms = list(parsed.rhs)
    except Exception as error:  # its parser raises errors of many kinds, StopIteration among them
        reason = " ".join(_RICH.sub("", str(error)).split())
        raise UsageError(f"`{text}`: not a formula such as `time ~ x1 * x2`{reason and f': {reason}'}") from None
    for term in terms:
        yield [factor.expr for factor in term.factors]


def _terms(factors: Sequence[str], columns: Mapping[str, FloatArray | None]) -> Iterator[DesignTerm]:
    """The columns of one term: several where a factor is a polynomial."""
    options = [list(_columns_of(factor, columns)) for factor in factors]
    for chosen in product(*options):
        names, texts = zip(*chosen, strict=True)
        joined = texts[0] if len(texts) == 1 else " * ".join(map(_enclosed, texts))
        name = ":".join(names)
        key = re.sub(r"\W+", "_", re.sub(r"\bI\((.*?)\)", r"\1", name)).strip("_")
        try:
            parse_expression(joined)
        except ExpressionError as error:
            raise UsageError(f"`{name}`: {error}") from None
        yield DesignTerm("Intercept" if joined == "1" else name, "Intercept" if joined == "1" else key, joined)


def _columns_of(factor: str, columns: Mapping[str, FloatArray | None]) -> Iterator[tuple[str, str]]:
    """The names and expressions of one factor."""
    call = _CALL.fullmatch(factor)
    if call and call[1] == "poly":
        match = _POLYNOMIAL.fullmatch(call[2])
        values = columns.get(match[1]) if match else None
        if match is None or values is None:
            raise UsageError(f"`{factor}`: expected `poly(COLUMN, DEGREE)` with a degree from 1 to 5")
        yield from _polynomials(match[1], int(match[2]), values)
        return
    text = call[2] if call and call[1] == "I" else factor
    try:
        tree = parse_expression(text).tree
    except ExpressionError as error:
        raise UsageError(f"`{factor}`: {error}") from None
    if unknown := next((name for name in _NAME.findall(text) if name not in columns), ""):
        raise UsageError(f"`{factor}`: the runs have no column `{unknown}`")
    if isinstance(tree, Quantity) and tree.value != 1:
        raise UsageError(f"`{factor}`: a number is not a term; scale a column as `I({factor} * x)`")
    yield factor, text


def _polynomials(name: str, degree: int, values: FloatArray) -> Iterator[tuple[str, str]]:
    """Orthogonal polynomials of a column, of length 1 over the runs, by their three-term recurrence.

    Each is written by Horner's rule in the column less its mean over its deviation, both rounded: any would do.
    """
    from numpy.polynomial import polynomial

    known = values[np.isfinite(values)]
    if degree >= len(np.unique(known)):
        raise UsageError(f"`poly({name}, {degree})`: `{name}` has only {len(np.unique(known))} different values")
    centre, width = float(f"{known.mean():.4g}"), float(f"{known.std():.4g}")
    z = (known - centre) / width
    before: FloatArray = np.zeros(1)
    present: FloatArray = np.ones(1)
    size_before, size = 1.0, float(len(known))
    sign = "-" if centre >= 0 else "+"
    variable = f"({name} {sign} {abs(centre)!r}) / {width!r}"
    for order in range(1, degree + 1):
        at = polynomial.polyval(z, present)
        middle, rest = float((z * at**2).sum() / size), size / size_before if order > 1 else 0.0
        step = polynomial.polysub(polynomial.polymul((-middle, 1.0), present), rest * before)
        before, present, size_before = present, np.asarray(step, dtype=np.float64), size
        size = float((polynomial.polyval(z, present) ** 2).sum())
        yield f"poly({name}, {degree}){order}", _horner(variable, (present / np.sqrt(size)).tolist())


def _horner(variable: str, coefficients: Sequence[float]) -> str:
    text = f"{coefficients[-1]!r}"
    for number in coefficients[-2::-1]:
        text = f"{number!r} + {variable} * {_enclosed(text)}"
    return text


def _enclosed(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+(?:\([^()]*\))?", text) else f"({text})"


def _distinct(terms: Sequence[DesignTerm]) -> Iterator[DesignTerm]:
    """The terms with different keys."""
    seen: dict[str, int] = {}
    for term in terms:
        key = term.key if term.key[:1].isalpha() else f"term_{term.key}"
        seen[key] = seen.get(key, 0) + 1
        yield DesignTerm(term.name, key if seen[key] == 1 else f"{key}_{seen[key]}", term.text)
