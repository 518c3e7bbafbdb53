"""Pages of the explorer and their groups: one line each, so that the program starts without importing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from whatif.plugins import registered_pages, resolve

if TYPE_CHECKING:
    from textual.binding import Binding

    from whatif.tui.pages.page import Page

FIRST_PAGE: Final = "explore"
"""Page that is shown first."""


class PageGroup(NamedTuple):
    """Pages that answer one kind of question; `key` goes to the page of the group seen last."""

    key: str
    name: str
    title: str


class PageEntry(NamedTuple):
    """Registration of a page."""

    name: str
    group: str
    """Name of its group; empty for a page that replaces another one."""
    words: str = ""
    """Content of the page."""
    synonyms: str = ""
    """Other words to find the page by, separated by commas."""
    module: str = ""
    """Class of the page of a plug-in, `package.module:Class`; that of page NAME is `NAMEPage` of `pages/NAME.py`."""

    def load(self) -> type[Page[Any]]:
        """Class of the page, imported on first use."""
        own = f"whatif.tui.pages.{self.name}:{self.name.capitalize()}Page"
        page: type[Page[Any]] = resolve(self.module or own)
        return page


GROUPS: Final = (
    PageGroup("1", "explore", "Explore"),
    PageGroup("2", "compare", "Compare"),
    PageGroup("3", "explain", "Explain"),
    PageGroup("4", "messages", "Messages"),
    PageGroup("5", "data", "Data"),
    PageGroup("6", "decide", "Decide"),
    PageGroup("7", "files", "Files"),
)

PAGES: tuple[PageEntry, ...] = (
    PageEntry("explore", "explore", "The answer, the sweep and the breakdown", "plot, curve, home, main"),
    PageEntry("compare", "compare", "Every machine and its curve", "machines, platforms, ratio, speedup"),
    PageEntry("variants", "compare", "Variants of the study side by side", "fork, differences, A, B"),
    PageEntry("why", "explain", "Terms, equations and elasticities", "explain, sensitivity, leverage, derivation"),
    PageEntry("roofline", "explain", "Kernels under the roofs of the GPU", "arithmetic intensity, bandwidth, kernels"),
    PageEntry("timeline", "explain", "Phases of an iteration and their overlaps", "gantt, overlap, phases"),
    PageEntry(
        "messages",
        "messages",
        "Message times, placement and domains",
        "mpi, latency, bandwidth, halo, topology, placement",
    ),
    PageEntry(
        "ranks", "messages", "Activity of every rank, message by message", "simulation, trace, critical path, imbalance"
    ),
    PageEntry("fit", "data", "Measured message times and fitted curves", "measurements, osu, ping-pong, calibrate"),
    PageEntry("runs", "data", "Measured runs and a formula", "regression, csv, formula, measurements"),
    PageEntry("profile", "data", "A GPU profile, projected to this machine", "nsight, nvprof, rocprof, kineto, gpu"),
    PageEntry("decide", "decide", "One question at a time", "bottlenecks, scaling, pareto, budget, layout"),
    PageEntry(
        "study",
        "decide",
        "Bids of a procurement study within its limits",
        "bids, procurement, offers, tender, vendors, commitments",
    ),
    PageEntry("files", "files", "Scenarios, studies and platforms", "open, load, scenario, browse"),
    *(PageEntry(name, "", module=page.page) for name, page in registered_pages().items()),
)


def screens() -> tuple[PageEntry, ...]:
    """Pages of the groups, in the order of the title bar."""
    return tuple(page for group in GROUPS for page in pages_of(group.name))


def pages_of(group: str) -> tuple[PageEntry, ...]:
    """Pages of a group."""
    return tuple(page for page in PAGES if page.group == group)


def group_of(screen: str) -> str:
    """Name of the group of a page."""
    return next((page.group for page in PAGES if page.name == screen), "")


def next_screen(group: str, present: str, seen: Mapping[str, str]) -> str:
    """Name of the page that the key of a group goes to: in another group the one seen last, else the next one."""
    names = [page.name for page in pages_of(group)]
    if present in names:
        return names[(names.index(present) + 1) % len(names)]
    return seen.get(group, names[0])


def go_bindings(present: str = FIRST_PAGE) -> tuple[Binding, ...]:
    """Keys that go to the groups of pages; that of the present page is labelled with the page that comes next."""
    from textual.binding import Binding  # noqa: PLC0415 - workers need the names only

    bindings = []
    for group in GROUPS:
        following = next_screen(group.name, present, {}) if group.name == group_of(present) else present
        label = following if following != present else ""
        action, words = f"go_group('{group.name}')", _explanation(group)
        bindings.append(Binding(group.key, action, label, show=bool(label), tooltip=words, id=f"go.{group.name}"))
    return tuple(bindings)


def _explanation(group: PageGroup) -> str:
    names = [page.name for page in pages_of(group.name)]
    return f"Go to {group.title}" + (f": {', '.join(names)}; again for the next one" if len(names) > 1 else "")


def moved_bindings() -> dict[str, str]:
    """Ids of bindings of single pages that earlier versions had, with what to use in their place."""
    ids = {f"go.{group.name}" for group in GROUPS}
    return {
        f"go.{page.name}": f"pages are in groups now; use `go.{page.group}`"
        for page in screens()
        if f"go.{page.name}" not in ids
    }


def all_bindings() -> tuple[Binding, ...]:
    """Keys of all pages; imports every page."""
    return (*go_bindings(), *(binding for page in PAGES for binding in page.load().bindings()))


def page_named(name: str) -> PageEntry | None:
    """Registration of a page; None if there is no page of this name."""
    return next((page for page in PAGES if page.name == name), None)
