"""Accuracy cards of the models from shipped runs, and from those of transformers: `python -m tests.accuracy_cards`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from whatif.core.accuracy_cards import CALIBRATED, CARDS, ITERATION, LIBRARY, LIBRARY_IN_DOMAIN
from whatif.core.scenario import Scenario
from whatif.files.calibration_file import accuracy_entries
from whatif.models.quantities import FloatArray
from whatif.schema.accuracy import AccuracyCard
from whatif.schema.toml_text import toml_text
from whatif.studies.calibration import calibrate
from whatif.studies.measured_runs import measured_runs
from whatif.studies.run_accuracy import RunGroup, category_ratios, pooled_card, run_groups
from whatif.validation import serving_runs, training_steps
from whatif.validation.library_collectives import datasheet_groups
from whatif.validation.matrix_products import measured_ratios
from whatif.validation.measured_kinds import Rows
from whatif.validation.tables import TABLES, rows_of
from whatif.vocabulary import HALO_MODELS

SCENARIOS: Final = {
    "jacobi2d": ("halo",),
    "minimd": ("exchange", "reverse_exchange"),
    "minife": ("halo",),
}
"""Shipped scenarios with runs, and their halo phases."""
_HALO_MODELS: Final = tuple(model for model in HALO_MODELS if model != "loggp")
_HEAD: Final = """\
# Accuracy of the models over the measured runs of the shipped scenarios, of products of matrices over those in
# validation/gemm.csv, of collectives of a GPU library over those in validation/gpu_collectives.csv, and of transformers
# over those in validation/training_steps.csv, validation/serving_runs.csv and validation/first_tokens.csv, written by
# `python -m tests.accuracy_cards`.
# ratio: geometric mean of measured / predicted; scatter: its geometric standard deviation; `calibrated`: of runs that
# were held out of the calibration.

"""


def cards() -> dict[str, dict[str, AccuracyCard]]:
    """Cards by category and model."""
    found: dict[str, dict[str, AccuracyCard]] = {"kernel": {}, "communication": {}}
    found["kernel"]["gemm"] = _card_of_products()
    found["kernel"]["roofline"] = pooled_card([group for name in SCENARIOS for group in _groups(name, {}, "kernel")])
    for model in _HALO_MODELS:
        groups = []
        for name, phases in SCENARIOS.items():
            chosen = {f"application.phases.{phase}.model": model for phase in phases}
            groups += _groups(name, chosen, "communication")
        found["communication"][model] = pooled_card(groups)
    found["communication"] |= _cards_of_libraries(rows_of("gpu_collectives.csv"))
    for category, models in found.items():
        models[CALIBRATED] = pooled_card([group for name in SCENARIOS for group in _held_out(name, category)])
    return found | {
        ITERATION: dict(_cards_of_transformers()),
        "first_token_time": {"serving_dense": _card_of_first_tokens()},
    }


def _cards_of_libraries(rows: Rows) -> dict[str, AccuracyCard]:
    groups = {model: datasheet_groups(rows, transport=transport) for transport, model in LIBRARY.items()}
    groups[LIBRARY_IN_DOMAIN] = datasheet_groups(rows, in_domain=True)
    return {model: pooled_card(list(its)) for model, its in groups.items()}


def _cards_of_transformers() -> Iterator[tuple[str, AccuracyCard]]:
    """Cards of whole steps: of dense models, from runs that nothing was fitted to, and of models with experts."""
    for work, file, module, sign in (
        ("training", "training_steps.csv", training_steps, 1),
        ("serving", "serving_runs.csv", serving_runs, -1),
    ):
        rows = rows_of(file)
        kinds = module.kinds(rows)
        errors = TABLES[work]().columns["error"].values
        for blocks, kind, words in (
            ("dense", "held out", "held-out dense transformers"),
            ("experts", "with experts", "transformers with experts"),
        ):
            mask = kinds == kind
            # Times of serving are inverse rates.
            logarithms = -sign * np.log1p(errors[mask])
            platforms = sorted({row["platform"] for row, kept in zip(rows, mask.tolist(), strict=True) if kept})
            yield f"{work}_{blocks}", _card(logarithms, words, platforms)


def _card_of_first_tokens() -> AccuracyCard:
    table = TABLES["first_tokens"]().columns
    platforms = sorted(set(table["platform"].values.tolist()))
    return _card(-np.log1p(table["error"].values), "single requests to dense transformers", platforms)


def _card_of_products() -> AccuracyCard:
    """Card of products of matrices; each device is a machine of its own."""
    ratios = measured_ratios(rows_of("gemm.csv"))
    logarithms = np.log(np.concatenate(list(ratios.values())))
    return _card(logarithms, "products of matrices", list(ratios))


def _card(logarithms: FloatArray, application: str, platforms: list[str]) -> AccuracyCard:
    errors = np.exp(-logarithms) - 1
    return AccuracyCard(
        ratio=float(np.exp(logarithms.mean())),
        scatter=float(np.exp(logarithms.std(ddof=1))),
        mean_absolute_error=float(np.abs(errors).mean()),
        bias=float(errors.mean()),
        run_count=len(logarithms),
        applications=[application],
        platforms=platforms,
    )


def _groups(name: str, overrides: dict[str, str], category: str) -> Iterator[RunGroup]:
    scenario = Scenario.open(name, overrides=overrides)
    runs = measured_runs(scenario)
    ratios = category_ratios(runs, runs.predicted(scenario))
    if category in ratios:
        yield from run_groups(scenario.program.loaded.scenario.application.name, runs, ratios[category], "")


def _held_out(name: str, category: str) -> Iterator[RunGroup]:
    found = calibrate(Scenario.open(name))
    ratios = category_ratios(found.runs, found.held_out_values)
    if category in ratios and np.isfinite(ratios[category]).any():
        application = found.scenario.program.loaded.scenario.application.name
        yield from run_groups(application, found.runs, ratios[category], "")


def text() -> str:
    """Text of the file of cards."""
    tables: dict[str, Any] = {
        category: {key[-1]: card for key, card in accuracy_entries(models).items()}
        for category, models in cards().items()
    }
    return _HEAD + toml_text(tables)


if __name__ == "__main__":
    CARDS.write_text(text(), encoding="utf-8")
