"""Fits of structured-grid programs with their tables, and the files that scenarios extend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError, did_you_mean
from whatif.files.fitted_model import FittedModel, ScenarioTarget, write_model
from whatif.fitting.fit_result import correlation_of, root_mean_square
from whatif.fitting.grid import GridFit
from whatif.fitting.grid_advice import unidentified
from whatif.fitting.grid_runs import RATES, GridRuns
from whatif.fitting.grid_study import GridStudy
from whatif.fitting.grid_tables import rate_or_time
from whatif.models.structured_grid import inter_node_share
from whatif.schema.toml_text import file_text, rounded
from whatif.table import Table

_UNLIMITED: Final = 1e18
"""Cells a second that take no time, written for a rate at its bound."""
_SHRUNK: Final = 1 - 1e-6
"""Rounded correlations near 1 may not form a valid matrix."""
_FACTORS: Final = {
    "computation": "computation_factor",
    "communication": "communication_factor",
    "setup": "setup_factor",
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedGrid(FittedModel):
    """Parameters of a structured-grid program, and answers for other runs."""

    study: GridStudy

    def table(self, *, in_words: bool = False) -> Table:
        """Runs, predictions or advice, else the parameters; `in_words` writes these with their units."""
        return self.study.table(in_words=in_words)

    def write(
        self,
        path: str | Path,
        scenario: str | Path | None = None,
        *,
        platform: str | None = None,
        source: str | None = None,
        case: str | None = None,
    ) -> tuple[str, ...]:
        """Write the parameters of one case; see `FittedModel.write`.

        The scenario is of the first target, or of the run with the most processes.
        """
        study, place = self.study, ScenarioTarget.of(scenario, platform, self.runs)
        if scenario is not None and len(study.targets) > 1:
            raise UsageError("--scenario describes one run: give one --target")
        wanted = self._case(case)
        own = study.fit.runs.at(study.fit.runs.case == wanted)
        target = study.targets[0] if study.targets else own.at([int(own.processes.argmax())])
        remarks: tuple[str, ...] = ()
        if scenario is not None and study.fit.runs.inside.any() and _is_measured_share(target):
            counts = "the scenario counts what leaves a node by its ranks per node, not by inter_node_halo_cells"
            remarks = (f"warning: {counts}",)
        part = _part_text(study.fit, wanted, self.source_text(source))
        return remarks + write_model(
            Path(path),
            part,
            "structured_grid",
            place,
            lambda name, machine: _scenario_text(name, target, machine.platform, machine.ranks_per_node),
        )

    def _case(self, case: str | None) -> str:
        """The case whose K_w is written. Raise `UsageError` if it is unclear or has no run."""
        cases = self.study.fit.runs.cases
        named = [str(name) for runs in self.study.targets[:1] for name in runs.case.tolist()]
        if case is not None and named not in ([], [case]):
            raise UsageError(f"--case {case}, but the target is of {', '.join(named)}: a file has one K_w")
        if case is None and not named and len(cases) > 1:
            raise UsageError(f"a file has one K_w: choose it by --case, one of {', '.join(cases)}")
        wanted = case if case is not None else next(iter(named or cases))
        if wanted not in cases:
            raise UsageError(f"case {wanted}: no run of it{did_you_mean(wanted, cases)}; cases: {', '.join(cases)}")
        return wanted


def _is_measured_share(target: GridRuns) -> bool:
    """Whether the share of halo cells that leave the node differs from the share by ranks per node."""
    share = inter_node_share(target.processes, target.ranks_per_node)
    return bool((~(target.ranks_per_node >= 1) | (share != target.share)).any())


def model_part(fit: GridFit, case: str, source: str) -> dict[str, Any]:
    """The part file of one case: parameters, their sources, their errors, and the scatter of runs."""
    places = [at for at, its in enumerate(fit.columns.cases) if its in ("", case)]
    places = [at for at in places if fit.columns.names[at] != "cell_rate" or fit.columns.cases[at] == case]
    if not fit.coefficients[fit.index("cell_rate", case)] > 0:
        raise UsageError("K_w is not identified: cells take no time in this fit, so it predicts nothing; not written")
    values = {
        fit.columns.names[at]: rate_or_time(min(fit.value(at), _UNLIMITED), fit.columns.names[at]) for at in places
    }
    sources = {"*": {"grade": "measured", "source": source}}
    reasons = dict(zip(np.flatnonzero(~fit.identified).tolist(), unidentified(fit), strict=True))
    for at in places:
        if fit.coefficients[at] == 0:
            words = reasons.get(at, f"{fit.columns.symbol(at)}: at its bound, no time was found for it")
            sources[fit.columns.names[at]] = {"grade": "assumed", "source": f"{words}; {source}"}
    factors = {_FACTORS.get(kind, "computation_factor"): fit.scatter(kind) for kind in fit.spread}
    spreads = {name: f"1 +- {spread:.4g}" for name, spread in factors.items() if np.isfinite(spread) and spread > 0}
    entry = _known(fit, [at for at in places if fit.coefficients[at] > 0])
    fits = {"fits": {"": entry}} if entry is not None else {}
    return {"part": "phase", "kind": "structured_grid", **values, **spreads, "sources": sources, **fits}


def _known(fit: GridFit, places: list[int]) -> dict[str, Any] | None:
    """The `[fits]` entry of coefficients with known errors; rates fall as their inverses rise."""
    deviations = np.sqrt(np.diag(fit.free_covariance))
    kept = [at for at in places if deviations[at] > 0]
    if not kept:
        return None
    names = [fit.columns.names[at] for at in kept]
    values = np.array([fit.value(at) for at in kept])
    rate = np.isin(names, RATES)
    correlation = correlation_of(fit.free_covariance[np.ix_(kept, kept)])
    correlation *= np.outer(1 - 2 * rate, 1 - 2 * rate) * _SHRUNK
    np.fill_diagonal(correlation, 1.0)
    errors = deviations[kept] * np.where(rate, values**2, 1.0)
    runs = fit.runs
    ranges = {"cell_count": runs.cells, "process_count": runs.processes, "halo_cell_count": runs.halo_cells}
    return {
        "parameters": names,
        "values": [rate_or_time(float(value), name) for value, name in zip(values, names, strict=True)],
        "standard_errors": [rate_or_time(float(error), name, 4) for error, name in zip(errors, names, strict=True)],
        "correlation": [[round(float(item), 7) for item in row] for row in correlation],
        "ranges": {name: [float(item.min()), float(item.max())] for name, item in ranges.items()},
        "point_count": len(runs),
        "error": rounded(root_mean_square(fit.residuals)),
    }


def _part_text(fit: GridFit, case: str, source: str) -> str:
    """The part file of one case, and how a scenario uses it."""
    lead = "# A scenario in this folder uses it in a phase: `extends` names it, and `halo_cell_count` is its own H.\n"
    return lead + file_text(model_part(fit, case, source))


def _scenario_text(model: str, target: GridRuns, platform: str, defaults: Mapping[str, int]) -> str:
    """A scenario of one run, whose phase extends the part of a name; `defaults` is its `ranks_per_node` if unknown."""
    counts = {name: int(getattr(target, name)[0]) for name in ("cells", "processes", "iterations", "halo_cells")}
    application: dict[str, Any] = {
        "name": model,
        "rank_count": counts["processes"],
        **defaults,
        "iteration_count": counts["iterations"],
        "grid": {"scaling": "strong", "cells": {"all": counts["cells"]}},
        "phases": {"step": {"extends": model, "halo_cell_count": counts["halo_cells"]}},
    }
    if np.isfinite(target.ranks_per_node[0]):
        application["ranks_per_node"] = int(target.ranks_per_node[0])
    question = f"How long does {model} take on {counts['processes']} processes?"
    return file_text({"platform": platform, "application": application}, question)
