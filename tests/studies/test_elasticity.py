"""Elasticities against hand arithmetic, against the units of the model, and against evaluating point by point."""

from __future__ import annotations

import math
import pickle

import pytest
from numpy.testing import assert_allclose

import whatif
from tests.scenarios_at_hand import FEW
from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError, UsageError, WhatifError
from whatif.schema.parameters import Parameter
from whatif.schema.toml import parse_document
from whatif.studies.elasticity import elasticities
from whatif.units import BYTE, FLOP, ONE, SECOND

SCENARIOS = FEW
NO_LAUNCHES = {"platform.node.gpu.empty_kernel_time": "0 s", "platform.node.gpu.launch_interval": "0 s"}
BANDWIDTH = "platform.node.gpu.dram_bandwidth"
HEAD = '[platform]\nextends = "summit"\n[application]\nname = "t"\nrank_count = 1\niteration_count = 1\n'


def found(name: str, result: str = "iteration_time", platform: str | None = None, **sets: str):
    sets = {path.replace("__", "."): text for path, text in sets.items()}
    program = Scenario.open(name, platform=platform, overrides=sets).program
    return {item.path: item for item in elasticities(program, result)}


def made_up(body: str):
    return {item.path: item for item in elasticities(Scenario(parse_document(HEAD + body, "t.toml")).program)}


def alone(name: str, parameter: Parameter, value: float, result: str) -> float:
    """The result at one point, from the text of the file again; NaN where the point is refused or infeasible."""
    number = str(int(value)) if value % 1 == 0 else repr(value)
    text = number if parameter.dimension == ONE else f"{number} {parameter.dimension}"
    try:
        answer = run_whole(Scenario.open(name, overrides={parameter.path: text}), Grid())
    except WhatifError:
        return math.nan
    numbers = {**answer.columns, **{f"terms.{phase}": time for phase, time in answer.terms.items()}}
    return float(numbers[result])


NAMES = {
    (False, True, True): "±1 %",
    (False, True, False): "+1 %",
    (False, False, True): "-1 %",
    (True, True, True): "x2 and /2",
    (True, True, False): "x2",
    (True, False, True): "/2",
    (True, False, False): "",
}
WHOLE_THROUGH_AN_EXPRESSION = {"parameters.cells"}


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("jacobi2d", "iteration_time"),
        ("minife_devices", "total_time"),
    ],
)
def test_every_elasticity_is_that_of_the_points_evaluated_one_by_one(name, result):
    program = Scenario.open(name).program
    items = elasticities(program, result)
    count = program.parameters["application.iteration_count"]
    base = alone(name, count, count.value, result)
    # They are in order: of those that move nothing, which are most of a phase's, some will do.
    moving = sum(item.elasticity != 0 for item in items)
    for item in (*items[:moving], *items[moving::5]):
        parameter = program.parameters[item.path]
        whole = parameter.field.domain.whole or item.path in WHOLE_THROUGH_AN_EXPRESSION
        factors = (2.0, 0.5) if whole else (1.01, 0.99)
        up, down = (alone(name, parameter, parameter.value * factor, result) for factor in factors)
        assert item.change == NAMES[whole, math.isfinite(up), math.isfinite(down)], item
        assert bool(item.reason) == math.isnan(item.elasticity) == (item.change == "")
        if item.reason:
            continue
        high, above = (up, factors[0]) if math.isfinite(up) else (base, 1.0)
        low, below = (down, factors[1]) if math.isfinite(down) else (base, 1.0)
        # A step of 1 % leaves the logarithm of the ratio some 14 of the 16 digits.
        expected = math.log(high / low) / math.log(above / below)
        assert abs(item.elasticity - expected) <= 1e-12 * max(1.0, abs(expected)), item
        assert item.value == parameter.text()


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_number_of_its_own_that_results_depend_on_is_there_once_and_the_largest_come_first(name):
    program = Scenario.open(name).program
    items = elasticities(program)
    numbers = {path for path in program.timed if isinstance(program.parameters[path].value, float)}
    assert len(items) > 10
    assert len(items) == len({item.path for item in items})
    profiled = {path for path in numbers if ".profiled_" in path}
    assert profiled or name not in ("minife", "minimd")
    assert {item.path for item in items} == {path for path in numbers - profiled if program.parameters[path].value != 0}
    sizes = [abs(item.elasticity) for item in items]
    assert sizes == sorted(sizes, reverse=True)


