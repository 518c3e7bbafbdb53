"""`python -m benchmarks.transformer_fit`: shares, overheads and exposures, fitted to measured training and serving.

Least squares of the logarithms of predicted over measured values, with the starting values as a weak prior; of rows of
one configuration the last release counts. Prints the values, errors, and errors with each model left out. Ten minutes;
`python -m benchmarks.transformer_fit serving` takes three of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from scipy.optimize import least_squares

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.models.quantities import FloatArray
from whatif.validation import serving_runs
from whatif.validation.tables import rows_of
from whatif.validation.training_steps import HELD_OUT, Rows, kinds, training_scenario

_PRIOR: Final = 0.3
"""Deviation of the logarithm of a value from its start."""
_PLAN: Final = "application.plan"
_SHARED: Final = {
    "pointwise_fraction": 0.65, "layer_time": 1.2e-3, "tensor_exposure": 0.8, "pipeline_exposure": 0.3,
    "data_exposure": 0.6, "shard_exposure": 0.5,
}  # fmt: skip
_EXPERTS: Final = {"expert_fraction": 0.5, "expert_layer_time": 4e-3, "expert_exposure": 0.4}
"""Fitted to models with experts, with the values of the dense ones."""
_SHARES: Final = {"bf16": 0.68, "fp8": 0.58, "mxfp8": 0.58, "nvfp4": 0.5, "attention": 0.45, "flash2_attention": 0.3}
_SERVING: Final = {"step_time": 3e-3, "layer_time": 20e-6, "request_time": 4e-6, "stage_time": 4e-3}
_SERVED_EXPERTS: Final = {"expert_fraction": 0.4, "expert_layer_time": 30e-6, "routing_passes": 40.0}
_RESULT: Final = ("time_s", "peak_memory_GiB", "model_rate_Tflops", "release", "source")


def latest(rows: Rows) -> Rows:
    """Rows of the last release of each configuration."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        key = tuple(text for name, text in row.items() if name not in _RESULT)
        if key not in found or found[key]["release"] < row["release"]:
            found[key] = row
    return list(found.values())


class Fit:
    """Parameters by device and precision, and the programs of rows; some values may be known.

    `measured` is the column of the measured values, `term` that of the predicted ones.
    """

    def __init__(
        self, rows: Rows, starts: Mapping[tuple[str, str], float], known: Mapping[tuple[str, str], float],
        scenario: Callable[[dict[str, str]], Scenario] = training_scenario, measured: str = "time_s",
        term: str = "iteration.time",
    ) -> None:  # fmt: skip
        self.rows, self.term = rows, term
        self.programs = [scenario(row).program for row in rows]
        self.measured = np.array([float(row[measured]) for row in rows])
        self.names, self.known = list(starts), known
        self.start = np.log(list(starts.values()))
        ends = [0.02 if name.endswith("time") else 300.0 if name.endswith("passes") else 1.0 for _, name in self.names]
        self.bounds = (self.start - 2.5, np.maximum(np.log(ends), self.start + 1e-6))

    def values(self, row: dict[str, str], logarithms: FloatArray) -> dict[str, FloatArray]:
        """Values of the parameters of one row, by path."""
        stated = {**self.known, **dict(zip(self.names, np.exp(logarithms).tolist(), strict=True))}
        return {
            f"platform.node.gpu.transformer.{name}" if device else f"{_PLAN}.{name}": np.asarray(value)
            for (device, name), value in stated.items()
            if device in ("", device_of(row))
        }

    def errors(self, logarithms: FloatArray, chosen: Sequence[int]) -> FloatArray:
        """Relative errors of some rows."""
        found = [
            float(evaluate(self.programs[at], self.values(self.rows[at], logarithms)).values[self.term])
            for at in chosen
        ]
        return np.array(found) / self.measured[list(chosen)] - 1

    def solve(self, chosen: Sequence[int]) -> FloatArray:
        """Logarithms of the values that fit some rows."""

        def residuals(logarithms: FloatArray) -> FloatArray:
            errors = np.log1p(self.errors(logarithms, chosen)) / 0.1
            return np.concatenate([errors, (logarithms - self.start) / _PRIOR])

        found: FloatArray = least_squares(
            residuals, self.start, bounds=self.bounds, loss="soft_l1", xtol=1e-4, ftol=1e-4
        ).x
        return found

    def report(self, kind: str) -> dict[tuple[str, str], float]:
        """Fitted values; prints them, errors by study, and errors with each model left out."""
        every = list(range(len(self.rows)))
        found = self.solve(every)
        stated = dict(zip(self.names, np.exp(found).tolist(), strict=True))
        for (device, name), value in stated.items():
            print(f"{device or 'plan':10} {name:20} {value:.3g}")
        _print(f"{kind}, fitted", self.rows, self.errors(found, every))
        held_out = np.zeros(len(every))
        for model in dict.fromkeys(map(_model, self.rows)):
            out = [at for at in every if _model(self.rows[at]) == model]
            held_out[out] = self.errors(self.solve([at for at in every if at not in out]), out)
        _print(f"{kind}, each model left out", self.rows, held_out)
        return stated


def _model(row: dict[str, str]) -> tuple[str, ...]:
    return _study(row), row["model"], row.get("layer_count", "")


def _study(row: dict[str, str]) -> str:
    return row.get("study") or row["software"]


def device_of(row: dict[str, str]) -> str:
    """Family of the device."""
    return {"dgx_a100": "A100", "dgx_h100": "H100"}.get(row["platform"], "Blackwell")


def attention_of(row: dict[str, str]) -> str:
    """Name of the share of the attention of a row."""
    return "flash2_attention" if row["attention_kernel"] == "flash2" else "attention"


def serving() -> None:
    """Fit overheads of serving to the releases that were not held out."""
    rows = rows_of("serving_runs.csv")
    kinds_of_rows = serving_runs.kinds(rows)

    def fit(kind: str, starts: Mapping[str, float], known: Mapping[tuple[str, str], float]) -> Fit:
        chosen = [row for row, own in zip(rows, kinds_of_rows.tolist(), strict=True) if own == kind]
        named = {("", name): value for name, value in starts.items()}
        return Fit(chosen, named, known, serving_runs.serving_scenario, "tokens_per_s", "serving.token_rate")

    known = fit("dense", _SERVING, {}).report("dense")
    fit("with experts", _SERVED_EXPERTS, known).report("with experts")


def training() -> None:
    """Fit dense models, then those with experts, and print values and errors."""
    rows = [row for row in latest(rows_of("training_steps.csv")) if row["study"] not in HELD_OUT]
    dense, sparse = (
        [row for row, own in zip(rows, kinds(rows).tolist(), strict=True) if own == kind]
        for kind in ("dense", "with experts")
    )
    used = dict.fromkeys(
        (device_of(row), name) for row in dense for name in ("bf16", row["precision"], attention_of(row))
    )
    shares = {(device, name): _SHARES[name] for device, name in used}
    known = Fit(dense, {**shares, **{("", name): value for name, value in _SHARED.items()}}, {}).report("dense")
    Fit(sparse, {("", name): value for name, value in _EXPERTS.items()}, known).report("with experts")


def _print(what: str, rows: Rows, errors: FloatArray) -> None:
    for study in dict.fromkeys(map(_study, rows)):
        own = errors[[_study(row) == study for row in rows]]
        words = f"mean error {np.abs(own).mean():.1%}, bias {own.mean():+.1%}, worst {np.abs(own).max():.0%}"
        print(f"{what}, {study}: {len(own)} rows, {words}", flush=True)


if __name__ == "__main__":
    serving()
    if "serving" not in sys.argv:
        training()
