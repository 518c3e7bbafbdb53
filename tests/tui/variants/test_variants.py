"""Variants of a study: forked, edited, compared, written to files, undone and brought back."""

import asyncio

import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.driver import GPUS, MEMORY, MODEL, RANKS, after, drive
from whatif.api.editing import variant_paths, write_variants
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.core.sweep_figure import plot_table
from whatif.errors import UsageError
from whatif.tui.commands.command_runner import CommandRunner
from whatif.tui.commands.explorer_commands import Adopt, Also, Edit, Nudge, Pin, Show, SweepParameter, parse_line
from whatif.tui.commands.history import History, lines_to
from whatif.tui.commands.performing import perform
from whatif.tui.dialogs.windows import ChoicePrompt, TextPrompt
from whatif.tui.pages.explore import picture, related_map
from whatif.tui.state import ExplorerState
from whatif.tui.variants.variant_commands import Delete, Fork, Go, Rename
from whatif.tui.variants.variant_set import LETTERS

THREE = (Edit(GPUS, "8"), Fork("postal"), Edit(MODEL, "postal"), Fork("lassen"), Adopt("lassen"))
"""A as opened, B with 8 GPUs, C with another model besides, D on another machine."""


def values(state, path=GPUS):
    return {item.label: item.session.parameter(path).text() for item in state.listed()}


def test_each_variant_keeps_its_own_values(state):
    there = after(state, *THREE)
    assert values(there) == {"A": "6", "B": "8", "C postal": "8", "D lassen": "4"}
    assert values(there, MODEL) == {"A": "k_model", "B": "k_model", "C postal": "postal", "D lassen": "postal"}
    edited = after(there, Go("B"), Edit(GPUS, "10"), Go("postal"), Edit(GPUS, "12"))
    assert values(edited) == {"A": "6", "B": "10", "C postal": "12", "D lassen": "4"}
    assert edited.variant_label == "C postal"
    assert edited.baseline.parameter(GPUS).value == 6


def test_the_baseline_is_edited_only_where_one_goes_to_it(state):
    there = after(state, Edit(GPUS, "8"), Fork(), Go("A"), Edit(GPUS, "5"))
    assert values(there) == {"A": "5", "B": "8", "C": "8"}
    assert not there.changed
    back = after(there, Go("C"))
    assert back.changed
    assert back.baseline.parameter(GPUS).value == 5
    assert values(after(back, Pin())) == {"A": "8", "B": "8", "C": "8"}


def test_a_draft_without_changes_is_no_variant_until_it_is_named(state):
    assert [item.label for item in state.listed()] == ["A"]
    assert state.next_variant() == ""
    assert [item.label for item in after(state, Fork("mine")).listed()] == ["A", "B mine"]
    assert [item.label for item in after(state, Rename("B", "mine")).listed()] == ["A", "B mine"]
    assert [item.label for item in after(state, Edit(GPUS, "8")).listed()] == ["A", "B"]


def test_the_next_variant_goes_round_in_a_circle(state):
    there = after(state, *THREE)
    seen = []
    for _ in range(5):
        there = after(there, Go(there.next_variant()))
        seen.append(there.variants.current)
    assert seen == ["A", "B", "C", "D", "A"]


def test_a_deleted_variant_is_gone_and_its_letter_free(state):
    there = after(state, *THREE, Delete("C"))
    assert list(values(there)) == ["A", "B", "D lassen"]
    gone = after(there, Delete("lassen"))
    assert list(values(gone)) == ["A", "B"]
    assert gone.variants.current == "C"
    assert gone.session.parameter(GPUS).value == 6
    assert list(values(after(gone, Go("B"), Fork()))) == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Delete("A"), "A is the baseline and cannot be deleted"),
        (Go("lasen"), "did you mean `lassen`"),
        (Go("H"), "there is no variant `H`; known: A, B, C postal, D lassen"),
        (Rename("B", "postal"), "there is a variant `postal` already"),
        (Rename("B", "x" * 25), "at most 24 characters"),
        (Rename("B", "c"), "`c` is a letter of the variants"),
    ],
)
def test_an_impossible_command_changes_nothing_and_says_why(state, change, message):
    there = after(state, *THREE)
    outcome = perform(there, (change,))
    assert message in outcome.error
    assert outcome.state is there


