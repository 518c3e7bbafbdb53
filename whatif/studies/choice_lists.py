"""Lists to choose from, with a description of each choice: platforms, parts of a platform, values of a parameter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from whatif.core.inventory import part_description
from whatif.core.parts_in_use import EXTENDS
from whatif.core.scenario import Scenario
from whatif.errors import WhatifError
from whatif.schema.load import load_platform
from whatif.schema.parameters import KnownKey, Parameter
from whatif.schema.parts import kind_of_part, parts_of
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.price import AMOUNTS
from whatif.schema.toml import key_path
from whatif.units import WATT, Quantity, counted, format_quantity
from whatif.vocabulary import LIBRARY_ALGORITHMS, MESSAGE_ALGORITHMS

Choice = tuple[str, str]
"""Name and description."""
FIGURES: Final = {
    "gpu": ("dram_bandwidth", "memory_size", "peak_double_rate"),
    "cpu": ("memory_bandwidth", "cache_size", "peak_double_rate"),
}
"""Values in the description of a part, as its file states them."""


def platform_choices(scenario: Scenario) -> tuple[Choice, ...]:
    """Known platforms: nodes, GPUs or processors, power of a GPU or processor, price where stated, and their sentence.

    A platform that cannot be read has the reason.
    """
    return tuple((name, _platform_words(name, scenario)) for name in scenario.known_platforms)


def _platform_words(name: str, scenario: Scenario) -> str:
    try:
        platform, _ = load_platform(name, scenario.search_folders)
    except WhatifError as problem:
        return f"cannot be used: {str(problem).splitlines()[0]}"
    return "; ".join([", ".join(_figures(platform)), *filter(None, [platform.description])])


def _figures(platform: PlatformSpec) -> Iterator[str]:
    node = platform.node
    if isinstance(platform.node_count, float):
        yield counted(int(platform.node_count), "node")
    device, count = (node.gpu, node.gpu_count) if node.gpu is not None else (node.cpu, node.socket_count)
    if device is not None and isinstance(count, float):
        yield f"{count:g} x {device.name}{_power(device.idle_power, device.dynamic_power)}"
    amounts = ((key, getattr(platform.price, key, None)) for key in AMOUNTS)
    for key, amount in amounts:
        if isinstance(amount, Quantity):
            yield f"{key.replace('_', ' ')} {format_quantity(amount.value, amount.dimension)}"


def _power(idle: Any, dynamic: Any) -> str:
    """Power of a device at work; empty if its file states none."""
    if not (isinstance(idle, float) and isinstance(dynamic, float)):
        return ""
    return f" of {format_quantity(idle + dynamic, WATT, 3)}"


def part_choices(path: str, scenario: Scenario) -> tuple[Choice, ...]:
    """Parts that a table can extend; `path` is that of its `extends`."""
    kind = kind_of_part(key_path(path.removesuffix(EXTENDS)))
    parts = parts_of(str(kind), scenario.search_folders)
    return tuple((name, part_description(document, FIGURES.get(str(kind), ()))) for name, document in parts.items())


def value_choices(parameter: Parameter | KnownKey) -> tuple[Choice, ...]:
    """Fixed choices of a parameter, each with its description in the help."""
    text = " ".join(parameter.description.split())
    return tuple((choice, _help_of(choice, text) or _operations(choice)) for choice in parameter.choices)


def _help_of(choice: str, text: str) -> str:
    """Part of a help text that follows the name of a choice: `NAME: ..;` or `NAME (..)`."""
    found = re.search(rf"\b{re.escape(choice)}(?:: ((?:[^;.]|\.(?! |$))*)| \(([^)]*)\))", text)
    return "" if found is None else found[1] or found[2]


def _operations(algorithm: str) -> str:
    """Operations of an algorithm of a collective; empty for any other name."""
    tables: tuple[Mapping[Any, tuple[str, ...]], ...] = (MESSAGE_ALGORITHMS, LIBRARY_ALGORITHMS)
    return ", ".join(dict.fromkeys(name for table in tables for name, known in table.items() if algorithm in known))
