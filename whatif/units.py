"""Units of measure: parsing and formatting of quantities; inside the program all values are float64 in base units.

Base units are s, B, flop, J, gCO2e and the currencies; every other unit is a product of powers of them. `op` is the
same as `flop`, one operation; `cell` and `message` are counts without a dimension. Each currency is a separate
dimension, as currencies are not converted.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

CURRENCIES = ("EUR", "USD", "GBP", "CHF", "JPY", "CNY", "CAD", "AUD", "KRW", "INR")
BASES = ("s", "B", "flop", "J", "gCO2e", *CURRENCIES)
MAXIMUM_LENGTH = 200
YEAR = 31_557_600.0
"""Seconds in 365.25 days."""

DECIMAL_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
SMALL_PREFIXES = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9}
BINARY_PREFIXES = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}


class UnitError(ValueError):
    """An invalid quantity; the message states what is allowed and what was probably meant."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """Integer powers of `BASES`, without trailing zeros; supports `*`, `/` and `**`."""

    powers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        count = max((at for at, power in enumerate(self.powers, start=1) if power), default=0)
        object.__setattr__(self, "powers", self.powers[:count])

    def __mul__(self, other: Dimension) -> Dimension:
        return Dimension(tuple(a + b for a, b in zip_longest(self.powers, other.powers, fillvalue=0)))

    def __truediv__(self, other: Dimension) -> Dimension:
        return self * other**-1

    def __pow__(self, exponent: int) -> Dimension:
        return Dimension(tuple(a * exponent for a in self.powers))

    def __str__(self) -> str:
        return _NAMES.get(self) or _spell(self.powers)


def _spell(powers: Iterable[int]) -> str:
    """Name of a dimension from its powers: `B^2/s` for (−1, 2)."""
    named = [(base, power) for base, power in zip(BASES, powers, strict=False) if power]
    above = [base if power == 1 else f"{base}^{power}" for base, power in named if power > 0]
    below = [base if power == -1 else f"{base}^{-power}" for base, power in named if power < 0]
    return "/".join(["*".join(above) or "1", *below])


ONE = Dimension()
SECOND, BYTE, FLOP, JOULE, CARBON, *_MONEY = (Dimension((*(0,) * place, 1)) for place in range(len(BASES)))
MONEY = dict(zip(CURRENCIES, _MONEY, strict=True))
PER_SECOND = SECOND**-1
BYTE_PER_SECOND = BYTE / SECOND
FLOP_PER_SECOND = FLOP / SECOND
FLOP_PER_BYTE = FLOP / BYTE
WATT = JOULE / SECOND
MICROSECOND = 1e-6
NANOSECOND = 1e-9
"""Seconds of a microsecond and of a nanosecond."""
DAY = 86_400.0
"""Seconds of a day."""
CARBON_PER_JOULE = CARBON / JOULE

_NAMES = {ONE: "1", WATT: "W", PER_SECOND: "1/s"}

# symbol: (dimension, size in base units, allowed prefixes)
_LARGE = DECIMAL_PREFIXES
_ALL = DECIMAL_PREFIXES | SMALL_PREFIXES
_BINARY = DECIMAL_PREFIXES | BINARY_PREFIXES
SYMBOLS: dict[str, tuple[Dimension, float, dict[str, float]]] = {
    "1": (ONE, 1.0, {"": 1.0}),
    "cell": (ONE, 1.0, _LARGE),
    "message": (ONE, 1.0, _LARGE),
    "s": (SECOND, 1.0, {"": 1.0} | SMALL_PREFIXES),
    "min": (SECOND, 60.0, {"": 1.0}),
    "h": (SECOND, 3600.0, {"": 1.0}),
    **dict.fromkeys(("day", "days"), (SECOND, 86_400.0, {"": 1.0})),
    **dict.fromkeys(("year", "years"), (SECOND, YEAR, {"": 1.0})),
    "B": (BYTE, 1.0, _BINARY),
    "bit": (BYTE, 0.125, _BINARY),
    "flop": (FLOP, 1.0, _LARGE),
    "op": (FLOP, 1.0, _LARGE),
    "J": (JOULE, 1.0, _ALL),
    "Wh": (JOULE, 3600.0, _LARGE),
    "W": (WATT, 1.0, _ALL),
    "Hz": (PER_SECOND, 1.0, _LARGE),
    "gCO2e": (CARBON, 1.0, {"": 1.0, "k": 1e3}),
    "tCO2e": (CARBON, 1e6, {"": 1.0, "k": 1e3, "M": 1e6}),
    **{currency: (dimension, 1.0, {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}) for currency, dimension in MONEY.items()},
}

UNITS: dict[str, tuple[Dimension, float]] = {
    prefix + symbol: (dimension, size * factor)
    for symbol, (dimension, size, prefixes) in SYMBOLS.items()
    for prefix, factor in prefixes.items()
}

_MEANT = {
    "Gb": "Gbit or GB", "Mb": "Mbit or MB", "kb": "kbit or kB", "Tb": "Tbit or TB", "b": "bit or B",
    "K": "k", "KB": "kB or KiB", "sec": "s", "byte": "B", "bytes": "B", "bits": "bit", "mB": "MB",
    "second": "s", "seconds": "s", "minute": "min", "minutes": "min", "hour": "h", "hours": "h",
    "micros": "us", "microsecond": "us", "microseconds": "us", "msec": "ms", "usec": "us", "nsec": "ns",
    "millisecond": "ms", "milliseconds": "ms", "nanosecond": "ns", "nanoseconds": "ns", "joule": "J", "joules": "J",
    "watt": "W", "watts": "W",
    **dict.fromkeys(("week", "weeks"), "days"), **dict.fromkeys(("month", "months"), "days or years"),
    "euro": "EUR", "euros": "EUR", "dollar": "USD", "dollars": "USD",
    "y": "years", "yr": "years", "yrs": "years", "a": "years", "GBs": "GB/s", "MBs": "MB/s", "TBs": "TB/s",
    "Gbps": "Gbit/s", "Mbps": "Mbit/s", "GBps": "GB/s", "MBps": "MB/s", "FLOP": "flop", "flops": "flop/s",
    "FLOPS": "flop/s", "Gflops": "Gflop/s", "Tflops": "Tflop/s", "GFLOPS": "Gflop/s", "TFLOPS": "Tflop/s",
    "Gb/s": "Gbit/s or GB/s", "ops": "op", "MF": "Mflop", "GF": "Gflop", "TF": "Tflop", "PF": "Pflop", "EF": "Eflop",
    "$": "USD", "k$": "kUSD", "M$": "MUSD", "€": "EUR", "k€": "kEUR", "M€": "MEUR",
}  # fmt: skip

UNSIGNED = r"(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
NUMBER = rf"[+-]?{UNSIGNED}"
UNIT_WORD = r"[A-Za-zµμ]+(?:2e)?"
_QUANTITY = re.compile(rf"\s*({NUMBER})\s*(.*?)\s*", re.DOTALL)
_POWER = re.compile(rf"(1|{UNIT_WORD})(?:\^(-?\d))?")


_COMMA = re.compile(r"\s*[-+]?\d[\d.]*,\d")
"""Beginning of a number with a decimal comma or with marked thousands."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Number in base units with its dimension."""

    value: float
    dimension: Dimension


