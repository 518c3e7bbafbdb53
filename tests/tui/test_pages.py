"""Pages as modules: what they define, how their views are written, and what a new page takes."""

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Static

from tests.driver import drive
from whatif.errors import UsageError
from whatif.plugins import registered_pages
from whatif.tui import page_registry
from whatif.tui.commands.explorer_commands import Show, parse_line
from whatif.tui.commands.performing import perform
from whatif.tui.page_registry import GROUPS, PAGES, PageEntry, next_screen, screens
from whatif.tui.page_views import VIEWS, view_kind
from whatif.tui.pages.page import Page, PageKey
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.state import View
from whatif.tui.view_entries import PageView, entry, entry_names
from whatif.tui.widgets.parameter_help import ParameterHelp
from whatif.tui.widgets.parameter_panel import ParameterPanel
from whatif.tui.widgets.status import Status
from whatif.tui.widgets.title import page_words

NAMES = [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_page_defines_its_name_keys_and_help(page):
    kind = page.load()
    assert page.name == kind.NAME
    assert kind.help()
    names = [key.name for key in kind.KEYS]
    assert len(names) == len(set(names))
    assert all(hasattr(kind, f"action_{key.action.partition('(')[0]}") for key in kind.KEYS)


def test_pages_have_different_names_and_groups_different_keys():
    assert len({page.name for page in PAGES}) == len(PAGES)
    assert VIEWS.keys() <= set(NAMES)
    assert [group.key for group in GROUPS] == ["1", "2", "3", "4", "5", "6", "7"]
    assert len({group.name for group in GROUPS}) == len(GROUPS)


def test_pages_of_plug_ins_stand_in_for_pages_of_groups():
    assert {page.name for page in PAGES if not page.group} == registered_pages().keys()
    assert {page.screen for page in registered_pages().values()} <= {page.name for page in screens()}


def test_the_key_of_a_group_goes_to_its_page_seen_last_and_then_to_the_next():
    assert next_screen("explain", "explore", {}) == "why"
    assert next_screen("explain", "explore", {"explain": "timeline"}) == "timeline"
    assert [next_screen("explain", name, {}) for name in ("why", "roofline", "timeline")] == [
        "roofline",
        "timeline",
        "why",
    ]
    assert next_screen("explore", "explore", {}) == "explore"


@pytest.mark.parametrize("width", [80, 99, 100, 120, 140, 200])
def test_the_title_names_every_group_from_80_columns_on(width):
    for present in screens():
        words = page_words(present.name, width)
        text = "".join(word.text for word in words)
        assert len(text) <= width - len(" whatif* ")
        assert all(f"{group.key} {group.title}" in text for group in GROUPS if group.name != present.group)
        assert present.name in text.lower()
        assert [present.name in word.text.lower() or "/" in word.text for word in words if word.present] == [True]
        if width >= 120:
            assert len(text) <= width - len(" whatif* ") - 12
            assert all(page.name in text.lower() for page in screens() if page.group == present.group)


@pytest.mark.parametrize(
    ("scenario", "shown"),
    [("minife", ["minife", "minife", "minife"]), ("minife_gpus_per_node", ["minif…", "minife_g…", "minife_gpus_…"])],
    ids=["short", "long"],
)
def test_the_title_at_80_columns_cuts_no_page_and_has_the_name_of_the_scenario(scenario, shown):
    async def check(driver):
        for page, name in zip(("profile", "decide", "explore"), shown, strict=True):
            await driver.go(page)
            title = driver.screen_text().splitlines()[0]
            assert title.rstrip().endswith(" 7 Files")
            assert title.split()[0] == name

    drive(check, size=(80, 24), scenario=scenario)


@pytest.mark.parametrize("width", [20, 40, 60])
def test_the_title_of_a_narrow_screen_has_the_keys_of_all_groups(width):
    text = "".join(word.text for word in page_words("roofline", width))
    assert text == "1 2 3 roofline 2/3 4 5 6 7"


def test_the_same_digit_goes_through_the_pages_of_a_group_and_a_digit_comes_back_to_the_last_one():
    async def check(driver):
        seen = []
        for key in "33334432":
            await driver.press(key)
            seen.append(driver.main_screen.page.NAME)
        assert seen == ["why", "roofline", "timeline", "why", "messages", "ranks", "why", "compare"]
        assert driver.app.runner.history.lines == [f"show screen = {name}" for name in seen]
        await driver.pilot.press("3", "3", "3")
        await driver.until(lambda: driver.main_screen.page.NAME == "timeline")

    drive(check)


def test_a_click_on_the_title_goes_to_a_group_and_to_a_page_of_it():
    async def check(driver):
        for name, goal in (("Explain", "why"), ("timeline", "timeline")):
            at = driver.screen_text().splitlines()[0].index(name)
            await driver.pilot.click(offset=(at + 1, 0))
            await driver.until(lambda goal=goal: goal == driver.main_screen.page.NAME)

    drive(check)


FIELDS = [*entry_names(View), *(f"{page.name}.{name}" for page in PAGES for name in entry_names(view_kind(page.name)))]
WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"], include_characters=".-~*_/ "), max_size=12)
NUMBERS = st.floats(min_value=1e-9, max_value=1e12)
SPECIAL = {"screen": st.sampled_from([page.name for page in screens()]), "ranks.iterations": st.integers(1, 100_000)}


def values_of(key):
    """Strategy for the values of a field."""
    if key in SPECIAL:
        return SPECIAL[key]
    if choices := View().choices(key):
        return st.sampled_from(choices)
    page, _, name = key.rpartition(".")
    hint = get_type_hints(view_kind(page) if page else View)[name]
    if get_origin(hint) is tuple:
        return st.lists(WORDS.map(str.strip).filter(bool), max_size=3).map(tuple)
    if type(None) in get_args(hint):
        pairs = st.tuples(NUMBERS, NUMBERS).filter(lambda pair: pair[0] < pair[1])
        return st.none() | pairs
    return {int: st.integers(0, 10_000), str: WORDS.map(str.strip)}[hint]


@pytest.mark.parametrize("key", FIELDS)
@given(data=st.data())
def test_view_field_survives_the_journal_and_undo(key, data, state):
    value = data.draw(values_of(key))
    change = Show(key, View().text(key, value))
    changed = perform(state, (parse_line(change.line()),))
    assert not changed.error
    view = changed.state.view
    assert view.value(key) == value
    assert pickle.loads(pickle.dumps(view)) == view  # noqa: S301
    assert changed.state.at(state.undo_state).view == state.view


@pytest.mark.parametrize("key", FIELDS)
def test_view_field_is_typed(key):
    view = View().with_entry(key, View().text(key, View().value(key)))
    page, _, name = key.rpartition(".")
    hint = get_type_hints(view_kind(page) if page else View)[name]
    kinds = {type(choice) for choice in view.choices(key)} or {kind for kind in (hint, get_origin(hint)) if kind}
    assert isinstance(view.value(key), (*(kind for kind in kinds if isinstance(kind, type)), type(None)))


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("fit.distnce", "inter_node", "did you mean `fit.distance`"),
        ("fit.distance", "inter_nod", "did you mean `inter_node`"),
        ("fitt.distance", "inter_node", "did you mean `fit.distance`"),
        ("screen", "explor", "did you mean `explore`"),
        ("hpl.panels", "4", "not one of 1, 2, 3, 5, 8, 12, 20, 32"),
        ("hpl.line", "many", "expected the number of a process row or column"),
        ("pages", "x", "no such entry"),
    ],
)
def test_unknown_fields_and_wrong_values_are_explained(key, text, reason):
    with pytest.raises(UsageError, match=reason):
        View().with_entry(key, text)


