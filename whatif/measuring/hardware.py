"""Hardware of this machine: cores, sockets, NUMA domains, caches, clock and memory."""

from __future__ import annotations

import os
import platform as python_platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from whatif.errors import UsageError
from whatif.measuring.gpus import GPUs, read_gpus
from whatif.units import BYTE, format_quantity


@dataclass(frozen=True)
class PhysicalCore:
    """A core: its logical processors, one a hardware thread, and what it belongs to."""

    processors: tuple[int, ...]
    socket: int = 0
    domain: int = 0
    """NUMA domain."""
    cache: int = 0
    """Last-level cache."""

    @property
    def processor(self) -> int:
        """The processor that work on this core is bound to."""
        return self.processors[0]

    def within(self, allowed: Set[int]) -> PhysicalCore:
        """The core with those of its processors that may be used."""
        return replace(self, processors=tuple(item for item in self.processors if item in allowed))


@dataclass(frozen=True)
class Machine:
    """A machine as it describes itself; sizes in B, clock in Hz."""

    host: str
    processor: str
    cores: tuple[PhysicalCore, ...]
    caches: tuple[float, ...] = ()
    """Size of one cache of each level, L1 first; empty if it is not known."""
    source: str = ""
    """Program that reported it, such as `hwloc 2.9.0`."""
    clock: float = 0.0
    """Highest clock; 0 where it is not known."""
    memory_size: float = 0.0
    disks: tuple[str, ...] = ()
    gpus: GPUs | None = None
    warnings: tuple[str, ...] = ()

    @property
    def socket_count(self) -> int:
        """Sockets with cores."""
        return len({core.socket for core in self.cores})

    @property
    def domain_count(self) -> int:
        """NUMA domains with cores."""
        return len({(core.socket, core.domain) for core in self.cores})

    @property
    def cache_count(self) -> int:
        """Last-level caches with cores."""
        return len({(core.socket, core.cache) for core in self.cores})

    @property
    def last_level(self) -> float:
        """Size of one last-level cache; 0 where it is not known."""
        return self.caches[-1] if self.caches else 0.0

    @property
    def spread(self) -> tuple[PhysicalCore, ...]:
        """Cores in an order that takes one from each NUMA domain in turn, and there from each cache."""
        turns: dict[tuple[int, ...], int] = {}
        keys = []
        for core in self.cores:
            within = (core.socket, core.domain)
            below = (*within, core.cache)
            keys.append((_next(turns, below), core.cache, core.socket, core.domain))
        by_cache = [core for _, core in sorted(zip(keys, self.cores, strict=True), key=lambda pair: pair[0])]
        counts: dict[tuple[int, ...], int] = {}
        order = [(_next(counts, (core.socket, core.domain)), core.socket, core.domain) for core in by_cache]
        return tuple(core for _, core in sorted(zip(order, by_cache, strict=True), key=lambda pair: pair[0]))


def _next(turns: dict[tuple[int, ...], int], key: tuple[int, ...]) -> int:
    turns[key] = turns.get(key, -1) + 1
    return turns[key]


_CPUS: Final = Path("/sys/devices/system/cpu")
_NODES: Final = Path("/sys/devices/system/node")


def read_machine() -> Machine:
    """The machine that the program runs on, with the cores that it may use.

    hwloc's `lstopo` is asked first, then /sys. Raise `UsageError` if neither says which cores there are.
    """
    from whatif.measuring.hwloc import parse_hwloc
    from whatif.measuring.kernel_files import parse_cpuinfo, parse_meminfo, parse_sysfs

    host, cpuinfo = python_platform.node(), _text(Path("/proc/cpuinfo"))
    name, cpuinfo_clock = parse_cpuinfo(cpuinfo)
    xml = output_of(["lstopo", "--no-io", "--of", "xml"])
    found = parse_hwloc(xml, host) if xml else parse_sysfs(_sysfs(), host)
    clock = _text(_CPUS / "cpu0/cpufreq/cpuinfo_max_freq").strip()
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    return usable(
        replace(
            found,
            processor=name or found.processor or "processor",
            clock=float(clock) * 1e3 if clock.isdigit() else cpuinfo_clock,
            memory_size=parse_meminfo(_text(Path("/proc/meminfo"))),
            disks=tuple(_disks()),
            gpus=read_gpus(output_of),
        ),
        allowed,
        _text(Path("/sys/fs/cgroup/cpu.max")),
        _text(Path("/sys/fs/cgroup/memory.max")),
    )


def usable(machine: Machine, allowed: Iterable[int] | None, quota: str, memory_limit: str = "") -> Machine:
    """The machine with the cores and the memory that this process may use.

    `quota` and `memory_limit` are the texts of cgroup's `cpu.max` and `memory.max`. Raise `UsageError` if no core is
    left.
    """
    may = None if allowed is None else set(allowed)
    cores = machine.cores
    if may is not None:
        cores = tuple(left for core in cores if (left := core.within(may)).processors)
    warnings = []
    if len(cores) < len(machine.cores):
        warnings.append(f"this process may use {len(cores)} of {len(machine.cores)} cores: only these are described")
    limit, _, period = quota.strip().partition(" ")
    if limit.isdigit() and period.isdigit() and (most := max(1, int(limit) // int(period))) < len(cores):
        warnings.append(
            f"a quota gives this process the time of {most} of {len(cores)} cores: only these are described"
        )
        cores = cores[:most]
    if not cores:
        raise UsageError("no core of this machine is known: neither `lstopo` nor /sys describes them")
    memory, limited = _usable_memory(machine.memory_size, memory_limit.strip())
    return replace(machine, cores=cores, memory_size=memory, warnings=(*machine.warnings, *warnings, *limited))


def _usable_memory(size: float, limit: str) -> tuple[float, tuple[str, ...]]:
    """Usable memory in B, with a warning where a limit makes it smaller than that of the machine."""
    most = float(limit) if limit.isdigit() else 0.0
    if not most or 0 < size <= most:
        return size, ()
    of = f" of {format_quantity(size, BYTE, 4)}" if size else ""
    words = f"a limit gives this process {format_quantity(most, BYTE, 4)}{of} of memory: only these are described"
    return most, (words,)


def output_of(command: Sequence[str], timeout: float = 20.0) -> str:
    """Output of a program; empty if it is not installed or fails."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _sysfs() -> Mapping[str, str]:
    """Files that describe cores, by their paths below /sys/devices/system."""
    patterns = ("cpu[0-9]*/topology/physical_package_id", "cpu[0-9]*/topology/core_id", "cpu[0-9]*/cache/index*/*")
    wanted = {"physical_package_id", "core_id", "level", "type", "size", "shared_cpu_list"}
    paths = [path for pattern in patterns for path in _CPUS.glob(pattern) if path.name in wanted]
    paths += list(_NODES.glob("node[0-9]*/cpulist"))
    return {str(path.relative_to(_CPUS.parent)): _text(path).strip() for path in paths}


def _disks() -> Iterable[str]:
    """Disks with their sizes, such as `nvme0n1, 1000 GB`."""
    for folder in sorted(Path("/sys/block").glob("*")):
        sectors = _text(folder / "size").strip()
        if (folder / "device").exists() and sectors.isdigit() and int(sectors) > 0:
            yield f"{folder.name}, {int(sectors) * 512 / 1e9:.0f} GB"
