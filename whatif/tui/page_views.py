"""Views of pages: the fields of each that undo, the journal and worker processes keep; nothing here imports Textual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from whatif.errors import UsageError
from whatif.tui.commands.study_values import values_in
from whatif.tui.decisions.titles import DECISIONS
from whatif.tui.variants.variant_set import BASELINE
from whatif.tui.view_entries import PageView, entry
from whatif.units import BYTE, SECOND
from whatif.vocabulary import STUDY_VIEWS, Relation

_MOST_ITERATIONS: Final = 100_000
HPL_PARTS: Final = ("rates", "components", "panels", "geometries")
"""Parts of the page of HPL."""
HPL_PANELS: Final = (1, 2, 3, 5, 8, 12, 20, 32)
"""Numbers of first panels that its time line can have; the last is all that are simulated for it."""


@dataclass(frozen=True, slots=True)
class SweepView(PageView):
    """View of a page that draws a sweep."""

    relation: Relation = "value"
    """Scale of y: the values, or relative to the baseline."""


@dataclass(frozen=True, slots=True)
class ExploreView(SweepView):
    """View of the first page."""

    PAGE: ClassVar[str] = "explore"
    second: Literal["curves", "heat"] = "curves"
    """Representation of a second swept parameter."""


@dataclass(frozen=True, slots=True)
class CompareView(SweepView):
    """View of the comparison."""

    PAGE: ClassVar[str] = "compare"
    sort: str = ""
    """Column by which platforms are sorted; `-COLUMN` for descending order, empty for the order of the files."""
    marked: tuple[str, ...] = ()
    """Platforms to draw next to the baseline; empty for the best ones."""


@dataclass(frozen=True, slots=True)
class VariantsView(PageView):
    """View of the variants."""

    PAGE: ClassVar[str] = "variants"
    against: str = BASELINE
    """Letter of the variant that the present one is explained from."""


@dataclass(frozen=True, slots=True)
class RooflineView(PageView):
    """View of the roofline."""

    PAGE: ClassVar[str] = "roofline"
    second: str = ""
    """Platform whose GPU is compared; empty for none."""


@dataclass(frozen=True, slots=True)
class RanksView(PageView):
    """View of the simulated ranks."""

    PAGE: ClassVar[str] = "ranks"
    window: tuple[float, float] | None = entry(
        None,
        unit=SECOND,
        check=lambda window: window[0] < window[1],
        expected="when it begins and ends, such as `0 s, 3 ms`",
    )
    """Part of the time line that is shown (s); None for all of it."""
    first_rank: int = entry(0, check=lambda rank: rank >= 0, expected="the number of a rank")
    """First rank that is shown."""
    iterations: int = entry(
        1,
        check=lambda count: 1 <= count <= _MOST_ITERATIONS,
        expected=f"a whole number from 1 to {_MOST_ITERATIONS}",
    )
    """Iterations to simulate."""


@dataclass(frozen=True, slots=True)
class HPLView(PageView):
    """View of a run of HPL."""

    PAGE: ClassVar[str] = "hpl"
    part: str = entry("all", choices=("all", *HPL_PARTS))
    """Part that is shown."""
    panels: int = entry(5, choices=HPL_PANELS)
    """Number of first panels in the time line."""
    across: Literal["row", "column"] = "row"
    """Whether the processes of a row or of a column are shown as lanes."""
    line: int = entry(0, check=lambda line: line >= 0, expected="the number of a process row or column")
    """Number of that row or column."""
    first_process: int = entry(0, check=lambda process: process >= 0, expected="the number of a process")
    """First process that is shown."""


@dataclass(frozen=True, slots=True)
class MeasurementView(PageView):
    """Files of measurements, and the columns and rows of CSV files to use."""

    files: tuple[str, ...] = ()
    """Files and folders with measurements."""
    columns: str = ""
    """Columns of CSV files: `time=Wall time [ms]`."""
    rows: str = ""
    """Rows of CSV files to keep: `machine=lassen`."""


@dataclass(frozen=True, slots=True)
class FitView(MeasurementView):
    """View of the fit page: the measurements and the fit."""

    PAGE: ClassVar[str] = "fit"
    buffers: str = ""
    """Kind of buffers to fit; empty for the only one, or the first."""
    distance: Literal["inter_node", "inter_socket", "intra_socket"] = "inter_node"
    """Distance that was measured."""
    model: Literal["recommended", "postal", "max_rate", "injection"] = "recommended"
    """Model that is drawn."""
    limits: tuple[float, float] | None = entry(
        None, unit=BYTE, expected="the short and the eager limit, such as `128 B, 64 KiB`"
    )
    """Short and eager protocol limit (B); None to find them."""


@dataclass(frozen=True, slots=True)
class RunsView(MeasurementView):
    """View of measured runs and their regression."""

    PAGE: ClassVar[str] = "runs"
    formula: str = ""
    """Formula of the regression; empty for a first one."""
    pinned: str = ""
    """Formula to compare with."""
    against: str = ""
    """Column on the x axis of the residuals; empty for the fitted values."""

    @property
    def source(self) -> tuple[object, ...]:
        """The fields that determine the data."""
        return self.files, self.columns, self.rows

    @property
    def fit(self) -> tuple[object, ...]:
        """The fields that determine the fit."""
        return *self.source, self.formula, self.pinned


@dataclass(frozen=True, slots=True)
class ProfileView(PageView):
    """View of a GPU profile."""

    PAGE: ClassVar[str] = "profile"
    file: str = ""
    """Profile of a GPU program."""
    source: str = ""
    """Platform whose measured latencies are used; empty for the current one."""
    side: Literal["projection", "sizes", "streams", "kernels"] = "projection"
    """Part of the profile that is shown."""


@dataclass(frozen=True, slots=True)
class DecideView(PageView):
    """View of the decisions."""

    PAGE: ClassVar[str] = "decide"
    decision: str = entry("bottlenecks", choices=tuple(DECISIONS))
    """Decision that is shown."""
    front_over: str = ""
    """Parameter that the Pareto front varies; empty for the ranks."""


@dataclass(frozen=True, slots=True)
class StudyPageView(PageView):
    """View of a procurement study."""

    PAGE: ClassVar[str] = "study"
    file: str = ""
    """Path of a study, or the name of a shipped one."""
    show: str = entry("bids", choices=STUDY_VIEWS)
    """Table that is shown."""
    values: str = ""
    """Changed values, `PATH = VALUE; PATH = VALUE`."""

    def unsaved(self) -> dict[str, str]:
        """The changed values by path; a text without a path in one piece."""
        try:
            return values_in(self.values)
        except UsageError:
            return {"values": self.values}


VIEWS: Final[dict[str, type[PageView]]] = {
    kind.PAGE: kind
    for kind in (
        ExploreView, CompareView, VariantsView, RooflineView, RanksView, HPLView, FitView, RunsView, ProfileView,
        DecideView, StudyPageView,
    )
}  # fmt: skip
"""Views by page; the other pages have no fields."""


def view_kind(page: str) -> type[PageView]:
    """Class of the view of a page."""
    return VIEWS.get(page, PageView)
