"""Profile page: content of a GPU profile, and its projection onto the present machine."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.paths import is_file, user_path
from whatif.profiles.profile_study import (
    ProfileInputs,
    ProfileSummary,
    ProjectionSummary,
    check_profile,
    has_latencies,
    profile_inputs,
)
from whatif.profiles.stream_lanes import Window
from whatif.tui.dialogs.windows import TextPrompt
from whatif.tui.events import JobRequested
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.profile_job import profile_of_inputs
from whatif.tui.jobs.refusal import JobRefusal
from whatif.tui.labels import StyledText, duration, percent, warning_lines
from whatif.tui.page_views import ProfileView
from whatif.tui.pages.measurement_page import ReadingPage
from whatif.tui.pages.page import ZOOM_KEYS, PageKey, extra_key, stepped_to
from whatif.tui.state import ExplorerState
from whatif.tui.time_window import moved
from whatif.tui.widgets.data_table import ColumnsView
from whatif.tui.widgets.picture import Picture
from whatif.tui.widgets.profile_bars import KernelsByTime, SizesOfCopies, TimesOfCopies
from whatif.tui.widgets.profile_streams import StreamBars
from whatif.tui.widgets.profile_tables import table_of
from whatif.units import ONE, format_quantity

_WARNINGS: Final = 2
_SIDES: Final = {"projection": "projected", "sizes": "sizes of copies", "streams": "streams", "kernels": "kernels"}
"""Parts of a profile in words; `streams` is the time line."""


class ProfilePage(ReadingPage[ProfileView, ProfileSummary]):
    """GPU profile of an application, and its copies on the present machine; `m` turns the sides."""

    NAME: ClassVar[str] = "profile"
    PANEL = "#profiled"
    WORDS = "#profile-words"
    NOTHING = (
        "No profile yet. n reads one of nvprof, Nsight Systems, rocprof or Kineto; "
        "so does `whatif open PROFILE --platform NAME`."
    )
    REMEDY = "n reads another profile."
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": 22, "-flat": 9}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("open", "n", "open", "profile", "Read a profile: nvprof, Nsight Systems, rocprof or Kineto"),
        PageKey("side", "m", "turn('side')", "view", "Show the projection, sizes of copies, streams or kernels"),
        PageKey("table", "v", "table", "table", "Switch between the plot and a table"),
        PageKey("latencies", "x", "latencies", "latencies", "Use the latencies measured on the next machine"),
        PageKey("zoom_in", "plus,z", "zoom(0.5)", "zoom", "Zoom in to the busiest half"),
        extra_key("zoom_out", "minus,Z", "zoom(2)", "zoom out", "Zoom out to twice the time"),
        extra_key("whole", "home", "whole", "whole", "Show the whole time line"),
        PageKey("earlier", "left,h", "pan(-0.25)", "", "Scroll to earlier times"),
        PageKey("later", "right,l", "pan(0.25)", "", "Scroll to later times"),
    )
    DEFAULT_CSS = """
    ProfilePage #profile-head { height: auto; max-height: 2; padding: 0 1; }
    ProfilePage #profiled { height: 1fr; }
    ProfilePage #profile-words { height: auto; max-height: 4; padding: 0 1; color: $text-muted; }
    ProfilePage.-tabular #profiled, ProfilePage.-pictured ColumnsView { display: none; }
    ProfilePage.-tabular ColumnsView { height: 1fr; max-height: 100%; }
    ProfilePage.-empty .panel, ProfilePage.-empty #profile-head { display: none; }
    ProfilePage.-empty #profile-words { max-height: 100%; color: $foreground; }
    ProfilePage.-low #profile-words { max-height: 2; }
    ProfilePage.-low #profile-head { max-height: 1; }
    ProfilePage.-flat #profile-words { display: none; }
    ProfilePage.-flat.-both #profiled { display: none; }
    ProfilePage.-flat.-both ColumnsView { max-height: 100%; }
    ProfilePage.-flat.-empty #profile-words { display: block; max-height: 100%; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._inputs: ProfileInputs | None = None
        self._job: Job | None = None
        self._window: Window | None = None

    def compose(self) -> ComposeResult:
        """Title in a line, the picture, the table, and the conclusions in words."""
        yield Static(id="profile-head", markup=False)
        with Vertical(id="profiled", classes="panel"):
            yield TimesOfCopies(id="projection")
            yield SizesOfCopies(id="sizes")
            yield StreamBars(id="streams")
            yield KernelsByTime(id="kernels")
        yield ColumnsView(id="profile-table", classes="panel")
        yield Static(id="profile-words", markup=False)

    @property
    def files(self) -> tuple[str, ...]:
        """Name of the profile."""
        return (self.view.file,) if self.view.file else ()

    def enter(self) -> None:
        """Focus the table, or the picture in its place."""
        self.focus_first((self.query_one(ColumnsView), *self.query(Picture)))

    def offers(self, action: str) -> bool:
        """Only to read a profile until one is read; to zoom only the time line."""
        if action == "open" or not isinstance(self._found, ProfileSummary):
            return action == "open"
        return action not in ("zoom", "pan", "whole") or self.view.side == "streams"

    def show(self, state: ExplorerState) -> None:
        """Show the known summary of the profile of a state."""
        if self.view.file != self.view_in(state.view).file:
            self._window = None
        super().show(state)

    def job(self, state: ExplorerState) -> Job | None:
        """Read, characterise and project, unless only something else has changed."""
        view = self.view_in(state.view)
        inputs = profile_inputs(state.session, view.file, view.source, self._window)
        if not view.file or (inputs == self._inputs and self._found is not None):
            return None
        self._job = Job(profile_of_inputs, (inputs,))
        return self._job

    def take(self, value: ProfileSummary | JobRefusal) -> None:
        """Show a profile, or the reason why it failed."""
        if self._job is None:
            return
        self._found, (self._inputs,), self._job = value, self._job.arguments, None
        self._fill()

    def summary(self, found: ProfileSummary) -> Content:
        """Conclusions from one side in sentences, and warnings."""
        sides = {"projection": _time_line, "sizes": _symbols, "streams": _overlaps, "kernels": _kernel_range}
        warnings = [*found.warnings, *(found.projected.warnings if found.projected is not None else ())]
        sentences = filter(None, sides[self.view.side](found))
        return Content.assemble(" ".join(sentences), *warning_lines(warnings, _WARNINGS))

    def draw(self, found: ProfileSummary) -> None:
        """One side of the profile: its picture, its table, or for the projection both."""
        self.query_one("#profile-head", Static).update(head(found))
        side, projected, tabular = self.view.side, found.projected, self.state.view.picture == "table"
        both = side == "projection" and projected is not None and not tabular
        focused = self.screen.focused
        if focused is None or self in focused.ancestors:
            self.call_after_refresh(self.enter)
        panel, table = self.query_one("#profiled"), self.query_one(ColumnsView)
        for picture in panel.query(Picture):
            picture.display = picture.id == side
        self.update_classes({"-tabular": tabular, "-pictured": not (tabular or both), "-both": both})
        self.query_one(TimesOfCopies).show(projected.classes if projected is not None else None)
        self.query_one(SizesOfCopies).show(found.tables.get("sizes"))
        self.query_one(StreamBars).show(found.streams)
        self.query_one(KernelsByTime).show(found.tables.get("kernels"))
        title = " · ".join(filter(None, (_SIDES[side], Path(self.view.file).name, found.tool, *found.devices)))
        panel.border_title = Content(title)
        self.show_hints()
        table.border_title = "copies and fills" if both else Content(title)
        rows, kept = table_of(found, side)
        table.show(rows, kept, self._hint(found, side) if tabular and side == "projection" else "")

    def _hint(self, found: ProfileSummary, side: str) -> str:
        """Text in the border of a side."""
        if side != "streams":
            return "x other latencies" if side == "projection" and found.projected is not None else ""
        part = "whole time line" if self._window is None else " .. ".join(map(duration, found.streams.window))
        return f"{part} · {self.keys_hint(*ZOOM_KEYS)}"

    def show_hints(self) -> None:
        """The part of the time line that is visible, and the keys that show others."""
        if isinstance(self._found, ProfileSummary):
            self.query_one("#profiled").border_subtitle = Content(self._hint(self._found, self.view.side))

    @work
    async def action_open(self) -> None:
        """Ask for a profile."""
        present = self.view.file
        text = await self.app.push_screen_wait(TextPrompt("Profile: a file", present, check=_missing))
        if text and text != present and await self._readable((text,), check_profile, text):
            self.ask("file", text)

    def action_latencies(self) -> None:
        """Take the latencies of the next platform that states some; after the last one, the present platform's own."""
        scenario, present = self.state.session.scenario, self.state.platform_name
        names = ("", *(name for name in scenario.known_platforms if name != present))
        folders = scenario.search_folders
        self.choose("source", lambda view: stepped_to(names, view.source, lambda name: has_latencies(name, folders)))

    def action_zoom(self, factor: float) -> None:
        """Scale the visible part of the time line by a factor around its middle."""
        self._look(0.0, factor)

    def action_pan(self, shift: float) -> None:
        """Move by a share of what is visible."""
        self._look(shift, 1.0)

    def action_whole(self) -> None:
        """Look at the whole time line."""
        self._look(0.0, float("inf"))

    def _look(self, shift: float, factor: float) -> None:
        found = self._found
        if isinstance(found, ProfileSummary) and self.view.side == "streams":
            self._window = moved(self._window or found.streams.window, found.streams.whole, shift, factor)
            self.post_message(JobRequested())