def test_all_kernels_of_minife_wait_for_memory_so_bandwidth_weighs_as_much_as_they_do():
    answer = run_whole(Scenario.open("minife"), Grid()).columns
    kernel, whole = float(answer["kernel_time"]), float(answer["iteration_time"])
    item = found("minife")[BANDWIDTH]
    kernel -= 7 * 2e-6  # Launches of an iteration.
    assert_allclose(item.elasticity, -kernel / whole, rtol=1e-4, atol=0)
    rest = whole - kernel
    exact = math.log((rest + kernel / 1.01) / (rest + kernel / 0.99)) / math.log(1.01 / 0.99)
    assert_allclose(item.elasticity, exact, rtol=1e-11, atol=0)
    assert (item.value, item.change) == ("779.411 GB/s", "±1 %")


def test_a_kernel_bound_by_one_roof_follows_that_roof_alone():
    stencil = found("jacobi2d", "terms.stencil", **NO_LAUNCHES)
    assert_allclose(stencil[BANDWIDTH].elasticity, -1, rtol=1e-12, atol=0)
    assert_allclose(stencil["application.phases.stencil.dram_size"].elasticity, 1, rtol=1e-12, atol=0)
    assert stencil["application.phases.stencil.operations"].elasticity == 0
    pack = found("jacobi2d", "terms.pack", **NO_LAUNCHES)
    assert_allclose(pack["application.phases.pack.operations"].elasticity, 1, rtol=1e-12, atol=0)
    assert pack[BANDWIDTH].elasticity == 0
    # Twice the launches, twice the time: one doubling a doubling. The halved launch is not a whole number.
    launches = pack["application.phases.pack.launch_count"]
    assert_allclose(launches.elasticity, 1, rtol=1e-15, atol=0)
    assert launches.change == "x2"


@pytest.mark.parametrize(
    ("name", "base"),
    [
        # The unit of a regression's time is none of its parameters.
        *((name, SECOND) for name in SCENARIOS if name not in ("minife_devices", "particle_tracking")),
        ("jacobi2d", BYTE),
        ("minife", BYTE),
        ("jacobi2d", FLOP),
    ],
)
def test_elasticities_add_up_to_the_unit_of_a_time(name, base):
    """In another unit of time all values in it change, and the result with them; in one of bytes or flop it stays.

    The literals of expressions are no parameters: scenarios whose results depend on such ones do not add up.
    """
    program = Scenario.open(name).program
    terms = [_power(program.parameters[item.path].dimension, base) * item.elasticity for item in elasticities(program)]
    gains, losses = sum(term for term in terms if term > 0), -sum(term for term in terms if term < 0)
    assert gains + losses > 0.1
    assert_allclose(gains, losses + _power(SECOND, base), rtol=2e-4, atol=0)


def test_the_elasticity_in_the_iterations_is_that_of_the_whole_run():
    assert_allclose(found("minife", "total_time")["application.iteration_count"].elasticity, 1, rtol=1e-12, atol=0)
    assert found("minife")["application.iteration_count"].elasticity == 0


def test_a_parameter_behind_a_whole_number_is_doubled_and_halved():
    item = found("minimd")["parameters.cells"]
    parameter = Scenario.open("minimd").program.parameters["parameters.cells"]
    low, high = (alone("minimd", parameter, cells, "iteration_time") for cells in (32.0, 128.0))
    assert item.change == "x2 and /2"
    assert_allclose(item.elasticity, math.log2(high / low) / 2, rtol=1e-12, atol=0)


