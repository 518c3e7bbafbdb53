"""Names of results: a phase is known by its own name, too."""

from __future__ import annotations

import pytest

import whatif

HALO = ("halo", "terms.halo")


def test_name_of_a_phase_is_that_of_its_result():
    result = whatif.run("jacobi2d")
    assert float(result["halo"]) == float(result["terms.halo"])
    assert result.dimension_of("halo") == result.dimension_of("terms.halo")
    with pytest.raises(KeyError, match="no such result or phase; did you mean `halo`"):
        _ = result["hallo"]


def test_a_result_column_wins_over_a_phase_of_its_name():
    phases = {"total_time": {"kind": "overhead", "overhead_time": "2 ms"}}
    application = {"name": "nap", "rank_count": 6, "iteration_count": 10, "phases": phases}
    result = whatif.run(whatif.Scenario.of(application=application, platform="summit", name="nap"))
    assert float(result["total_time"]) == pytest.approx(0.02, rel=1e-12, abs=0)
    assert float(result["terms.total_time"]) == pytest.approx(0.002, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda name: whatif.sensitivity("jacobi2d", result=name),
        lambda name: whatif.diff("jacobi2d", platforms=["frontier"], result=name, by="table"),
        lambda name: whatif.tune_grid("jacobi2d", result=name),
    ],
    ids=["sensitivity", "diff", "tune_grid"],
)
def test_studies_of_a_phase_call_it_by_the_name_of_its_result(ask):
    short, full = map(ask, HALO)
    assert short.summary() == full.summary()
    assert short.table().to_pandas().equals(full.table().to_pandas())


def test_questions_about_a_phase_have_one_answer_by_either_name():
    platforms = ["summit", "frontier"]
    merits = [whatif.compare(["jacobi2d"], platforms=platforms, result=name).to_pandas()["merit"] for name in HALO]
    assert merits[0].tolist() == merits[1].tolist()
    vary = {"platform.node.gpu_count": [1, 2, 4, 6]}
    fronts = [whatif.pareto_front("jacobi2d", vary, ["iteration_time", name]) for name in HALO]
    first, second = (front.values["platform.node.gpu_count"].tolist() for front in fronts)
    assert first == second
    found = [
        whatif.break_even("jacobi2d", "platform.node.gpu_count", "lassen", result=name).obstacle() for name in HALO
    ]
    assert found[0] == found[1].replace("terms.", "")
