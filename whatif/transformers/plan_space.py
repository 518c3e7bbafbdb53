"""Space of plans that a search covers, and numbers that divide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from whatif.core.scenario import Scenario
from whatif.models.quantities import FloatArray
from whatif.units import Dimension


@dataclass(frozen=True, slots=True)
class PlanSpace:
    """Variables and results of a search."""

    sizes: tuple[str, ...]
    """Numbers of a plan."""
    choices: tuple[str, ...]
    """Choices of a plan."""
    results: Mapping[str, Dimension]
    """Results of a plan, with `iteration_time`."""
    rival: str
    """Result that the Pareto front minimises besides the time."""
    headings: Mapping[str, str]
    """Headings of columns on a terminal."""
    optional: tuple[str, ...]
    """Columns omitted on a narrow terminal, in this order."""
    alike: tuple[str, ...]
    """Sizes in which plans differ that have the same results; of others the least one is reported."""
    candidates: Callable[[Scenario, Sequence[str]], dict[str, FloatArray]]
    """Sizes of all plans that divide, for a scenario and the keys that stay as stated."""
    values: Callable[[Scenario, str], tuple[str, ...]]
    """Values of a choice."""


def allowed(stated: Mapping[str, int], key: str, values: Iterable[int]) -> list[int]:
    """Values of a key: the stated one where it is kept."""
    return [stated[key]] if key in stated else list(values)


def divisors(number: int) -> list[int]:
    """Whole numbers that divide another one."""
    return [item for item in range(1, number + 1) if number % item == 0]


def powers(most: int) -> list[int]:
    """Powers of two up to a number."""
    return [2**exponent for exponent in range(most.bit_length())]
