"""Results held to those of a file, as a repository's CI does it."""

from __future__ import annotations

import json

import pytest

from tests.one_phase import one_phase


@pytest.fixture
def held(whatif_main, tmp_path):
    """A scenario of 10 iterations of 2 s, its results written down: (run, scenario, file)."""
    scenario = tmp_path / "mine.toml"
    scenario.write_text(one_phase("2 s", iterations=10))
    code, out, err = whatif_main("check", "mine.toml", "summit", "--against", "held.json", "--update")
    assert (code, out, err) == (
        0,
        "mine.toml: ok (scenario)\nsummit: ok (platform)\n",
        "held.json: results of mine.toml\n",
    )
    return whatif_main, scenario, tmp_path / "held.json"


def test_results_as_they_were_pass_and_are_those_of_a_run(held):
    run, _, file = held
    results = json.loads(file.read_text())["results"]["mine.toml"]
    assert (results["iteration_time"], results["total_time"], results["terms.work"]) == (2.0, 20.0, 2.0)
    assert run("check", "mine.toml", "--against", "held.json")[0] == 0


def test_a_changed_result_is_reported_with_exit_code_5(held):
    run, scenario, _ = held
    scenario.write_text(one_phase("2.01 s", iterations=10))
    code, out, err = run("check", "mine.toml", "--against", "held.json")
    assert code == 5
    assert "mine.toml: iteration_time: 2 s -> 2.01 s (+0.50%)" in out.splitlines()
    assert "whatif diff" in err
    assert run("check", "mine.toml", "--against", "held.json", "--tolerance", "1 %")[0] == 0
    assert run("check", "mine.toml", "--against", "held.json", "--tolerance", "0.004")[0] == 5


def test_new_and_removed_phases_and_missing_scenarios_are_reported(held):
    run, scenario, _ = held
    scenario.write_text(one_phase("2 s", iterations=10).replace("phases.work", "phases.other"))
    code, out, _ = run("check", "mine.toml", "minife", "--against", "held.json")
    assert code == 5
    assert out.splitlines()[2:] == [
        "minife: not in held.json",
        "mine.toml: terms.work: 2 s -> not there",
        "mine.toml: terms.other: not there -> 2 s",
    ]


def test_an_update_keeps_the_other_scenarios(held):
    run, _, file = held
    assert run("check", "minife", "--against", "held.json", "--update")[0] == 0
    assert json.loads(file.read_text())["results"].keys() == {"mine.toml", "minife"}


@pytest.mark.parametrize(
    ("text", "options", "code", "message"),
    [
        (None, ["--against", "none.json"], 2, "none.json: no such file; --update makes it"),
        ("{}", [], 3, "held.json: no file of results"),
        ("[1", [], 3, "held.json: no file of results"),
        ('{"results": {"mine.toml": {"iteration_time": "2"}}}', [], 3, "held.json: no file of results"),
        ('{"results": {"other": {"iteration_time": Infinity}}}', ["--update"], 3, "held.json: no file of results"),
        ('{"results": {"other": {"iteration_time": 1e999}}}', ["--update"], 3, "held.json: no file of results"),
        (f'{{"results": {{"other": {{"iteration_time": {10**400}}}}}}}', [], 3, "held.json: no file of results"),
        (None, ["--tolerance", "-1 %"], 2, "--tolerance -1 %: expected a share"),
        (None, ["--tolerance", "much"], 2, "--tolerance much: expected a share"),
    ],
)
def test_invalid_input_is_refused(held, text, options, code, message):
    run, _, file = held
    if text is not None:
        file.write_text(text)
    against = [] if "--against" in options else ["--against", "held.json"]
    found = run("check", "mine.toml", *against, *options)
    assert found[0] == code
    assert message in found[2]


def test_an_update_needs_a_file_and_a_scenario_an_answer(held):
    run, scenario, _ = held
    code, _, err = run("check", "mine.toml", "--update")
    assert (code, "--update needs --against" in err) == (2, True)
    code, _, err = run("check", "summit", "--against", "held.json", "--update")
    assert (code, "no scenario among summit" in err) == (2, True)
    scenario.write_text(one_phase("2 s", iterations=10).replace("rank_count = 6", "rank_count = 1000000"))
    code, _, err = run("check", "mine.toml", "--against", "held.json")
    assert code == 4
    assert err.startswith("whatif: mine.toml: infeasible: ")


def test_a_run_that_takes_no_time_is_held(whatif_main, tmp_path):
    (tmp_path / "nothing.toml").write_text(one_phase("0 s"), encoding="utf-8")
    assert whatif_main("check", "nothing.toml", "--against", "held.json", "--update")[0] == 0
    held = json.loads((tmp_path / "held.json").read_text(encoding="utf-8"))["results"]["nothing.toml"]
    assert (held["total_time"], held["mean_power"]) == (0.0, 0.0)
    assert whatif_main("check", "nothing.toml", "--against", "held.json")[0] == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "[application.phases.stencil]\ncompute_fraction = 0.9\nload_store_fraction = 0.5",
            "application.phases.stencil: compute_fraction and load_store_fraction together exceed 1",
        ),
        ("[application]\nrank_count = 60000", "the ranks need more nodes than the platform has"),
    ],
)
def test_a_scenario_that_can_never_be_run_is_valid_and_infeasible(whatif_main, tmp_path, text, reason):
    (tmp_path / "mine.toml").write_text(f'extends = "jacobi2d"\n{text}\n')
    code, out, err = whatif_main("check", "mine.toml")
    assert (code, out) == (4, "mine.toml: ok (scenario)\n")
    assert err.startswith(f"whatif: mine.toml: its own point is infeasible: {reason}")


def test_a_sweep_may_begin_at_an_infeasible_point(whatif_main, tmp_path):
    text = (
        'extends = "jacobi2d"\n[application]\nrank_count = 60000\n[sweep.ranks]\n"application.rank_count" = "6, 12"\n'
    )
    (tmp_path / "mine.toml").write_text(text)
    assert whatif_main("check", "mine.toml")[0] == 0
    assert whatif_main("run", "mine.toml")[0] == 0


def test_a_check_simulates_nothing(whatif_main, tmp_path, monkeypatch):
    monkeypatch.setattr("whatif.core.message_simulation.each_point", None)
    (tmp_path / "mine.toml").write_text('extends = "jacobi2d"\n[application]\ncommunication = "simulated"\n')
    assert whatif_main("check", "mine.toml")[0] == 0
    with pytest.raises(TypeError):
        whatif_main("run", "mine.toml")
