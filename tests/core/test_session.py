"""Sessions: default ranges of sweeps."""

from __future__ import annotations

import numpy as np
import pytest

from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.core.sweep import parse_axis
from whatif.schema.shipped import shipped_names

EFFECTIVENESS = "platform.site.power_usage_effectiveness"


def test_default_range_stays_within_the_domain():
    axis = Session.start(Scenario.open("jacobi2d")).sweep(EFFECTIVENESS, None).grid.axes[0]
    assert axis.texts[EFFECTIVENESS].startswith("1 ..")


def test_the_first_sweep_changes_the_time():
    one_rank = {"application.rank_count": "1"}
    one_gpu = {**one_rank, "platform.node_count": "1", "platform.node.gpu_count": "1"}
    given = {
        "platform.node.gpu_count": {},
        "application.rank_count": one_rank,
        "platform.node.gpu.dram_bandwidth": one_gpu,
    }
    for first, sets in given.items():
        session = Session.start(Scenario.open("jacobi2d", overrides=sets))
        assert session.grid.parameters() == (first,)
        assert np.nanmax(session.result["iteration_time"]) > np.nanmin(session.result["iteration_time"])


def test_a_scenario_whose_time_nothing_changes_is_opened_with_a_parameter_that_has_an_effect():
    application = {"name": "pause", "rank_count": 6, "ranks_per_node": 6, "iteration_count": 1, "runs_on": "cpu"}
    pause = {"kind": "overhead", "overhead_time": "3 us"}
    scenario = Scenario.of({"platform": "summit", "application": application | {"phases": {"pause": pause}}})
    assert Session.start(scenario).grid.parameters() == ("application.rank_count",)


@pytest.mark.parametrize("name", shipped_names("scenarios"))
def test_every_parameter_with_an_effect_has_a_default_range(name):
    session = Session.start(Scenario.open(name))
    for path, parameter in session.program.parameters.items():
        if parameter.field is not None and path in session.program.reached:
            axis = parse_axis(path, {path: session.range_text(path)}, session.program, 1_000_000)
            assert parameter.field.domain.accepts(axis.parameters[path]).all()


def test_an_edited_fitted_value_has_no_standard_error_of_the_fit_as_an_override():
    path = "platform.network.inter_node.postal.eager.bandwidth"
    scenario = Scenario.open("minimd", platform="blue_waters")
    assert scenario.program.parameters[path].fitted is not None
    edited = Session.start(scenario).edit(path, "20 GB/s")
    overridden = scenario.with_overrides({path: "20 GB/s"})
    for found in (edited.program, overridden.program):
        assert (found.parameters[path].value, found.parameters[path].fitted) == (20e9, None)


def test_ranks_are_doubled_as_grids_of_primes_are_flat():
    session = Session.start(Scenario.open("jacobi2d")).sweep("application.rank_count", None)
    assert list(session.grid.axes[0].parameters["application.rank_count"]) == [192 * 2**step for step in range(7)]


@pytest.mark.parametrize(
    ("scenario", "ranks", "swept", "text"),
    [
        ("jacobi2d", 8, "platform.node.gpu_count", "4 .. 24 step 1"),
        ("jacobi2d", 1, "application.rank_count", "1 .. 12 step 1"),
    ],
)
def test_first_sweep_of_a_small_cluster_is_feasible(scenario, ranks, swept, text):
    small = {"platform.node_count": "2", "application.rank_count": str(ranks)}
    session = Session.start(Scenario.open(scenario, overrides=small))
    assert session.grid.axes[0].texts == {swept: text}
    assert session.result.infeasible == 0
    assert session.sweep(swept).result.infeasible > 0