def test_there_are_at_most_eight_variants(state):
    full = after(state, Edit(GPUS, "8"), *[Fork()] * 6)
    assert "".join(item.letter for item in full.listed()) == LETTERS
    assert "there are 8 variants" in perform(full, (Fork(),)).error
    assert len(after(full, Delete("D"), Fork()).listed()) == 8


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("variant", "expected `variant fork, go, delete or rename`"),
        ("variant frok", "did you mean `fork`"),
        ("variant go", "expected `variant go = B`"),
        ("variant rename", "expected `variant rename = B NAME`"),
    ],
)
def test_a_wrong_line_says_what_is_expected(line, message):
    with pytest.raises(UsageError, match=message):
        parse_line(line)


def test_all_variants_are_drawn_over_the_present_sweep(state):
    there = after(state, *THREE[:3], SweepParameter(RANKS, "64, 256, 1024"))
    lines = {line.label: line for line in picture(there).lines}
    assert list(lines) == ["C postal", "A", "B"]
    plain = after(state, SweepParameter(RANKS, "64, 256, 1024"))
    eight = after(plain, Edit(GPUS, "8"))
    for label, own in (("A", plain), ("B", eight)):
        assert_array_equal(lines[label].y, own.session.result.columns["iteration_time"])
    lone = {line.label for line in picture(eight).lines}
    assert {"iteration", "before", "kernel"} <= lone


def test_a_variant_without_the_swept_parameter_has_no_curve(state):
    there = after(state, *THREE[:2], SweepParameter(GPUS), Adopt("dahu"))
    assert GPUS not in there.session.grid.parameters()
    back = after(there, Go("A"), SweepParameter(GPUS))
    assert [item.label for item, _ in back.others()] == ["B"]


def test_a_step_of_one_variant_evaluates_no_other(state, monkeypatch):
    there = after(state, *THREE[:3])
    before = there.curves
    monkeypatch.setattr("whatif.tui.state.computed_curve", None)
    stepped = after(there, Nudge(MEMORY, 1))
    assert all(stepped.curves[letter] is before[letter] for letter in "AB")
    there_and_back = after(stepped, Go("A"), Go("C"), Nudge(MEMORY, -1))
    times = [one.session.result.columns["iteration_time"] for one in (there_and_back, there)]
    assert_allclose(times[0], times[1], rtol=1e-5, atol=0)


def test_another_process_gets_no_numbers_of_curves_and_returns_new_ones_only(state):
    there = after(state, *THREE[:3])
    assert all(curve.result is None for curve in there.light_curves.values())

    async def go():
        runner = CommandRunner(there, lambda error: None)
        try:
            runner.ask(Edit(MODEL, "max_rate"))
            await runner.idle()
            edited = runner.state
            runner.ask(SweepParameter(RANKS, "64, 256"))
            await runner.idle()
            return edited, runner.state
        finally:
            runner.close()

    edited, swept = asyncio.run(go())
    assert all(edited.curves[letter] is there.curves[letter] for letter in "AB")
    assert edited.variants is there.variants
    assert edited.session.scenario.document is there.session.scenario.document
    assert edited.session.grid is there.session.grid
    plain = after(edited, SweepParameter(RANKS, "64, 256"))
    assert_array_equal(swept.curves["A"].result.columns["total_time"], plain.curves["A"].result.columns["total_time"])


