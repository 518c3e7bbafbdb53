"""Words of answers: places on axes, superlatives and shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from whatif.core.parameter_paths import NODE_COUNT, RANK_COUNT
from whatif.plotting.crosshair import value_text
from whatif.plotting.description import AxisDescription
from whatif.units import BYTE_PER_SECOND, FLOP_PER_SECOND, ONE, PER_SECOND, SECOND, Dimension

_NOUNS: Final = {
    "platform.node.gpu_count": ("GPU a node", "GPUs a node"),
    NODE_COUNT: ("node", "nodes"),
    RANK_COUNT: ("rank", "ranks"),
    "application.ranks_per_node": ("rank a node", "ranks a node"),
    "application.ranks_per_gpu": ("rank a GPU", "ranks a GPU"),
}
"""Counts that have a word of their own, in the singular and the plural."""
_RATES: Final = (PER_SECOND, BYTE_PER_SECOND, FLOP_PER_SECOND)
_MAIN: Final = ("iteration_time", "iteration", "time", "total_time", "total")


def larger_is_better(dimension: Dimension) -> bool:
    """Whether results of a dimension are to be large: rates are, times, energies, powers and costs are not."""
    return dimension in _RATES


def gain(reference: Any, number: Any, dimension: Dimension) -> Any:
    """Gain over a reference, larger is better: the ratio of a rate to its reference, of other results the reverse."""
    return number / reference if larger_is_better(dimension) else reference / number


def is_time(result: str) -> bool:
    """Whether a result column or phase is a time, by its name; energy and cost are not."""
    return result.startswith("terms.") or result.endswith("_time")


def superlative(dimension: Dimension, name: str, *, most: bool) -> str:
    """Word for the least or the greatest value of a result: `fastest`, `fastest halo`, `least energy`."""
    short = name.removesuffix("_time").removeprefix("terms.").replace("_", " ")
    if dimension == SECOND:
        word = "slowest" if most else "fastest"
        return word if name in _MAIN else f"{word} {short}"
    words = ("highest", "lowest") if dimension in (ONE, *_RATES) else ("most", "least")
    return f"{words[0] if most else words[1]} {short}"


def amount(axis: AxisDescription, text: str) -> str:
    """Values of an axis with its name: `8 ranks`, `dram_bandwidth 900 GB/s`."""
    if axis.label in _NOUNS:
        return f"{text} {_NOUNS[axis.label][text != '1']}"
    return f"{axis.name} {text}"


def place(axis: AxisDescription, value: float) -> str:
    """Place on an axis: `at 8 ranks`, `on summit`, `with model postal`."""
    return placed(axis, value_text(value, axis))


def placed(axis: AxisDescription, text: str) -> str:
    """Values of an axis, such as `2 and 4` or `postal and loggp`, as a place: `at 2 and 4 ranks`."""
    if axis.ticks and axis.label in ("platform", "machine"):
        return f"on {text}"
    return f"{'with' if axis.ticks else 'at'} {amount(axis, text)}"


def places_in_words(places: Iterable[tuple[AxisDescription, float]]) -> str:
    """Place on several axes: `on summit, at 8 ranks and dram_bandwidth 900 GB/s`."""
    texts = [place(axis, value) for axis, value in places]
    at = [text.removeprefix("at ") for text in texts if text.startswith("at ")]
    others = [text for text in texts if not text.startswith("at ")]
    return ", ".join([*others, *([f"at {joined(at)}"] if at else [])])


def percent(share: float) -> str:
    """Share in per cent with two digits."""
    number = 100 * share
    if 0 < number < 0.01:
        return "less than 0.01 %"
    return f"{number:.0f} %" if abs(number) >= 10 else f"{number:.2g} %"


def lead_text(ratio: float) -> str:
    """Lead of one result over another, given their ratio: in per cent, from twice on as a factor."""
    return percent(ratio - 1) if ratio <= 2 else f"a factor of {ratio:.3g}"


def joined(words: Sequence[str]) -> str:
    """Words as a list: `1, 2 and 4`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
