"""The timeline of an iteration: its total is the model's, its overlaps are the stated ones and no others."""

from __future__ import annotations

import itertools
import json
import pickle
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.scenarios_at_hand import FEW
from whatif.core.evaluate import evaluate
from whatif.core.iteration_timeline import timeline
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError
from whatif.schema.toml import parse_document

HEAD = '[platform]\nextends = "summit"\n[application]\nname = "t"\nrank_count = 1\niteration_count = 1\n'
STRUCTURED = (
    HEAD.replace("rank_count = 1", "rank_count = 4")
    + '[application.grid]\nscaling = "weak"\ncells = { x = 1000, y = 1000 }\n'
    + '[application.phases.step]\nkind = "structured_grid"\nhalo_cell_count = 4000\ncell_rate = "1 Gcell/s"\n'
    + 'halo_rate = "1 Mcell/s"\nmiscellaneous_time = "1 ms"\n'
)


def drawn(scenario: Scenario):
    return timeline(scenario.program, evaluate(scenario.program))


def text_of(times, overlaps=()) -> str:
    """Phases a, b, .. with times in us, and overlaps as (earlier, later, fraction)."""
    phases = [
        f'[application.phases.{name}]\nkind = "overhead"\noverhead_time = "{time} us"\n' for name, time in times.items()
    ]
    stated = [
        f'[application.overlaps.o{number}]\nphases = ["{one}", "{other}"]\nfraction = {float(fraction)!r}\n'
        for number, (one, other, fraction) in enumerate(overlaps)
    ]
    return HEAD + "".join(phases + stated)


def made_up(times, overlaps=()):
    return drawn(Scenario(parse_document(text_of(times, overlaps), "t.toml")))


def in_us(found):
    """(start, duration, lane) of every bar, in us."""
    return {bar.phase: (round(bar.start * 1e6, 9), round(bar.duration * 1e6, 9), bar.lane) for bar in found.bars}


def common(one, other) -> float:
    """The time that two bars share."""
    return max(0.0, min(one.end, other.end) - max(one.start, other.start))


@pytest.mark.parametrize("name", FEW)
def test_the_bars_are_the_phases_of_the_command_line_one_after_the_other(whatif_main, name):
    _, out, _ = whatif_main("run", name, "--point", "--format", "json")
    (row,) = json.loads(out)["rows"]
    found = drawn(Scenario.open(name))
    assert {bar.phase: bar.duration for bar in found.bars} == row["terms"]
    assert [bar.phase for bar in found.bars] == list(row["terms"])
    assert found.iteration_time == row["iteration_time"]
    assert_allclose(found.bars[-1].end, row["iteration_time"], rtol=1e-12, atol=0)
    assert found.bars[0].start == 0
    assert all(before.end == after.start for before, after in itertools.pairwise(found.bars))
    assert found.lane_count == 1
    by_category = {bar.category: 0.0 for bar in found.bars}
    for bar in found.bars:
        by_category[bar.category] += bar.duration
    assert all(row[f"{category}_time"] == pytest.approx(time, rel=1e-12) for category, time in by_category.items())


def test_two_phases_that_overlap_have_a_lane_each():
    found = made_up({"a": 30, "b": 20, "c": 5}, [("a", "b", 0.5)])
    # Half of the shorter one is hidden: b starts 10 us before a ends.
    assert in_us(found) == {"a": (0, 30, 0), "b": (20, 20, 1), "c": (40, 5, 0)}
    assert found.lane_count == 2
    assert_allclose(found.iteration_time, 45e-6, rtol=1e-12, atol=0)


def test_a_phase_that_is_hidden_altogether_ends_with_the_longer_one_or_starts_with_it():
    assert in_us(made_up({"a": 30, "b": 20}, [("a", "b", 1)])) == {"a": (0, 30, 0), "b": (10, 20, 1)}
    assert in_us(made_up({"a": 20, "b": 30}, [("a", "b", 1)])) == {"a": (0, 20, 0), "b": (0, 30, 1)}


def test_the_order_of_the_file_decides_which_of_the_two_comes_first():
    times = {"a": 30, "b": 20}
    assert made_up(times, [("b", "a", 0.5)]) == made_up(times, [("a", "b", 0.5)])


def test_phases_between_two_that_overlap_wait_for_both():
    found = made_up({"a": 30, "x": 7, "b": 20, "c": 5}, [("a", "b", 0.5)])
    assert in_us(found) == {"a": (0, 30, 0), "x": (40, 7, 0), "b": (20, 20, 1), "c": (47, 5, 0)}
    assert [bar.phase for bar in found.bars] == ["a", "x", "b", "c"]


