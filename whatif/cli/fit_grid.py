"""`whatif fit grid`: runs of a structured-grid program to its parameters, a prediction, and the run to make next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from whatif.cli.fit import command, tell
from whatif.cli.options import print_table, share_of
from whatif.cli.run_options import ModelFile, runs_options
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.fitting.grid import GridFit
    from whatif.fitting.grid_runs import GridRuns
    from whatif.table import Table

_EXAMPLE = "cells=272e6,processes=768"
_MOST_SCATTER = 0.3


@dataclass(frozen=True)
class _Asked:
    """What is wanted of the fit."""

    targets: tuple[GridRuns, ...]
    advice: bool
    varied: tuple[str, ...]
    points: bool
    file_format: str


@command.command("grid", short_help="Structured grids: runs with computation, communication and total times.")
@runs_options
@click.option("--reduction", is_flag=True, help="Fit K_r too, of a global reduction in every iteration.")
@click.option(
    "--weighting",
    type=click.Choice(["relative", "equal"]),
    default="relative",
    show_default=True,
    help="Squares of relative residuals, or of Eq. 5's as the paper has them.",
)
@click.option("--level", default="95%", show_default=True, help="Of the intervals.")
@click.option(
    "--bootstrap", type=click.IntRange(10, 100_000), metavar="N", help="Errors from N fits to runs drawn again."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of what is drawn.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME=VALUE,..",
    help=f"Predict this run, as {_EXAMPLE}; what is left out follows from the runs.",
)
@click.option("--next", "advice", is_flag=True, help="Which run would narrow the target's interval most.")
@click.option("--vary", "varied", multiple=True, metavar="NAME=V,V,..", help="Runs that --next may choose from.")
@click.option("--points", is_flag=True, help="Print the runs with fitted and held-out times, not the parameters.")
@click.option("--case", metavar="NAME", help="The case whose K_w is written.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
def grid(
    read: Callable[..., Table], reduction: bool, weighting: str, level: str,
    bootstrap: int | None, seed: int, targets: tuple[str, ...], advice: bool, varied: tuple[str, ...], points: bool,
    case: str | None, model: ModelFile, file_format: str,
) -> None:  # fmt: skip
    """Fit K_w, K_b and the overheads of a structured-grid program (Sharif et al.) to runs of it.

    FILES have the columns cells, processes, iterations and total_time (or C, P, I, T_t), and as many as there are of
    halo_cells (H), computation_time (T_w), communication_time (T_c), case, ranks_per_node and inter_node_halo_cells.
    """
    from whatif.fitting.grid import fit_grid
    from whatif.fitting.grid_runs import unused

    share = share_of("--level", level)
    if (advice or varied) and len(targets) != 1:
        raise UsageError(f"--next and --vary need one --target, the run that matters, such as {_EXAMPLE}")
    if points and (targets or advice or varied):
        raise UsageError("--points shows the runs that were made: leave out --target, --next and --vary")
    if case is not None and model.output is None:
        raise UsageError("--case needs -o MODEL.toml: it says whose K_w is written")
    if seed and not bootstrap:
        raise UsageError("--seed needs --bootstrap: nothing else is drawn")
    if model.scenario is not None and len(targets) > 1:
        raise UsageError("--scenario asks one run: give one --target")
    table = read()
    cases = [case for text in targets for case in _values([text], ",").get("case", ())]
    options = {"weighting": weighting, "reduction": reduction, "level": share, "draws": bootstrap or 0, "seed": seed}
    fit = fit_grid(table, cases=cases, **options)  # type: ignore[arg-type]
    if others := unused(table):
        tell([f"not used: {', '.join(others)}"])
    _narrate(fit)
    wanted = tuple(_planned(fit, _values([text], ",")) for text in targets)
    if model.output is not None:
        _write(fit, model, case, model.source_of(table), wanted)
    _print(fit, _Asked(wanted, advice or bool(varied), varied, points, file_format))
    if model.output is None and not (targets or points):
        tell(["nothing is written without -o MODEL.toml"])


def _narrate(fit: GridFit) -> None:
    from whatif.fitting.grid_advice import constants, loosely_told, untold

    if same := constants(fit.runs):
        tell([f"the same in all runs: {', '.join(same)}"])
    if len(fit.runs) < len(fit.columns):
        tell([f"{len(fit.runs)} runs for {len(fit.columns)} parameters"], "warning: ")
    late = int((fit.runs.rest < 0).sum())
    if late:
        tell([f"{late} runs have more computation and communication than total time"], "warning: ")
    tell(untold(fit), "warning: ")
    tell(loosely_told(fit), "note: ")
    spreads = {kind: fit.scatter(kind) for kind in fit.spread}
    tell(f"scatter of single runs, {kind}: {spread:.2%}" for kind, spread in spreads.items() if spread == spread)  # noqa: PLR0124
    for kind in (kind for kind, spread in spreads.items() if spread > _MOST_SCATTER):
        tell(
            [f"{kind} scatters by more than {_MOST_SCATTER:.0%}: the model may not be that of these runs"], "warning: "
        )
    for kind in (kind for kind, spread in spreads.items() if not spread >= 0):
        tell([f"no more runs than parameters of {kind}: nothing tells their errors"], "warning: ")


def _write(fit: GridFit, model: ModelFile, case: str | None, source: str, targets: tuple[GridRuns, ...]) -> None:
    """The part of one case, and a scenario of the first target, or of the run with the most processes."""
    from whatif.errors import did_you_mean
    from whatif.files.grid_file import part_text, question_text

    cases, named = fit.runs.cases, [str(name) for runs in targets[:1] for name in runs.case.tolist()]
    if case is not None and named not in ([], [case]):
        raise UsageError(f"--case {case}, but the target is of {', '.join(named)}: a file has one K_w")
    wanted = case if case is not None else next(iter(named or cases))
    if case is None and not named and len(cases) > 1:
        raise UsageError(f"a file has one K_w: choose it by --case, one of {', '.join(cases)}")
    if wanted not in cases:
        raise UsageError(f"case {wanted}: no run of it{did_you_mean(wanted, cases)}; cases: {', '.join(cases)}")
    own = fit.runs.at(fit.runs.case == wanted)
    at = int(own.processes.argmax())
    target = targets[0] if targets else own.at([at])
    if model.scenario is not None and (fit.runs.share < 1).any() and _is_measured_share(target):
        tell(
            ["the scenario counts what leaves a node by its ranks per node, not by inter_node_halo_cells"], "warning: "
        )
    part = part_text(fit, wanted, source)
    model.write(part, "structured_grid", lambda name: question_text(name, target, model.platform))


def _is_measured_share(target: GridRuns) -> bool:
    """Whether the share of halo cells that leave the node is another one than ranks per node make it."""
    from whatif.models.structured_grid import inter_node_share

    share = inter_node_share(target.processes, target.ranks_per_node)
    return bool((~(target.ranks_per_node >= 1) | (share != target.share)).any())


def _print(fit: GridFit, asked: _Asked) -> None:
    import numpy as np

    from whatif.files.grid_file import advice_table, parameters_of, prediction_table, runs_table
    from whatif.fitting.grid_advice import next_run, predict

    if asked.points:
        print_table(runs_table(fit), asked.file_format)
    elif asked.advice:
        (target,) = asked.targets
        candidates = _candidates(fit, target, asked.varied)
        advice = next_run(fit, target, candidates)
        if advice.assumed_noise:
            tell(["too few runs to tell their scatter: 5 % is taken for it"], "warning: ")
        now = f"{advice.before:.4g} s either way" if advice.before >= 0 else "nothing: the runs do not tell it"
        tell([f"the mean of the target is {predict(fit, target).total_time[0]:.4g} s, known to {now}"])
        if np.isfinite(advice.after).any():
            print_table(advice_table(advice), asked.file_format)
        else:
            tell(["no single run tells it: make those that the warnings above name"], "warning: ")
    elif asked.targets:
        from whatif.importers.rows import joined

        tables = [prediction_table(predict(fit, target)) for target in asked.targets]
        if any((table.columns["mean_low"].values != table.columns["mean_low"].values).any() for table in tables):
            tell(["a target rests on what the runs do not tell: it has no interval"], "warning: ")
        print_table(tables[0] if len(tables) == 1 else joined(tables), asked.file_format)
    else:
        print_table(parameters_of(fit, in_words=asked.file_format in ("table", "markdown")), asked.file_format)


def _planned(fit: GridFit, given: Mapping[str, Sequence[Any]]) -> GridRuns:
    from whatif.fitting.grid_plan import planned

    runs, told = planned(fit.runs, given)
    tell(told)
    return runs


def _candidates(fit: GridFit, target: GridRuns, varied: Sequence[str]) -> GridRuns:
    """The runs to choose from: those stated, with what is not stated as in the target, or what is at hand."""
    from whatif.fitting.grid_plan import next_candidates

    if not varied:
        return next_candidates(fit.runs, str(target.case[0])).joined(target)
    given = _values(varied, None)
    likely = {
        "cells": target.cells,
        "processes": target.processes,
        "iterations": target.iterations,
        "case": target.case,
    }
    if "cells" in given and str(target.case[0]):
        del likely["iterations"]
    return _planned(fit, {**{name: item.tolist() for name, item in likely.items()}, **given})


def _values(texts: Sequence[str], separator: str | None) -> dict[str, list[Any]]:
    """`NAME=VALUE,NAME=VALUE`, or each `NAME=VALUE,VALUE`; names as those of the columns."""
    import numpy as np

    from whatif.errors import did_you_mean
    from whatif.fitting.grid_runs import COUNTED, PLANNED, canonical, is_count
    from whatif.units import ONE, UnitError, parse_quantity

    found: dict[str, list[Any]] = {}
    for pair in [pair for text in texts for pair in (text.split(separator) if separator else [text])]:
        given, equals, said = (part.strip() for part in pair.partition("="))
        name = canonical(given)
        if not equals or name not in PLANNED:
            raise UsageError(f"`{pair}`: expected NAME=VALUE of {', '.join(PLANNED)}{did_you_mean(name, PLANNED)}")
        if name in found:
            raise UsageError(f"`{pair}`: `{name}` is given twice; --vary takes several values, {given}=V,V")
        values = said.split(",")
        if name == "case":
            found[name] = [value.strip() for value in values]
            continue
        try:
            numbers = [parse_quantity(value) for value in values]
        except UnitError as error:
            raise UsageError(f"`{pair}`: {error}") from None
        if any(number.dimension != ONE or not number.value >= (name != "halo_cells") for number in numbers):
            raise UsageError(f"`{pair}`: expected a number of at least 1")
        if not is_count(name, np.array([number.value for number in numbers])).all():
            raise UsageError(f"`{pair}`: expected {COUNTED}")
        found[name] = [number.value for number in numbers]
    return found
