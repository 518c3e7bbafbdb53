"""Machine file of measured runs that states nothing else about it; ranks and nodes of a scenario of the runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.importers.run_columns import usual_heading
from whatif.models.quantities import FloatArray
from whatif.schema.toml_text import file_text
from whatif.table import Table
from whatif.units import ONE

_NO_LIMIT: Final = 1_000_000
_UNKNOWN: Final = "unknown: state it where a result needs it"
_MOST_VALUES: Final = 9


def machine_path(scenario: Path) -> Path:
    """Path of the machine next to a scenario."""
    return scenario.with_name(f"{scenario.stem}_machine.toml")


def machine_text(runs: str) -> str:
    """A platform without power, prices, devices and networks: results that need them are absent, with the reason."""
    document: dict[str, Any] = {
        "name": "Machine of the runs",
        "description": f"Machine of {runs}. State its values, or run the scenario with --platform NAME.",
        "node_count": _NO_LIMIT,
        "node": {"socket_count": 1},
        "network": {"inter_node": {"short_limit": "512 B", "eager_limit": "8 KiB"}},
        "sources": {"*": {"grade": "assumed", "source": _UNKNOWN}},
    }
    return file_text(document, f"The machine of {runs}; the runs do not state power, price, device or network.")


@dataclass(frozen=True)
class RunCounts:
    """Ranks and nodes of a scenario of runs."""

    application: Mapping[str, int | str]
    """`rank_count` and `ranks_per_node`, as numbers or as expressions of `parameters`."""
    parameters: Mapping[str, int] = field(default_factory=dict)
    """The count that the model reads and the ranks follow, by its name."""
    sweep: str = ""
    """Values of this count."""


def run_counts(runs: Table, variables: tuple[str, ...]) -> RunCounts:
    """Ranks and nodes by the columns of runs; they follow a count that is a variable of the model.

    Without a column of ranks there is one rank a node. Where no variable is a count, they are those of the largest run.
    """
    found = {meant: name for name in runs.columns if (meant := usual_heading(name)) and _are_counts(runs, name)}
    ranks, nodes = found.get("rank_count", ""), found.get("nodes", "")
    if not ranks and not nodes:
        return RunCounts({"rank_count": 1})
    share = _ranks_per_node(runs, ranks, nodes)
    per_node = {"ranks_per_node": share} if share else {}
    if ranks in variables:
        return RunCounts({"rank_count": f"= {ranks}", **per_node}, {ranks: _middle(runs, ranks)}, _values(runs, ranks))
    if nodes in variables and share:
        count = f"= {nodes} * {share}" if share > 1 else f"= {nodes}"
        return RunCounts({"rank_count": count, **per_node}, {nodes: _middle(runs, nodes)}, _values(runs, nodes))
    largest = int(np.nanargmax(runs.columns[ranks or nodes].values))
    return RunCounts({"rank_count": int(runs.columns[ranks or nodes].values[largest]), **per_node})


def _are_counts(runs: Table, name: str) -> bool:
    column = runs.columns[name]
    if column.dimension != ONE or not np.isfinite(column.values).any():
        return False
    known = _known(runs, name)
    return bool((known >= 1).all() and (known == np.floor(known)).all())


def _known(runs: Table, name: str) -> FloatArray:
    values: FloatArray = runs.columns[name].values
    return values[np.isfinite(values)]


def _ranks_per_node(runs: Table, ranks: str, nodes: str) -> int:
    """Ranks of a node: of all runs, or of the largest one; 0 where they do not fill the nodes, or nodes are unknown."""
    if not ranks or not nodes:
        return 0 if ranks else 1
    both = np.stack([runs.columns[ranks].values, runs.columns[nodes].values])
    both = both[:, np.isfinite(both).all(axis=0)]
    share = both[0] / both[1]
    largest = float(share[int(np.argmax(both[0]))]) if share.size else 0.0
    return int(largest) if largest >= 1 and largest.is_integer() else 0


def _middle(runs: Table, name: str) -> int:
    values = np.sort(_known(runs, name))
    return int(values[(len(values) - 1) // 2])


def _values(runs: Table, name: str) -> str:
    """The counts of the runs, and two and four times the largest."""
    counts = sorted({int(value) for value in _known(runs, name)})[-_MOST_VALUES + 2 :]
    return ", ".join(map(str, [*counts, 2 * counts[-1], 4 * counts[-1]]))
