"""Costs in two currencies: every study that would compare them refuses, or shows both."""

from __future__ import annotations

import math

import numpy as np
import pytest

import whatif
from whatif.errors import UsageError


@pytest.fixture(name="platforms", scope="module")
def platforms_in_two_currencies():
    """A machine with the same numbers in dollars and in euros."""
    return [
        whatif.Platform.of(
            extends="frontier",
            name=name,
            price={"machine_price": f"600 M{unit}", "energy_price": f"0.1 {unit}/kWh", "lifetime": "5 years"},
        )
        for name, unit in (("us", "USD"), ("eu", "EUR"))
    ]


@pytest.mark.parametrize(
    "study",
    [
        lambda here, there: whatif.diff(here, there, result="total_cost"),
        lambda here, there: whatif.break_even(here, "application.rank_count=8 .. 64", there.platform,
                                              result="total_cost"),
        lambda here, there: whatif.seek(here, "platform=us, eu", minimise="total_cost"),
        lambda here, there: whatif.seek(here, ["platform=us, eu", "application.rank_count=8, 16"],
                                        "total_cost <= 80%"),
        lambda here, there: whatif.pareto_front(here, "platform=us, eu", "total_cost, iteration_time"),
        lambda here, there: whatif.compare(here, ["us", "eu"], result="total_cost"),
    ],
)  # fmt: skip
def test_costs_in_two_currencies_are_not_compared(platforms, study, tmp_path):
    for item in platforms:
        item.write(tmp_path / f"{item.name}.toml")
    here, there = (whatif.load("jacobi2d", platform=item.name, platform_dirs=[tmp_path]) for item in platforms)
    with pytest.raises(UsageError, match="`total_cost` is in EUR and USD: nothing here converts them"):
        study(here, there)


@pytest.mark.parametrize("samples", [None, 16])
def test_a_sweep_has_a_column_for_each_currency(platforms, samples, tmp_path):
    for item in platforms:
        item.write(tmp_path / f"{item.name}.toml")
    scenario = whatif.load("jacobi2d", platform="us", platform_dirs=[tmp_path])
    found = whatif.sweep(scenario, "platform=us, eu", "application.rank_count=64, 128", samples=samples)
    dollars, euros = found["total_cost in USD"], found["total_cost in EUR"]
    np.testing.assert_array_equal(dollars[0], euros[1])
    assert (dollars[0] > 0).all()
    assert np.isnan([dollars[1], euros[0]]).all()
    assert [found.table().columns[f"total_cost in {unit}"].unit for unit in ("USD", "EUR")] == ["USD", "EUR"]
    assert "total_cost" not in found.columns
    with pytest.raises(
        UsageError, match="`total_cost` is in several currencies: `total_cost in USD` and `total_cost in"
    ):
        found.answers("total_cost")
    assert found.other_grades.keys() >= {"total_cost in USD", "total_cost in EUR"}
    assert (found.bands is None) == (samples is None)
    alone = whatif.sweep(scenario, "platform=us, frontier")
    assert alone["total_cost"][0] > 0
    assert math.isnan(alone["total_cost"][1])


def test_scenarios_side_by_side_have_a_row_for_each_currency(platforms):
    found = whatif.differences("jacobi2d", "jacobi2d", platforms=platforms, names=("us", "eu"))
    dollars, euros = found.results["total_cost in USD"], found.results["total_cost in EUR"]
    assert dollars[0] == euros[1] > 0
    assert np.isnan([dollars[1], euros[0]]).all()
    assert [str(found.dimensions[f"total_cost in {unit}"]) for unit in ("USD", "EUR")] == ["USD", "EUR"]
    assert next(iter(found.results)) == "iteration_time"
    alone = whatif.differences("jacobi2d", "jacobi2d", platforms=[platforms[0], "frontier"])
    assert alone.results["total_cost"][0] == dollars[0]
    assert math.isnan(alone.results["total_cost"][1])
