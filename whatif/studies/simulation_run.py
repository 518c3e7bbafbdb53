"""Simulation of a scenario message by message: its trace, or its phases as patterns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, get_type_hints

import numpy as np

from whatif.axes import first_number
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.message_simulation import MachineInputs, MessageMachine, core_count, machine_of
from whatif.core.parameter_paths import RANK_COUNT
from whatif.core.phases.reduction import reduces
from whatif.core.phases.traced_run import TraceFile
from whatif.core.scenario import Scenario
from whatif.core.term import Program, Term
from whatif.errors import InfeasiblePointError, UsageError
from whatif.models.patterns import GridPattern, Ranks, block_nodes, message_kinds, nested_domains
from whatif.models.quantities import FloatArray
from whatif.plotting.lanes import LaneChart
from whatif.plotting.presentable import Presentable
from whatif.schema.application import HaloPhase, TracePhase
from whatif.schema.collective_phase import CollectivePhase
from whatif.simulation.activity import Activity, activity
from whatif.simulation.collective_stages import Stage, schedules_of, stages
from whatif.simulation.exchange import exchange_trace
from whatif.simulation.generate import concatenated, halo_trace, repeated, staged_trace, work_trace
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import COLLECTIVES, Kind, Trace
from whatif.simulation.replay import Replay, replay
from whatif.simulation.schedule import Places, Schedule, Step
from whatif.simulation.selection import parse_selection
from whatif.studies.placement_layout import halo_pattern, halo_phases
from whatif.studies.scenario_sources import ScenarioSource
from whatif.table import Table
from whatif.units import SECOND, Quantity, counted, format_quantity
from whatif.vocabulary import SIMULATION_TABLES, SimulationTable

MOST_SIMULATED: Final = 20_000_000
"""Most operations that are simulated."""
_COMMUNICATION: Final = "application.communication"
_COLLECTIVES: Final = list(COLLECTIVES)
_TREES: Final = [Kind.BROADCAST, Kind.REDUCE]


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Presentable):
    """A simulated run: its operations, machine, and when every rank did what."""

    schedule: Schedule
    node: Ranks
    """Node of each rank, [rank]."""
    machine: MessageMachine
    activity: Activity
    replay: Replay | None
    """None if messages share links."""
    platform: str
    """Name of the machine in its file."""
    remarks: tuple[str, ...] = ()
    """Parts of the scenario that are not simulated."""
    show: SimulationTable = "ranks"
    """The table shown unless another one is named."""

    def table(self, show: SimulationTable | None = None) -> Table:
        """Time of each rank by kind of call; or messages, critical path, or slopes of the run time.

        Raise `UsageError` for a critical path where messages share links, and an unknown name.
        """
        from whatif.studies.simulation_tables import TABLES

        return TABLES[show or self.show](self)

    @property
    def notes(self) -> tuple[str, ...]:
        """Run time, size of the run, and parts of the scenario that are not simulated."""
        count = int(self.node.max()) + 1
        time = format_quantity(self.activity.run_time, SECOND)
        size = f"{counted(len(self.node), 'rank')} on {counted(count, 'node')}"
        return (f"{time} on {self.platform}: {size}, {counted(len(self.activity.sent), 'message')}", *self.remarks)

    def picture(self) -> LaneChart:
        """Time lines of the first ranks, with the critical path."""
        from whatif.studies.simulation_summary import lane_chart

        return lane_chart(self)

    def write_timeline(self, path: str | Path) -> None:
        """Write the time line of all ranks: FILE.json for Perfetto, FILE.paje for ViTE; `UsageError` for others."""
        from whatif.files.timeline_files import write_timeline

        write_timeline(self.activity, self.node.tolist(), Path(path))


def simulate(program: Program, evaluation: Evaluation, iteration_count: int = 1) -> Simulation:
    """Simulation of a scenario at one point: its trace, or iterations of its phases, one after another on every rank.

    Raise `UsageError` if no phase sends messages, or the scenario has closed forms for them, and
    `InfeasiblePointError` for an infeasible point and for messages that do not match.
    """
    if obstacle := evaluation.obstacle():
        raise InfeasiblePointError(f"infeasible: {obstacle}")
    phases = sending_phases(program)
    traced = traced_phase(program)
    if traced:
        schedule, sequential = _traced(program, evaluation, traced)
    else:
        _check_equal_charges(evaluation, list(phases))
        schedule, sequential = _generated(program, evaluation, iteration_count), True
    term = simulated_term(program, traced or next(iter(phases)))
    machine = _machine(evaluation, term)
    node, ranks_per_socket, nodes_per_domain = _placed(program, evaluation, schedule.rank_count, term)
    machine.refuse_shared_domains(nodes_per_domain)
    places = Places(*nested_domains(node, ranks_per_socket, nodes_per_domain))
    replayed = replay(schedule, places, machine.costs) if machine.links is None else None
    times = replayed or machine.shared(schedule, places)
    spans = activity(schedule, times.start, times.end, times.match, sequential)
    platform = program.loaded.scenario.platform.name
    remarks = (*_trace_remarks(program, evaluation, traced, schedule), *_remarks(program, traced))
    return Simulation(schedule, node, machine, spans, replayed, platform, remarks)


def simulate_source(
    source: ScenarioSource, iteration_count: int = 1, show: SimulationTable = "ranks", collectives: Sequence[str] = ()
) -> Simulation:
    """Simulation of a scenario or trace; communication is simulated unless an override states another model.

    `collectives` are algorithms of those of a trace. Raise `UsageError` for a profile, an unknown table, several
    iterations of a trace, and `collectives` without a trace.
    """
    scenario = source.scenario
    if source.kind == "profile":
        raise UsageError(f"{source.path}: a GPU profile holds no messages; see `whatif project` and `whatif open`")
    if show not in SIMULATION_TABLES:
        raise UsageError(f"show: `{show}`: expected one of {', '.join(SIMULATION_TABLES)}")
    if iteration_count < 1:
        raise UsageError(f"iterations: {iteration_count}: expected at least 1")
    if traced_phase(scenario.program) and iteration_count > 1:
        raise UsageError("iterations: only for scenarios; a trace is simulated as it was recorded")
    if collectives:
        scenario = _with_collectives(scenario, collectives)
    if _COMMUNICATION not in scenario.overrides:
        scenario = with_simulated_messages(scenario)
    program = scenario.program
    try:
        return replace(simulate(program, evaluation_without_messages(program), iteration_count), show=show)
    except InfeasiblePointError as problem:
        raise InfeasiblePointError("\n  ".join((str(problem), *_causes(program)))) from None


def _causes(program: Program) -> Iterator[str]:
    """Possible causes of ranks of a trace that wait for ever."""
    if not (traced := traced_phase(program)):
        return
    file = trace_file(program, traced)
    yield from file.facts.warnings
    traced_count = file.facts.rank_count
    if program.loaded.scenario.application.rank_count != traced_count:
        yield f"the trace has {counted(traced_count, 'rank')}: other numbers need one that can be extrapolated"


def _with_collectives(scenario: Scenario, collectives: Sequence[str]) -> Scenario:
    """The scenario with algorithms of the collectives of its trace."""
    phase = traced_phase(scenario.program)
    if not phase:
        raise UsageError("collectives: only for traces; the phases of a scenario state their `algorithm`")
    text = ", ".join(collectives)
    try:
        named = {kind for kind, _ in parse_selection(text).named}
    except UsageError as problem:
        raise UsageError(f"--collective {text}: {problem}") from None
    programs = trace_file(scenario.program, phase).trace.programs
    called = {Kind(kind) for program in programs for kind in np.unique(program.kind)} & COLLECTIVES
    if not called or named - called:
        known = ", ".join(sorted(kind.name.lower() for kind in called)) or "none"
        raise UsageError(f"--collective {text}: no effect; collectives of the trace: {known}")
    return scenario.with_overrides({f"application.phases.{phase}.collectives": text})


def with_simulated_messages(scenario: Scenario) -> Scenario:
    """The scenario with simulated communication in place of closed forms; the scenario itself if it has none."""
    if not has_closed_forms(scenario.program):
        return scenario
    return scenario.with_overrides({_COMMUNICATION: "simulated"})


def has_closed_forms(program: Program) -> bool:
    """Whether the messages of a scenario are closed forms."""
    return program.loaded.scenario.application.communication == "modelled" and not traced_phase(program)


def traced_phase(program: Program) -> str:
    """Name of the first phase that replays a trace; empty without one."""
    phases = program.loaded.scenario.application.phases
    return next((name for name, phase in phases.items() if isinstance(phase, TracePhase)), "")


def evaluation_without_messages(program: Program) -> Evaluation:
    """Evaluation in which no message is simulated: the input of a simulation."""
    shapes = {
        term.name: (2,) if "part" in term.core else () for term in program.terms.values() if "charges" in term.inputs
    }
    return evaluate(program, {name: np.zeros(shape) for name, shape in shapes.items()})


def sending_phases(program: Program) -> dict[str, HaloPhase | CollectivePhase | TracePhase]:
    """Phases whose messages can be simulated; raise `UsageError` without any, or if they have closed forms."""
    application = program.loaded.scenario.application
    kinds = (HaloPhase, CollectivePhase, TracePhase)
    sending = {name: phase for name, phase in application.phases.items() if isinstance(phase, kinds)}
    if not sending:
        raise UsageError("no phase of this scenario sends messages")
    if application.communication == "modelled" and not any(isinstance(p, TracePhase) for p in sending.values()):
        raise UsageError('application.communication is `modelled`: set it to "simulated"')
    return sending


def simulated_term(program: Program, phase: str) -> Term:
    """Term that simulates the messages of a phase."""
    return next(term for term in program.terms.values() if term.inputs.get("charges") == f"{phase}.charges")


def _check_equal_charges(evaluation: Evaluation, phases: Sequence[str]) -> None:
    """One replay charges all messages alike."""
    first, *others = phases
    for other in others:
        for what in ("charges", "limits"):
            if not np.array_equal(evaluation.values[f"{first}.{what}"], evaluation.values[f"{other}.{what}"]):
                message = f"{first} and {other} charge messages differently, by their model or its k"
                raise UsageError(
                    f"{message}: they cannot be simulated in one run; `whatif run` simulates each separately"
                )


def _trace_remarks(program: Program, evaluation: Evaluation, traced: str, schedule: Schedule) -> Iterator[str]:
    """Warnings of a trace, and the factor of its computations, if it has any."""
    if not traced:
        return
    yield from trace_file(program, traced).facts.warnings
    path = f"application.phases.{traced}.computation_factor"
    factor = _number(evaluation, path)
    if factor != 1:
        yield f"Computations are as traced times {factor:g} ({path})."
    elif schedule.size[schedule.step == Step.COMPUTE].any():
        yield f"Computations are as traced: {path} scales them."


def _remarks(program: Program, traced: str) -> tuple[str, ...]:
    """Parts of a scenario that are not simulated."""
    application = program.loaded.scenario.application
    remarks = {
        f"Only {traced} is simulated: a trace is a separate run.": bool(traced) and len(application.phases) > 1,
        "Overlaps are not simulated: the phases follow one another.": bool(application.overlaps) and not traced,
    }
    return tuple(text for text, is_true in remarks.items() if is_true)


def trace_file(program: Program, phase: str) -> TraceFile:
    """File of a trace phase."""
    file = program.terms[f"{phase}.times"].options["file"]
    assert isinstance(file, TraceFile)
    return file


def _traced(program: Program, evaluation: Evaluation, phase: str) -> tuple[Schedule, bool]:
    rank_count = round(_number(evaluation, RANK_COUNT))
    factor = _number(evaluation, f"application.phases.{phase}.computation_factor")
    file = trace_file(program, phase)
    return file.schedule(rank_count, factor), file.facts.is_sequential


def _number(evaluation: Evaluation, name: str) -> float:
    return first_number(evaluation.values[name])


def _machine(evaluation: Evaluation, term: Term) -> MessageMachine:
    """Machine that a term is simulated on."""
    types = get_type_hints(MachineInputs, include_extras=True)
    stated = {
        name: _at_point(evaluation.values[str(term.inputs[name])], core_count(kind))
        for name, kind in types.items()
        if name in term.inputs
    }
    return machine_of(MachineInputs(**stated), term.options["topology"], term.options["table"])


def _at_point(values: FloatArray, core: int) -> FloatArray:
    """Value at the only point of an evaluation."""
    array = np.asarray(values)
    return array.reshape(array.shape[array.ndim - core :])


def _placed(program: Program, evaluation: Evaluation, rank_count: int, term: Term) -> tuple[Ranks, int, int]:
    """Node of each rank, ranks of a socket, and nodes of a link domain.

    Nodes follow from the mapping of the grid; without a halo, consecutive ranks fill a node.
    """
    halo = next(iter(halo_phases(program)), None)
    if halo is not None and simulated_term(program, halo) is term:
        pattern = halo_pattern(program, evaluation, halo)
        return pattern.nodes(), pattern.ranks_per_socket, pattern.nodes_per_domain
    counts = (term.inputs[name] for name in ("ranks_per_node", "ranks_per_socket", "nodes_per_domain"))
    numbers = (item.value if isinstance(item, Quantity) else _number(evaluation, item) for item in counts)
    ranks_per_node, ranks_per_socket, nodes_per_domain = (round(number) for number in numbers)
    return block_nodes(rank_count, ranks_per_node), ranks_per_socket, nodes_per_domain


def _generated(program: Program, evaluation: Evaluation, iteration_count: int) -> Schedule:
    """Operations of the phases: messages as patterns, all other phases as work of their modelled time."""
    collectives: list[Stage] = []
    parts: list[tuple[Trace, int]] = []
    for part in program.phases:
        phase = program.loaded.scenario.application.phases.get(part.phase)
        if isinstance(phase, HaloPhase):
            parts.append((_halo(program, evaluation, part.phase), _count(evaluation, f"{part.phase}.exchange_count")))
        elif isinstance(phase, CollectivePhase):
            own, collective = _collective(evaluation, program.terms[f"{part.phase}.simulated_time"])
            collectives += own
            parts.append((collective, _count(evaluation, f"{part.phase}.operation_count")))
        else:
            parts.append((work_trace(_number(evaluation, part.term), _rank_count(evaluation)), 1))
    if sum(_operations(trace) * count for trace, count in parts) * iteration_count > MOST_SIMULATED:
        raise UsageError(f"more than {MOST_SIMULATED:,} operations: simulate fewer ranks or iterations")
    traces = [trace for trace, count in parts for _ in range(count)]
    if not traces:
        raise UsageError("no phase of this scenario has an exchange or operation in an iteration")
    whole = repeated(concatenated(traces), iteration_count)
    return lower(whole, schedules_of(collectives), _reduction_time(program, evaluation))


def _reduction_time(program: Program, evaluation: Evaluation) -> float:
    """s in which a rank combines a received byte, equal for all reductions of a run; `UsageError` if they differ."""
    times: dict[str, float] = {}
    for name, phase in program.loaded.scenario.application.phases.items():
        if isinstance(phase, CollectivePhase) and reduces(phase):
            term = program.terms[f"{name}.simulated_time"]
            times[name] = _machine(evaluation, term).costs.reduction_time
    first, *others = times or {"": 0.0}
    if other := next((name for name in others if times[name] != times[first]), ""):
        reason = "by their size or the key `arithmetic`"
        raise UsageError(
            f"{first} and {other} combine at different rates, {reason}: they cannot be simulated in one run; "
            "`whatif run` simulates each separately"
        )
    return times.get(first, 0.0)


def _rank_count(evaluation: Evaluation) -> int:
    return round(_number(evaluation, RANK_COUNT))


def _operations(trace: Trace) -> int:
    """Operations of all ranks; a collective counts as two messages for each of its log2 P rounds, a tree as two."""
    rounds = 2 * trace.rank_count.bit_length()
    weights = [
        len(program)
        + int(np.where(np.isin(program.kind, _TREES), 2, rounds)[np.isin(program.kind, _COLLECTIVES)].sum())
        for program in trace.programs
    ]
    return int(np.array(weights)[trace.program_of].sum())


def _count(evaluation: Evaluation, parameter: str) -> int:
    return round(_number(evaluation, f"application.phases.{parameter}"))


def _collective(evaluation: Evaluation, term: Term) -> tuple[tuple[Stage, ...], Trace]:
    """Stages of a collective, and their trace."""
    names = ("group_size", "group_stride", "ranks_per_node", "nodes_per_domain")
    size, stride, on_node, nodes = (round(_input(evaluation, term, name)) for name in names)
    parts = stages(term.options["algorithm"], size, stride, on_node * nodes)
    return parts, staged_trace(parts, _rank_count(evaluation), _input(evaluation, term, "message_size"))


def _input(evaluation: Evaluation, term: Term, name: str) -> float:
    """Number that a term is given."""
    reference = term.inputs[name]
    return _number(evaluation, reference) if isinstance(reference, str) else reference.value


def _halo(program: Program, evaluation: Evaluation, phase: str) -> Trace:
    pattern, sizes = halo_pattern(program, evaluation, phase), np.ravel(evaluation.values[f"{phase}.message_size"])
    if isinstance(pattern, GridPattern):
        return halo_trace(pattern, sizes)
    kind_count = len(message_kinds(len(pattern.dims), pattern.neighbours))
    return exchange_trace(pattern, np.broadcast_to(sizes, kind_count))
