"""The runs page: formulas changed by a key, terms that could be added, how good a fit is, the way into a scenario."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.driver import drive
from tests.page_harness import on_page
from tests.paths import DATA, ROOT
from whatif.cli.open import measured_lines
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import UsageError
from whatif.fitting.candidates import candidates, coefficients
from whatif.fitting.formula import parse_formula
from whatif.fitting.formula_edits import compact, first_formula, with_other_link, with_term, without_term
from whatif.fitting.least_squares import fit_runs
from whatif.fitting.model_checks import compare, diagnose
from whatif.table import Column, Table
from whatif.tui.commands.explorer_commands import EditAll, Show
from whatif.tui.dialogs.windows import TextPrompt
from whatif.tui.jobs import fit_job
from whatif.tui.jobs.regression_job import RunsRegression, regression_of_view, write_model
from whatif.tui.page_views import RunsView
from whatif.tui.pages.runs import RunsPage, term_rows
from whatif.tui.state import ExplorerState
from whatif.units import ONE, SECOND

FILE = DATA / "runs" / "zeus" / "bert_squad_v100.csv"
VIEW = RunsView(files=(str(FILE),))
FIRST = "time_per_epoch ~ batch_size + power_limit"
COLUMNS = {name: np.arange(1.0, 9.0) ** power for power, name in enumerate(("y", "a", "b", "c"), 1)}


def names(formula):
    return {compact(term.name) for term in parse_formula(formula, COLUMNS).terms}


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ a + 1",
        "y ~ a + b + I(a**2)",
        "y ~ (a + I(a ** 2)) * b",
        "y ~ a*b*c - a:c",
        "log(y) ~ 0 + log(a):b + log(a)",
    ],
)
def test_a_term_goes_out_and_in_again_and_the_others_stay(formula):
    for term in names(formula):
        less = without_term(formula, term)
        assert names(less) == names(formula) - {term}
        assert without_term(less, term) == less
        assert names(with_term(less, term)) == names(formula)
    assert with_other_link(with_other_link(formula)) == formula


def test_formulas_stay_short_and_always_are_some():
    assert without_term("y ~ a + I(a ** 2)", "I(a**2)") == "y ~ a"
    assert with_term("y ~ a*b - a:b", "b:a") == "y ~ a*b"
    assert with_term(without_term("y ~ a*b + c", "c"), "c") == "y ~ a*b + c"
    assert with_term("y ~ a*b - 1", "1") == "y ~ a*b"
    assert without_term("y ~ a", "a") == "y ~ 1"
    assert with_term("y ~ 1", "a") == "y ~ a"
    assert without_term("y ~ 1", "Intercept") == "y ~ 0"
    assert with_term(with_term("y ~ a", "log(b)"), "log(b)") == "y ~ a + log(b)"
    assert without_term("y ~ poly(a, 2) * b", "poly(a,2)1:b") == "y ~ poly(a, 2) * b - poly(a,2):b"


def test_the_first_formula_takes_a_time_and_what_varies_by_itself():
    a = np.arange(6.0) ** 2
    values = {"a": a, "twice": 2 * a + 1, "same": np.ones(6), "b": np.arange(6.0), "time": a + 1}
    columns = {name: Column(column, SECOND if name == "time" else ONE) for name, column in values.items()}
    texts = {"host": Column(np.array(["x"] * 6, dtype=object))}
    assert first_formula(Table({**columns, **texts})) == "time ~ a + b"
    assert first_formula(Table({name: columns[name] for name in ("a", "same", "b")})) == "b ~ a"
    assert first_formula(Table({"same": columns["same"], **texts})) == ""


@pytest.mark.parametrize("formula", [FIRST, "log(time_per_epoch) ~ 0 + log(batch_size)"])
def test_every_term_that_could_be_added_is_what_the_fit_with_it_says(formula):
    from whatif.importers.run_files import read_runs

    fit = fit_runs(read_runs([FILE]), formula)
    found = candidates(fit, ["I(1/power_limit):batch_size", "no_such"])
    assert {"I(batch_size**2)", "batch_size:power_limit", "I(1/power_limit):batch_size"} <= {it.name for it in found}
    assert [abs(it.t) for it in found] == sorted((abs(it.t) for it in found), reverse=True)
    for item in found:
        larger = fit_runs(fit.runs, with_term(formula, item.name))
        (same,) = (it for it in coefficients(larger) if set(it.name.split(":")) == set(item.name.split(":")))
        assert_allclose(item[1:], same[1:], rtol=1e-6, atol=0)
        assert_allclose(item.t**2, compare([fit, larger])[1].f, rtol=1e-6, atol=0)


def test_the_interval_of_runs_that_are_left_out_is_that_of_fits_without_them():
    found = regression_of_view(VIEW)
    assert isinstance(found, RunsRegression)
    assert found.formula == FIRST
    from whatif.importers.run_files import read_runs

    runs, inside = read_runs([FILE]), 0
    for row in range(len(runs)):
        rest = {name: replace(it, values=np.delete(it.values, row)) for name, it in runs.columns.items()}
        fit = fit_runs(Table(rest), FIRST)
        at = {name: runs.columns[name].as_written()[[row]] for name in fit.columns}
        inside += int(fit.predict(at).holds(at["time_per_epoch"])[0])
    assert f"95% interval holds {inside} of 49 left out" in found.left_out[1]


def test_influence_is_what_statsmodels_says_of_it():
    from statsmodels.stats.outliers_influence import OLSInfluence

    from whatif.importers.run_files import read_runs

    fit = fit_runs(read_runs([FILE]), "time_per_epoch ~ batch_size * power_limit")
    found, known = diagnose(fit), OLSInfluence(fit.results)
    assert_allclose(found.leverage, known.hat_matrix_diag, rtol=1e-9, atol=0)
    assert_allclose(found.distances, known.cooks_distance[0], rtol=1e-9, atol=0)
    assert_allclose(found.studentised, known.resid_studentized_external, rtol=1e-9, atol=0)


def test_models_are_compared_by_f_where_one_holds_the_other_else_by_runs_left_out():
    square = f"{FIRST} + I(power_limit**2)"
    found = regression_of_view(replace(VIEW, formula=square, pinned=FIRST), "log(time_per_epoch) ~ batch_size")
    assert [item.name for item in found.models] == ["present", "pinned", "last"]
    assert "the present one explains more" in found.models[1].verdict
    assert "left out the present one is off by" in found.models[2].verdict
    gone = regression_of_view(replace(VIEW, formula=square, pinned="time_per_epoch ~ nowhere"))
    assert "no such column" in gone.models[1].verdict


WRONG = {
    "": ("", "empty"),
    "a,b\nx,1\ny,1\n": ("", "no column holds numbers that differ"),
    "a,b\n1,2\n2,3\n": ("b ~ a", "more runs than terms"),
    "a,b\n1,2\n2,3\n3,5\n4,9\n": ("b ~ a + ", "`b ~ a +`: "),
    "a,b,c\n1,2,1\n2,3,1\n3,5,1\n4,8,1\n": ("b ~ a + c", "`c` is 1 in all runs"),
    "a,b,c\n1,2,x\n2,3,x\n3,5,y\n4,8,y\n": ("b ~ c", "`c` holds texts"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_runs_or_a_formula_is_said(tmp_path, text):
    formula, words = WRONG[text]
    (tmp_path / "runs.csv").write_text(text)
    assert words in regression_of_view(RunsView(files=(str(tmp_path / "runs.csv"),), formula=formula.strip())).reason
    (tmp_path / "none").mkdir()
    assert "no files in this folder" in regression_of_view(RunsView(files=(str(tmp_path / "none"),))).reason


def test_all_files_of_a_folder_are_read_though_few_are_watched(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_job, "MOST_FILES", 1)
    for number in range(4):
        (tmp_path / f"{number}.csv").write_text(f"a,b\n{number},{2 * number + number % 2}\n")
    found = regression_of_view(RunsView(files=(str(tmp_path),), formula="b ~ a"))
    assert len(found.measured) == 4


def test_a_model_is_taken_in_as_a_phase_and_another_one_in_its_place(tmp_path):
    shutil.copy(ROOT / "scenarios" / "jacobi2d.toml", tmp_path / "own.toml")
    state = ExplorerState.start(Session.start(Scenario.open(tmp_path / "own.toml")))
    for formula in ("", "time_per_epoch ~ log(batch_size)"):
        view = replace(VIEW, formula=formula)
        taken = write_model(view, tmp_path / "model.toml", None, False)
        state = EditAll(taken.edits).apply(state)
        fit = regression_of_view(view)
        assert float(state.session.point.terms["time_per_epoch"]) > fit.measured.min()
    assert not any("power_limit" in path for path in state.unsaved())
    assert state.unsaved()["application.phases.time_per_epoch.variables.batch_size"] == "24.0"


def test_where_a_scenario_cannot_find_the_model_one_is_written_that_does(tmp_path):
    taken = write_model(VIEW, tmp_path / "model.toml", "summit", True)
    assert taken == ((), tmp_path / "model_question.toml")
    assert Scenario.open(taken.scenario).program
    assert write_model(VIEW, tmp_path / "model.toml", "summit", True) == taken
    taken.scenario.write_text("# mine\n")
    with pytest.raises(UsageError, match="already exists"):
        write_model(VIEW, tmp_path / "model.toml", "summit", True)


def test_the_command_line_opens_the_page_with_runs_and_a_formula():
    lines = list(measured_lines((), None, None, (Path("a.csv"),), "time ~\n nodes"))
    assert lines == ["show runs.formula = time ~ nodes", "show runs.files = a.csv", "show screen = runs"]
    for wrong in (((Path("a"),), None, None, (Path("b"),), None), ((), None, None, (), "y ~ x")):
        with pytest.raises(UsageError, match="--runs"):
            list(measured_lines(*wrong))


def test_terms_that_were_taken_out_stay_in_their_place():
    found = regression_of_view(VIEW, seen=["Intercept", "log(batch_size)", "batch_size"])
    shown = [
        row[0].text for row in term_rows(found, ["Intercept", "log(batch_size)", "batch_size"], adding=False).cells
    ]
    assert shown == ["Intercept", "+ log(batch_size)", "batch_size", "power_limit"]
    assert len(term_rows(found, [], adding=True).cells) == len(found.terms) + len(found.others)


def test_without_runs_the_page_says_what_to_do():
    async def check(page):
        assert " ".join(RunsPage.NOTHING.split()) in page.text
        for action in ("term", "others", "link", "pin", "against", "accept"):
            await page.act(action)
        assert page.page.command == ""

    on_page(RunsPage, check)


def test_every_size_of_screen_can_be_drawn():
    async def check(page):
        for size in ((12, 5), (44, 14), (80, 20), (110, 12), (300, 80)):
            await page.resize(size)
            assert page.fills(size)
            assert any("⠁" <= char <= "⣿" for char in page.text) or size[1] < 9
        for action in ("table", "against"):
            await page.act(action)
        assert page.app.state.view.of(RunsView).against == "batch_size"
        assert "upper" in page.text

    on_page(RunsPage, check, changes=(Show("runs.files", str(FILE)),))


def test_terms_go_in_and_out_by_key_and_the_copied_command_fits_the_same(whatif_main):
    async def check(page):
        await page.act("others")
        await page.press("enter")
        assert page.app.state.view.of(RunsView).formula == f"{FIRST} + log(power_limit)"
        await page.press("up")
        await page.act("term")
        await page.act("link")
        formula = "log(time_per_epoch) ~ batch_size + log(power_limit)"
        assert page.app.state.view.of(RunsView).formula == formula
        assert "+ power_limit" in page.text
        assert "residual in %" in page.text
        await page.change(Show("runs.formula", "time_per_epoch ~ nowhere"))
        assert "refused: time_per_epoch ~ nowhere" in page.text
        await page.act("link")
        assert page.app.state.view.of(RunsView).formula == with_other_link(formula)
        words.extend(shlex.split(page.page.command))

    words = []
    on_page(RunsPage, check, size=(160, 42), changes=(Show("runs.files", str(FILE)),))
    assert whatif_main(*words[1:])[0] == 0


async def typed(driver, formula):
    await driver.pilot.press("f")
    await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
    driver.app.screen.query_one("Input").value = formula
    await driver.press("enter")


def test_in_the_explorer_a_model_is_pinned_changed_taken_back_and_accepted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "scenarios" / "jacobi2d.toml", "own.toml")

    async def here(function, *arguments):
        return function(*arguments)

    # Another process would have to load the library of statistics once more.
    for module in ("runs", "measurement_page"):
        monkeypatch.setattr(f"whatif.tui.pages.{module}.run_once", here)

    async def check(driver):
        await driver.until(
            lambda: isinstance(driver.main_screen.page, RunsPage) and driver.main_screen.page._found is not None
        )
        page, before = driver.main_screen.page, driver.state.baseline
        assert "no such column" in driver.screen_text()
        await typed(driver, FIRST)
        await driver.until(lambda: isinstance(page._found, RunsRegression))
        await driver.press("b", "o")
        assert driver.state.baseline is before
        await driver.until(lambda: "pinned" in driver.screen_text())
        await typed(driver, "time_per_epoch ~ batchsize")
        await driver.until(lambda: "did you mean `batch_size`" in driver.status.full)
        assert page._found.formula == with_other_link(FIRST)
        await driver.press("u", "u")
        await driver.until(lambda: page._found.formula == FIRST)
        await driver.pilot.press("a")
        await driver.until(lambda: isinstance(driver.app.screen, TextPrompt))
        await driver.pilot.press("enter")
        await driver.until(lambda: "application.phases.time_per_epoch.extends" in driver.state.unsaved())
        assert Path("time_per_epoch_model.toml").exists()

    wrong = Show("runs.formula", "time_per_epoch ~ nowhere").line()
    drive(
        check, scenario="own.toml", opening=[wrong, Show("runs.files", str(FILE)).line(), Show("screen", "runs").line()]
    )