def test_interleaved_overlaps_need_no_third_lane():
    found = made_up({"a": 30, "c": 40, "b": 20, "d": 10}, [("a", "b", 0.5), ("c", "d", 1)])
    assert in_us(found) == {"a": (0, 30, 0), "c": (40, 40, 0), "b": (20, 20, 1), "d": (70, 10, 1)}
    assert found.lane_count == 2


def test_an_overlap_that_hides_nothing_needs_no_lane_and_phases_without_time_are_kept():
    found = made_up({"a": 30, "b": 0, "c": 5}, [("a", "b", 1)])
    assert in_us(found) == {"a": (0, 30, 0), "b": (30, 0, 0), "c": (30, 5, 0)}
    assert made_up({"a": 30, "b": 20}, [("a", "b", 0)]).lane_count == 1
    nothing = made_up({"a": 0})
    assert (nothing.iteration_time, nothing.bars[0].end) == (0, 0)


def test_the_parts_of_a_structured_grid_overlap_by_their_names():
    overlap = '[application.overlaps.o]\nphases = ["step.computation", "step.communication"]\nfraction = 1\n'
    found = drawn(Scenario(parse_document(STRUCTURED + overlap, "t.toml")))
    # 10^6 cells at 10^9 a second, 4000 halo cells at 10^6 a second: 1 ms within 4 ms, then 1 ms.
    assert in_us(found) == {
        "step.computation": (0, 1000, 0),
        "step.communication": (0, 4000, 1),
        "step.miscellaneous": (4000, 1000, 0),
    }
    assert [bar.category for bar in found.bars] == ["kernel", "communication", "overhead"]


def test_an_overlap_of_jacobi2d_saves_the_printed_time(whatif_main, tmp_path):
    overlap = 'extends = "jacobi2d"\n[application.overlaps.o]\nphases = ["halo", "stencil"]\nfraction = 0.75\n'
    path = tmp_path / "overlapped.toml"
    path.write_text(overlap)
    _, out, _ = whatif_main("run", path, "--point", "--format", "json")
    (row,) = json.loads(out)["rows"]
    found = drawn(Scenario.open(path))
    bars = {bar.phase: bar for bar in found.bars}
    assert_allclose(common(bars["halo"], bars["stencil"]), 0.75 * row["terms"]["halo"], rtol=1e-12, atol=0)
    assert_allclose(max(bar.end for bar in found.bars), row["iteration_time"], rtol=1e-12, atol=0)
    assert_allclose(common(bars["halo"], bars["stencil"]), row["overlap_time"], rtol=1e-12, atol=0)


@st.composite
def iterations(draw):
    """Up to eight phases, some of them in disjoint pairs that overlap."""
    count = draw(st.integers(1, 8))
    times = {f"p{number}": draw(st.integers(0, 10**6)) for number in range(count)}
    shuffled = draw(st.permutations(list(times)))
    pairs = draw(st.integers(0, count // 2))
    fractions = st.integers(0, 1000).map(lambda thousandths: Fraction(thousandths, 1000))
    return times, [(shuffled[2 * pair], shuffled[2 * pair + 1], draw(fractions)) for pair in range(pairs)]


@settings(deadline=None, max_examples=40)
@given(iterations())
def test_whatever_overlaps_the_last_end_is_the_iterations_time(case):
    times, overlaps = case
    found = made_up(times, overlaps)
    hidden = {frozenset(pair): fraction * min(times[name] for name in pair) for *pair, fraction in overlaps}
    exact = float(sum(times.values()) - sum(hidden.values())) * 1e-6
    assert_allclose(max(bar.end for bar in found.bars), exact, rtol=1e-12, atol=0)
    assert_allclose(found.iteration_time, exact, rtol=1e-12, atol=0)
    assert min(bar.start for bar in found.bars) >= -1e-12 * exact
    rounding = 1e-12 * exact
    for one, other in itertools.combinations(found.bars, 2):
        shared = float(hidden.get(frozenset((one.phase, other.phase)), 0)) * 1e-6
        assert abs(common(one, other) - shared) <= rounding, (one, other)
        assert one.lane != other.lane or common(one, other) <= rounding
    assert found.lane_count == (2 if any(hidden.values()) else 1) == 1 + max(bar.lane for bar in found.bars)


def test_a_point_that_cannot_exist_has_no_timeline():
    with pytest.raises(InfeasiblePointError, match=r"^infeasible: the ranks need more nodes"):
        drawn(Scenario.open("jacobi2d", overrides={"platform.node_count": "10"}))


def test_a_timeline_crosses_to_another_process():
    found = drawn(Scenario.open("minimd"))
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - what has just been packed
