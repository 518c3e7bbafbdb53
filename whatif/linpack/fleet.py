"""Nodes of a machine that HPL runs on: all, some by name or speed, or drawn ones; and links between their switches.

A drawn cluster follows the hierarchical model of Cornebize's thesis (2021, section 2.3.1): the time of dgemm on a node
on one day deviates from that of the node, which deviates from the mean of the machine, and every call from that of the
day. Nodes and their processors are drawn as those of `whatif.fitting.processors`. The processors of a node share the
day: over 728 calibrations of Dahu the deviations of the two sockets of a node have a correlation of 0.92.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from whatif.arguments import pairs
from whatif.core.parameter_paths import NODE_COUNT
from whatif.core.uncertainty import distribution_of
from whatif.errors import UsageError, abridged, did_you_mean
from whatif.fitting.processors import Processors, Spread, spread, synthetic_processors
from whatif.importers.text import read_text
from whatif.linpack.machine import DEVIATIONS, PROCESSORS
from whatif.linpack.predictions import HPLRuns
from whatif.models.quantities import FloatArray
from whatif.paths import is_file
from whatif.schema.parameters import Parameter
from whatif.units import counted, parse_share
from whatif.vocabulary import MATRIX_TERMS

SPREADS: Final = ("node", "processor", "day", "call")
"""Levels of the hierarchical model."""
_DGEMM: Final = "platform.kernels.dgemm"
_UP_COUNT: Final = "platform.network.topology.up_count"
_MOST_LISTED: Final = 6


@dataclass(frozen=True)
class Fleet:
    """Nodes of a machine. Raise `UsageError` for values out of their ranges, and for those without effect."""

    hosts: Sequence[str] = ()
    """Names of nodes to use, in this order; empty: all of them."""
    without_slowest: int = 0
    """Number of the slowest nodes to leave out."""
    cluster: int | None = None
    """Number of nodes of a drawn machine; None: the nodes of the platform."""
    spreads: Mapping[str, float] = field(default_factory=dict)
    """Standard deviation relative to the mean, by level; a level that is not stated has the platform's."""
    cluster_seed: int | None = None
    """Random seed of a drawn machine; None: 0."""
    without_uplinks: int = 0
    """Number of links upwards that are removed from every lowest switch."""

    def __post_init__(self) -> None:
        for name in ("without_slowest", "without_uplinks"):
            if getattr(self, name) < 0:
                raise UsageError(f"--{name.replace('_', '-')} {getattr(self, name)}: must be at least 0")
        for level, share in self.spreads.items():
            if level not in SPREADS:
                known = f": {', '.join(SPREADS)}{did_you_mean(level, SPREADS)}"
                raise UsageError(f"--spread {level}={share}: unknown level `{level}`{known}")
            if not 0 <= share < 1:
                raise UsageError(f"--spread {level}={share:g}: must be at least 0 and below 100 %")
        unused = "--spread" if self.spreads else "--cluster-seed" if self.cluster_seed is not None else ""
        if unused and self.cluster is None:
            raise UsageError(f"{unused}: no effect without --cluster NODES")


class FleetChange(NamedTuple):
    """Changes of a platform, and notes on them."""

    overrides: Mapping[str, Any]
    notes: tuple[str, ...]


class _Processor(NamedTuple):
    """Relative time and deviation of dgemm on one processor."""

    factor: float
    text: str
    """The factor as text, with its uncertainty."""
    deviation: str = "1.0"


_Nodes = Mapping[str, Sequence[_Processor]]
"""Processors of each node, by its name."""


def fleet_change(fleet: Fleet, runs: HPLRuns) -> FleetChange:
    """Change of the platform of runs for a fleet.

    Raise `UsageError` for nodes and links that the machine does not have.
    """
    if fleet == Fleet():
        return FleetChange({}, ())
    values, parameters = runs.base.values, runs.program.parameters
    nodes = _nodes(parameters, values)
    used = nodes
    overrides: dict[str, Any] = {}
    notes: list[str] = []
    if fleet.cluster is not None:
        used = nodes = _drawn(fleet, nodes, int(values["platform.node.socket_count"]))
        overrides |= _call_deviations(fleet, values)
        notes.append(f"{counted(fleet.cluster, 'node')} drawn with seed {fleet.cluster_seed or 0} (--cluster)")
    if fleet.hosts or fleet.without_slowest:
        used = _used(fleet, nodes)
        notes.append(_in_words(used, nodes))
    if used is not nodes or fleet.cluster is not None:
        overrides |= {NODE_COUNT: len(used)} | _tables(used, parameters)
    if fleet.without_uplinks:
        overrides[_UP_COUNT] = _up_count(fleet.without_uplinks, values)
        notes.append(f"{counted(overrides[_UP_COUNT], 'link')} upwards of a lowest switch (--without-uplinks)")
    return FleetChange(overrides, tuple(notes))


