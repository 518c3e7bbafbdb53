"""State of the explorer: a session, its baseline and the view; every change makes a new state."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from whatif.core.scenario import Scenario
from whatif.core.session import Session, SessionInputs, still_there
from whatif.errors import UsageError, WhatifError, did_you_mean
from whatif.plotting.raster import MarkerName
from whatif.plugins import page_of
from whatif.schema.load import stated_platform
from whatif.schema.parameters import Parameter
from whatif.schema.phase_edits import edits_of
from whatif.tui.page_registry import FIRST_PAGE, page_named, screens
from whatif.tui.view_entries import PageView, V, choices, entry, entry_names, from_text, to_text

ScaleChoice = Literal["auto", "linear", "log"]


@dataclass(frozen=True, slots=True)
class View:
    """What is shown and how: fields that several pages share, and the views of single pages by page name.

    In the journal a shared field is named `FIELD`, a field of a page `PAGE.FIELD`.
    """

    screen: str = FIRST_PAGE
    y: str = "iteration_time"
    """Result column or `terms.PHASE` that is drawn."""
    x_scale: ScaleChoice = "auto"
    y_scale: ScaleChoice = "auto"
    samples: int | None = entry(None, choices=(None, 1024, 256, 4096), none="off")
    """Number of samples for uncertainty bands; None for no bands."""
    spread: Literal["none", "assumed", "datasheet"] = "none"
    """Grades whose values vary although they state no distribution: assumed by 20 %, data sheets by 10 %."""
    picture: Literal["plot", "table"] = "plot"
    breakdown: Literal["phase", "category"] = "phase"
    marker: MarkerName = "braille"
    why: str = "iteration_time"
    """Result that is explained."""
    against: str = ""
    """Platform that others are compared with; empty for the current one."""
    pages: Mapping[str, PageView] = field(default_factory=dict)

    def of(self, kind: type[V]) -> V:
        """View of one page."""
        return cast("V", self.pages.get(kind.PAGE, kind()))

    def value(self, key: str) -> Any:
        """Value of a field; raise `UsageError` if it does not exist."""
        view, name = self._find(key)
        return getattr(view, name)

    def choices(self, key: str) -> tuple[object, ...]:
        """Values allowed for a field; empty if it is not a choice."""
        view, name = self._find(key)
        return _screen_names() if key == "screen" else choices(type(view), name)

    def next_of(self, key: str) -> object:
        """Choice that follows the current one."""
        allowed = self.choices(key)
        return allowed[(allowed.index(self.value(key)) + 1) % len(allowed)]

    def text(self, key: str, value: object) -> str:
        """Text of a value of a field, as the journal has it."""
        view, name = self._find(key)
        return to_text(type(view), name, value)

    def with_entry(self, key: str, text: str) -> View:
        """View with another value of a field; raise `UsageError` for an unknown field or a wrong value."""
        view, name = self._find(key)
        try:
            value = from_text(type(view), name, text)
        except UsageError as problem:
            raise UsageError(f"show {key}: {problem}") from None
        if key == "screen" and value not in _screen_names():
            near = did_you_mean(value, _screen_names())
            raise UsageError(f"show {key}: `{value}` is not one of {', '.join(_screen_names())}{near}")
        if isinstance(view, View):
            return replace(self, **{name: value})
        changed: PageView = replace(view, **{name: value})
        return replace(self, pages={**self.pages, view.PAGE: changed})

    def _find(self, key: str) -> tuple[View | PageView, str]:
        """View that has a field, and the name of the field there."""
        page, _, name = key.rpartition(".")
        found = page_named(page)
        if page and found is None:
            known = [f"{item.name}.{name}" for item in screens()]
            raise UsageError(f"show {key}: there is no page `{page}`{did_you_mean(key, known)}")
        view = self if found is None else self.of(found.load().VIEW)
        names = entry_names(type(view))
        if name not in names:
            near = did_you_mean(key, [f"{page}.{name}" if page else name for name in names])
            raise UsageError(f"show {key}: there is no such entry{near}")
        return view, name


def _screen_names() -> tuple[str, ...]:
    return tuple(page.name for page in screens())


@dataclass(frozen=True, slots=True, eq=False)
class UndoState:
    """What can be undone, without the sweep's numbers: what is asked, what it is compared with, how it is looked at."""

    inputs: SessionInputs
    baseline: Session
    view: View

    def same_as(self, other: UndoState) -> bool:
        """Whether both ask, compare and show the same."""
        ours, theirs = (_words_of(state) for state in (self, other))
        return ours == theirs


