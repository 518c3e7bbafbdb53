"""Scenarios side by side: the numbers of each, and all values that differ."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from whatif.errors import UsageError

GPUS, MODEL = "platform.node.gpu_count", "application.phases.halo.model"


def edited(**values):
    return whatif.load("jacobi2d", overrides={GPUS: 8, MODEL: "postal", **values})


def test_results_are_those_of_each_scenario():
    found = whatif.differences("jacobi2d", edited(), "jacobi2d", platforms=["summit", "summit", "frontier"])
    there = whatif.load("jacobi2d", platform="frontier")
    for at, scenario in enumerate(["jacobi2d", edited(), there]):
        run = whatif.run(scenario)
        for name in ("iteration_time", "total_energy"):
            assert_allclose(found.results[name][at], float(run[name]), rtol=1e-12, atol=0)
    rows = found.to_dict()["rows"]
    assert [row["scenario"] for row in rows] == ["A", "B", "C"]
    assert [row[GPUS] for row in rows] == [6, 8, 8]


def test_only_values_that_differ_are_listed_the_machine_first():
    found = whatif.differences("jacobi2d", edited(), names=("now", "then"))
    assert set(found.values) == {GPUS, MODEL}
    assert dict(found.rows())[MODEL] == ("k_model", "postal")
    assert found.summary() == ("2 values differ",)
    assert list(found.readable_table().columns) == ["value", "now", "then"]
    other = whatif.differences("jacobi2d", "jacobi2d", platforms=["summit", "lassen"])
    assert next(iter(other.values)) == "platform.name"
    assert dict(other.rows())["platform.node.host_link.staging.chunk_size"] == ("1 MiB", "–")
    assert whatif.differences("jacobi2d", "jacobi2d").summary() == ("no values differ",)


def test_an_infeasible_scenario_has_a_reason_instead_of_results():
    found = whatif.differences("jacobi2d", edited(**{"platform.node_count": 10}))
    assert "the ranks need more nodes" in found.reasons[1]
    assert found.reasons[0] == ""
    assert np.isnan(found.results["iteration_time"][1])
    assert found.to_dict()["rows"][1]["infeasible"] == found.reasons[1]


@pytest.mark.parametrize(
    ("scenarios", "options", "message"),
    [
        (["jacobi2d"], {}, "two scenarios or more"),
        (["jacobi2d", "minimd"], {"names": ["one"]}, "2 scenarios need as many names, not 1"),
        (["jacobi2d", "minimd"], {"names": ["one", "one"]}, "not distinct: one, one"),
        (["jacobi2d", "minimd"], {"platforms": ["summit"] * 3}, "2 scenarios need as many platforms, not 3"),
    ],
)
def test_wrong_arguments_are_refused(scenarios, options, message):
    with pytest.raises(UsageError, match=message):
        whatif.differences(*scenarios, **options)


def test_shares_are_in_per_cent_as_in_other_tables():
    found = whatif.differences("llama_training", "llama_training", platforms=["dgx_h100", "dgx_b200"])
    first, second = found.results["model_utilisation"]
    assert dict(found.rows())["model_utilisation"] == (f"{100 * first:.3g}%", f"{100 * second:.3g}%")
    line = whatif.explain("llama_training", "model_utilisation", platform="dgx_h100").lines()[0]
    assert line.startswith(f"training.model_utilisation: {100 * first:.3g}%  (")