def _nodes(parameters: Mapping[str, Parameter], values: Mapping[str, FloatArray]) -> _Nodes:
    """Nodes of a machine in the order of its processors; empty if it states none."""
    found: dict[str, list[_Processor]] = {}
    for path in (path for path in parameters if path.startswith(PROCESSORS)):
        key = path.removeprefix(PROCESSORS)
        deviation = f"{DEVIATIONS}{key}"
        one = _Processor(float(values[path]), _text(parameters[path], values[path]))
        if deviation in parameters:
            one = one._replace(deviation=_text(parameters[deviation], values[deviation]))
        found.setdefault(key.rpartition("_")[0] or key, []).append(one)
    return dict(islice(found.items(), int(values[NODE_COUNT])))


def _text(parameter: Parameter, value: FloatArray) -> str:
    """Value of a parameter with its uncertainty, as in a platform file."""
    uncertain = distribution_of(parameter, {})
    if uncertain is None:
        return repr(float(value))
    return uncertain.text or f"{float(value)!r} +- {uncertain.numbers[1]!r}"


def _drawn(fleet: Fleet, nodes: _Nodes, socket_count: int) -> _Nodes:
    """Drawn nodes, with the deviation of the day as the uncertainty of their processors."""
    known = Spread((0.0,) * socket_count, 0.0, 0.0)
    if nodes and not {"node", "processor"} <= fleet.spreads.keys():
        rows = [(name, str(at), one.factor) for name, row in nodes.items() for at, one in enumerate(row)]
        names, cpus, factors = zip(*rows, strict=True)
        known = spread(Processors(names, cpus, np.array(factors), np.ones(len(rows)), np.nan))
    node, cpu = fleet.spreads.get("node", known.node), fleet.spreads.get("processor", known.cpu)
    # The mean of log-normal factors stays that of the platform.
    shift = (known.node**2 + known.cpu**2 - node**2 - cpu**2) / 2
    effects = Spread(tuple(mean + shift for mean in known.means), node, cpu)
    day, found = fleet.spreads.get("day", 0.0), dict[str, list[_Processor]]()
    for key, value in synthetic_processors(effects, fleet.cluster or 0, fleet.cluster_seed or 0).items():
        text = f"{value!r} +- {value * day!r}" if day else repr(value)
        found.setdefault(key.rpartition("_")[0], []).append(_Processor(value, text))
    return found


def _call_deviations(fleet: Fleet, values: Mapping[str, FloatArray]) -> dict[str, str]:
    """Overrides of the deviation of calls of dgemm, a share of each term of its mean."""
    if "call" not in fleet.spreads:
        return {}
    means = {term: float(values[path]) for term in MATRIX_TERMS if (path := f"{_DGEMM}.{term}") in values}
    if not means:
        raise UsageError("--spread call=..: the platform states no calibrated dgemm (`[kernels.dgemm]`)")
    return {f"{_DGEMM}.deviation.{term}": f"{fleet.spreads['call'] * mean!r} s" for term, mean in means.items()}


def _used(fleet: Fleet, nodes: _Nodes) -> _Nodes:
    """Used nodes, in order."""
    if not nodes:
        option = "--hosts" if fleet.hosts else "--without-slowest"
        raise UsageError(
            f"{option}: the platform states no processors (`[kernels.processors]`): its nodes are identical"
        )
    for host in fleet.hosts:
        if host not in nodes:
            known = abridged(list(nodes), _MOST_LISTED)
            raise UsageError(f"--hosts: no node `{host}`: {known}{did_you_mean(host, nodes)}")
    names = list(fleet.hosts) or list(nodes)
    if len(set(names)) < len(names):
        raise UsageError("--hosts: a node is named twice")
    if fleet.without_slowest >= len(names):
        raise UsageError(f"--without-slowest {fleet.without_slowest}: there are {counted(len(names), 'node')}")
    fastest = sorted(names, key=lambda name: max(one.factor for one in nodes[name]))
    kept = fastest[: len(names) - fleet.without_slowest]
    return {name: nodes[name] for name in names if name in kept}


