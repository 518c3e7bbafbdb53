"""Regressions of runs with their tables, and the files that scenarios extend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from whatif.files.fitted_model import FittedModel, ScenarioTarget, write_model
from whatif.files.model_file import model_text, scenario_text, table_of
from whatif.files.run_machine import run_counts
from whatif.fitting.least_squares import RunsFit
from whatif.fitting.pmnf import Search
from whatif.table import Table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedRegression(FittedModel):
    """A regression, the models it is compared with, and the requested tables."""

    fits: tuple[RunsFit, ...]
    """The model, then those it is compared with."""
    search: Search | None
    tables: Mapping[str, Table]
    """Tables by name, the one to show first."""

    def table(self) -> Table:
        """The first of the tables."""
        return next(iter(self.tables.values()))

    def write(
        self,
        path: str | Path,
        scenario: str | Path | None = None,
        *,
        platform: str | None = None,
        source: str | None = None,
    ) -> tuple[str, ...]:
        """Write the first model; see `FittedModel.write`."""
        return write_regression(self.fits[0], path, scenario, platform=platform, source=self.source_text(source))


def write_regression(
    fit: RunsFit, path: str | Path, scenario: str | Path | None, *, platform: str | None, source: str
) -> tuple[str, ...]:
    """Write a regression as a part, and a scenario of it; return remarks. Raise `UsageError` as `FittedModel.write`."""
    target, table = ScenarioTarget.of(scenario, platform, fit.runs), table_of(fit)
    counts = run_counts(fit.runs, fit.formula.variables)
    first = next(iter(counts.parameters), "")
    variable = f"parameters.{first}" if first else next((f"{table}.variables.{x}" for x in fit.formula.variables), "")

    def text(model: str, machine: ScenarioTarget) -> str:
        application = {**machine.ranks_per_node, **counts.application}
        return scenario_text(fit, model, machine.platform, replace(counts, application=application))

    return write_model(Path(path), model_text(fit, source), "regression", target, text, variable)