def test_going_to_a_variant_that_is_drawn_takes_no_other_process(state):
    there = after(state, *THREE[:3])
    runner = CommandRunner(there, lambda error: None)
    runner.ask(Go("A"))
    runner.ask(Fork("again"))
    assert not runner.busy
    assert runner.state.variant_label == "D again"
    assert runner.history.lines == ["variant go = A", "variant fork = again"]


def test_every_command_is_undone_and_done_again(state):
    history, now, seen = History(), state, [state]
    for change in (*THREE, Rename("B", "fat node"), Delete("C"), Go("B")):
        outcome = perform(now, (change,))
        history.record(outcome)
        now = outcome.state
        seen.append(now)
    for earlier in reversed(seen[:-1]):
        outcome = perform(now, (history.undo(),))
        history.record(outcome)
        now = outcome.state
        assert now.undo_state.same_as(earlier.undo_state)
    while history.future:
        outcome = perform(now, (history.redo(),))
        history.record(outcome)
        now = outcome.state
    assert now.undo_state.same_as(seen[-1].undo_state)


def test_a_few_lines_bring_back_letters_names_and_values(state):
    there = after(state, *THREE, Delete("C"), Go("A"), Edit(GPUS, "5"), Go("B"))
    again = after(state, *(parse_line(line) for line in lines_to(there)))
    assert again.undo_state.same_as(there.undo_state)
    assert values(again) == {"A": "5", "B": "8", "D lassen": "4"}


def test_a_few_lines_bring_back_a_draft_among_variants(state):
    there = after(state, *THREE, Delete("D"), Edit(RANKS, "512"), Delete("D"), Delete("B"))
    assert there.variants.at(there.variants.current) is None
    again = after(state, *(parse_line(line) for line in lines_to(there)))
    assert again.unsaved() == there.unsaved() == {}
    assert values(again) == values(there) == {"A": "6", "C postal": "8"}


def test_a_draft_is_no_variant_because_another_one_is_renamed(state):
    there = after(state, *THREE, Delete("D"), Rename("C", "other"))
    assert list(values(there)) == ["A", "B", "C other"]


def test_lines_replay_through_the_runner(state):
    async def main():
        runner = CommandRunner(state, lambda error: None)
        try:
            await runner.replay([change.line() for change in THREE], lambda: None)
            assert values(runner.state) == {"A": "6", "B": "8", "C postal": "8", "D lassen": "4"}
            with pytest.raises(UsageError, match="line 1: there is no variant `Z`"):
                await runner.replay(["variant go = Z"], lambda: None)
        finally:
            runner.close()

    asyncio.run(main())


