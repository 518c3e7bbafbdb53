"""A machine with other nodes: some left out, some named, all drawn from spreads, or with fewer links between switches.

A node's factor is that of its processors (`kernels.processors`), a cluster is drawn from the hierarchical model of
Cornebize's thesis (2021, section 2.3.1): dgemm of a node on a day deviates from that of the node, which deviates from
the mean of the machine, and every call from that of the day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError, did_you_mean
from whatif.fitting.processors import MOST_PROCESSORS
from whatif.importers.text import read_text
from whatif.schema.network import FatTree
from whatif.schema.platform_spec import PlatformSpec

SPREADS: Final = ("node", "day", "call")
"""Levels of the hierarchical model."""
_PROCESSORS: Final = "platform.kernels.processors"
_DEVIATION: Final = "platform.kernels.dgemm.deviation"
_UP_COUNT: Final = "platform.network.topology.up_count"
_MOST_LISTED: Final = 6


@dataclass(frozen=True)
class Fleet:
    """Nodes of a machine."""

    hosts: Sequence[str] = ()
    """Names of nodes to use, in this order; empty: all of them."""
    without_slowest: int = 0
    """Number of the slowest nodes to leave out."""
    cluster: int | None = None
    """Number of nodes of a drawn machine; None: the nodes of the platform."""
    spreads: Mapping[str, float] = field(default_factory=dict)
    """Standard deviation relative to the mean, by level; a level that is not stated has the platform's."""
    cluster_seed: int = 0
    without_uplinks: int = 0
    """Number of links upwards that a lowest switch loses; one switch above may have several."""


@dataclass(frozen=True, slots=True)
class FleetChange:
    """Changes of a platform, and notes on them."""

    overrides: Mapping[str, Any]
    notes: tuple[str, ...]


def fleet_change(fleet: Fleet, machine: PlatformSpec) -> FleetChange:
    """Change of a platform for a fleet. Raise `UsageError` for nodes and links that the machine has not."""
    factors, deviations = _factors(machine)
    overrides: dict[str, Any] = {}
    notes: list[str] = []
    if fleet.spreads and fleet.cluster is None:
        raise UsageError("--spread: no effect without --cluster NODES")
    if fleet.cluster is not None:
        factors, drawn = _cluster(fleet, machine, factors)
        deviations = {}
        overrides |= drawn
        notes.append(f"{fleet.cluster} nodes drawn with seed {fleet.cluster_seed} (--cluster)")
    if fleet.hosts or fleet.without_slowest:
        used = _used(fleet, factors)
        left_out = [name for name in factors if name not in used]
        notes.append(_in_words(used, left_out, factors))
        # Nodes that are left out come last, behind the number of nodes.
        factors = {name: factors[name] for name in (*used, *left_out)}
        deviations = {name: deviations[name] for name in (*used, *left_out) if name in deviations}
        overrides["platform.node_count"] = len(used)
    if fleet.cluster is not None or fleet.hosts or fleet.without_slowest:
        overrides |= _tables(machine, factors, deviations, fleet)
    if fleet.without_uplinks:
        overrides[_UP_COUNT] = _up_count(fleet.without_uplinks, machine)
        notes.append(f"{overrides[_UP_COUNT]} links upwards of a lowest switch (--without-uplinks)")
    return FleetChange(overrides, tuple(notes))


def _factors(machine: PlatformSpec) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Factors and deviations of the processors by node, in their order; empty for a machine that states none."""
    found: list[dict[str, list[float]]] = []
    kernels = machine.kernels
    for table in ({}, {}) if kernels is None else (kernels.processors, kernels.deviations):
        nodes: dict[str, list[float]] = {}
        for key, value in table.items():
            nodes.setdefault(key.rpartition("_")[0] or key, []).append(float(value))  # type: ignore[arg-type]
        found.append(nodes)
    return found[0], found[1]


def _cluster(
    fleet: Fleet, machine: PlatformSpec, factors: Mapping[str, Sequence[float]]
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Factors of drawn nodes, and the overrides of the calls; node effects are log-normal."""
    count, sockets = fleet.cluster or 0, int(float(machine.node.socket_count))  # type: ignore[arg-type]
    if not 1 <= count * sockets <= MOST_PROCESSORS:
        raise UsageError(f"--cluster {count}: there must be at least 1 node and at most {MOST_PROCESSORS // sockets:,}")
    known = np.log([np.mean(values) for values in factors.values()])
    spread = fleet.spreads.get("node", float(np.std(known, ddof=1)) if len(known) > 1 else 0.0)
    random = np.random.default_rng(fleet.cluster_seed)
    drawn = np.exp(random.normal(-(spread**2) / 2, spread, count))
    overrides: dict[str, Any] = {"platform.node_count": count}
    if "call" in fleet.spreads:
        if machine.kernels is None or machine.kernels.dgemm is None:
            raise UsageError("--spread call=..: the platform states no calibrated dgemm (`[kernels.dgemm]`)")
        call = fleet.spreads["call"]
        terms = ("constant", "mnk", "mn", "mk", "nk")
        means = {term: float(getattr(machine.kernels.dgemm, term)) for term in terms}
        overrides |= {f"{_DEVIATION}.{term}": f"{call * mean!r} s" for term, mean in means.items()}
    return {f"node{at + 1}": [float(factor)] * sockets for at, factor in enumerate(drawn)}, overrides


