"""Scenarios and tables of errors of docs/transformers.md and docs/serving.md."""

from __future__ import annotations

import re

import pytest
import tomli

import whatif
from tests.paths import ROOT
from whatif.validation import serving_runs, training_steps
from whatif.validation.tables import rows_of

PAGES = {name: ROOT / "docs" / f"{name}.md" for name in ("transformers", "serving")}
TEXTS = {name: page.read_text(encoding="utf-8") for name, page in PAGES.items()}
SCENARIOS = {"transformers": "llama_training", "serving": "llama_serving"}


@pytest.mark.parametrize("page", PAGES)
def test_the_scenario_is_the_shipped_one(page):
    shown = tomli.loads(re.search(r"```toml\n(.*?)```", TEXTS[page], re.DOTALL)[1])
    shipped = tomli.loads((ROOT / "scenarios" / f"{SCENARIOS[page]}.toml").read_text(encoding="utf-8"))
    del shipped["sweep"], shipped["accuracy"]
    assert shown == shipped


@pytest.mark.parametrize(
    ("page", "topic", "file", "module"),
    [("transformers", "training", "training_steps.csv", training_steps),
     ("serving", "serving", "serving_runs.csv", serving_runs)],
)  # fmt: skip
def test_errors_are_those_of_the_comparison(page, topic, file, module, compared):
    errors = compared(topic).columns["error"].values
    model = (ROOT / "docs" / "models" / f"transformer_{topic}.md").read_text(encoding="utf-8").replace("\n", " ")
    assert f"{len(errors)} measured " in model
    kinds = module.kinds(rows_of(file))
    for kind in dict.fromkeys(kinds.tolist()):
        mask = kinds == kind
        assert f"| {kind} | {mask.sum()} | {row_of(errors[mask])} |" in TEXTS[page]
        error = f"{100 * abs(errors[mask]).mean():.1f} % "
        assert re.search(rf"{re.escape(error)}(?:mean error )?on {mask.sum()} ", model), (kind, error)


def test_errors_of_first_tokens_are_those_of_the_comparison():
    errors = whatif.comparisons("first_tokens").table().columns["error"].values
    assert f"| first token | {len(errors)} | {row_of(errors)} |" in TEXTS["serving"]
    model = (ROOT / "docs" / "models" / "transformer_serving.md").read_text(encoding="utf-8")
    assert f"{100 * abs(errors).mean():.1f} % for {len(errors)} times to the first token" in model


def row_of(errors):
    """Mean absolute error and bias, as the tables show them."""
    return f"{abs(errors).mean():.1%} | {errors.mean():+.1%}"


def test_the_model_has_the_stated_gain_of_vera_rubin():
    changes = {"transformer.extends": "deepseek-v3", "rank_count": 8} | {
        f"plan.{key}": value for key, value in {"tensor_size": 1, "expert_size": 8, "precision": "nvfp4"}.items()
    }
    overrides = {f"application.{key}": value for key, value in changes.items()}
    times = [
        float(whatif.run("llama_serving", platform=name, overrides=overrides)["iteration_time"])
        for name in ("gb300_nvl72", "vera_rubin_nvl72")
    ]
    assert f"The model has {times[0] / times[1]:.1f} times for DeepSeek-V3" in (ROOT / "docs/serving.md").read_text()


def test_errors_of_the_runs_on_gb200_of_azure_are_those_of_the_page(compared):
    rows, errors = rows_of("serving_runs.csv"), compared("serving").columns["error"].values
    azure = [(row["model"], 100 * error) for row, error in zip(rows, errors, strict=True) if "GB200" in row["source"]]
    small, large = ([error for model, error in azure if model == name] for name in ("llama-3-8b", "llama-3-70b"))
    means = [sum(map(abs, its)) / len(its) for its in (small, large)]
    page = " ".join((ROOT / "docs/serving.md").read_text().split())
    assert f"{means[0]:.0f} % for Llama 3 8B on one GPU, {means[1]:.0f} %, all too fast, for 70B on four" in page
    assert (len(azure), min(large) > 0) == (12, True)
