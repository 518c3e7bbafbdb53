"""A trace as a scenario: the question what it takes on a machine, to be swept, explored and saved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from whatif.core.phases.traced_run import TraceFile
from whatif.schema.load import load_platform
from whatif.schema.network import Distance
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.toml import Document, parse_document, shown_path
from whatif.schema.toml_text import toml_text

# The best that a platform has parameters for; the K-model has those of max-rate.
_MODELS: Final = {"max_rate": "k_model", "injection": "injection", "postal": "postal", "loggp": "loggp"}
# Few points, for each of them is a replay.
_SWEEP: Final = {"computation": {"application.phases.trace.computation_factor": "0.5, 1, 2"}}


def trace_scenario(path: Path, platform: str, model: str = "", folders: Sequence[Path] = ()) -> Document:
    """The scenario that replays a trace, under the free name beside it that it would be saved as.

    `model` is the best that the platform has where it is empty. Raise `InvalidFileError` for what is no trace.
    """
    path = path.resolve()
    machine = load_platform(platform, folders)[0]
    phase = {"kind": "trace", "file": path.name, "model": model or _best(machine.network.inter_node)}
    application: dict[str, Any] = {"name": path.stem, "rank_count": TraceFile.at(path).trace.rank_count}
    application |= ranks_per_node(machine) | {"iteration_count": 1, "phases": {"trace": phase}}
    tables = {"platform": {"extends": platform}, "application": application, "sweep": _SWEEP}
    text = f"# What does {path.name} take on {machine.name}?\n{toml_text(tables)}"
    return parse_document(text, shown_path(free_name(path)), path.parent)


def free_name(path: Path) -> Path:
    """`STEM.toml` beside a file or folder, or the first `STEM-2.toml`, .. that is not there yet."""
    names = (path.with_name(f"{path.stem}{f'-{number}' if number > 1 else ''}.toml") for number in count(1))
    return next(name for name in names if not name.exists())


def _best(distance: Distance) -> str:
    return next(model for table, model in _MODELS.items() if getattr(distance, table) is not None)


def ranks_per_node(machine: PlatformSpec) -> dict[str, int]:
    """Where a machine has no GPUs: a rank for each core, or one where the number of cores is not a number."""
    node = machine.node
    if node.gpu is not None:
        return {}
    cores, sockets = None if node.cpu is None else node.cpu.core_count, node.socket_count
    if isinstance(cores, float) and isinstance(sockets, float):
        return {"ranks_per_node": round(cores * sockets)}
    return {"ranks_per_node": 1}
