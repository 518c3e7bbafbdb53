"""Scenario files with a `[calibration]`: corrections with source, intervals and range, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from whatif.atomic import write_text
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.files.file_copies import copy_runs, holds_others
from whatif.models.quantities import FloatArray
from whatif.schema.accuracy import AccuracyCard
from whatif.schema.load import load_document
from whatif.schema.rewriting import rewritten
from whatif.schema.toml import KeyPath, parse_document, shown_path
from whatif.schema.toml_sections import with_values
from whatif.schema.toml_text import rounded, toml_value

TABLE: Final = "calibration"
ACCURACY: Final = "accuracy"


@dataclass(frozen=True, eq=False)
class CorrectionRecord:
    """Corrections by their path below `[calibration]`, as texts, with their covariance and where they come from."""

    values: Mapping[str, str | float]
    errors: Sequence[str | float]
    """Standard errors, as texts with their unit."""
    correlation: FloatArray
    ranges: Mapping[str, tuple[str | float, str | float]]
    """Smallest and largest value of each parameter of the runs."""
    accuracy: Mapping[str, AccuracyCard]
    source: str
    point_count: int
    error: float
    """Root mean square of the relative residuals."""
    runs: Path

    def entries(self) -> dict[KeyPath, Any]:
        """Values of the scenario file by key path."""
        fit = {
            "parameters": list(self.values),
            "values": list(self.values.values()),
            "standard_errors": list(self.errors),
            "correlation": [[rounded(value) for value in row] for row in self.correlation.tolist()],
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "point_count": self.point_count,
            "error": rounded(self.error),
        }
        values: dict[KeyPath, Any] = {(TABLE, *path.split(".")): value for path, value in self.values.items()}
        values |= accuracy_entries(self.accuracy)
        values["sources", TABLE] = {"grade": "measured", "source": self.source}
        values["fits", TABLE] = fit
        return values


def accuracy_entries(cards: Mapping[str, AccuracyCard]) -> dict[KeyPath, Any]:
    """Values of `[accuracy]` by key path, a line for each card."""
    found: dict[KeyPath, Any] = {}
    for name, card in cards.items():
        stated = card.model_dump(exclude_defaults=True)
        found[ACCURACY, name] = {
            key: rounded(value) if isinstance(value, float) else value for key, value in stated.items()
        }
    return found


def scenario_text(scenario: Scenario, entries: Mapping[KeyPath, Any], replaced: Sequence[KeyPath]) -> str:
    """Text of the scenario's file with some values, without those of the replaced tables; all else stays."""
    document = scenario.document
    plain = {key: value for key, value in scenario.absolute().overrides.items() if not key.startswith(f"{TABLE}.")}
    text = rewritten(document, plain, scenario.platform, scenario.folders, scenario.built)
    values: dict[KeyPath, str | None] = dict.fromkeys(replaced)
    values |= {key: None if value is None else toml_value(value) for key, value in entries.items()}
    try:
        return with_values(text, values)
    except ValueError:
        raise UsageError(f"{document.name}: written in a way that only an editor can change") from None


def runs_entry(runs: Path, path: Path | None) -> dict[KeyPath, Any]:
    """Name of the file of runs, which is copied into the folder of a scenario's file.

    Raise `UsageError` if another file has its name there.
    """
    if path is None:
        return {}
    there = path.resolve().parent / runs.name
    if holds_others(runs, there):
        raise UsageError(f"{path}: not written: its runs would be `{there}`, which holds others; rename one of them")
    return {("runs",): runs.name}


def calibrated_text(scenario: Scenario, record: CorrectionRecord, path: Path | None) -> str:
    """Text of the scenario's file with the corrections of a record in place of those that it has."""
    entries = record.entries() | runs_entry(record.runs, path)
    return scenario_text(scenario, entries, ((TABLE,), (ACCURACY,), ("sources", TABLE), ("fits", TABLE)))


def validated_text(scenario: Scenario, cards: Mapping[str, AccuracyCard], runs: Path, path: Path | None) -> str:
    """Text of the scenario's file with accuracy cards in place of those that it has."""
    return scenario_text(scenario, accuracy_entries(cards) | runs_entry(runs, path), ((ACCURACY,),))


def write_scenario(scenario: Scenario, text: str, path: Path, runs: Path) -> None:
    """Write the text of a scenario that loads there, whole or not at all, and a copy of its runs next to it."""
    load_document(parse_document(text, shown_path(path), path.parent), folders=scenario.folders)
    write_text(path, text)
    copy_runs(runs, path.resolve().parent / runs.name)
