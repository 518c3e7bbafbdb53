"""What makes the result what it is: bottlenecks, differences, uncertain values."""

from __future__ import annotations

from whatif.core.term import Program
from whatif.core.uncertainty import uncertain
from whatif.errors import ImpossiblePointError
from whatif.studies.attribution import Attribution, attribute
from whatif.studies.bar_charts import waterfall_bars
from whatif.studies.bottlenecks import ladder
from whatif.studies.sobol import sobol_indices
from whatif.tui.band_job import sampling_of
from whatif.tui.decisions.answers import Decision, DecisionRequest


def bottlenecks(request: DecisionRequest) -> Decision:
    """The ladder of ideals."""
    found = ladder(request.program, request.result)
    said = ["No part of it, made ideal, saves as much as 0.1 %."] if not found.rungs else []
    return Decision(
        f"what is left of {request.result} with a part ideal, and all above it",
        (*found.notes, *said),
        found.table(),
        found.picture(),
        command=request.command("sensitivity", "--result", request.result, "--show", "ladder"),
    )


def why(request: DecisionRequest) -> Decision:
    """The waterfall from the baseline to the present values, or to another machine."""
    if request.changed:
        return _waterfall(request, request.baseline.program, request.program, ("before", "now"), "")
    other, scenario = request.view.against, request.scenario
    if not other or other == request.present:
        words = "Nothing differs from the baseline: change a value, or press x for another machine."
        return Decision(f"why {request.result} differs", (words,))
    there = scenario.on_platform(other).program
    names = request.program.loaded.scenario.platform.name, there.loaded.scenario.platform.name
    command = request.command("diff", "--platform", other, "--result", request.result, machine=False)
    return _waterfall(request, request.program, there, names, "" if scenario.platform else command)


def _waterfall(
    request: DecisionRequest, one: Program, other: Program, names: tuple[str, str], command: str
) -> Decision:
    found = _attributed(one, other, request.result)
    return Decision(
        f"{request.result} from {names[0]} to {names[1]}",
        found.notes,
        found.table(),
        waterfall_bars(found, names),
        command=command,
    )


def _attributed(one: Program, other: Program, result: str) -> Attribution:
    """By values, or by whole tables where a value makes no sense without its neighbours."""
    try:
        return attribute(one, other, result)
    except ImpossiblePointError:
        return attribute(one, other, result, by_table=True)


def uncertainty(request: DecisionRequest) -> Decision:
    """Sobol' indices of the uncertain values."""
    program, result, view = request.program, request.result, request.view
    sampling, title = sampling_of(view), f"what explains the variance of {result}"
    if sampling is None:
        return Decision(title, ("Samples are off: press B to draw the uncertain values.",))
    if not uncertain(program, sampling).keys() & program.inputs_of(program.term_of(result)):
        words = f"Nothing that {result} depends on is uncertain."
        return Decision(
            title, (words, "Write 3 us +- 0.2 us, or press % (assumed values vary, then those of data sheets).")
        )
    found = sobol_indices(program, sampling, result)
    spreads = [word for grade, share in sampling.spreads.items() for word in ("--spread", f"{grade}={share:.0%}")]
    options = ["--result", result, "--show", "sobol", "--samples", str(sampling.count), *spreads]
    return Decision(
        title,
        found.notes,
        found.table(),
        found.picture(),
        command=request.command("sensitivity", *options),
    )
