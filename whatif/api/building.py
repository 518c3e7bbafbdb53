"""New scenarios, with machines of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from whatif.errors import UsageError
from whatif.files.machine_template import MachineParts
from whatif.paths import toml_path
from whatif.studies.machine_form import machine_form, machine_of, machine_problems
from whatif.studies.new_scenario import NewScenario, named_phases, new_scenario
from whatif.studies.scenario_sources import DEFAULT_PLATFORM

__all__ = [
    "DEFAULT_PLATFORM",
    "MachineParts",
    "NewScenario",
    "machine_form",
    "machine_of",
    "machine_problems",
    "named_phases",
    "new",
    "new_scenario",
]


def new(
    name: str | Path,
    *,
    platform: str | None = None,
    gpu: str | None = None,
    gpus_per_node: int | None = None,
    processor: str | None = None,
    sockets_per_node: int | None = None,
    network: str | None = None,
    ports_per_node: int | None = None,
    node_count: int | None = None,
    phases: Sequence[str] = (),
    runs: str | Path | None = None,
    platform_dirs: Sequence[str | Path] = (),
) -> NewScenario:
    """Scenario to begin with: a machine, the phases of one iteration, and measured runs, as texts of files.

    The machine is a `platform` by name (default: summit), or parts by name: `gpu`, `processor` and `network` with
    their numbers; it becomes a platform file `NAME_machine.toml`, with the values of the parts, and of a generic
    server where none is stated. `phases` are motifs, `SCENARIO:PHASE`, or files: profiles, traces and scenarios, each
    perhaps with a name, `NAME=SOURCE`; by default a halo and its work. `runs` is a CSV file of measured runs of this
    machine, which is then stated.
    `write()` of the result writes the files, and never over others.

    Raise `UsageError` for unknown parts and phases, and for what does not fit together.

    >>> import whatif
    >>> made = whatif.new("mine", gpu="h100-sxm5-80gb", gpus_per_node=4, node_count=8, phases=["stencil", "allreduce"])
    >>> [path.name for path in made.files]
    ['mine_machine.toml', 'mine.toml']
    """
    path = toml_path(name)
    counts = {
        "gpus_per_node": gpus_per_node,
        "sockets_per_node": sockets_per_node,
        "ports_per_node": ports_per_node,
        "node_count": node_count,
    }
    stated = {"gpu": gpu, "processor": processor, "network": network, **counts}
    parts = {key: value for key, value in stated.items() if value is not None}
    if parts and platform is not None:
        message = f"platform {platform} and the parts of a machine ({', '.join(parts)}) exclude each other"
        raise UsageError(f"{message}; `--set` of `whatif run` changes values of a platform")
    if gpus_per_node is not None and gpu is None:
        raise UsageError("gpus_per_node: no effect without a gpu")
    if runs is not None and Path(runs).is_file() and not parts and platform is None:
        raise UsageError("runs: state the machine of the runs: a platform, or its parts (gpu, processor, network)")
    return new_scenario(
        path,
        MachineParts(**parts) if parts else platform or DEFAULT_PLATFORM,  # type: ignore[arg-type]
        phases,
        runs=None if runs is None else Path(runs),
        folders=tuple(map(Path, platform_dirs)),
    )