def _tables(nodes: _Nodes, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Overrides that describe nodes in the places of those of the platform, and behind them."""
    stated = [path.removeprefix(PROCESSORS) for path in parameters if path.startswith(PROCESSORS)]
    own = [f"{name}_cpu{at}" for name, row in nodes.items() for at in range(len(row))]
    keyed = dict(zip(dict.fromkeys([*stated, *own]), (one for row in nodes.values() for one in row), strict=False))
    found: dict[str, Any] = {f"{PROCESSORS}{key}": one.text for key, one in keyed.items()}
    if any(path.startswith(DEVIATIONS) for path in parameters):
        found |= {f"{DEVIATIONS}{key}": one.deviation for key, one in keyed.items()}
    return found


def _up_count(fewer: int, values: Mapping[str, FloatArray]) -> int:
    """Links upwards of a lowest switch that remain."""
    if _UP_COUNT not in values:
        raise UsageError("--without-uplinks: the platform states no fat tree (`[network.topology]`)")
    count = int(values[_UP_COUNT])
    if fewer >= count:
        raise UsageError(f"--without-uplinks {fewer}: a lowest switch has {counted(count, 'link')} upwards")
    return count - fewer


def link_notes(fleet: Fleet, runs: HPLRuns, rank_count: int) -> tuple[str, ...]:
    """Note that `without_uplinks` has no effect on runs with up to `rank_count` ranks; empty if it has one."""
    if not fleet.without_uplinks or runs.waits_for_uplinks(rank_count):
        return ()
    why = "the ranks are on one lowest switch, or their adapters are slower"
    return (f"--without-uplinks has no effect: no message waits for a link upwards; {why}",)


def _in_words(used: _Nodes, nodes: _Nodes) -> str:
    """Number of used nodes, and the others with their time relative to the mean of the used ones."""
    means = {name: float(np.mean([one.factor for one in row])) for name, row in nodes.items()}
    overall = float(np.mean([means[name] for name in used]))
    left_out = [f"{name} ({mean / overall - 1:+.1%})" for name, mean in means.items() if name not in used]
    return f"{len(used)} of {counted(len(nodes), 'node')}; left out: {abridged(left_out, _MOST_LISTED) or 'none'}"


def fleet_of(
    hosts: str | Path | Sequence[str],
    without_slowest: int,
    cluster: int | None,
    spread: str | Mapping[str, float],
    cluster_seed: int | None,
    without_uplinks: int,
) -> Fleet:
    """Fleet of options, as texts of the command line or as Python values. Raise `UsageError` for invalid ones."""
    names = _hosts(hosts) if isinstance(hosts, Path) or (isinstance(hosts, str) and hosts) else tuple(hosts)
    spreads = _spreads(spread) if isinstance(spread, str) else dict(spread)
    return Fleet(names, without_slowest, cluster, spreads, cluster_seed, without_uplinks)


def _hosts(text: str | Path) -> tuple[str, ...]:
    """Names of nodes from a text with commas, or a file of lines; `#` begins a comment, slots of a node are ignored."""
    stated = text
    if isinstance(text, Path) or "/" in text or is_file(Path(text)):
        text = read_text(Path(text))
    words = [line.split("#")[0].split() for line in text.replace(",", "\n").splitlines()]
    names = tuple(line[0] for line in words if line)
    if not names:
        raise UsageError(f"--hosts {stated}: no node is named")
    return names


def _spreads(text: str) -> dict[str, float]:
    """Spreads of a text such as `node=2%, call=0.03`."""
    expected = "LEVEL=SHARE with a share of at least 0, such as node=2%"
    texts = pairs("--spread", filter(None, (item.strip() for item in text.split(","))), expected)
    shares = {name: parse_share(value) for name, value in texts.items()}
    if wrong := next((name for name, share in shares.items() if share is None), None):
        raise UsageError(f"--spread {wrong}={texts[wrong]}: expected {expected}")
    return {name: share for name, share in shares.items() if share is not None}
