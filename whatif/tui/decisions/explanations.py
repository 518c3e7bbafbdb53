"""Decisions about causes of a result: bottlenecks, differences, uncertain values."""

from __future__ import annotations

from dataclasses import replace

from whatif.api import causes
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import sampled_program, uncertain
from whatif.studies.attribution import Attribution, finest_attribution
from whatif.studies.bottlenecks import Bottlenecks
from whatif.studies.elasticity import Elasticities
from whatif.studies.sobol import Variance
from whatif.tui.decisions.answers import Decision, DecisionRequest
from whatif.tui.jobs.band_job import sampling_of


def bottlenecks(request: DecisionRequest) -> Decision:
    """Bottlenecks of a result, one made ideal after the other."""
    found = causes.sensitivity(request.scenario, show="ladder", result=request.result)
    said = ["No part, made ideal, saves 0.1 % or more."] if not found.rungs else []
    command = request.command("sensitivity", "--result", request.result, "--show", "ladder")
    return _told(f"cumulative idealisation of {request.result}", found, command, *said)


def _told(title: str, found: Attribution | Bottlenecks | Elasticities | Variance, command: str, *more: str) -> Decision:
    """Answer with the summary of a study and further sentences, its table and its picture."""
    return Decision(title, (*found.summary(), *more), found.table(), found.picture(), command=command)


def why(request: DecisionRequest) -> Decision:
    """Waterfall from the baseline to the present values, or to another platform."""
    if request.changed:
        return _waterfall(request, request.baseline.scenario, request.scenario, request.names, "")
    other, scenario = request.view.against, request.scenario
    if not other or other == request.present:
        words = "Nothing differs from the baseline: change a value, or press x for another platform."
        return Decision(f"why {request.result} differs", (words,))
    there = scenario.on_platform(other)
    names = scenario.program.loaded.scenario.platform.name, there.program.loaded.scenario.platform.name
    command = request.command("diff", "--platform", other, "--result", request.result, machine=False)
    return _waterfall(request, scenario, there, names, "" if scenario.platform else command)


def _waterfall(
    request: DecisionRequest, one: Scenario, other: Scenario, names: tuple[str, str], command: str
) -> Decision:
    found = replace(finest_attribution(one.program, other.program, request.result), names=names)
    return _told(f"{request.result} from {names[0]} to {names[1]}", found, command)


def uncertainty(request: DecisionRequest) -> Decision:
    """Sobol' indices of the uncertain values."""
    program, result, view = request.program, request.result, request.view
    sampling, title = sampling_of(view), f"what explains the variance of {result}"
    if sampling is None:
        return Decision(title, ("Samples are off: press B to sample the uncertain values.",))
    sampled = sampled_program(program, sampling)
    if not uncertain(sampled, sampling).keys() & sampled.inputs_of(sampled.term_of(result)):
        words = f"Nothing that {result} depends on is uncertain."
        return Decision(
            title, (words, "Write 3 us +- 0.2 us, or press % to vary assumed values, then those of data sheets.")
        )
    found = causes.sensitivity(request.scenario, show="sobol", result=result, samples=sampling)
    spreads = [word for grade, share in sampling.spreads.items() for word in ("--spread", f"{grade}={share:.0%}")]
    options = ["--result", result, "--show", "sobol", "--samples", str(sampling.count), *spreads]
    return _told(title, found, request.command("sensitivity", *options))
