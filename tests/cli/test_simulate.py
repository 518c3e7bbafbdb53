"""`simulate` and `validate`: their output against that of `run`, and errors for invalid scenarios."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import whatif
from tests.paths import DATA as TEST_DATA
from tests.paths import ROOT
from whatif.cli.simulate import command as simulate_verb
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import UsageError, WhatifError
from whatif.limits import VALIDATION_TOPICS
from whatif.studies.simulation_run import simulate
from whatif.validation.tables import TABLES

DATA = TEST_DATA / "traces"
DEAD = "num_ranks 2\nrank 0 {\na: send 8b to 1 tag 0\n}\nrank 1 {\nb: recv 8b from 0 tag 7\n}\n"
SMALL = "num_ranks 2\nrank 0 {\na: send 10b to 1 tag 0\n}\nrank 1 {\nb: recv 5b from 0 tag 0\n}\n"
CYCLE = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n"


def ran(*words: str) -> str:
    """What the verb prints; what is wrong is raised."""
    done = CliRunner().invoke(simulate_verb, words, catch_exceptions=False)
    return done.output


@pytest.mark.parametrize(
    ("scenario", "platform", "sets"),
    [
        ("jacobi2d", "summit", {"application.rank_count": "24"}),
        ("jacobi2d", "lassen", {"application.rank_count": "24", "application.grid.mapping": "round_robin"}),
        ("jacobi2d", "dahu", {"application.rank_count": "24", "application.ranks_per_node": "6"}),
        ("minimd", "summit", {"application.rank_count": "27"}),
        ("minife", "lassen", {"application.rank_count": "30"}),
    ],
)
def test_time_of_a_scenario_is_that_of_its_communication(scenario: str, platform: str, sets: dict[str, str]) -> None:
    phases = Scenario.open(scenario).program.loaded.scenario.application.phases
    # Kernels need a GPU; here only the messages count, and each phase alone, for those before skew the ranks.
    halo = next(name for name, phase in phases.items() if phase.kind == "halo")
    text = Scenario.open(scenario).document
    kept = {name: table for name, table in text.data["application"]["phases"].items() if name == halo}
    text.data["application"]["phases"] = {halo: {**kept[halo], "model": "postal"}}
    text.data.pop("sweep", None)
    scenario = Scenario(text, platform, {**sets, "application.communication": "simulated"})
    evaluation = evaluate(scenario.program)
    found = simulate(scenario.program, evaluation)
    expected = float(np.ravel(evaluation.column("communication_time"))[0])
    exchanges = float(np.ravel(evaluation.values[f"application.phases.{halo}.exchange_count"])[0])
    assert exchanges == 1
    np.testing.assert_allclose(found.activity.run_time, expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("platform", ["summit", "dahu", "fugaku"])
def test_time_of_a_trace_equals_that_of_run_also_without_gpus(platform: str) -> None:
    from whatif.studies.scenario_sources import open_source

    scenario = open_source(str(DATA / "simgrid" / "actions_bcast_reduce_datatypes.txt"), platform=platform).scenario
    evaluation = evaluate(scenario.program)
    found = simulate(scenario.program, evaluation)
    total = float(np.ravel(evaluation.column("total_time"))[0])
    np.testing.assert_allclose(found.activity.run_time, total, rtol=1e-9, atol=0)
    assert total > 1.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (DEAD, "deadlock: 1 of 2 ranks .*\n.*rank 1, operation 0 .receive.: receive of 8 B from rank 0, tag 7"),
        (SMALL, "10 B"),
        (CYCLE, "wait for one another in a circle"),
    ],
)
def test_unmatched_messages_are_refused_with_ranks_and_calls(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.goal"
    path.write_text(text)
    with pytest.raises(WhatifError, match=rf"(?s){words}"):
        ran(str(path))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("jacobi2d", "--set", "application.communication=modelled"), "modelled"),
        (("jacobi2d", "--model", "postal"), "model: only for traces"),
        ((str(DATA / "goal" / "binary_tree_32.goal"), "--iterations", "2"), "iterations: only for scenarios"),
        ((str(DATA / "goal" / "binary_tree_32.goal"), "--ranks", "7"), "ranks"),
        (("jacobi2d", "--timeline", "x.txt"), ".json or .paje"),
        (("jacobi2d", "--iterations", "10000000"), "operations"),
    ],
)
def test_scenarios_that_cannot_be_simulated_are_refused_with_the_reason(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(WhatifError, match=message):
        ran(*words)


def test_a_sweep_has_the_reason_of_a_point_that_cannot_be_simulated() -> None:
    from whatif.core.grid_run import run_whole
    from whatif.core.sweep import grid_of, parse_option
    from whatif.studies.scenario_sources import open_source

    scenario = open_source(str(DATA / "goal" / "binary_tree_32.goal"), platform="lassen").scenario
    axis = parse_option("application.rank_count=32, 33", scenario.program, 10)
    result = run_whole(scenario, grid_of([axis], 10))
    assert np.isfinite(result.columns["total_time"][0])
    assert result.reason[0] == ""
    assert "33 ranks" in result.reason[1] or "rank" in result.reason[1]


def test_every_topic_agrees_with_the_independent_results() -> None:
    assert set(VALIDATION_TOPICS) == set(TABLES)
    schedules = TABLES["schedules"]()
    reference = schedules.columns["reference_time"].values
    np.testing.assert_allclose(schedules.columns["event_time"].values, reference, rtol=1e-12, atol=0)
    simulated = np.isfinite(schedules.columns["recurrence_time"].values)
    assert (len(simulated), simulated.sum()) == (98, 94)
    np.testing.assert_allclose(
        schedules.columns["recurrence_time"].values[simulated], reference[simulated], rtol=1e-12, atol=0
    )
    counts = TABLES["counts"]()
    printed, counted = counts.columns["K_inter"].values, counts.columns["counted_K_inter"].values
    rows = zip(counts.columns["application"].values, counts.columns["machine"].values, printed == counted, strict=True)
    assert {row[:2] for row in rows if not row[2]} == {("Jacobi2D", "Bridges"), ("MiniFE", "Summit")}


def test_collectives_of_a_trace_are_chosen_by_hand_and_by_a_library(tmp_path: Path) -> None:
    """An allreduce of 1 MiB on 8 ranks: log2(8) exchanges of all of it, or 2 x 7 rounds of an eighth."""
    path = tmp_path / "eight.txt"
    path.write_text("".join(f"{rank} init\n{rank} allreduce 1048576 0\n" for rank in range(8)))
    sizes = {"recursive_doubling": 8 * 3 * 2**20, "ring": 8 * 14 * 2**17, "rabenseifner": 8 * 14 * 2**17}
    for name, size in sizes.items():
        table = whatif.simulate(path, platform="lassen", collectives=[f"allreduce={name}"]).table("messages")
        assert table.to_pandas()["message_size"].sum() == size
    by_hand = ran(str(path), "--platform", "lassen", "--collective", "allreduce=rabenseifner")
    assert ran(str(path), "--platform", "lassen", "--collective", "mpich") == by_hand
    assert ran(str(path), "--platform", "lassen") != by_hand


def test_collectives_are_an_option_of_traces_only() -> None:
    with pytest.raises(UsageError, match="collectives: only for traces"):
        whatif.simulate("jacobi2d", collectives=["mpich"])


@pytest.mark.parametrize(
    ("call", "collective", "known"),
    [("allreduce 1024 0", "barrier=dissemination", "allreduce"), ("compute 1e6", "mpich", "none")],
)
def test_an_algorithm_of_a_collective_that_a_trace_does_not_call_has_no_effect(tmp_path, call, collective, known):
    path = tmp_path / "two.txt"
    path.write_text("".join(f"{rank} init\n{rank} {call}\n" for rank in range(2)))
    with pytest.raises(UsageError, match=f"^--collective {collective}: no effect; collectives of the trace: {known}$"):
        whatif.simulate(path, platform="lassen", collectives=[collective])


@pytest.mark.parametrize(
    ("work", "factor", "remark"),
    [
        ("c: calc 5000", "1", ["Computations are as traced: application.phases.trace.computation_factor scales them."]),
        ("c: calc 5000", "2", ["Computations are as traced times 2 (application.phases.trace.computation_factor)."]),
        ("", "1", []),
    ],
)
def test_the_remark_on_computations_is_that_of_the_trace_and_its_factor(whatif_main, tmp_path, work, factor, remark):
    (tmp_path / "t.goal").write_text(SMALL.replace("5b", "10b").replace("rank 1 {", f"rank 1 {{\n{work}"))
    code, _, err = whatif_main("simulate", "t.goal", "--set", f"application.phases.trace.computation_factor={factor}")
    assert (code, [line for line in err.splitlines() if "Computations" in line]) == (0, remark)


@pytest.mark.parametrize("show", ["messages", "path", "slopes"])
def test_a_table_has_no_effect_on_a_picture(whatif_main, show):
    words = ("simulate", str(DATA / "goal" / "binary_tree_32.goal"), "--show", show)
    for picture in (("--plot",), ("-o", "x.svg")):
        code, out, err = whatif_main(*words, *picture)
        assert (code, out) == (2, "")
        assert err == f"whatif: --show {show}: no effect on a picture, which has the time lines of ranks\n"


def test_ranks_that_wait_for_ever_are_told_what_may_be_the_cause(whatif_main, tmp_path):
    trace = tmp_path / "cut.txt"
    trace.write_text("0 init\n0 send 1 0 5\n1 init\n1 recv 0 0 5\n1 recv 0 0 5\n0 rec")
    code, _, err = whatif_main("simulate", trace, "--platform", "summit")
    assert code == 4
    assert "deadlock: 1 of 2 ranks" in err
    assert "cut.txt:6: a last row without a line end may be cut off" in err
    _, _, err = whatif_main("simulate", trace, "--platform", "summit", "--ranks", "12")
    assert "the trace has 2 ranks: other numbers need one that can be extrapolated" in err


def test_a_trace_for_which_the_machine_is_too_small_says_by_how_much(whatif_main, tmp_path):
    (tmp_path / "small.toml").write_text('extends = "summit"\nnode_count = 1\n')
    trace = ROOT / "docs" / "examples" / "tree.goal"
    code, _, err = whatif_main("simulate", trace, "--platform", "small.toml")
    assert code == 4
    assert "needed, 1 available" in err


def test_a_scenario_whose_exchanges_are_none_has_nothing_to_simulate(whatif_main, tmp_path):
    text = (
        'platform = "summit"\n[application]\nname = "t"\nrank_count = 4\niteration_count = 1\n'
        '[application.grid]\nscaling = "weak"\ncells = { x = 8 }\n'
        '[application.phases.halo]\nkind = "halo"\nmodel = "postal"\nneighbours = "faces"\nexchange_count = 0\n'
    )
    (tmp_path / "none.toml").write_text(text)
    code, _, err = whatif_main("simulate", "none.toml")
    assert (code, err) == (2, "whatif: no phase of this scenario has an exchange or operation in an iteration\n")


def test_the_best_algorithm_is_not_simulated_and_those_that_are_have_names(whatif_main, tmp_path):
    text = (
        'extends = "jacobi2d"\n[application.phases.sum]\nkind = "collective"\noperation = "allreduce"\n'
        'algorithm = "best"\nmodel = "max_rate"\nmessage_size = "8 B"\n'
    )
    (tmp_path / "best.toml").write_text(text)
    code, _, err = whatif_main("simulate", "best.toml")
    assert code == 3
    assert "`best` is not simulated: name one of recursive_doubling, rabenseifner, ring, " in err
