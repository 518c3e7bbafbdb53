"""Accuracy cards of the shipped transformers are those of the measured runs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.core.scenario import Scenario
from whatif.validation import serving_runs, training_steps
from whatif.validation.tables import rows_of


@pytest.mark.parametrize(
    ("scenario", "topic", "file", "module", "sign"),
    [("llama_training", "training", "training_steps.csv", training_steps, 1),
     ("llama_serving", "serving", "serving_runs.csv", serving_runs, -1)],
)  # fmt: skip
def test_cards_are_those_of_dense_models(scenario, topic, file, module, sign, compared):
    rows = rows_of(file)
    masks = module.kinds(rows)
    mask = masks["dense"] | masks["held out"]
    # Times of serving are inverse rates.
    logarithms = -sign * np.log1p(compared(topic).columns["error"].values[mask])
    card = Scenario.open(scenario).program.loaded.scenario.accuracy["iteration"]
    assert_allclose(card.ratio, np.exp(logarithms.mean()), rtol=1e-3)
    assert_allclose(card.scatter, np.exp(logarithms.std(ddof=1)), rtol=1e-3)
    assert_allclose(card.mean_absolute_error, np.abs(np.expm1(-logarithms)).mean(), rtol=1e-3)
    assert card.run_count == mask.sum()
    assert card.platforms == sorted({row["platform"] for row, kept in zip(rows, mask.tolist(), strict=True) if kept})