@lru_cache(maxsize=4096)
def parse_unit(text: str) -> tuple[Dimension, float]:
    """Dimension, and size in base units, of a unit such as `GB/s`, `ns/B` or `flop/B`; raise `UnitError`."""
    dimension, size = ONE, 1.0
    for index, factor in enumerate(re.split(r"\s*([*/])\s*", text)):
        if index % 2:
            sign = 1 if factor == "*" else -1
            continue
        sign = 1 if index == 0 else sign
        match = _POWER.fullmatch(factor)
        if match is None or match[1] not in UNITS:
            part = "" if factor == text else f"`{text}`: "
            raise UnitError(f"{part}{_unknown_unit(factor, text)}")
        unit, unit_size = UNITS[match[1]]
        power = sign * int(match[2] or 1)
        dimension, size = dimension * unit**power, size * unit_size**power
    if not 0 < size < math.inf:
        raise UnitError(f"`{text}` is too large or too small for a 64-bit float")
    return dimension, size


def _unknown_unit(word: str, text: str) -> str:
    if not word:
        meant = f"; did you mean `1{text}`?" if text.startswith("/") else ""
        return f"missing unit next to `/` or `*`{meant}"
    if (money := word.removeprefix("million ")) != word:
        return f"unknown unit `{word}`; did you mean M{money}?"
    if word not in _MEANT and (same := _in_other_case(word) or _with_prefix(word)):
        return f"unknown unit `{word}`; did you mean {' or '.join(f'`{_in_case(text, word, unit)}`' for unit in same)}?"
    meant = _meant(word) or " or ".join(difflib.get_close_matches(word, UNITS, n=2, cutoff=0.5))
    return f"unknown unit `{word}`" + (f"; did you mean {meant}?" if meant else "")


