"""Memory of a rank by kind: of weights, states, activations or the cache, and buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whatif.core.parameter_paths import GPU
from whatif.units import BYTE, format_compared

_ROOM = f"{GPU}.memory_size"


def memory_kinds(values: Mapping[str, Any], terms: Mapping[str, str]) -> dict[str, float]:
    """Bytes of each kind that a rank has, in B."""
    known = {name.replace("_", " "): float(values[term]) for name, term in terms.items() if term in values}
    return {name: size for name, size in known.items() if size}


def memory_words(values: Mapping[str, Any], whole: str, terms: Mapping[str, str]) -> tuple[str, ...]:
    """Sentence of the memory of a rank, that of its device, and the kinds, in one unit."""
    kinds = memory_kinds(values, terms)
    totals = [float(values[name]) for name in (whole, _ROOM) if name in values]
    texts = format_compared([*kinds.values(), *totals], BYTE, 3)
    words = (f"{name} {text}" for name, text in zip(kinds, texts, strict=False))
    return (f"memory of a rank: {' of '.join(texts[len(kinds) :])}: {', '.join(words)}",)


def free_memory(values: Mapping[str, Any], whole: str) -> float:
    """Free memory of the device in bytes; 0 where its size is not stated."""
    return max(float(values[_ROOM]) - float(values[whole]), 0.0) if _ROOM in values else 0.0
