"""Uncertain values: distributions in place of a number, `12.5 GB/s +- 0.3 GB/s` or `uniform(1 us, 2 us)`.

| written | distribution of the value | centre |
|---|---|---|
| `V +- E`, `V +- 2 %`, `normal(V, E)` | normal: mean V, standard deviation E | V |
| `lognormal(V, F)` | log-normal: median V, geometric standard deviation F, at least 1 | V |
| `uniform(A, B)` | uniform from A to B | the middle |
| `triangular(A, M, B)` | from A to B, most likely M | M |
| `empirical(X, X, ..)` | one of these values, equally likely | their median |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from whatif.errors import did_you_mean
from whatif.units import NUMBER, ONE, Quantity, UnitError, parse_quantity, parse_share

Kind = Literal["normal", "lognormal", "uniform", "triangular", "empirical"]
MOST_VALUES: Final = 1000
_CALL: Final = re.compile(rf"\s*({'|'.join(get_args(Kind))})\s*\((.*)\)\s*", re.DOTALL)
_ERROR: Final = re.compile(r"\s*+(.+?)(?:\+-|±|\+/-)\s*+(.+)", re.DOTALL)
_COUNTS: Final = {"normal": 2, "lognormal": 2, "uniform": 2, "triangular": 3}


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of a value: its kind, its numbers in base units, and its text in the file."""

    kind: Kind
    numbers: tuple[float, ...]
    """All in base units, except the geometric standard deviation of a log-normal, which is a factor."""
    text: str = ""

    @property
    def centre(self) -> float:
        """Value to use without sampling."""
        if self.kind == "uniform":
            return sum(self.numbers) / 2
        if self.kind == "empirical":
            return sorted(self.numbers)[(len(self.numbers) - 1) // 2]
        return self.numbers[1 if self.kind == "triangular" else 0]

    @property
    def ends(self) -> tuple[float, ...]:
        """Smallest and largest value; empty for normal and log-normal distributions, which are unbounded."""
        return () if self.kind in ("normal", "lognormal") else (min(self.numbers), max(self.numbers))

    def scaled(self, factor: float, write: Callable[[float], str]) -> str:
        """Text of the distribution of a factor times the value; `write` writes a number with its unit."""
        texts = [write(number * factor) for number in self.numbers]
        if self.kind == "normal":
            return " +- ".join(texts)
        if self.kind == "lognormal":
            texts[1] = f"{self.numbers[1]:g}"
        return f"{self.kind}({', '.join(texts)})"


class Uncertain(float):
    """A float with a distribution, whose centre it is."""

    distribution: Distribution

    def __new__(cls, value: float, distribution: Distribution) -> Uncertain:
        """Number with its distribution."""
        number = super().__new__(cls, value)
        number.distribution = distribution
        return number

    def __getnewargs__(self) -> Any:
        return float(self), self.distribution


def is_distribution(text: str) -> bool:
    """Whether a text has the form of a distribution."""
    return bool(_CALL.fullmatch(text) or _ERROR.fullmatch(text))


def unknown_distribution(text: str) -> str:
    """Error message for a text like `name(..)` with an unknown name; empty for any other text."""
    word, kinds = re.match(r"\s*(\w+)\s*\(", text), get_args(Kind)
    if word is None:
        return ""
    return f"`{word[1]}`: no such distribution{did_you_mean(word[1], kinds) or '; known: ' + ', '.join(kinds)}"


def parse_distribution(text: str, quantity: Callable[[str], Quantity]) -> tuple[Distribution, Quantity]:
    """Distribution of a text and its centre; `quantity` parses each number.

    Raise ValueError for an invalid distribution, such as one with a negative deviation.
    """
    match = _CALL.fullmatch(text)
    if match is None:
        value, error = _ERROR.fullmatch(text).groups()  # type: ignore[union-attr]
        kind, words = "normal", [value.strip(), error.strip()]
    else:
        kind, words = match[1], [word.strip() for word in match[2].split(",")]
    if len(words) != _COUNTS.get(kind, len(words)) or not all(words) or len(words) > MOST_VALUES:
        wanted = _COUNTS.get(kind, f"1 to {MOST_VALUES}")
        raise ValueError(f"`{text[:80]}`: {kind}(..) has {wanted} numbers, separated by commas")
    first, numbers = _READERS.get(kind, _read_all)(words, quantity)
    _refuse(kind, numbers, text)
    distribution = Distribution(kind, tuple(numbers), text.strip())  # type: ignore[arg-type]
    return distribution, Quantity(distribution.centre, first.dimension)


def _read_all(words: Sequence[str], quantity: Callable[[str], Quantity]) -> tuple[Quantity, list[float]]:
    quantities = [quantity(word) for word in words]
    other = next((item for item in quantities if item.dimension != quantities[0].dimension), None)
    if other is not None:
        raise ValueError(f"`{', '.join(words)}`: {quantities[0].dimension} and {other.dimension} in one distribution")
    return quantities[0], sorted(item.value for item in quantities)


def _read_ordered(words: Sequence[str], quantity: Callable[[str], Quantity]) -> tuple[Quantity, list[float]]:
    """Sorted numbers of a distribution; as written they must ascend (times per byte are then descending bandwidths)."""
    written = [_plain(word).value for word in words]
    if written != sorted(written):
        raise ValueError(f"`{', '.join(words)}`: write the numbers from the least to the largest")
    return _read_all(words, quantity)


def _read_normal(words: Sequence[str], quantity: Callable[[str], Quantity]) -> tuple[Quantity, list[float]]:
    """Mean and standard deviation; the deviation may be a percentage, and `12.5 +- 0.3 GB/s` has one unit for both."""
    value, error = words
    share = parse_share(error) if "%" in error else None
    if share is not None:
        centre = quantity(value)
        return centre, [centre.value, share * abs(centre.value)]
    raw, deviation = _plain(value), _plain(error)
    if raw.dimension == ONE != deviation.dimension:
        value = f"{value} {re.sub(NUMBER, '', error, count=1)}"
        raw = _plain(value)
    if deviation.dimension == ONE != raw.dimension:
        unit = re.sub(NUMBER, "", value, count=1).strip()
        raise ValueError(f"`{value} +- {error}`: write `+- {error} {unit}`, or `+- {error} %`")
    if raw.dimension != deviation.dimension:
        raise ValueError(f"`{value} +- {error}`: {raw.dimension} and {deviation.dimension} in one distribution")
    centre = quantity(value)
    # A bandwidth may be written as time per byte: the relative deviation is then the same.
    size = centre.value / raw.value if raw.value else 1.0
    return centre, [centre.value, deviation.value * abs(size)]


def _read_lognormal(words: Sequence[str], quantity: Callable[[str], Quantity]) -> tuple[Quantity, list[float]]:
    median, factor = quantity(words[0]), _plain(words[1])
    if factor.dimension != ONE:
        raise ValueError(f"`{words[1]}`: a geometric standard deviation is a factor without a unit, such as 1.1")
    return median, [median.value, factor.value]


_READERS: Final[dict[str, Callable[..., tuple[Quantity, list[float]]]]] = {
    "normal": _read_normal,
    "lognormal": _read_lognormal,
    "uniform": _read_ordered,
    "triangular": _read_ordered,
}


def _plain(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except UnitError as error:
        raise ValueError(str(error)) from None


def _refuse(kind: str, numbers: Sequence[float], text: str) -> None:
    """Raise ValueError for numbers that no distribution of this kind can have."""
    if kind == "normal" and numbers[1] < 0:
        raise ValueError(f"`{text}`: a standard deviation must not be negative")
    if kind == "lognormal" and not (numbers[0] > 0 and numbers[1] >= 1):
        raise ValueError(f"`{text}`: a log-normal value is greater than 0, its geometric standard deviation at least 1")
    if kind in ("uniform", "triangular") and not numbers[0] < numbers[-1]:
        raise ValueError(f"`{text}`: the numbers must not all be equal")
