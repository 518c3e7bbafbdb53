"""Decisions between platforms, layouts and what a budget buys."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from whatif.api import decisions
from whatif.core.energy import BUSY_POWER, node_capital
from whatif.core.evaluate import evaluate
from whatif.plotting.bars import LESS, BarChart, BarRow
from whatif.plotting.description import AxisDescription
from whatif.studies.decision_tables import titles
from whatif.studies.decompositions import Layout, settings
from whatif.studies.purchase import Offer, Offers
from whatif.studies.ranking import BESIDE, Ranking, Standing
from whatif.studies.study_result import values_on_all_platforms
from whatif.table import Table
from whatif.tui.commands.explorer_commands import Adopt, EditAll
from whatif.tui.decisions.answers import Decision, DecisionRequest
from whatif.tui.jobs.band_job import NOTHING_UNCERTAIN, sampling_of
from whatif.tui.labels import brief
from whatif.units import Quantity, crossed, format_quantity

_LAYOUTS: Final = 20
_NOW: Final = " (now)"
"""Mark after the label of the present choice."""
_JOB: Final = "job"
"""Name of the only application."""


def machines(request: DecisionRequest) -> Decision:
    """All machines by their speedup over the present one, those that cannot run the application last."""
    program, result, platforms = request.program, request.result, request.platforms()
    sampling = sampling_of(request.view)
    now = float(evaluate(program).numbers(program.term_of(result)))
    inputs = {_JOB: request.unedited}
    found = decisions.compare(inputs, platforms, references={_JOB: now}, result=result, samples=sampling)
    able = sum(math.isfinite(its.merit) for its in found.standings)
    what = format_quantity(now, found.dimension, 4)
    said = [f"{able} of {len(platforms)} machines can run it; a merit of 1 is the present {result}, {what}."]
    said += _of_machines(request, "merit 1")
    said.append(
        "B samples the uncertain values: how likely is each machine to be the best?"
        if sampling is None
        else _chances(found)
    )
    named = [word for name in platforms for word in ("--platform", name)]
    bars = tuple(_machine(its, request) for its in found.standings)
    return Decision(
        f"machines by {result}",
        tuple(said),
        _with_costs(found.table(), found),
        BarChart("machines", AxisDescription("merit"), bars),
        tuple(_adopting(its.platform, math.isfinite(its.merit), request) for its in found.standings),
        request.command("compare", *named, "--result", result, scenario=inputs[_JOB], machine=False),
    )  # fmt: skip


def _of_machines(request: DecisionRequest, alone: str) -> list[str]:
    """Scope of edits of the present machine, and what the scenario's file changes on all machines."""
    edited = [f"Edits of the present machine count in {alone} only."] if request.edited else []
    return [*edited, *values_on_all_platforms(request.scenario)]


def _adopting(name: str, able: bool, request: DecisionRequest) -> Adopt | None:
    return Adopt(name) if able and name != request.present else None


def _chances(found: Ranking) -> str:
    if not found.drawn:
        return NOTHING_UNCERTAIN
    likely = max((its for its in found.standings if its.chances), key=_best, default=None)
    if likely is None:
        return "No sample is feasible on every machine, so there are no probabilities."
    return f"{likely.platform} is the best with a probability of {_best(likely):.0%}."


def _best(its: Standing) -> float:
    return its.chances.best if its.chances is not None else 0.0


def _machine(its: Standing, request: DecisionRequest) -> BarRow:
    label = _named(its.platform, request)
    if not math.isfinite(its.merit):
        return BarRow(label, math.nan, math.nan, "faint", brief(_reason(its)))
    answer = its.answers[_JOB]
    words = [f"{its.merit:.3g}x", *([f"best {_best(its):.0%}"] if its.chances else [])]
    words += [format_quantity(cost.value, cost.dimension, 3) for cost in answer.other_results.values()]
    return BarRow(label, 0.0, its.merit, "faint" if its.platform == request.present else LESS, "  ".join(words))


def _named(platform: str, request: DecisionRequest) -> str:
    """A row's label; no machine is the present one where values of its machine are edited."""
    return _labelled(platform, platform == request.present and not request.edited)


def _labelled(label: str, is_now: bool) -> str:
    return f"{label}{_NOW * is_now}"


def _with_costs(table: Table, found: Ranking) -> Table:
    """The ranking with energy and cost of the run; a cost in another currency than the first is left out."""
    known = [its.answers[_JOB].other_results for its in found.standings]
    compared, *_ = titles(found)
    columns = {
        found.result if name == compared else name.removeprefix(f"{_JOB} "): column
        for name, column in table.columns.items()
    }
    reasons = columns.pop("infeasible", None)
    for name in BESIDE:
        dimension = next((others[name].dimension for others in known if name in others), None)
        if dimension is not None and name not in columns:
            values = [others.get(name, Quantity(math.nan, dimension)) for others in known]
            cells = [[one.value if one.dimension == dimension else math.nan] for one in values]
            columns |= Table.of_rows({name: dimension}, cells).columns
    if reasons is not None:
        columns |= Table.of_rows({"infeasible": None}, [[_reason(its)] for its in found.standings]).columns
    return replace(table, columns=columns)