def _meant(word: str) -> str:
    """Units that a word means, in any case if it is not known in its own; empty without any."""
    folded = (meant for other, meant in _MEANT.items() if other.casefold() == word.casefold())
    return _MEANT.get(word) or " or ".join(dict.fromkeys(folded))


def _in_other_case(word: str) -> list[str]:
    """Units that differ from a word by upper and lower case only; `b` is a bit or a byte."""
    folded = word.casefold()
    return [unit for unit in UNITS if folded in (unit.casefold(), re.sub("bit$", "b", unit.casefold()))]


def _with_prefix(word: str) -> list[str]:
    """Units that a prefix and the long name of a unit mean, such as `GB` for `Gbytes`."""
    unit = f"{word[:1]}{_MEANT.get(word[1:].casefold())}".casefold()
    return [known for known in UNITS if known.casefold() == unit]


def _in_case(text: str, word: str, unit: str) -> str:
    """Text of a unit with `unit` in place of one of its words, and other unknown words in the case of a known unit."""

    def known(found: re.Match[str]) -> str:
        if found[0] == word:
            return unit
        return found[0] if found[0] in UNITS else next(iter(_in_other_case(found[0])), found[0])

    return re.sub(UNIT_WORD, known, text)


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """Quantity of a text: `"12.5 GB/s"` is 1.25e10 B/s; a text without a unit is a plain number. Raise `UnitError`."""
    match = _QUANTITY.fullmatch(text) if len(text) <= MAXIMUM_LENGTH else None
    if _COMMA.match(text):
        raise UnitError(f"`{text[:60]}`: no comma in numbers: the decimal mark is a point, and thousands have no mark")
    if match is None:
        raise UnitError(f"`{text[:60]}` is not a number with a unit, such as `12.5 GB/s` or `3 us`")
    dimension, size = parse_unit(match[2]) if match[2] else (ONE, 1.0)
    # Decimal powers of ten are exact in text but not as factors: `1.24 us` must be the float 1.24e-6.
    value = _scaled(match[1], size)
    if not math.isfinite(value):
        raise UnitError(f"`{text[:60]}` is too large for a 64-bit float")
    if not value and re.match(r"[-+]?[0_.]*[1-9]", match[1]):
        raise UnitError(f"`{text[:60]}` is too small for a 64-bit float; write 0")
    return Quantity(value, dimension)


def _scaled(number: str, size: float) -> float:
    exponent = round(math.log10(size))
    if exponent and size == float(f"1e{exponent}"):
        mantissa, _, power = number.lower().partition("e")
        return float(f"{mantissa}e{int(power or 0) + exponent}")
    return float(number) * size


# Customary units instead of base units: (smallest value, name, size).
_CUSTOMARY = {
    SECOND: (YEAR, "year", YEAR),
    JOULE: (3.6e6, "Wh", 3600.0),
    CARBON: (1e6, "tCO2e", 1e6),
    CARBON_PER_JOULE: (0.0, "gCO2e/kWh", 1 / 3.6e6),
    **{money / SECOND: (0.0, f"{name}/h", 1 / 3600) for name, money in MONEY.items()},
    **{money / JOULE: (0.0, f"{name}/kWh", 1 / 3.6e6) for name, money in MONEY.items()},
}

