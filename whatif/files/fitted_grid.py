"""Fits of structured-grid programs with their tables, and the files that scenarios extend."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from whatif.errors import UsageError, did_you_mean
from whatif.files.fitted_model import FittedModel, ScenarioTarget, write_model
from whatif.files.grid_file import part_text, scenario_text
from whatif.fitting.grid_runs import GridRuns
from whatif.fitting.grid_study import GridStudy
from whatif.models.structured_grid import inter_node_share
from whatif.table import Table


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
        part = part_text(study.fit, wanted, self.source_text(source))
        return remarks + write_model(
            Path(path),
            part,
            "structured_grid",
            place,
            lambda name, machine: scenario_text(name, target, machine.platform, machine.ranks_per_node),
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