def test_views_of_pages_are_small_and_frozen():
    for page in PAGES:
        kind = view_kind(page.name)
        assert len(fields(kind)) <= 8
        assert kind.__dataclass_params__.frozen


@dataclass(frozen=True, slots=True)
class NoteView(PageView):
    """View of the page below."""

    PAGE: ClassVar[str] = "note"
    colour: Literal["red", "blue"] = "red"
    count: int = entry(1, check=lambda count: count > 0, expected="a positive number")


class NotePage(Page[NoteView]):
    """A page of a test."""

    NAME: ClassVar[str] = "note"
    KEYS = (
        PageKey("colour", "n", "turn('colour')", "colour", "The next colour"),
        PageKey("more", "N", "more(2)", "", "Count on"),
    )

    def compose(self):
        yield Static(id="note")

    def show(self, state):
        view = self.view_in(state.view)
        self.query_one("#note", Static).update(f"{view.count} in {view.colour}")

    def action_more(self, steps):
        self.choose("count", lambda view: view.count + steps)


def test_new_page_takes_its_module_its_view_and_one_line_in_the_registry(monkeypatch):
    line = PageEntry("note", "compare", module=f"{__name__}:NotePage")
    monkeypatch.setattr(page_registry, "PAGES", (*PAGES, line))
    monkeypatch.setitem(VIEWS, "note", NoteView)

    async def check(driver):
        await driver.press("2", "2", "2")
        assert "2 Compare: compare  variants  note" in driver.screen_text().splitlines()[0]
        await driver.press("n", "N", "N")
        assert "5 in blue" in driver.screen_text()
        lines = driver.app.runner.history.lines
        assert lines == [
            "show screen = compare",
            "show screen = variants",
            "show screen = note",
            "show note.colour = blue",
            "show note.count = 3",
            "show note.count = 5",
        ]
        await driver.press("u", "u")
        assert "1 in blue" in driver.screen_text()
        driver.main_screen.set_focus(None)
        await driver.press("f1")
        assert "A page of a test." in driver.screen_text()
        assert "Count on" in driver.screen_text()
        await driver.press("escape", "U", "U", "1")
        assert driver.state.view.of(NoteView) == NoteView("blue", 5)
        await driver.press("N")
        assert driver.state.view.of(NoteView).count == 5

    drive(check, (160, 40))


