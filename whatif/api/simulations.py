"""Simulation of scenarios and traces, message by message."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from whatif.api.common import AnyPlatform, AnyScenario, Overrides, open_source
from whatif.files.timeline_files import check_timeline
from whatif.studies.simulation_run import Simulation, simulate_source
from whatif.studies.trace_import import ImportedTrace
from whatif.vocabulary import SimulationTable, TraceModel

__all__ = ["check_timeline", "import_trace", "simulate"]


def simulate(
    scenario: AnyScenario,
    *,
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Overrides | None = None,
    model: TraceModel | None = None,
    ranks: int | None = None,
    iterations: int = 1,
    show: SimulationTable = "ranks",
    collectives: Sequence[str] = (),
) -> Simulation:
    """Simulation of a scenario, or of a trace (DUMPI, SimGrid, GOAL, OTF2), message by message on a platform.

    `model` charges the messages of a trace (default: the most accurate one that the platform has parameters for);
    phases of a scenario name their own. `collectives` are algorithms of those of a trace: a library whose rules select
    them (`"mpich"`, `"openmpi"`), and single ones (`"allreduce=ring"`). `ranks` extrapolates a regular trace.
    `iterations` repeats the phases of a scenario. `show` names the table: `ranks`, `messages`, `path` (critical path)
    or `slopes`; `table(NAME)` gives the others.

    Raise `UsageError` for an option without effect, and if no phase sends messages; `InfeasiblePointError` for an
    infeasible point, a deadlock, and messages that do not match.

    >>> import whatif
    >>> simulation = whatif.simulate("jacobi2d", ranks=12)
    >>> simulation.to_pandas()["rank"].tolist() == list(range(12))
    True
    >>> float(simulation.table("messages").to_pandas()["message_size"].min())
    131072.0
    """
    stated = dict(overrides or {}) | ({} if ranks is None else {"application.rank_count": ranks})
    opened = open_source(scenario, platform=platform, platform_dirs=platform_dirs, overrides=stated, model=model)
    return simulate_source(opened, iterations, show, collectives)


def import_trace(
    file: str | Path, *, platform: AnyPlatform | None = None, platform_dirs: Sequence[str | Path] = ()
) -> ImportedTrace:
    """Operations of each rank of a trace, and the scenario that replays it.

    `file` is a trace (DUMPI, SimGrid, GOAL, OTF2) or its folder. `platform` is the one that the scenario names
    (default: summit). Raise `InvalidFileError` for a file that is not a trace.

    >>> import tempfile, pathlib, whatif
    >>> path = pathlib.Path(tempfile.mkdtemp(), "pair.goal")
    >>> _ = path.write_text("num_ranks 2\\nrank 0 {\\na: send 8b to 1\\n}\\nrank 1 {\\nb: recv 8b from 0\\n}\\n")
    >>> trace = whatif.import_trace(path)
    >>> trace.to_pandas()["sent_size"].tolist()
    [8.0, 0.0]
    >>> float(whatif.run(trace.scenario, platform="lassen")["total_time"]) > 0
    True
    """
    return ImportedTrace(Path(file), platform, tuple(map(Path, platform_dirs)))
