"""Shipped parts of a kind, the GPU among them that a driver or profiler names, and whether two names are of one GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from whatif.schema.shipped import find, names_in
from whatif.schema.toml import read_document
from whatif.units import parse_quantity

_MODEL: Final = re.compile(r"\b(?!SXM|HBM)[A-Z]+\d+[A-Z]*\b")
_NAMED_MEMORY: Final = re.compile(r"\b(\d+) ?GB\b", re.IGNORECASE)
_MEMORY: Final = 0.97, 1.1
"""Least and largest ratio of reported to stated memory: data sheets write GB for GiB, drivers reserve some."""


def gpu_part(device: str, memory_size: float = 0.0) -> str | None:
    """Shipped GPU of a device name such as `NVIDIA H100 80GB HBM3`: the same model, form and memory.

    `memory_size` in B as the driver reports it; without it, that in the name. None if no part fits, or several do.
    """
    parts = shipped_parts("gpu")
    fitting = [name for name, part in parts.items() if _is_alike(device, str(part["name"]))]
    exact = [name for name in fitting if parts[name]["name"] == device]
    if size := memory_size or _named_memory(device):
        sizes = {name: parse_quantity(str(parts[name]["memory_size"])).value for name in fitting}
        fitting = [name for name in fitting if _MEMORY[0] * sizes[name] <= size <= _MEMORY[1] * sizes[name]]
    return next(iter(exact or (fitting if memory_size or len(fitting) == 1 else ())), None)


def same_gpu(one: str, other: str) -> bool:
    """Whether two names may be of one GPU: one shipped part, or without remarks and marks one contains the other."""
    parts = gpu_part(one), gpu_part(other)
    if None not in parts:
        return parts[0] == parts[1]
    models = [set(_MODEL.findall(name.upper())) for name in (one, other)]
    if all(models) and models[0].isdisjoint(models[1]):
        return False
    short, long = sorted((re.sub(r"\(.*?\)|nvidia|[^0-9a-z]", "", name.casefold()) for name in (one, other)), key=len)
    return short in long


def _is_alike(device: str, stated: str) -> bool:
    slot = re.search("PCI|NVL", device, re.IGNORECASE)
    return not {*_MODEL.findall(device)}.isdisjoint(_MODEL.findall(stated)) and not (slot and "SXM" in stated)


def _named_memory(device: str) -> float:
    found = _NAMED_MEMORY.search(device)
    return float(found[1]) * 1e9 if found else 0.0


@cache
def shipped_parts(kind: str) -> Mapping[str, Mapping[str, Any]]:
    """Documents of the shipped parts of a kind, such as `gpu` and `link`, by name."""
    paths = {name: find(name, "parts", ()) for name in names_in((), "parts")}
    read = {name: read_document(path).data for name, path in paths.items() if path is not None}
    return {name: part for name, part in read.items() if part.get("part") == kind}