def test_files_of_variants_extend_one_another(state, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = after(state, *THREE)
    scenarios = {item.label: item.scenario for item in there.listed()}
    paths = write_variants(scenarios, there.session.grid.axes)
    assert paths == variant_paths(scenarios)
    assert [path.name for path in paths.values()] == [
        "jacobi2d_b.toml",
        "jacobi2d_c_postal.toml",
        "jacobi2d_d_lassen.toml",
    ]
    texts = {name: path.read_text() for name, path in paths.items()}
    assert [text.splitlines()[3] for text in texts.values()] == [
        'extends = "jacobi2d"',
        'extends = "jacobi2d_b"',
        'extends = "jacobi2d"',
    ]
    assert "gpu_count" not in texts["C postal"].partition("[sweep")[0]
    for item in there.listed()[1:]:
        read = Scenario.open(paths[item.label]).program
        wanted = item.session.program.parameters
        assert {path: value.text(17) for path, value in read.parameters.items()} == {
            path: value.text(17) for path, value in wanted.items()
        }


def test_a_file_with_another_name_than_a_plain_one_cannot_be_extended(tmp_path):
    path = tmp_path / "my file.toml"
    path.write_text('extends = "jacobi2d"\n')
    with pytest.raises(UsageError, match="cannot be extended by name"):
        write_variants({"B": Scenario.open(path, overrides={GPUS: "8"})})


def test_what_is_written_is_no_longer_at_stake(state):
    there = after(state, *THREE)
    assert set(there.at_stake()) == {"platform", MODEL, "variant B", "variant C postal"}
    written = there.written()
    assert written.at_stake() == {}
    assert set(after(written, Edit(RANKS, "512")).at_stake()) == {"platform", MODEL, RANKS}
    assert after(state, Edit(GPUS, "8"), Pin()).at_stake() == {GPUS: "8"}


def test_a_saved_variant_leaves_the_others_as_they_were(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "jacobi2d"\n[platform.node]\ngpu_count = 6\n')

    async def check(driver):
        for line in ("set platform.node.gpu_count = 8", "variant fork", f"set {RANKS} = 512"):
            driver.app.runner.ask(parse_line(line))
        await driver.calm()
        before = values(driver.state), values(driver.state, RANKS)
        await driver.press("w")
        assert "gpu_count = 8" in path.read_text()
        assert (values(driver.state), values(driver.state, RANKS)) == before
        assert driver.state.unsaved() == {}
        await driver.press("F")
        assert driver.state.variants.current == "A"
        assert driver.session.parameter(GPUS).value == 6
        await driver.press("w")
        assert "gpu_count = 6" in path.read_text()

    drive(check, scenario=str(path))


def test_keys_fork_go_on_and_show_the_differences(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "jacobi2d_c_net.toml"

    async def check(driver):
        await driver.press("F")
        assert "there is no other variant: f forks the present values" in driver.status.full
        await driver.press("escape")
        await driver.edit(GPUS, "8")
        await driver.press("f")
        await driver.edit(MODEL, "postal")
        assert driver.app.state.variant_label == "C"
        await driver.press("V")
        words = "C (now)", "k_model", "postal", "why iteration_time of C differs from A"
        await driver.until(lambda: all(word in driver.screen_text() for word in words))
        await driver.press("x")
        await driver.until(lambda: "why iteration_time of C differs from B" in driver.screen_text())
        await driver.pilot.press("r")
        await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
        await driver.pilot.press(*"net", "enter")
        await driver.until(lambda: driver.state.variant_label == "C net")
        await driver.press("n")
        await driver.until(path.exists)
        assert 'extends = "jacobi2d_b"' in path.read_text()
        await driver.pilot.press("n")
        await driver.until(lambda: isinstance(driver.app.screen, ChoicePrompt))
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        await driver.press("d")
        assert [item.label for item in driver.state.listed()] == ["A", "B"]
        await driver.press("u", "F")
        assert driver.state.variants.current == "A"

    drive(check)


def test_variants_are_asked_about_before_the_program_ends():
    async def check(driver):
        await driver.edit(GPUS, "8")
        await driver.press("f", "F")
        assert driver.state.variants.current == "A"
        assert driver.state.unsaved() == {}
        await driver.pilot.press("q")
        await driver.until(lambda: isinstance(driver.app.screen, ChoicePrompt))
        assert "variant B = 1 value" in driver.screen_text()
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)

    drive(check)


def test_lost_variants_are_brought_back(tmp_path):
    async def lose(driver):
        for change in THREE[:4]:
            driver.app.runner.ask(change)
        await driver.calm()
        driver.app.file_sync.write_down()

    async def find(driver):
        await driver.until(lambda: isinstance(driver.app.screen, ChoicePrompt))
        assert "variant fork = postal" in driver.screen_text()
        await driver.pilot.press("r")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        there = {"A": "6", "B": "8", "C postal": "8", "D lassen": "8"}
        await driver.until(lambda: values(driver.state) == there)
        await driver.until(lambda: driver.session.parameter(MODEL).text() == "postal")

    drive(lose, recovery_folder=tmp_path)
    drive(find, recovery_folder=tmp_path)


def test_a_changed_file_changes_the_variants_but_not_the_baseline(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "jacobi2d"\n[application]\nrank_count = 512\n')
    state = ExplorerState.start(Session.start(Scenario.open(path)))
    there = after(state, Edit(GPUS, "8"), Fork(), Edit(GPUS, "10"))
    path.write_text('extends = "jacobi2d"\n[application]\nrank_count = 1024\n')
    fresh = there.over(there.session.scenario.reread(Scenario.open(path).document))
    assert values(fresh, RANKS) == {"A": "512", "B": "1024", "C": "1024"}
    assert values(fresh) == {"A": "6", "B": "8", "C": "10"}


TWO_AXES = (SweepParameter(MEMORY, "0.5 TB/s .. 1 TB/s linear 3"), Also(RANKS, "64, 256, 1024"))


def test_over_two_axes_each_variant_has_dashes_and_each_value_its_colour(state):
    there = after(state, *TWO_AXES, *THREE)
    lines, styles = picture(there).lines, picture(there).line_styles()
    assert [line.label for line in lines if line.label] == ["rank_count 64", "rank_count 256", "rank_count 1024",
                                                           "A", "B", "C postal"]  # fmt: skip
    assert [line.number for line in lines] == [number for number in range(4) for _ in range(3)]
    assert picture(there).curve_numbers() == tuple(line.number for line in lines)
    assert styles == styles[:3] * 4
    columns = list(plot_table(picture(there)).columns)
    assert columns[4:6] == ["A, rank_count 64", "A, rank_count 256"]
    before = there.curves["A"].result.columns["iteration_time"]
    for index, line in enumerate(lines[3:6]):
        assert_allclose(line.y, before[:, index], rtol=1e-12, atol=0)
    alone = picture(after(state, *TWO_AXES)).lines
    assert [line.number for line in alone] == [None] * 3


def test_many_variants_over_two_axes_are_as_many_curves_as_can_be_told_apart(state):
    many = (change for letter in LETTERS[1:] for change in (Edit(GPUS, str(6 + LETTERS.index(letter))), Fork()))
    there = after(state, *TWO_AXES, *list(many)[:-1])
    assert len(there.others()) == 7
    assert len(picture(there).lines) == 12


def test_a_large_grid_is_not_computed_for_the_others(state):
    axes = (SweepParameter(MEMORY, "0.5 TB/s .. 1 TB/s linear 200"), Also(GPUS, "1 .. 200 step 1"))
    there = after(state, *axes, Edit(RANKS, "64"))
    assert there.curves == {}
    assert there.has_curves()


def test_heat_map_shows_the_ratio_to_another_variant_point_by_point(state):
    there = after(state, *TWO_AXES, Edit(GPUS, "8"), Show("explore.second", "heat"))
    drawn = picture(there)
    for relation in ("speedup", "ratio"):
        found = related_map(there, drawn, "iteration_time", relation)
        before = there.curves["A"].result.columns["iteration_time"]
        wanted = before / drawn.values if relation == "speedup" else drawn.values / before
        assert_allclose(found.values, wanted, rtol=1e-12, atol=0)
        assert found.z.label == {"speedup": "speedup over A", "ratio": "ratio to A"}[relation]
    alone = after(state, *TWO_AXES, Show("explore.second", "heat"))
    found = related_map(alone, picture(alone), "iteration_time", "ratio")
    base = float(alone.baseline.point.columns["iteration_time"])
    assert_allclose(found.values, picture(alone).values / base, rtol=1e-12, atol=0)
    assert found.z.label == "ratio to the baseline"
    with pytest.raises(UsageError, match="there are speedup and ratio"):
        related_map(alone, picture(alone), "iteration_time", "efficiency")


def test_relation_key_turns_the_heat_map_into_the_speedup_over_the_baseline():
    async def check(driver):
        for change in (*TWO_AXES, Edit(GPUS, "8"), Show("explore.second", "heat")):
            driver.main_screen.change(change)
        await driver.calm()
        assert "speedup" not in driver.screen_text()
        await driver.press("r")
        assert "speedup over A" in driver.screen_text()

    drive(check)
