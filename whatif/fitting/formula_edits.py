"""Formulas changed as text, one term at a time, so that the result is always a valid formula.

Nothing here works a formula out; `parse_formula` does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from whatif.fitting.formula import MOST_VARIABLES
from whatif.table import Table
from whatif.units import SECOND

_LOGARITHM: Final = re.compile(r"\s*log\(\s*(\w+)\s*\)\s*")
_POLYNOMIAL: Final = re.compile(r"(poly\(\w+,\d\))\d+")
_SINGULAR: Final = 1e-6
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def compact(term: str) -> str:
    """A term without spaces: `I(x ** 2)` and `I(x**2)` are the same."""
    return "".join(term.split())


def without_term(formula: str, term: str) -> str:
    """The formula without a term that it has, by its name as a design has it."""
    left, pieces = _taken_apart(formula)
    name = _whole(term)
    wanted = _factors(name)
    if ("-", name) in [(sign, compact(piece)) for sign, piece in pieces] or (name == "1" and ("+", "0") in pieces):
        return formula
    kept = [(sign, piece) for sign, piece in pieces if sign == "-" or _factors(piece) != wanted]
    if name == "1" or not all(sign == "-" or _is_plain(piece) for sign, piece in kept):
        kept.append(("-", name))
    return _joined(left, kept) if kept != pieces else formula


def with_term(formula: str, term: str) -> str:
    """The formula with one more term; one that had been taken out is let in again."""
    left, pieces = _taken_apart(formula)
    name = _whole(term)
    wanted = _factors(name)
    if any(sign == "+" and _factors(piece) == wanted for sign, piece in pieces):
        return formula
    kept = [(sign, piece) for sign, piece in pieces if sign == "+" or _factors(piece) != wanted]
    # A product `a*b` includes all terms of its factors.
    products = (frozenset(_outside(compact(piece), "*")) for sign, piece in kept if sign == "+")
    implied = name == "1" or any(wanted <= factors for factors in products)
    if len(kept) == len(pieces) or not implied:
        kept = [*(item for item in kept if item != ("+", "1")), ("+", name)]
    return _joined(left, kept)


def with_other_link(formula: str) -> str:
    """The formula of the response itself in place of that of its logarithm, or the reverse."""
    left, _, right = formula.partition("~")
    match = _LOGARITHM.fullmatch(left)
    return f"{match[1] if match else f'log({left.strip()})'} ~ {right.strip()}"


def _taken_apart(formula: str) -> tuple[str, list[tuple[str, str]]]:
    """Left side of `~`, and the parts of the right side with their signs."""
    left, _, right = formula.partition("~")
    return left.strip(), [(sign, piece) for sign, piece in _signed(right) if piece]


def _signed(text: str) -> Iterator[tuple[str, str]]:
    sign, start, depth = "+", 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter in "+-" and not depth:
            yield sign, text[start:at].strip()
            sign, start = letter, at + 1
    yield sign, text[start:].strip()


def _joined(left: str, pieces: Sequence[tuple[str, str]]) -> str:
    if not any(sign == "+" for sign, _ in pieces):
        pieces = [("+", "1"), *pieces] if ("-", "1") not in pieces else [("+", "0")]
    ordered = [*(item for item in pieces if item[0] == "+"), *(item for item in pieces if item[0] == "-")]
    return f"{left} ~ {' '.join(f'{sign} {piece}' for sign, piece in ordered).removeprefix('+ ')}"


def _whole(term: str) -> str:
    """Text of a term in a formula; a polynomial includes all its powers."""
    return "1" if term == "Intercept" else _POLYNOMIAL.sub(r"\1", compact(term))


def _factors(term: str) -> frozenset[str]:
    return frozenset(_outside(compact(term), ":"))


def _is_plain(piece: str) -> bool:
    """Whether a part is one term, and no shorthand for several."""
    return not piece.startswith("(") and len(list(_outside(compact(piece), "*/^"))) == 1


def _outside(text: str, separators: str) -> Iterator[str]:
    """Parts between separators outside brackets."""
    start, depth = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter in separators and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def first_formula(runs: Table) -> str:
    """A formula to begin with: the first time, or the last number, by all else that varies and is no sum of others.

    Empty if there is no number that varies.
    """
    varying = [name for name, column in runs.columns.items() if column.dimension is not None and _NAME.fullmatch(name)
               and np.nanmax(column.values, initial=-np.inf) > np.nanmin(column.values, initial=np.inf)]  # fmt: skip
    if not varying:
        return ""
    response = next((name for name in varying if runs.columns[name].dimension == SECOND), varying[-1])
    chosen: list[str] = []
    basis = np.ones((len(runs), 1)) / np.sqrt(len(runs))
    for name in varying:
        values = np.nan_to_num(runs.columns[name].values)
        rest = values - basis @ (basis.T @ values)
        more = len(chosen) + 3 < len(runs) and len(chosen) < MOST_VARIABLES
        if name != response and more and np.linalg.norm(rest) > _SINGULAR * np.linalg.norm(values):
            chosen.append(name)
            basis = np.column_stack((basis, rest / np.linalg.norm(rest)))
    return f"{response} ~ {' + '.join(chosen) or '1'}"
