"""The ladder of ideals against the same questions asked one by one, and the verb that shows it."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError, UsageError
from whatif.studies.bottlenecks import ladder
from whatif.studies.elasticity import elasticities


def ideal(scenario, part):
    """What to set so that a part is ideal, as a person would write it."""
    sets = {}
    for path, parameter in scenario.program.parameters.items():
        rate = str(parameter.dimension).endswith("/s")
        if (path == part or path.startswith(f"{part}.")) and parameter.field is not None and (rate or path.endswith(
            ("latency", "overhead_time", "kernel_time", "interval"))):  # fmt: skip
            sets[path] = f"{parameter.value * 1e12!r} {parameter.dimension}" if rate else "0 s"
    assert sets
    return sets


def time(scenario, sets):
    return float(run_whole(scenario.changed(sets), Grid()).columns["iteration_time"])


@pytest.mark.parametrize("name", ["minife", "jacobi2d"])
def test_every_rung_is_the_best_next_one_and_what_a_run_with_these_values_says(name):
    scenario = Scenario.open(name)
    found = ladder(scenario.program)
    assert found.time == time(scenario, {})
    assert len(found.rungs) >= 5
    parts = [rung.part for rung in found.rungs]
    made: dict[str, str] = {}
    before = found.time
    for at, rung in enumerate(found.rungs[:4]):
        left = {part: time(scenario, {**made, **ideal(scenario, part)}) for part in parts[at:]}
        assert min(left, key=left.get) == rung.part
        assert_allclose([rung.left, rung.saved], [left[rung.part], before - left[rung.part]], rtol=1e-9, atol=0)
        made |= ideal(scenario, rung.part)
        before = rung.left
    # The ladder ends where the next part saves less than a thousandth.
    assert found.rungs[-1].left < 0.01 * found.time


def test_the_first_rung_of_a_kernel_that_waits_for_memory_is_memory():
    found = ladder(Scenario.open("minife").program, "terms.waxpby")
    assert found.rungs[0].part == "platform.node.gpu.dram_bandwidth"
    assert not any(rung.part.startswith("platform.network") for rung in found.rungs)


def test_a_rate_has_no_bottlenecks():
    with pytest.raises(UsageError, match="`token_rate` is a rate: --show ladder needs a result to lower"):
        ladder(Scenario.open("llama_serving").program, "token_rate")


def test_an_infeasible_point_has_no_bottlenecks():
    scenario = Scenario.open("minife", overrides={"application.rank_count": "1000000"})
    with pytest.raises(InfeasiblePointError, match="infeasible: "):
        ladder(scenario.program)


def test_the_verb_shows_bottlenecks_and_elasticities(whatif_main):
    code, out, err = whatif_main("sensitivity", "minife", "--show", "ladder")
    assert code == 0
    assert err.splitlines() == [
        "Lassen: rests on assumed values",
        "Lassen: iteration within 5.8% (bias -3.9%) of 5 runs on lassen",
        "iteration_time: 5.208 ms now; each row is ideal with all above",
    ]
    assert out.splitlines()[1].split() == [
        "platform.node.gpu.dram_bandwidth",
        "4.0158",
        "ms",
        "1.1923",
        "ms",
        "22.9%",
        "#####",
    ]
    code, out, err = whatif_main("sensitivity", "minife", "--format", "csv")
    assert code == 0
    rows = [row.split(",") for row in out.splitlines()[1:]]
    known = [item for item in elasticities(Scenario.open("minife").program) if item.elasticity and not item.reason]
    assert [(row[0], float(row[3])) for row in rows] == [(item.path, item.elasticity) for item in known]
    assert f"iteration_time: depends on {len(known)} of " in err
    code, out, _ = whatif_main("sensitivity", "minife")
    arms = {line.split()[0]: line for line in out.splitlines()}
    assert "#|" in arms["platform.node.gpu.dram_bandwidth"]
    assert "|#" in arms["application.phases.overhead.overhead_time"]
    assert len(whatif_main("sensitivity", "minife", "--all")[1].splitlines()) > len(out.splitlines())
