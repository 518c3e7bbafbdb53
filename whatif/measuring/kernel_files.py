"""Cores, caches, clock and memory from the text of /proc and /sys of Linux."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from whatif.measuring.hardware import Machine, PhysicalCore

_FIELDS: Final = re.compile(r"^([^:\n]+?)[ \t]*:[ \t]*(.*)$", re.MULTILINE)
_NAMES: Final = ("model name", "Processor", "cpu model", "cpu")
_UNITS: Final = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30}
_CPU: Final = re.compile(r"cpu/cpu(\d+)/topology/core_id")


def parse_cpuinfo(text: str) -> tuple[str, float]:
    """Name of the processor, and the highest of the clocks (Hz) that /proc/cpuinfo shows; empty and 0 if unknown."""
    fields: dict[str, list[str]] = {}
    for name, value in _FIELDS.findall(text):
        fields.setdefault(name, []).append(value)
    named = next((fields[name][0].strip() for name in _NAMES if name in fields), "")
    stated = [float(value) for value in fields.get("cpu MHz", []) if re.fullmatch(r"[0-9.]+", value)]
    return re.sub(r"\s+", " ", named), max(stated, default=0.0) * 1e6


def parse_meminfo(text: str) -> float:
    """Memory in B from /proc/meminfo; 0 if it is not listed."""
    found = re.search(r"^MemTotal:\s*(\d+) kB", text, re.MULTILINE)
    return float(found[1]) * 1024 if found else 0.0


def parse_processors(text: str) -> list[int]:
    """Numbers of a list such as `0-3,8`."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def parse_sysfs(files: Mapping[str, str], host: str = "") -> Machine:
    """A machine from files of /sys/devices/system by path, such as `cpu/cpu0/topology/core_id`."""
    domains = {
        processor: int(path.split("/")[1].removeprefix("node"))
        for path, text in files.items()
        if path.endswith("cpulist") and path.startswith("node/")
        for processor in parse_processors(text)
    }
    caches = {int(found[1]): _caches(files, int(found[1])) for path in files if (found := _CPU.fullmatch(path))}
    seen: dict[tuple[int, int], PhysicalCore] = {}
    for processor in sorted(caches):
        topology = f"cpu/cpu{processor}/topology"
        socket = int(files.get(f"{topology}/physical_package_id", 0))
        sizes = caches[processor]
        first = sizes[max(sizes)][1] if sizes else 0
        key = socket, int(files[f"{topology}/core_id"])
        core = seen.get(key, PhysicalCore((), max(socket, 0), domains.get(processor, 0), first))
        seen[key] = replace(core, processors=(*core.processors, processor))
    levels = next(iter(caches.values()), {})
    return Machine(host, "", tuple(seen.values()), tuple(levels[level][0] for level in sorted(levels)), "/sys of Linux")


def _caches(files: Mapping[str, str], processor: int) -> dict[int, tuple[float, int]]:
    """Size of the caches of data of a processor and the first processor that shares each, by level."""
    found = {}
    for at in range(10):
        cache = f"cpu/cpu{processor}/cache/index{at}"
        size = re.fullmatch(r"(\d+)([KMG]?)", files.get(f"{cache}/size", ""))
        if size is None or files.get(f"{cache}/type") == "Instruction":
            continue
        sharing = parse_processors(files.get(f"{cache}/shared_cpu_list", str(processor)))
        found[int(files.get(f"{cache}/level", 0))] = float(size[1]) * _UNITS[size[2]], min(sharing, default=processor)
    return found
