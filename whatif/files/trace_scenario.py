"""Scenario files that replay a trace on a machine."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any, Final

from whatif.core.phases.traced_run import TraceFile
from whatif.core.platform import Platform
from whatif.errors import UsageError
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.toml import Document, parse_document, shown_path
from whatif.schema.toml_text import file_text, toml_text
from whatif.vocabulary import MESSAGE_MODELS, PARAMETER_TABLES

_PREFERRED: Final = tuple(dict.fromkeys(("max_rate", "injection", "postal", *MESSAGE_MODELS)))
"""Tables of a platform by the accuracy of their models."""
# Few points: each of them is a replay.
_SWEEP: Final = {"computation": {"application.phases.trace.computation_factor": "0.5, 1, 2"}}


def trace_scenario(path: Path, platform: Platform, model: str = "") -> Document:
    """Scenario that replays a trace, named after the free file name next to it under which it would be saved.

    Without a `model`, the messages are charged by the most accurate one that the platform has parameters for. Raise
    `InvalidFileError` for a file that is not a trace, `UsageError` for a model without parameters.
    """
    path = path.resolve()
    machine = platform.spec
    if model:
        _refuse_unstated(model, machine)
    tables = {
        "platform": {"extends": platform.name},
        "application": _application(path, machine, model),
        "sweep": _SWEEP,
    }
    text = file_text(tables, f"Run time of the trace {path.name} on {machine.name}.")
    return parse_document(text, shown_path(free_name(path)), path.parent)


def _refuse_unstated(model: str, machine: PlatformSpec) -> None:
    """Raise `UsageError` for a model of messages that the machine has no parameters for."""
    distance = machine.network.inter_node
    stated = [name for name in MESSAGE_MODELS if getattr(distance, PARAMETER_TABLES[name])]
    if not getattr(distance, PARAMETER_TABLES.get(model, model), True):
        has = f"; it has those of {', '.join(stated)}" if stated else ""
        raise UsageError(f"model `{model}`: {machine.name} has no parameters of it (`network.inter_node`){has}")


def _application(path: Path, machine: PlatformSpec, model: str) -> dict[str, Any]:
    phase = {"kind": "trace", "file": path.name, "model": model or _best(machine)}
    head = {"name": path.stem, "rank_count": TraceFile.at(path).facts.rank_count, **ranks_per_node(machine)}
    return {**head, "iteration_count": 1, "phases": {"trace": phase}}


def trace_phases(path: Path, machine: PlatformSpec, folder: Path | None) -> str:
    """Tables of the phase that replays a trace, and of its ranks. Raise `UsageError` for one in another folder."""
    path = path.resolve()
    if folder is None or path.parent != folder.resolve():
        place = "its scenario, which is not a file" if folder is None else f"the scenario, {shown_path(folder)}"
        raise UsageError(f"{shown_path(path)}: a trace is read from the folder of {place}: copy it there")
    return toml_text({"application": _application(path, machine, "")})


def free_name(path: Path) -> Path:
    """`STEM.toml` next to a file or folder, or the first of `STEM-2.toml`, .. that does not exist."""
    names = (path.with_name(f"{path.stem}{f'-{number}' if number > 1 else ''}.toml") for number in count(1))
    return next(name for name in names if not name.exists())


def _best(machine: PlatformSpec) -> str:
    """The most accurate model with parameters; the K-model uses those of the max-rate model."""
    table = next((table for table in _PREFERRED if getattr(machine.network.inter_node, table) is not None), "")
    if not table:
        raise UsageError(f"{machine.name} has no parameters of messages between nodes (`network.inter_node`)")
    return "k_model" if table == "max_rate" else table


def ranks_per_node(machine: PlatformSpec) -> dict[str, int]:
    """Key `ranks_per_node` for a machine without a default: it states neither GPUs nor cores."""
    node = machine.node
    return {} if node.gpu is not None or node.cpu is not None else {"ranks_per_node": 1}
