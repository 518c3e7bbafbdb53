"""Accuracy cards of transformers are those of the measured runs, and their bands contain the error."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.paths import ROOT
from whatif.core.accuracy_cards import accuracy_notes, model_cards
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
    kinds = module.kinds(rows)
    mask = (kinds == "dense") | (kinds == "held out")
    # Times of serving are inverse rates.
    logarithms = -sign * np.log1p(compared(topic).columns["error"].values[mask])
    card = Scenario.open(scenario).program.loaded.scenario.accuracy["iteration"]
    assert_allclose(card.ratio, np.exp(logarithms.mean()), rtol=1e-3)
    assert_allclose(card.scatter, np.exp(logarithms.std(ddof=1)), rtol=1e-3)
    assert_allclose(card.mean_absolute_error, np.abs(np.expm1(-logarithms)).mean(), rtol=1e-3)
    assert_allclose(card.bias, np.expm1(-logarithms).mean(), rtol=1e-3)
    assert card.run_count == mask.sum()
    assert card.platforms == sorted({row["platform"] for row, kept in zip(rows, mask.tolist(), strict=True) if kept})


OWN = {
    "training": """
platform = "dgx_h100"
[application]
kind = "training"
rank_count = 64
[application.transformer]
extends = "MODEL"
[application.plan]
sequence_length = 4096
global_batch = 64
tensor_size = 1
pipeline_size = 4
sharding = "full"
""",
    "serving": """
platform = "dgx_h100"
[application]
kind = "serving"
rank_count = 8
[application.transformer]
extends = "MODEL"
[application.plan]
input_length = 2000
output_length = 500
tensor_size = 4
request_rate = "4 1/s"
""",
}


def own(folder, work, model="llama-3-8b"):
    path = folder / "own.toml"
    path.write_text(OWN[work].replace("MODEL", model), encoding="utf-8")
    return whatif.load(path)


@pytest.mark.parametrize("work", OWN)
@pytest.mark.parametrize(("model", "blocks"), [("llama-3-8b", "dense"), ("mixtral-8x7b", "experts")])
def test_a_scenario_of_ones_own_states_the_accuracy_of_its_kind_of_model(tmp_path, work, model, blocks):
    card = model_cards()["iteration", f"{work}_{blocks}"]
    note, *others = accuracy_notes(own(tmp_path, work, model).program)
    assert bool(others) == ((work, blocks) == ("serving", "dense"))
    error = f"{100 * card.mean_absolute_error:.2g}% (bias {100 * card.bias:+.2g}%)"
    assert note.startswith(f"iteration within {error} of {card.run_count} runs of {card.applications[0]} on ")


def test_times_to_the_first_token_of_dense_models_state_the_error_at_the_measured_ones(compared):
    table = compared("first_tokens").columns
    errors = table["error"].values
    (note,) = (note for note in whatif.run("llama_serving").notes if note.startswith("first_token_time"))
    error = f"within {100 * np.abs(errors).mean():.2g}% (bias {100 * errors.mean():+.2g}%)"
    kind = f"{errors.size} runs of single requests to dense transformers"
    assert note.startswith(f"first_token_time {error} of {kind} on ")
    assert note.split(" on ")[1].split(", ") == sorted(set(table["platform"].values.tolist()))


@pytest.mark.parametrize("name", ["own", "llama_training"])
def test_the_band_of_a_step_is_as_wide_as_its_card_and_of_one_factor(tmp_path, name):
    scenario = whatif.load(name) if name != "own" else own(tmp_path, "training")
    found = whatif.run(scenario, samples=1024)
    stated = scenario.program.loaded.scenario.accuracy
    card = stated["iteration"] if name != "own" else model_cards()["iteration", "training_dense"]
    for result in ("iteration_time", "kernel_time", "overhead_time"):
        low, _, high = found.bands.values[result]
        assert_allclose(np.log(high / low) / 2, 1.645 * np.log(card.scatter), rtol=0.02)
        assert_allclose(np.sqrt(high * low) / found[result], card.ratio, rtol=2e-3)


def test_tokens_of_requests_that_follow_at_once_have_the_error_of_serving(tmp_path):
    """With a rate of requests the number in flight adapts, so that times have no common factor."""
    scenario, card = own(tmp_path, "serving"), model_cards()["iteration", "serving_dense"]
    at_once = whatif.run(scenario, overrides={"application.plan.request_rate": "none"}, samples=1024)
    low, _, high = at_once.bands.values["token_rate"]
    assert_allclose(np.log(high / low) / 2, 1.645 * np.log(card.scatter), rtol=0.02)
    by_rate = whatif.run(scenario, samples=64)
    assert float(by_rate["iteration_time"]) == pytest.approx(0.25, rel=1e-12, abs=0)
    assert np.ptp(by_rate.bands.values["token_time"]) == 0


@pytest.mark.parametrize(
    ("work", "file", "module", "sign"),
    [("training", "training_steps.csv", training_steps, 1), ("serving", "serving_runs.csv", serving_runs, -1)],
)
def test_cards_of_own_models_are_of_runs_that_nothing_was_fitted_to(work, file, module, sign, compared):
    kinds = module.kinds(rows_of(file))
    for blocks, kind in (("dense", "held out"), ("experts", "with experts")):
        logarithms = -sign * np.log1p(compared(work).columns["error"].values[kinds == kind])
        card = model_cards()["iteration", f"{work}_{blocks}"]
        assert card.run_count == (kinds == kind).sum()
        assert_allclose(card.ratio, np.exp(logarithms.mean()), rtol=1e-3)
        assert_allclose(card.scatter, np.exp(logarithms.std(ddof=1)), rtol=1e-3)
        assert_allclose(card.mean_absolute_error, np.abs(np.expm1(-logarithms)).mean(), rtol=1e-3)
        assert_allclose(card.bias, np.expm1(-logarithms).mean(), rtol=1e-3)


def test_the_page_of_calibration_has_the_numbers_of_runs_of_the_cards():
    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    cards = [model_cards()["iteration", f"{work}_{blocks}"] for work in OWN for blocks in ("dense", "experts")]
    numbers = "{} and {}, {} and {}".format(*(card.run_count for card in cards))
    assert f"({numbers} measured runs; nothing was fitted to those of dense models)" in page.replace("\n", " ")
    count = model_cards()["first_token_time", "serving_dense"].run_count
    assert f"a note states the mean error at {count} measured times to the first token" in page.replace("\n", " ")
