"""Scenario files with a `[calibration]`: corrections with source, intervals and range, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whatif.atomic import atomic_file
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.schema.load import load_document
from whatif.schema.rewriting import rewritten
from whatif.schema.toml import KeyPath, parse_document, shown_path
from whatif.schema.toml_sections import with_values
from whatif.schema.toml_text import toml_value

TABLE = "calibration"


@dataclass(frozen=True, eq=False)
class CorrectionRecord:
    """Corrections by their path below `[calibration]`, as texts, with their covariance and where they come from."""

    values: Mapping[str, str | float]
    errors: Sequence[str | float]
    """Standard errors, as texts with their unit."""
    correlation: FloatArray
    ranges: Mapping[str, tuple[str | float, str | float]]
    """Smallest and largest value of each parameter of the runs."""
    source: str
    point_count: int
    error: float
    """Mean absolute error at scales that were held out."""
    runs: Path

    def entries(self) -> dict[KeyPath, Any]:
        """Values of the scenario file by key path."""
        fit = {
            "parameters": list(self.values),
            "values": list(self.values.values()),
            "standard_errors": list(self.errors),
            "correlation": [[float(f"{value:.4g}") for value in row] for row in self.correlation.tolist()],
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "point_count": self.point_count,
            "error": float(f"{self.error:.3g}"),
        }
        values: dict[KeyPath, Any] = {(TABLE, *path.split(".")): value for path, value in self.values.items()}
        values["sources", TABLE] = {"grade": "measured", "source": self.source}
        values["fits", TABLE] = fit
        return values


def calibrated_text(scenario: Scenario, record: CorrectionRecord, path: Path | None = None) -> str:
    """Text of the scenario's file with the corrections of a record; comments and all other values stay.

    A calibration that the file has is replaced. `runs` names the file of the runs if it lies in the folder of `path`.
    """
    document = scenario.document
    plain = {key: value for key, value in scenario.overrides.items() if not key.startswith(f"{TABLE}.")}
    text = rewritten(document, plain, scenario.platform, scenario.folders, scenario.built)
    beside = path is not None and record.runs.resolve().parent == path.resolve().parent
    values: dict[KeyPath, str | None] = {(TABLE,): None, ("sources", TABLE): None, ("fits", TABLE): None}
    values |= {key: toml_value(value) for key, value in record.entries().items()}
    values["runs",] = toml_value(record.runs.name) if beside else None
    try:
        return with_values(text, values)
    except ValueError:
        raise UsageError(f"{document.name}: written in a way that only an editor can change") from None


def write_calibrated(scenario: Scenario, record: CorrectionRecord, path: Path) -> None:
    """Write the calibrated scenario to a file, whole or not at all; it must load there."""
    text = calibrated_text(scenario, record, path)
    load_document(parse_document(text, shown_path(path), path.parent), folders=scenario.folders, built=scenario.built)
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
