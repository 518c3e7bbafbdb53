"""A study: a session, the values it is compared with, and how it is looked at; every change makes a new study."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Final

from whatif.core.scenario import Scenario
from whatif.core.session import Session, SessionInputs, still_there
from whatif.errors import UsageError, WhatifError, did_you_mean
from whatif.plugins import page_of
from whatif.schema.load import stated_platform
from whatif.schema.parameters import Parameter
from whatif.vocabulary import DISTANCES

SCREENS: Final = (
    "explore", "compare", "roofline", "messages", "timeline", "why", "fit", "files", "ranks", "profile", "decide",
    "runs",
)  # fmt: skip
SCREEN_KEYS: Final = "1234567890!@"
"""The key that goes to each screen."""
DECISIONS: Final = {
    "bottlenecks": "What would help: one part ideal, then the next one too",
    "why": "Why it differs from before, or from another machine",
    "uncertain": "Which uncertain value is worth measuring",
    "machines": "Which machine is best for this application",
    "scaling": "How far it scales, strong and weak",
    "layout": "Which decomposition and mapping is best",
    "pareto": "What time costs in energy, money or nodes",
    "budget": "What the power or the money of this machine buys elsewhere",
}
"""The questions of the page `decide`, each with what it asks."""
HPL_PAGE: Final = "hpl"
"""The page in the place of the ranks where the application is HPL."""
HPL_PARTS: Final = ("all", "rates", "components", "panels", "geometries")
HPL_PANELS: Final = ("1", "2", "3", "5", "8", "12", "20", "32")


@dataclass(frozen=True, slots=True)
class View:
    """How a study is looked at; every entry is a text, so that it can be shown, typed and replayed."""

    screen: str = "explore"
    y: str = "iteration_time"
    """The result column or `terms.PHASE` that is drawn."""
    x_scale: str = "auto"
    y_scale: str = "auto"
    second: str = "curves"
    """What a second swept parameter is drawn as."""
    samples: str = "off"
    """How many samples of the uncertain values give results a band."""
    spread: str = "none"
    """Up to which grade values without a distribution vary too: assumed ones by 20 %, those of data sheets by 10 %."""
    picture: str = "plot"
    """A plot, or the table of its numbers."""
    breakdown: str = "phase"
    marker: str = "braille"
    """What curves are made of."""
    why: str = "iteration_time"
    """The result that is explained."""
    sort: str = ""
    """The column by which machines are sorted; `-COLUMN` for the largest first, empty for the order of the files."""
    against: str = ""
    """The machine that others are compared with; empty for the present one."""
    gpu_of: str = ""
    """The machine whose GPU is laid beside the present one; empty for none."""
    marked: str = ""
    """Machines to draw, with commas between; empty for all."""
    measured: str = ""
    """Files and folders with measurements of messages, with commas between."""
    measured_columns: str = ""
    """What the columns of CSV files hold: `message_size=size [B],time=time [us]`."""
    measured_rows: str = ""
    """Which rows of CSV files count: `machine=lassen`."""
    measured_buffers: str = ""
    """The kind of buffers that is fitted; empty for the only one, or the first."""
    fit_distance: str = "inter_node"
    """The distance that was measured."""
    fit_model: str = "recommended"
    """The form of the time that is drawn."""
    fit_limits: str = ""
    """The short and the eager limit, `128 B, 64 KiB`; empty where they are found."""

    profile: str = ""
    """A profile of a GPU program: a file."""
    profile_from: str = ""
    """The machine it was measured on; empty for the present one."""
    profile_side: str = "projection"
    """What of the profile is shown."""
    window: str = ""
    """The part of the ranks' time line in sight, `0 s, 3 ms`; empty for all of it."""
    first_rank: str = "0"
    """The first rank in sight."""
    iterations: str = "1"
    """Iterations of a scenario whose ranks are played."""
    hpl_part: str = "all"
    """What of a run of HPL is shown."""
    hpl_panels: str = "5"
    """Its first panels whose time line is in sight."""
    hpl_line: str = "row 0"
    """The process row or column whose processes are lanes: `row 0`, `column 3`."""
    decision: str = "bottlenecks"
    """The question of the page `decide`."""
    front_over: str = ""
    """The parameter that a Pareto front is over; empty for the ranks."""
    runs: str = ""
    """Files and folders with measured runs, with commas between."""
    runs_columns: str = ""
    """What the columns of CSV files of runs hold: `time=Wall time [ms]`."""
    runs_rows: str = ""
    """Which rows of CSV files of runs count: `machine=lassen`."""
    runs_formula: str = ""
    """The regression of the runs; empty for a first one."""
    runs_pinned: str = ""
    """The formula that it is compared with."""
    runs_against: str = ""
    """The column that residuals are drawn over; empty for the fitted values."""

    def next_of(self, key: str) -> str:
        """The choice after the present one."""
        choices = CHOICES[key]
        return choices[(choices.index(getattr(self, key)) + 1) % len(choices)]

    def with_entry(self, key: str, value: str) -> View:
        """Another view; raise `UsageError` for an entry or value that does not exist."""
        names = [item.name for item in fields(self)]
        if key not in names:
            raise UsageError(f"show {key}: there is no such entry{did_you_mean(key, names)}")
        allowed = CHOICES.get(key)
        if allowed is not None and value not in allowed:
            raise UsageError(f"show {key}: `{value}` is not one of {', '.join(allowed)}{did_you_mean(value, allowed)}")
        return replace(self, **{key: value})


CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "screen": SCREENS,
    "decision": tuple(DECISIONS),
    "hpl_part": HPL_PARTS,
    "hpl_panels": HPL_PANELS,
    "x_scale": ("auto", "linear", "log"),
    "y_scale": ("auto", "linear", "log"),
    "second": ("curves", "heat"),
    "samples": ("off", "1024", "256", "4096"),
    "spread": ("none", "assumed", "datasheet"),
    "picture": ("plot", "table"),
    "breakdown": ("phase", "category"),
    "marker": ("braille", "block", "ascii"),
    "profile_side": ("projection", "sizes", "streams", "kernels"),
    "fit_distance": DISTANCES[::-1],
    "fit_model": ("recommended", "postal", "max_rate", "injection"),
}
"""The entries of a view that are a choice of a few."""


@dataclass(frozen=True, slots=True, eq=False)
class UndoState:
    """What can be undone, without the sweep's numbers: what is asked, what it is compared with, how it is looked at."""

    asked: SessionInputs
    baseline: Session
    view: View

    def same_as(self, other: UndoState) -> bool:
        """Whether both ask, compare and show the same."""
        ours, theirs = (_words_of(state) for state in (self, other))
        return ours == theirs


def _words_of(state: UndoState) -> tuple[object, ...]:
    asked, before = state.asked, state.baseline.question
    axes = [(axis.name, dict(axis.texts)) for axis in asked.grid.axes]
    return state.view, asked.question.sets, asked.question.platform, axes, before.sets, before.platform


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
        return UndoState(self.session.asked, self.baseline, self.view)

    def at(self, state: UndoState) -> ExplorerState:
        """The study in another state."""
        asked = state.asked
        asked = replace(asked, grid=still_there(asked.grid, asked.program))
        session = Session.of(asked, self.session)
        return ExplorerState(session, state.baseline, state.view, self.behind)._compared()

    def asking(self, session: Session) -> ExplorerState:
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
        now, before = self.session.question, self.baseline.question
        return (now.document.text, now.sets, now.platform) != (before.document.text, before.sets, before.platform)

    def _compared(self) -> ExplorerState:
        """The study with its baseline over the present sweep."""
        grid, behind = self.session.grid, self.behind
        if not self.changed:
            return replace(self, behind=None)
        if behind is not None and behind.grid is grid and behind.question is self.baseline.question:
            return self
        program = self.baseline.program
        found = None
        if still_there(grid, program) is grid:
            with suppress(WhatifError):
                found = Session.of(replace(self.baseline.asked, grid=grid), behind)
        return replace(self, behind=found)

    @property
    def platform_name(self) -> str | None:
        """The name of the platform's file; None where the scenario describes its machine itself."""
        question = self.session.question
        return question.platform or stated_platform(question.document, question.folders)

    def unsaved(self) -> dict[str, str]:
        """The changes that the file on disk does not have: parameter path and text; `platform` for another machine."""
        question = self.session.question
        named = {"platform": question.platform} if question.platform is not None else {}
        return named | {path: str(text) for path, text in question.sets.items()}

    def parameter_before(self, path: str) -> Parameter | None:
        """The parameter of the baseline, where it differs from the present one."""
        now, before = self.session.program.parameters.get(path), self.baseline.program.parameters.get(path)
        return before if before is not None and now is not None and now.value != before.value else None

    def over(self, question: Scenario) -> ExplorerState:
        """The study on another text of its file; what it is compared with stays."""
        return self.asking(self.session.asking(question))