def _missing(text: str) -> str:
    """Error in the named path; empty if it exists."""
    return "" if not text or is_file(user_path(text)) else f"no such file: {text}"


def _machines(projected: ProjectionSummary) -> str:
    """Whose latencies and whose data sheet the projection rests on."""
    edited = " (edited)" * projected.edited
    if projected.source == projected.target:
        return f"Latencies and data sheet of {projected.target}{edited}"
    return f"Latencies of {projected.source}, data sheet of {projected.target}{edited}"


def head(found: ProfileSummary) -> Content:
    """AHEAD's Table I in a line: time of kernels, of copies, the copies' share in both, how many there are."""
    totals = {name: float(column.values[0]) for name, column in found.tables["totals"].columns.items()}
    parts: list[str | StyledText] = []
    for kind, plural in (("kernel", "kernels"), ("transfer", "copies"), ("fill", "fills")):
        if totals[f"{kind}_count"]:
            count = format_quantity(totals[f"{kind}_count"], ONE)
            parts += [(f"{count} {plural} ", ""), (duration(totals[f"{kind}_time"]), "bold"), "  "]
    share = totals["transfer_fraction"]
    parts += [("copies are ", ""), (percent(share), "bold"), " of GPU time"] if totals["transfer_count"] else []
    return Content.assemble(*parts)


