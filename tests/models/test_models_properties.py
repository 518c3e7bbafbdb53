"""Properties of all elementwise model functions, found by their citations.

A time need not increase with `process_count`. In `max_rate` it decreases if further processes add more than the
first sustains (R_Ci > R_Cb), and in the structured grid model it decreases because the work is shared.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whatif.models
from whatif import units
from whatif.models.quantities import Core

Function = Callable[..., Any]

# Half of the usual number of examples, for more than a hundred functions and arguments.
FEW = settings(max_examples=12)

POSITIVE = st.floats(1.0, 1e12)
BY_UNIT: dict[units.Dimension, st.SearchStrategy[float]] = {
    units.ONE: st.integers(1, 10**6).map(float),
    units.SECOND: st.just(0.0) | st.floats(1e-12, 1e3),
    units.BYTE: POSITIVE,
    units.FLOP: st.just(0.0) | POSITIVE,
}
BY_NAME: dict[str, st.SearchStrategy[float]] = {
    # At most one half, so that two shares do not exceed the whole.
    "compute_fraction": st.floats(0.0, 0.5),
    "load_store_fraction": st.floats(0.0, 0.5),
    "voltage_floor": st.floats(0.0, 1.0),
    "generation": st.integers(1, 6).map(float),
    "k": st.floats(0.0, 100.0),
    "iteration_time": st.floats(1e-12, 1e3),
    # Work may be zero; its divisors (a packet, a flit) may not.
    "message_size": st.just(0.0) | POSITIVE,
    "dram_size": st.just(0.0) | POSITIVE,
    "l2_size": st.just(0.0) | POSITIVE,
    # With 10^11 chunks of 1 B the last bit of their summed time is rounding.
    "chunk_size": st.floats(1024.0, 1e12),
}
SHAPES = st.sampled_from([(), (3,), (1,), (2, 1), (2, 3)])

# An intensity without bytes is infinite, and ranks without nodes are NaN; all other results are finite.
NOT_ALWAYS_FINITE = {"operational_intensity", "placed_count", "mean_power", "capped_clock", "steady_batch", "slot_wait",
                     "prompt_wait"}  # fmt: skip
# The time of a message may decrease at a change of protocol; an overlap is saved time.
NOT_MONOTONE = {
    ("by_protocol", "message_size"),
    # The pass of a prompt is a part of the time that its request is served.
    ("request_time", "prompt_time"),
    ("busy_time", "hidden_time"),
    # Longer computation hides more communication.
    ("exposed_time", "computation_time"),
    # Small chunks overlap more of a copy, large ones need fewer turns.
    ("staged_read_time", "chunk_size"),
    ("staged_write_time", "chunk_size"),
    # Where one request in flight takes longer, each further one adds less; what further ones add, the first lacks.
    ("added_time", "low_time"),
    ("alone_time", "added_time"),
    ("alone_time", "prompt_time"),
    # A rate of requests is demand.
    ("prompt_wait", "request_rate"),
    ("slot_wait", "request_rate"),
    # Ranks that prefill work while others decode; who is busy is not idle.
    ("idle_time", "busy_time"),
    ("prefill_wait", "decoding_time"),
}
COSTS = ("latency", "_latency", "_time", "_size")
SPEEDS = ("bandwidth", "_bandwidth", "_rate")


@cache
def annotations(function: Function) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(function, include_extras=True)
    return {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}


def is_elementwise(function: Function) -> bool:
    """Whether all arguments and the result are quantities without trailing axes."""
    metadata = annotations(function).values()
    if any(item.kind is item.VAR_POSITIONAL for item in inspect.signature(function).parameters.values()):
        return False
    return all(metadata) and not any(isinstance(item, Core) for items in metadata for item in items)


def model_functions() -> list[Function]:
    modules = (
        importlib.import_module(info.name) for info in pkgutil.iter_modules(whatif.models.__path__, "whatif.models.")
    )
    return [
        function
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and hasattr(function, "citation") and not name.startswith("_")
    ]


ELEMENTWISE = [function for function in model_functions() if is_elementwise(function)]
TIMES = [function for function in ELEMENTWISE if annotations(function)["return"][0] == units.SECOND]
MONOTONE = [
    (function, name)
    for function in TIMES
    for name in inspect.signature(function).parameters
    if name.endswith(COSTS + SPEEDS) and (function.__name__, name) not in NOT_MONOTONE
]


def values(function: Function, name: str) -> st.SearchStrategy[float]:
    unit = annotations(function)[name][0]
    by_unit = st.floats(0.0, 1.0) if name.endswith("fraction") else BY_UNIT.get(unit, POSITIVE)
    return BY_NAME.get(name, by_unit)


@st.composite
def arguments(draw: st.DrawFn, function: Function, shapes: st.SearchStrategy[tuple[int, ...]]) -> dict[str, Any]:
    drawn = {}
    for name in inspect.signature(function).parameters:
        shape = draw(shapes)
        flat = [draw(values(function, name)) for _ in range(int(np.prod(shape)))]
        drawn[name] = np.array(flat).reshape(shape)
    return drawn


def test_all_model_functions_are_found() -> None:
    names = {function.__name__ for function in ELEMENTWISE}
    assert {"postal", "max_rate", "loggp", "roofline_time", "pinned_time", "total_time"} <= names
    assert "rounds_time" not in names, "it works along an axis"


@pytest.mark.parametrize("function", ELEMENTWISE, ids=lambda f: f.__name__)
@FEW
@given(data=st.data())
def test_model_on_arrays_equals_single_points(function: Function, data: st.DataObject) -> None:
    drawn = data.draw(arguments(function, SHAPES))
    grid = np.broadcast_arrays(*drawn.values())
    result = np.asarray(function(**drawn))
    assert result.dtype == np.float64
    assert result.shape == grid[0].shape
    assert np.isfinite(result).all() or function.__name__ in NOT_ALWAYS_FINITE
    for index in np.ndindex(result.shape):
        point = {name: array[index] for name, array in zip(drawn, grid, strict=True)}
        # `**` rounds a number and an array differently on some processors.
        np.testing.assert_array_max_ulp(function(**point), result[index], maxulp=8)


@pytest.mark.parametrize(
    ("function", "name"), MONOTONE, ids=[f"{function.__name__}-{name}" for function, name in MONOTONE]
)
@FEW
@given(data=st.data())
def test_time_increases_with_costs_and_decreases_with_rates(function: Function, name: str, data: st.DataObject) -> None:
    drawn = data.draw(arguments(function, st.just(())))
    low, high = sorted([drawn[name], data.draw(values(function, name))])
    time_at_low, time_at_high = (function(**drawn | {name: np.float64(value)}) for value in (low, high))
    assert time_at_low <= time_at_high if name.endswith(COSTS) else time_at_low >= time_at_high