def test_a_step_where_the_point_cannot_exist_is_not_taken():
    # 1536 ranks on nodes of 6 need 256 of them: neither half the nodes nor half the GPUs would do.
    items = found("jacobi2d", platform__node_count="256")
    assert items["platform.node_count"].change == "x2"
    assert items["platform.node_count"].elasticity == 0
    assert items["platform.node.gpu_count"].change == "x2"
    assert items["application.rank_count"].change == "/2"
    parameter = Scenario.open("jacobi2d").program.parameters["application.rank_count"]
    whole, half = (alone("jacobi2d", parameter, count, "iteration_time") for count in (1536.0, 768.0))
    expected = math.log2(whole / half)
    assert_allclose(items["application.rank_count"].elasticity, expected, rtol=1e-12, atol=0)


def test_a_step_that_parameters_the_domain_is_not_taken():
    item = found("minife", "terms.matvec_inner", **NO_LAUNCHES, **{BANDWIDTH: "50000 GB/s"})[
        "application.phases.matvec_inner.operation_efficiency"
    ]
    # The whole of 1 is all there is; with so much bandwidth the kernel waits for its operations.
    assert (item.value, item.change) == ("1", "-1 %")
    assert_allclose(item.elasticity, -1, rtol=1e-12, atol=0)


def test_a_value_that_cannot_vary_has_a_reason_and_is_last():
    given = {
        "application.rank_count": "48",
        "application.grid.decomposition": "given",
        "application.grid.ranks.x": "6",
        "application.grid.ranks.y": "8",
        "application.congestion": "none",
    }
    *others, x, y = elasticities(Scenario.open("jacobi2d", overrides=given).program)
    assert {x.path, y.path} | {item.path for item in others if item.reason} == {
        "application.grid.ranks.x",
        "application.grid.ranks.y",
        "application.rank_count",
    }
    assert x.reason == "the ranks along the dimensions do not multiply to application.rank_count"
    assert math.isnan(x.elasticity)
    assert x.change == ""


def test_a_value_with_forbidden_steps_lists_the_allowed_ones():
    generation = "platform.node.host_link.generation"
    items = found("jacobi2d_strong", "iteration_time", "bridges", **{generation: "5"})
    assert items[generation].reason == "it must be a whole number between 1 and 6"
    assert math.isnan(items[generation].elasticity)


def test_what_becomes_zero_has_no_logarithm_and_the_other_step_counts():
    # One rank alone sends no messages.
    item = found("jacobi2d", "terms.halo", application__rank_count="2")["application.rank_count"]
    assert item.change == "x2"
    assert item.elasticity > 0


def test_a_step_that_takes_an_expression_out_of_its_domain_is_not_taken():
    body = '[application.phases.a]\nkind = "overhead"\noverhead_time = "= 1 s * x - 1 s"\n[parameters]\nx = 1.005\n'
    item = made_up(body)["parameters.x"]
    # 1 % less than 1.005 s would leave a time below 0.
    assert item.change == "+1 %"
    assert_allclose(item.elasticity, math.log(0.01505 / 0.005) / math.log(1.01), rtol=1e-11, atol=0)


def test_values_of_zero_and_expressions_are_left_out():
    overhead = "application.phases.overhead.overhead_time"
    assert overhead in found("jacobi2d")
    assert overhead not in found("jacobi2d", **{overhead: "0 s"})
    devices = found("minife_devices")
    assert BANDWIDTH not in devices
    assert_allclose(
        devices["parameters.bandwidth_factor"].elasticity, found("minife")[BANDWIDTH].elasticity, rtol=1e-12, atol=0
    )