def _reason(its: Standing) -> str:
    """Reason why a machine has no answer, without the name of the only application."""
    return its.reason.removeprefix(f"{_JOB}: ")


def layout(request: DecisionRequest) -> Decision:
    """The best decompositions of the grid and mappings of its ranks."""
    scenario, result, dimension = request.scenario, request.result, request.program.dimension_of(request.result)
    found = decisions.tune_grid(scenario, result=result, count=_LAYOUTS)
    shown = [item for _, item in found.shown(_LAYOUTS)]
    best, now = found.ranked[0], found.present
    said = [*(f"Left out: {reason}" for reason in found.refused)]
    if math.isfinite(found.change(best)):
        ends = (format_quantity(item.result, dimension, 4) for item in (now, best))
        said.insert(0, f"{' at present, '.join(ends)} at best ({found.change(best):+.2%}).")

    def row(item: Layout) -> BarRow:
        change = f"  {found.change(item):+.2%}" if math.isfinite(found.change(item)) else ""
        text = f"{format_quantity(item.result, dimension, 4)}{change}" if not item.reason else item.reason
        is_now = found.is_present(item)
        label = _labelled(_layout_words(item), is_now)
        return BarRow(label, 0.0, item.result, "faint" if is_now else LESS, text)

    return Decision(
        f"{result} of {len(found.ranked)} layouts",
        tuple(said),
        found.table(),
        BarChart("layouts", AxisDescription(result, dimension), tuple(map(row, shown))),
        tuple(None if found.is_present(item) else EditAll(tuple(settings(item, scenario).items())) for item in shown),
        request.command("tune grid", "--result", result, "--show", str(_LAYOUTS)),
    )


def _layout_words(item: Layout) -> str:
    return f"{crossed(item.ranks) or 'bisection'} {item.mapping} {item.order}"


def budget(request: DecisionRequest) -> Decision:
    """Nodes and jobs per day on every machine, for the power or the money of the present one."""
    limits, missing = _limits(request)
    if missing:
        return Decision("what this machine is worth elsewhere", (f"Nothing to spend: {missing} stated here.",))
    (name, limit), *_ = limits.items()
    text, exact = (format_quantity(limit.value, limit.dimension, digits) for digits in (4, 12))
    inputs = request.unedited
    found = decisions.budget(
        {_JOB: inputs}, request.platforms(), capital=limits.get("capital"), power=limits.get("power")
    )
    known = Offers(tuple(row for row in found if not row.reason.startswith("not stated")))
    said = [f"{text} is the {name} of all nodes of the present machine; as many jobs as fit run side by side."]
    said += _of_machines(request, f"this {name}")
    if len(known) < len(found):
        said.append(f"{len(found) - len(known)} machines do not state the values that it needs.")
    if name == "power" and "total_cost" in request.program.columns:
        said.append("y asks about total_cost: the same question for money.")
    named = [word for platform in request.platforms() for word in ("--platform", platform)]
    table = known.table()
    return Decision(
        f"jobs per day for {text}",
        tuple(said),
        Table({key: column for key, column in table.columns.items() if key != "scenario"}, table.notes),
        BarChart("jobs per day", AxisDescription("jobs per day"), tuple(_offer(row, request) for row in known)),
        tuple(_adopting(row.platform, not row.reason, request) for row in known),
        request.command("budget", *named, f"--{name}", exact, scenario=inputs, machine=False),
    )


def _limits(request: DecisionRequest) -> tuple[dict[str, Quantity], str]:
    """The power of all nodes, or where the cost is asked about their price; or what is not stated for it."""
    program, values = request.program, evaluate(request.program).values
    money = request.result.endswith("_cost") or BUSY_POWER not in program.terms
    name, each = ("capital", node_capital(program.terms)) if money else ("power", BUSY_POWER)
    if each not in values:
        return {}, f"neither {each} nor platform.node.host.power is"
    parameter = program.parameters.get(each)
    dimension = program.terms[each].dimension if parameter is None else parameter.dimension
    return {name: Quantity(float(values[each]) * float(values["platform.node_count"]), dimension)}, ""


def _offer(row: Offer, request: DecisionRequest) -> BarRow:
    label = _named(row.platform, request)
    if row.reason:
        return BarRow(label, math.nan, math.nan, "faint", brief(row.reason))
    cost = f"  {format_quantity(row.cost.value, row.cost.dimension, 3)}" if row.cost is not None else ""
    text = f"{row.daily_jobs:,.0f}  {row.node_count:,.0f} nodes{cost}"
    return BarRow(label, 0.0, row.daily_jobs, "faint" if row.platform == request.present else LESS, text)