def _words_of(state: UndoState) -> tuple[object, ...]:
    inputs, before = state.inputs, state.baseline.scenario
    axes = [(axis.name, dict(axis.texts)) for axis in inputs.grid.axes]
    asked = [(item.document.text, item.overrides, item.platform) for item in (inputs.scenario, before)]
    return state.view, axes, asked


@dataclass(frozen=True, slots=True, eq=False)
class ExplorerState:
    """What the explorer shows. `baseline` is compared with at the point; `behind` is it over the present sweep,
    where it differs and has such a one."""

    session: Session
    baseline: Session
    view: View = View()
    behind: Session | None = None

    @classmethod
    def start(cls, session: Session, view: View = View()) -> ExplorerState:
        """A study at its beginning, where nothing is changed yet."""
        return cls(session, session.at_rest(), view)

    @property
    def state(self) -> UndoState:
        """The study without its numbers."""
        return UndoState(self.session.inputs, self.baseline, self.view)

    def at(self, state: UndoState) -> ExplorerState:
        """The study in another state."""
        inputs = state.inputs
        inputs = replace(inputs, grid=still_there(inputs.grid, inputs.program))
        session = Session.of(inputs, self.session)
        return ExplorerState(session, state.baseline, state.view, self.behind)._compared()

    def with_session(self, session: Session) -> ExplorerState:
        """The study with another session."""
        return replace(self, session=session)._compared()

    def pinned(self) -> ExplorerState:
        """The study compared with its present values from now on."""
        return replace(self, baseline=self.session.at_rest(), behind=None)

    @property
    def page(self) -> str:
        """The page that shows its screen."""
        application = self.session.program.loaded.scenario.application
        return page_of(self.view.screen, application)

    @property
    def changed(self) -> bool:
        """Whether the question differs from the baseline's."""
        now, before = self.session.scenario, self.baseline.scenario
        return (now.document.text, now.overrides, now.platform) != (
            before.document.text,
            before.overrides,
            before.platform,
        )

    def _compared(self) -> ExplorerState:
        """The study with its baseline over the present sweep."""
        grid, behind = self.session.grid, self.behind
        if not self.changed:
            return replace(self, behind=None)
        if behind is not None and behind.grid is grid and behind.scenario is self.baseline.scenario:
            return self
        program = self.baseline.program
        found = None
        if still_there(grid, program) is grid:
            with suppress(WhatifError):
                found = Session.of(replace(self.baseline.inputs, grid=grid), behind)
        return replace(self, behind=found)

    @property
    def platform_name(self) -> str | None:
        """The name of the platform's file; None where the scenario describes its machine itself."""
        scenario = self.session.scenario
        return scenario.platform or stated_platform(scenario.document, scenario.folders)

    def unsaved(self) -> dict[str, str]:
        """Changes that the file on disk does not have: parameter path and text; `platform` for another machine, the
        words of its journal line for an edit of phases."""
        scenario = self.session.scenario
        named = {"platform": scenario.platform} if scenario.platform is not None else {}
        named |= {f"phase {edit.word} {edit.name}": edit.text for edit in edits_of(scenario.document)}
        return named | {path: str(text) for path, text in scenario.overrides.items()}

    def parameter_before(self, path: str) -> Parameter | None:
        """The parameter of the baseline, where it differs from the present one."""
        now, before = self.session.program.parameters.get(path), self.baseline.program.parameters.get(path)
        return before if before is not None and now is not None and now.value != before.value else None

    def over(self, scenario: Scenario) -> ExplorerState:
        """The study on another text of its file; what it is compared with stays."""
        return self.with_session(self.session.with_scenario(scenario))