def test_a_negative_value_has_the_elasticity_of_its_size():
    body = '[application.phases.a]\nkind = "overhead"\noverhead_time = "= 10 s + shift"\n[parameters]\nshift = "-2 s"\n'
    item = made_up(body)["parameters.shift"]
    # t = 10 + x: x t' / t = -2 / 8.
    assert_allclose(item.elasticity, -0.25, rtol=1e-4, atol=0)
    assert_allclose(item.elasticity, math.log(7.98 / 8.02) / math.log(1.01 / 0.99), rtol=1e-11, atol=0)


def test_a_point_without_an_answer_has_no_elasticities():
    with pytest.raises(InfeasiblePointError, match=r"^infeasible: the ranks need more nodes"):
        found("jacobi2d", platform__node_count="255")
    with pytest.raises(InfeasiblePointError, match="`transfer_time` is 0: it has no elasticity"):
        found("jacobi2d", "transfer_time")
    with pytest.raises(InfeasiblePointError, match="the time of `stencil` is not finite"):
        found("jacobi2d", **{"application.phases.stencil.compute_fraction": "0"})


def test_an_unknown_result_is_refused_with_a_suggestion():
    with pytest.raises(UsageError, match=r"`terms\.stencl`: .*did you mean `terms\.stencil`"):
        found("jacobi2d", "terms.stencl")
    with pytest.raises(UsageError, match=r"`placement\.nodes_needed`: no such result or phase"):
        found("jacobi2d", "placement.nodes_needed")


def test_elasticities_cross_to_another_process_and_are_small():
    items = elasticities(Scenario.open("minimd", overrides={"application.congestion": "none"}).program)
    packed = pickle.dumps(items)
    assert pickle.loads(packed) == items  # noqa: S301 - what has just been packed
    assert len(packed) < 20_000


def _power(dimension, base):
    """The power of a base in a dimension."""
    index = base.powers.index(1)
    return dimension.powers[index] if index < len(dimension.powers) else 0


HIDDEN = """
iteration_count = 10
[application.grid]
scaling = "weak"
cells = { x = 512, y = 512, z = 512 }
[application.phases.halo]
kind = "halo"
model = "max_rate"
neighbours = "faces"
element_size = "8 B"
[application.phases.update]
kind = "kernel"
model = "roofline"
dominant_operation = "fp_64"
metrics_per = "cell"
operations = "8 flop"
dram_size = "16 B"
[application.overlaps.o]
phases = ["halo", "update"]
fraction = 1
"""


def test_a_rounding_error_is_no_effect(tmp_path):
    """An exchange that is hidden whole: the sum of the phases less what is hidden is rounded."""
    (tmp_path / "t.toml").write_text(f'platform = "perlmutter"\n[application]\nname = "t"\nrank_count = 256{HIDDEN}')
    found = whatif.sensitivity(tmp_path / "t.toml")
    rounded = {item.path for item in found.items if 0 < abs(item.elasticity) < 1e-9}
    assert rounded
    assert rounded.isdisjoint(item.path for item in found.effective)
    assert "application.phases.update.dram_size" in {item.path for item in found.effective}


def test_the_number_of_parameters_with_an_effect_is_that_of_the_shorter_table():
    few, everything = (whatif.sensitivity("jacobi2d", everything=both) for both in (False, True))
    assert everything.summary() == few.summary()
    assert f"depends on {len(few.table())} of {len(everything.table())} parameters" in few.summary()[0]


@pytest.mark.parametrize("show", ["tornado", "ladder"])
def test_simulations_are_counted_while_they_run(show):
    simulated = {"application.communication": "simulated", "application.rank_count": 6}
    reports = []
    whatif.sensitivity("jacobi2d", show=show, overrides=simulated, progress=reports.append)
    assert reports[:2] == ["1 simulation", "2 simulations"]
    assert len(set(reports)) == len(reports) > 10
    reports.clear()
    whatif.sensitivity("jacobi2d", show=show, progress=reports.append)
    assert not reports
