"""The study page: tables of a study, values that are changed and saved, files that change, how a study is opened."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import whatif
from tests.driver import drive
from tests.page_harness import GROWING, SHRINKING, on_page
from tests.paths import ROOT
from tests.studies.procurement.studies_at_hand import study_file
from whatif.api.editing import difference
from whatif.api.procurement import save_study
from whatif.cli.open import opened_source
from whatif.errors import InvalidFileError, UsageError
from whatif.files.study_edits import edited_study
from whatif.schema.catalogue import catalogue
from whatif.schema.study_file import open_study
from whatif.studies.procurement import study_jobs
from whatif.tui.commands.explorer_commands import Choose, Show, study_changes
from whatif.tui.commands.study_values import text_of, value_in, values_in
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.dialogs.windows import ChoicePrompt, TextPrompt
from whatif.tui.jobs.refusal import JobRefusal
from whatif.tui.jobs.study_job import StudyAnswer, StudyRequest, answered
from whatif.tui.pages.files import FilesPage
from whatif.tui.pages.study import StudyPage, StudyPageView
from whatif.tui.palette.palette_entries import best, file_entries, pages
from whatif.tui.widgets.chart_bars import ChartBars
from whatif.tui.widgets.data_table import ColumnsView
from whatif.vocabulary import STUDY_VIEWS

CHEAPER = "bids.six.node_price = 40 kUSD"
"""With it `six` is best in place of `four`."""


def shown(page):
    """Names in the first column of the table."""
    return [row[0].text for row in page.query_one(ColumnsView)._rows.cells]


@pytest.mark.parametrize("view", STUDY_VIEWS)
def test_the_answer_is_that_of_the_library(tmp_path, view):
    path = study_file(tmp_path, more='[options.cheap]\nlimits.capital = "x0.5"')
    found = answered(StudyRequest(str(path), "limits.capital = x0.9", view, 0))
    wanted = whatif.study(path, overrides={"limits.capital": "4.5 MUSD"}, show=view)
    assert isinstance(found, StudyAnswer)
    assert found.words == wanted.summary()
    assert found.bars == wanted.picture()
    assert found.changed == ("limits.capital: 5 MUSD → 4.5 MUSD",)
    assert found.table.columns.keys() == wanted.table().columns.keys()
    for title, column in wanted.table().columns.items():
        np.testing.assert_array_equal(found.table.columns[title].values, column.values)
    assert len(found.table.columns) > 3


def test_jobs_are_kept_until_the_files_change(tmp_path, monkeypatch):
    path, evaluated = study_file(tmp_path), []
    kept = study_jobs._evaluated
    monkeypatch.setattr(study_jobs, "_evaluated", lambda *items: evaluated.append(items) or kept(*items))
    for values, version, count in (("", 7, 8), (CHEAPER, 7, 8), ("mix.a.weight = 1", 7, 8), ("", 8, 16)):
        assert isinstance(answered(StudyRequest(str(path), values, "bids", version)), StudyAnswer)
        assert len(evaluated) == count


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ("limits.capital = 5 GB", "`5 GB` is in B"),
        ("limits.capitl = 5 MUSD", "did you mean `capital`"),
        ("limits.capital", "expected PATH = VALUE"),
        ("bids.six.overrides.node.gpu_count = many", "`many` is not a number"),
    ],
)
def test_values_that_a_study_cannot_have_are_refused(tmp_path, values, reason):
    found = answered(StudyRequest(str(study_file(tmp_path)), values, "bids", 0))
    assert isinstance(found, JobRefusal)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("foo = bar", "`foo`: unknown key"),
        ("limits.capital = 5 GB", "`5 GB` is in B"),
        ("limits.power = 2 MW; 3 MW", "expected PATH = VALUE"),
        ("limits.power = 2 MW; limits.capital", "expected PATH = VALUE"),
    ],
)
def test_a_refused_edit_leaves_no_trace(tmp_path, line, reason):
    async def check(one):
        await one.change(Show("study.values", CHEAPER))
        one.page._change(line)
        await one.settle()
        assert reason in one.app.failure
        assert one.app.state.view.of(StudyPageView).values == CHEAPER
        one.page._change("limits.power = 2 MW")
        await one.settle()
        assert one.app.state.view.of(StudyPageView).values == f"{CHEAPER}; limits.power = 2 MW"

    on_page(StudyPage, check, changes=study_changes(str(study_file(tmp_path))))


def test_an_edit_of_values_that_cannot_be_read_says_so(tmp_path):
    """As a journal may hold them; the explorer ended."""

    async def check(one):
        await one.change(Show("study.values", "foo"))
        one.page._change("limits.power = 2 MW")
        await one.settle()
        assert "`foo`: expected PATH = VALUE" in one.app.failure

    on_page(StudyPage, check, changes=study_changes(str(study_file(tmp_path))))


def test_values_survive_their_text():
    values = {"mix.a.target": "total_time <= 7 ms", "criterion": "cost"}
    assert values_in(text_of(values)) == values
    assert values_in("") == {}
    for text in ("limits.power", "= 3 MW", "limits.power =", "the power = 3 MW"):
        with pytest.raises(UsageError, match="expected PATH = VALUE"):
            value_in(text)


def test_the_page_shows_bids_and_switches_tables(tmp_path):
    async def check(one):
        assert shown(one.page) == ["four", "six", "three", "present"]
        assert "four is 7.6% ahead of six" in one.text
        assert "Which one?" in one.lines[0]
        assert one.page.query_one(ChartBars).display
        firsts = []
        for _ in STUDY_VIEWS:
            await one.act("turn", "show")
            firsts.append((one.app.state.view.of(StudyPageView).show, shown(one.page)[:1]))
        assert firsts == [
            ("jobs", ["four"]),
            ("commitments", ["four"]),
            ("turns", ["mix.a.weight"]),
            ("changes", ["six"]),
            ("options", []),
            ("questions", ["four"]),
            ("bids", ["four"]),
        ]
        assert one.page.command == f"whatif study {tmp_path}/study.toml --show bids"

    on_page(StudyPage, check, changes=study_changes(str(study_file(tmp_path))))


def test_until_another_table_is_known_its_rows_are_not_those_of_the_last_one(tmp_path):
    async def check(one):
        await one.change(Show("study.show", "jobs"), work=False)
        assert shown(one.page) == []
        assert "computing jobs …" in one.text
        assert one.page.subject.status == "computing … · no value of the study changed"
        await one.change(Show("study.show", "bids"), Show("study.values", CHEAPER), work=False)
        assert shown(one.page) == ["four", "six", "three", "present"]
        one.app.do(one.page.job(one.app.state))
        assert one.page.subject.status == "1 value of the study changed, not saved"

    on_page(StudyPage, check, size=(80, 18), changes=study_changes(str(study_file(tmp_path))))


@pytest.mark.parametrize("sizes", [GROWING, SHRINKING], ids=["growing", "shrinking"])
def test_the_page_fills_any_screen(tmp_path, sizes):
    async def check(one):
        for size in sizes:
            await one.resize(size)
            assert one.fills(size)

    changes = (*study_changes(str(study_file(tmp_path))), Show("study.values", CHEAPER))
    on_page(StudyPage, check, size=sizes[0], changes=changes)


@pytest.mark.parametrize(("size", "bars"), [((80, 20), False), ((120, 32), True), ((200, 46), True)])
def test_bids_and_changed_values_have_room_in_usual_terminals(tmp_path, size, bars):
    async def check(one):
        assert all(one.line(name) for name in ("six ", "four ", "three ", "present "))
        assert "bids.six.node_price: 50 kUSD → 40 kUSD" in one.text
        assert one.page.query_one(ChartBars).display == bars
        assert all(view in one.text for view in STUDY_VIEWS)

    changes = (*study_changes(str(study_file(tmp_path))), Show("study.values", CHEAPER))
    on_page(StudyPage, check, size=size, changes=changes)


def test_without_a_study_the_page_says_how_to_open_one():
    async def check(one):
        assert "whatif open STUDY" in one.text
        assert one.page.offers("open")
        assert not any(one.page.offers(action) for action in ("edit", "turn", "save", "reset"))
        assert one.page.job(one.app.state) is None

    on_page(StudyPage, check)


def test_an_error_keeps_the_last_answer_and_a_mended_file_is_read_again(tmp_path):
    path = study_file(tmp_path)

    async def check(one):
        await one.change(Show("study.values", "limits.capital = 5 GB"))
        assert shown(one.page)[0] == "four"
        assert "limits.capital = 5 GB is refused: the last answer stays" in one.text
        await one.change(Show("study.values", CHEAPER))
        assert shown(one.page)[0] == "six"
        assert "is refused" not in one.text
        await one.change(Show("study.values", ""))
        text = path.read_text()
        for written, first in ((text.replace("50 kUSD", "40 GB"), "four"), (text.replace("50 kUSD", "40 kUSD"), "six")):
            path.write_text(written)
            os.utime(path, ns=(0, len(first)))
            one.page.look()
            await one.settle()
            one.app.show(one.app.state)
            assert shown(one.page)[0] == first
        os.utime(tmp_path / "a.toml", ns=(0, 0))
        assert one.page.job(one.app.state) is None
        one.page.look()
        assert one.page.job(one.app.state) is not None

    on_page(StudyPage, check, changes=study_changes(str(path)))


def test_a_study_is_answered_again_when_its_measured_runs_change(tmp_path):
    runs = tmp_path / "runs.csv"
    runs.write_text("rank_count,iteration_time [ms]\n64,21\n128,12.5\n")
    path = study_file(tmp_path, more='[mix.e]\nscenario = "minife"\nruns = "runs.csv"')

    async def check(one):
        assert shown(one.page)
        os.utime(runs, ns=(0, 0))
        one.page.look()
        assert one.page.job(one.app.state) is not None

    on_page(StudyPage, check, changes=study_changes(str(path)))


def test_an_error_of_the_file_is_not_blamed_on_a_changed_value(tmp_path):
    path = study_file(tmp_path)

    async def check(one):
        path.write_text(path.read_text() + "x = [")
        one.page.look()
        await one.settle()
        one.app.show(one.app.state)
        assert shown(one.page)[0] == "six"
        assert "is refused" not in one.text
        line = len(path.read_text().splitlines())
        assert f"study.toml:{line}:" in one.text.replace("\n", "")

    changes = (*study_changes(str(path)), Show("study.values", CHEAPER))
    on_page(StudyPage, check, changes=changes)


def test_a_file_with_an_error_is_explained_with_line_and_key(tmp_path):
    path = study_file(tmp_path, limits='power = "3 GB"')

    async def check(one):
        assert "limits.power" in one.text
        line = path.read_text().splitlines().index('power = "3 GB"') + 1
        assert f"study.toml:{line}:" in one.text.replace("\n", "")
        path.write_text(path.read_text().replace("3 GB", "3 MW"))
        one.page.look()
        one.app.show(one.app.state)
        assert "four" in shown(one.page)

    on_page(StudyPage, check, changes=study_changes(str(path)))


async def opened_page(driver):
    """The study page of an explorer that was opened on a study."""
    await driver.until(lambda: driver.main_screen.page.NAME == "study" and driver.main_screen.page._answer)
    return driver.main_screen.page


async def first_is(driver, name):
    await driver.until(lambda: shown(driver.main_screen.page)[0] == name)


def test_a_price_is_changed_and_taken_back(tmp_path):
    scenario, opening = opened_source(str(study_file(tmp_path)))

    async def check(driver):
        await opened_page(driver)
        assert driver.state.at_stake() == {}
        await driver.pilot.press("equals_sign")
        await driver.until(lambda: isinstance(driver.app.screen, PickList))
        await driver.pick("six.node_price")
        await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
        line = driver.app.screen.query_one("Input")
        assert line.value == "50 kUSD"
        assert "⏎ accept" in driver.screen_text()
        line.value = "40 kDollar"
        await driver.pilot.press("enter")
        await driver.until(lambda: "node_price: unknown unit `kDollar`" in driver.screen_text())
        line.value = "x0.8"
        await driver.pilot.press("enter")
        await first_is(driver, "six")
        assert "bids.six.node_price: 50 kUSD → 40 kUSD" in driver.screen_text()
        await driver.press("u")
        await first_is(driver, "four")
        await driver.press("U")
        await first_is(driver, "six")
        await driver.pilot.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, PickList))
        await driver.pick("limits.capital = 5 GB")
        await driver.until(lambda: "is in B" in driver.status.full)
        await first_is(driver, "six")
        await driver.press("R")
        await first_is(driver, "four")

    drive(check, scenario=scenario, opening=opening)


def test_after_a_window_the_keys_go_to_the_page_and_not_to_the_hidden_parameters(tmp_path):
    path = study_file(tmp_path)

    async def check(driver):
        await driver.go("study")
        await driver.press("n")
        driver.app.screen.query_one("Input").value = str(path)
        await driver.press("enter")
        page = await opened_page(driver)
        await driver.until(lambda: driver.main_screen.focused is page.query_one(ColumnsView))
        await driver.pilot.press("equals_sign")
        await driver.until(lambda: isinstance(driver.app.screen, PickList))
        assert driver.state.unsaved() == {}

    drive(check)


def test_changed_values_are_not_lost_on_quitting(tmp_path):
    scenario, opening = opened_source(str(study_file(tmp_path)))

    async def check(driver):
        await opened_page(driver)
        await driver.pilot.press("q")
        await driver.until(lambda: not driver.app.is_running)

    drive(check, scenario=scenario, opening=opening, recovery_folder=tmp_path / "kept")

    async def changed(driver):
        await opened_page(driver)
        driver.app.runner.ask(Show("study.values", CHEAPER))
        await first_is(driver, "six")
        assert "whatif*" in driver.screen_text()
        assert "1 value of the study changed, not saved" in driver.status.full
        await driver.pilot.press("q")
        await driver.until(lambda: isinstance(driver.app.screen, ChoicePrompt))
        assert "w on page study saves" in driver.screen_text()
        assert CHEAPER in driver.screen_text()
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.main_screen)
        driver.app.file_sync.write_down()

    drive(changed, scenario=scenario, opening=opening, recovery_folder=tmp_path / "kept")

    async def restored(driver):
        await driver.until(lambda: isinstance(driver.app.screen, ChoicePrompt))
        await driver.pilot.press("r")
        await opened_page(driver)
        await first_is(driver, "six")
        await driver.pilot.press("q")
        await driver.until(lambda: isinstance(driver.app.screen, ChoicePrompt))
        await driver.pilot.press("d")
        await driver.until(lambda: not driver.app.is_running)

    drive(restored, scenario=scenario, opening=opening, recovery_folder=tmp_path / "kept")
    assert not list((tmp_path / "kept").glob("*.journal"))


@pytest.mark.parametrize("deleted", [False, True])
def test_changed_values_are_saved_by_key(tmp_path, monkeypatch, deleted):
    path = study_file(tmp_path)
    path.write_text(path.read_text().replace('"50 kUSD"', '"50 kUSD" # to be confirmed'))
    scenario, opening = opened_source(str(path), overrides={"bids.six.node_price": "40 kUSD"})

    async def here(function, *arguments):
        return function(*arguments)

    monkeypatch.setattr("whatif.tui.pages.study.run_once", here)

    async def check(driver):
        page = await opened_page(driver)
        if deleted:
            path.unlink()
            page.look()
            await driver.until(lambda: "no such file" in driver.screen_text())
        await driver.pilot.press("w")
        await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
        assert driver.app.screen.query_one("Input").value == str(path)
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.state.view.of(StudyPageView).values == "")
        assert '"40 kUSD" # to be confirmed' in path.read_text()
        page.look()
        await driver.until(lambda: shown(page)[0] == "six" and not page._answer.changed)

    drive(check, scenario=scenario, opening=opening)


def test_the_explorer_has_a_scenario_of_the_study_behind_its_page(tmp_path):
    path = study_file(tmp_path, more="[mix.a.on.present]\napplication.rank_count = 8")
    scenario, opening = opened_source(str(path), overrides={"mix.a.weight": "2", "limits.capital": "x0.9"})
    assert opening[1] == "show study.values = mix.a.weight = 2; limits.capital = x0.9"
    assert scenario.document.name == "study_a.toml"
    assert not Path("study_a.toml").exists()
    assert (dict(scenario.overrides), scenario.platform) == ({}, None)
    values = scenario.program.parameters
    assert [values[name].value for name in ("application.rank_count", "platform.node_count")] == [8, 100]
    assert scenario.program.loaded.scenario.platform.name == "Lassen"
    for options in ({"platform": "summit"}, {"folders": (tmp_path,)}):
        with pytest.raises(UsageError, match="a study, which names its machines"):
            opened_source(str(path), **options)
    shipped, lines = opened_source("successor")
    assert shipped.program.parameters["application.rank_count"].value == 256
    assert lines == ["show study.file = successor", "show screen = study"]
    assert opened_source("jacobi2d")[1] == []


def test_title_and_status_are_those_of_the_study_and_not_of_the_scenario_behind_it(tmp_path):
    async def check(driver):
        behind = driver.session.program.loaded
        await driver.go("study")
        assert "no study is open" in driver.screen_text()
        for change in study_changes(str(study_file(tmp_path))):
            driver.main_screen.change(change)
        await driver.calm()
        page = driver.main_screen.page
        await driver.until(lambda: page._answer is not None)
        top, status = driver.screen_text().splitlines()[0], str(driver.status.content)
        assert page._answer.question[:12] in top
        assert status == "no value of the study changed"
        driver.main_screen.change(Show("study.values", CHEAPER))
        await driver.until(lambda: "1 value of the study changed, not saved" in str(driver.status.content))
        await driver.go("explore")
        assert behind.question[:12] in driver.screen_text().splitlines()[0]

    drive(check, size=(160, 40))


def test_studies_are_in_the_palette_and_on_the_files_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study_file(tmp_path)
    listed = {entry.name: entry for entry in catalogue([tmp_path]) if entry.kind == "study"}
    assert {"study", "successor"} <= listed.keys()
    assert listed["study"].words == "Which one?"
    assert listed["successor"].shipped

    async def check(driver):
        screen = driver.main_screen
        entries = [*pages(screen), *file_entries(screen, listed.values())]
        for word, name in (("bids", "study"), ("procurement", "study"), ("successor", "successor")):
            assert best(entries, word)[0].name == name
        best(entries, "successor")[0].run()
        await driver.until(lambda: driver.state.view.screen == "study")
        assert driver.state.view.of(StudyPageView).file == str(listed["successor"].path)
        await driver.go("files")
        page = driver.main_screen.page
        assert isinstance(page, FilesPage)
        await driver.until(lambda: page._entries)
        page.query_one(ColumnsView).cursor = [entry.name for entry in page._entries].index("study")
        await driver.press("enter")
        await driver.until(lambda: driver.main_screen.page.NAME == "study" and driver.main_screen.page._answer)
        assert shown(driver.main_screen.page)[0] == "four"

    drive(check)


def test_a_study_is_saved_with_its_comments_where_it_can_be_used(tmp_path):
    path = study_file(tmp_path)
    text = path.read_text()
    values = {"bids.six.node_price": "x0.8", "mix.a.weight": "2", "bids.six.overrides.node.gpu_count": "8"}
    save_study(path, values, tmp_path / "other.toml")
    written = (tmp_path / "other.toml").read_text()
    changed = [line for line in difference(text, written, "study").splitlines()[2:] if line[0] in "+-" and line[1:]]
    assert changed == [
        '-node_price = "50 kUSD"',
        '+node_price = "40 kUSD"',
        "+[bids.six.overrides.node]",
        "+gpu_count = 8",
        "-weight = 3",
        "+weight = 2",
    ]
    assert path.read_text() == text
    ours, theirs = whatif.study(tmp_path / "other.toml"), whatif.study(path, overrides=values)
    assert list(ours.bids) == list(theirs.bids)
    np.testing.assert_array_equal(ours.bids["six"].throughput, theirs.bids["six"].throughput)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(InvalidFileError, match=r"mix\.a\.scenario: `a.toml`: no such file"):
        save_study(path, values, tmp_path / "elsewhere" / "study.toml")
    assert not (tmp_path / "elsewhere" / "study.toml").exists()


def test_every_kind_of_value_of_the_shipped_study_is_written(tmp_path):
    path = tmp_path / "successor.toml"
    shutil.copy(ROOT / "studies" / "successor.toml", path)
    document = open_study(path).document
    edits = {
        "bids.accelerators.node_prices.128": ('128 = "245 kUSD"', '128 = "200 kUSD"', "200 kUSD"),
        "mix.heat.overrides.application.rank_count": ("rank_count = 256", "rank_count = 128", "128"),
        "limits.power": ('power = "3 MW"', 'power = "2.5 MW"', "2.5 MW"),
        "commit.confidence": ("confidence = 0.9", "confidence = 0.8", "0.8"),
    }
    written = edited_study(document, {name: value for name, (_, _, value) in edits.items()}, path).text
    wanted = document.text
    for before, after, _ in edits.values():
        wanted = wanted.replace(before, after, 1)
    assert written == wanted


def test_a_value_that_cannot_be_computed_is_reported_by_the_explorer(tmp_path):
    async def check(driver):
        driver.app.runner.ask(Choose("study.values", lambda view: values_in("foo")))
        await driver.calm()
        assert "`foo`: expected PATH = VALUE" in driver.app.runner.error
        assert driver.app.is_running

    drive(check)