def _time_line(found: ProfileSummary) -> list[str]:
    """The time line before and after, or why there is nothing after."""
    if found.projected is None:
        return [f"No projection: {found.reason}."]
    before, *after = found.streams.bands
    then = " to ".join(dict.fromkeys(duration(band.total_time) for band in after))
    whose = f"Errors: against this profile, as one of {found.projected.target}." if found.projected.own else ""
    times = f"time line {duration(before.total_time)} → {then}."
    return [f"{_machines(found.projected)}: {times}", *_kernel_range(found), whose]


def _kernel_range(found: ProfileSummary) -> list[str]:
    low, high = found.projected.kernel_range if found.projected is not None else (1.0, 1.0)
    if low == high:
        return []
    return [f"Kernels {low:.3g} to {high:.3g} times as long: the range of both rooflines."]


def _symbols(found: ProfileSummary) -> list[str]:
    """Meaning of the bars, and copies that touch variables of the program."""
    sentences = ["Top: by count; bottom: by time."]
    table = found.tables.get("symbols")
    if table is not None:
        rows = table.records()
        sentences += [
            f"{percent(float(row['count_fraction']))} of all copies are {row['direction'].replace('_', ' ')} and touch"
            f" variables of the program on the device ({percent(float(row['time_fraction']))} of the time)."
            for row in rows
            if row["operation"] == "copy"
        ]
    return sentences


def _overlaps(found: ProfileSummary) -> list[str]:
    bands = [band for band in found.streams.bands if band.overlapped_time > 0]
    shared = ", ".join(f"{band.name} {duration(band.overlapped_time)}" for band in bands)
    return [
        "The height of a bar is how busy the stream is.",
        f"Different kinds overlap for: {shared}." if shared else "",
    ]