_PREFIXES = (
    (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""),
    (1e-3, "m"), (1e-6, "u"), (1e-9, "n"),
)  # fmt: skip


def parse_share(text: str) -> float | None:
    """Share of a text such as `1 %` or `0.01`, at least 0; None for any other text."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100.0 if percent else 1.0)
    except ValueError:
        return None
    return share if not rest and 0 <= share < math.inf else None


def in_percent(share: float) -> str:
    """Share in per cent with all its digits: `50%`, `99.99%`."""
    return f"{100 * share:g}%"


def format_quantity(value: float, dimension: Dimension, digits: int = 4, least: float = math.inf) -> str:
    """Text of a value in base units with a customary unit and prefix: `12.5 GB/s` for 1.25e10 B/s.

    `least` is the smallest of the values next to it, whose unit, such as J or Wh, it then has too.
    """
    if not math.isfinite(value):
        return str(value)
    return _written(value, dimension, digits, _unit(value, dimension, least))


def exact_quantity(value: float, dimension: Dimension) -> str:
    """Text that is read back as the same value, of few digits: with a prefix, unless scaling by it rounds."""
    if not math.isfinite(value):
        return str(value)
    texts = (format_quantity(value, dimension, digits) for digits in (15, 16, 17))
    return next((text for text in texts if parse_quantity(text).value == value), f"{value!r} {dimension}")


def _written(value: float, dimension: Dimension, digits: int, unit: tuple[float, str]) -> str:
    size, name = unit
    number = f"{value / size:.{digits}g}"
    if "e+" in number and abs(value / size) < 1e15:
        number = f"{value / size:.0f}"
    return number if dimension == ONE else f"{number} {name}"


def format_compared(values: Sequence[float], dimension: Dimension, digits: int = 4) -> list[str]:
    """Texts of finite values in the unit of the last one, with enough digits to distinguish them."""
    unit = _unit(values[-1], dimension)
    for count in range(digits, 16):
        texts = [_written(value, dimension, count, unit) for value in values]
        if len(set(texts)) == len(set(values)):
            break
    return texts


def counted(number: int, noun: str) -> str:
    """Number with its noun in the singular or plural: `1 value`, `2 values`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def crossed(extents: Iterable[int]) -> str:
    """Extents of a grid or an array: `4 x 8 x 2`."""
    return " x ".join(map(str, extents))


def _unit(value: float, dimension: Dimension, least: float = math.inf) -> tuple[float, str]:
    """Size in base units and name of the customary unit of a value, or of the smallest one next to it, with prefix."""
    size = abs(value)
    if dimension == BYTE and (binary := _binary_prefix(size)):
        return binary[0], f"{binary[1]}{dimension}"
    name, scale = customary_unit(min(size, least), dimension)
    if size == 0:
        return scale, name
    known = _prefixes(name)
    factor, prefix = next((item for item in known if size >= item[0] * scale * (1 - 1e-12)), known[-1])
    return factor * scale, prefix + name


def customary_unit(value: float, dimension: Dimension) -> tuple[str, float]:
    """Name without prefix, and size, of the customary unit of a value, such as Wh or EUR/kWh."""
    least, name, size = _CUSTOMARY.get(dimension, (math.inf, "", 1.0))
    return (name, size) if abs(value) >= least else (str(dimension), 1.0)


@lru_cache(maxsize=256)
def _prefixes(name: str) -> tuple[tuple[float, str], ...]:
    """Prefixes, largest first, that the first unit of a name allows (`s` does not allow `k`)."""
    first = re.fullmatch(rf"({UNIT_WORD})(?:[*/].*)?", name)
    allowed = SYMBOLS[first[1]][2] if first else {"": 1.0}
    return tuple((size, prefix) for size, prefix in _PREFIXES if prefix in allowed)


def _binary_prefix(size: float) -> tuple[float, str] | None:
    """Binary prefix that makes a size a small whole number, else None: 65536 B is `64 KiB`, but 1e10 B has none."""
    fitting = ((factor, name) for name, factor in reversed(BINARY_PREFIXES.items()) if size and size % factor == 0)
    return next(((factor, name) for factor, name in fitting if size / factor < 10_000), None)