def _used(fleet: Fleet, factors: Mapping[str, Sequence[float]]) -> list[str]:
    """Names of the used nodes, in order."""
    option = "--hosts" if fleet.hosts else "--without-slowest"
    if not factors:
        raise UsageError(f"{option}: the platform states no processors (`[kernels.processors]`): its nodes are alike")
    for host in fleet.hosts:
        if host not in factors:
            raise UsageError(f"--hosts: no node `{host}`{did_you_mean(host, factors)}: {_listed(list(factors))}")
    if len(set(fleet.hosts)) < len(fleet.hosts):
        raise UsageError("--hosts: a node is named twice")
    used = list(fleet.hosts) or list(factors)
    if not 0 <= fleet.without_slowest < len(used):
        raise UsageError(f"--without-slowest {fleet.without_slowest}: there are {len(used)} nodes")
    slowest = sorted(used, key=lambda name: -max(factors[name]))[: fleet.without_slowest]
    return [name for name in used if name not in slowest]


def _tables(
    machine: PlatformSpec,
    factors: Mapping[str, Sequence[float]],
    deviations: Mapping[str, Sequence[float]],
    fleet: Fleet,
) -> dict[str, Any]:
    """Overrides of the processors, in the places of those of the platform and behind them."""
    kernels, day = machine.kernels, fleet.spreads.get("day", 0.0)
    values = [factor for row in factors.values() for factor in row]
    keys = [*(() if kernels is None else kernels.processors)]
    sockets = len(next(iter(factors.values())))
    names = [f"node{at // sockets + 1}_cpu{at % sockets}" for at in range(len(values))]
    keys += [name for name in names if name not in keys]
    texts = [f"{value!r} +- {value * day!r}" if day else value for value in values]
    found: dict[str, Any] = {f"{_PROCESSORS}.{key}": text for key, text in zip(keys, texts, strict=False)}
    spread = [value for row in deviations.values() for value in row] or [1.0] * len(values)
    if kernels is not None and kernels.deviations:
        found |= {
            f"{_PROCESSORS.replace('processors', 'deviations')}.{key}": value
            for key, value in zip(keys, spread, strict=False)
        }
    return found


def _up_count(fewer: int, machine: PlatformSpec) -> int:
    """Links upwards of a lowest switch that remain."""
    topology = machine.network.topology
    count = topology.up_count if isinstance(topology, FatTree) else None
    if not isinstance(count, float):
        raise UsageError("--without-uplinks: the platform states no fat tree (`[network.topology]`)")
    if fewer >= count:
        raise UsageError(f"--without-uplinks {fewer}: a lowest switch has {count:.0f} links upwards")
    return int(count) - fewer


def _in_words(used: Sequence[str], left_out: Sequence[str], factors: Mapping[str, Sequence[float]]) -> str:
    mean = float(np.mean([factors[name] for name in used]))
    named = [f"{name} ({float(np.mean(factors[name])) / mean - 1:+.1%})" for name in left_out]
    return f"{len(used)} of {len(factors)} nodes; left out: {_listed(named) or 'none'}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more


def fleet_of(
    hosts: str | Path | Sequence[str],
    without_slowest: int,
    cluster: int | None,
    spread: str | Mapping[str, float],
    cluster_seed: int,
    without_uplinks: int,
) -> Fleet:
    """Fleet of options, as texts of the command line or as Python values. Raise `UsageError` for wrong texts."""
    names = _hosts(hosts) if isinstance(hosts, str | Path) else tuple(hosts)
    spreads = _spreads(spread) if isinstance(spread, str) else dict(spread)
    return Fleet(names, without_slowest, cluster, spreads, cluster_seed, without_uplinks)


def _hosts(text: str | Path) -> tuple[str, ...]:
    """Names of nodes from a text with commas, or a file of lines; `#` begins a comment, slots of a node are ignored."""
    if isinstance(text, Path) or "/" in text or Path(text).is_file():
        text = read_text(Path(text))
    lines = [line.split("#")[0] for line in text.replace(",", "\n").splitlines()]
    return tuple(line.split()[0] for line in lines if line.split())


def _spreads(text: str) -> dict[str, float]:
    """Spreads of a text such as `node=2%, call=0.03`."""
    found = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in SPREADS:
            raise UsageError(
                f"--spread {part}: unknown level `{name}`{did_you_mean(name, SPREADS)}: {', '.join(SPREADS)}"
            )
        try:
            found[name] = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            raise UsageError(f"--spread {part}: `{value}` is no number, such as 2% or 0.02") from None
        if not 0 <= found[name] < 1:
            raise UsageError(f"--spread {part}: must be at least 0 and below 100 %")
    return found