def test_keys_of_a_page_keep_those_of_the_screen():
    async def check(driver):
        await driver.press("tab")
        assert driver.app.focused is driver.plot
        await driver.go("runs")
        await driver.press("b", "1", "b")
        assert driver.app.runner.history.lines == ["show screen = runs", "show screen = explore", "pin"]

    drive(check)


def test_start_imports_the_first_page_only():
    code = """
        import sys
        from whatif.core.scenario import Scenario
        from whatif.tui.app import Explorer
        Explorer(Scenario.open("jacobi2d"))
        print(*(name for name in sys.modules if name.startswith("whatif.tui.pages.")))
        print(*({"pandas", "scipy", "matplotlib", "numba", "plotext", "whatif.studies.procurement"} & set(sys.modules)))
    """
    script = "\n".join(line.strip() for line in code.splitlines())
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    pages, heavy = done.stdout.split("\n")[:2]
    assert set(pages.split()) == {f"whatif.tui.pages.{name}" for name in ("page", "sweep_page", "explore")}
    assert not heavy


def test_a_page_that_comes_when_the_screen_is_cleared_away_is_dropped(monkeypatch):
    async def check(driver):
        screen = driver.main_screen
        switcher = screen.query_one(ContentSwitcher)
        add = switcher.add_content

        async def cleared(content):
            await add(content)
            await driver.app.switch_screen(Screen())

        monkeypatch.setattr(switcher, "add_content", cleared)
        await screen._go_to("profile")
        assert switcher.current == "explore"

    drive(check, (120, 36), "jacobi2d")


def test_answers_that_come_when_the_screen_is_cleared_away_are_dropped():
    async def check(driver):
        screen = driver.main_screen
        assert screen.is_ready
        await driver.app.switch_screen(Screen())
        await driver.until(lambda: not screen.query(ParameterPanel))
        driver.app._shown("an error")
        screen.tell_activity("replaying")
        screen.fail("a failure")
        screen._taken(None)

    drive(check, (120, 36), "jacobi2d")


def test_a_screen_that_is_not_mounted_yet_keeps_what_it_is_to_show():
    async def check(driver):
        screen = MainScreen(driver.state, driver.app.jobs)
        other = replace(driver.state)
        screen.show(other, "an error")
        await driver.app.switch_screen(screen)
        assert screen.state is other
        assert "an error" in str(screen.query_one(Status).render())

    drive(check, (120, 36), "jacobi2d")


def test_another_page_changes_no_class_of_the_screen():
    """A class of the screen would cost the styles of all widgets of all pages again."""

    async def check(driver):
        before = driver.main_screen.classes
        below, explanation = driver.main_screen.query_one("#below"), driver.main_screen.query_one(ParameterHelp)
        assert below.display
        assert explanation.display
        await driver.go("decide")
        assert driver.main_screen.classes == before
        assert not below.display
        assert not explanation.display
        await driver.go("explore")
        assert below.display
        assert explanation.display

    drive(check, size=(80, 24))


class BusyJobs:
    """Takes the place of the worker process: what it is asked for never ends."""

    busy = True

    def __init__(self):
        self.asked = []

    def ask(self, job):
        self.asked.append(job)

    def warm(self):
        pass

    def stop(self):
        pass

    close = stop


def test_a_key_that_only_changes_the_view_does_not_restart_the_job_of_any_page():
    async def check(driver):
        driver.main_screen.latest.close()
        jobs = driver.main_screen.latest = BusyJobs()
        for page in screens():
            driver.main_screen.action_go(page.name)
            await driver.until(lambda name=page.name: name == driver.main_screen.page.NAME)
            await driver.pilot.pause()
            before = len(jobs.asked)
            await driver.pilot.press("M")
            await driver.pilot.pause()
            assert len(jobs.asked) == before, page.name
        assert len(jobs.asked) > 4

    drive(check)


def test_a_duplicate_in_another_folder_keeps_its_measured_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def check(driver):
        await driver.go("files")
        await driver.until(lambda: "▶" in driver.screen_text())
        await driver.pilot.press("D")
        await driver.until(lambda: "Copy jacobi2d to" in driver.screen_text())
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.app.file_sync.file.path == tmp_path / "jacobi2d.toml")
        await driver.until(lambda: "of 20 runs" in driver.screen_text())

    drive(check)
    assert (tmp_path / "jacobi2d_runs.csv").exists()
