"""Annotations of model functions: units of arguments and results, trailing axes, equation and source.

An annotation such as `Seconds` is a float64 array with its unit attached. When a term is wired, the units of its
inputs are compared with these annotations. `Core` names the trailing axes that a function works along
(ranks, message kinds); an elementwise function has none and broadcasts over any shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from whatif import units

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Core:
    """Names of the trailing axes of an argument or result, such as `Core("kind")`."""

    axes: tuple[str, ...]

    def __init__(self, *axes: str) -> None:
        object.__setattr__(self, "axes", axes)


Count = Annotated[FloatArray, units.ONE]
Fraction = Annotated[FloatArray, units.ONE]
Seconds = Annotated[FloatArray, units.SECOND]
Bytes = Annotated[FloatArray, units.BYTE]
Operations = Annotated[FloatArray, units.FLOP]
BytesPerSecond = Annotated[FloatArray, units.BYTE_PER_SECOND]
OperationsPerSecond = Annotated[FloatArray, units.FLOP_PER_SECOND]
PerSecond = Annotated[FloatArray, units.PER_SECOND]
Watts = Annotated[FloatArray, units.WATT]
Joules = Annotated[FloatArray, units.JOULE]
Carbon = Annotated[FloatArray, units.CARBON]
CarbonPerJoule = Annotated[FloatArray, units.CARBON_PER_JOULE]

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Citation:
    """Equation of a model function in the notation of its source, and the source."""

    equation: str
    source: str
    verbatim: bool = False
    """Whether the equation is an expression of a file, not in the notation of formulas."""


def model(equation: str, source: str) -> Callable[[Function], Function]:
    """Decorator that attaches a `Citation` to a model function, for `whatif explain`."""

    def attach(function: Function) -> Function:
        """The function, with its citation."""
        function.citation = Citation(equation, source)  # type: ignore[attr-defined]
        return function

    return attach
