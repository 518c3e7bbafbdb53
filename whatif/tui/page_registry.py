"""Pages of the explorer: one line each, so that the program starts without importing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from whatif.plugins import registered_pages, resolve

if TYPE_CHECKING:
    from textual.binding import Binding

    from whatif.tui.pages.page import Page

FIRST_PAGE: Final = "explore"
"""Page that is shown first."""


class PageEntry(NamedTuple):
    """Registration of a page. `module` names its class: `package.module:Class`."""

    name: str
    key: str
    """Key that goes to the page; empty for a page that stands in for another one."""
    title: str
    group: str
    module: str

    def load(self) -> type[Page[Any]]:
        """Class of the page, imported on first use."""
        page: type[Page[Any]] = resolve(self.module)
        return page


_MODEL, _SIMULATION, _MEASUREMENT, _STUDY, _FILE = "model", "simulation", "measurements", "studies", "files"

PAGES: tuple[PageEntry, ...] = (
    PageEntry("explore", "1", "explore", _MODEL, "whatif.tui.pages.explore:ExplorePage"),
    PageEntry("compare", "2", "compare", _MODEL, "whatif.tui.pages.compare:ComparePage"),
    PageEntry("roofline", "3", "roofline", _MODEL, "whatif.tui.pages.roofline:RooflinePage"),
    PageEntry("messages", "4", "messages", _MODEL, "whatif.tui.pages.messages:MessagesPage"),
    PageEntry("timeline", "5", "timeline", _MODEL, "whatif.tui.pages.timeline:TimelinePage"),
    PageEntry("why", "6", "why", _MODEL, "whatif.tui.pages.why:WhyPage"),
    PageEntry("fit", "7", "fit", _MEASUREMENT, "whatif.tui.pages.fit:FitPage"),
    PageEntry("files", "8", "files", _FILE, "whatif.tui.pages.files:FilesPage"),
    PageEntry("ranks", "9", "ranks", _SIMULATION, "whatif.tui.pages.ranks:RanksPage"),
    PageEntry("profile", "0", "profile", _MEASUREMENT, "whatif.tui.pages.profile:ProfilePage"),
    PageEntry("decide", "!", "decide", _STUDY, "whatif.tui.pages.decide:DecidePage"),
    PageEntry("runs", "@", "runs", _MEASUREMENT, "whatif.tui.pages.runs:RunsPage"),
    PageEntry("variants", "V", "variants", _STUDY, "whatif.tui.pages.variants:VariantsPage"),
    *(PageEntry(name, "", page.screen, _SIMULATION, page.page) for name, page in registered_pages().items()),
)


def screens() -> tuple[PageEntry, ...]:
    """Pages that have a key, in the order of the title bar."""
    return tuple(page for page in PAGES if page.key)


def go_bindings() -> tuple[Binding, ...]:
    """Keys that go to the pages."""
    from textual.binding import Binding  # noqa: PLC0415 - workers need the names only

    return tuple(
        Binding(page.key, f"go('{page.name}')", show=False, tooltip=f"Go to {page.title}", id=f"go.{page.name}")
        for page in screens()
    )


def all_bindings() -> tuple[Binding, ...]:
    """Keys of all pages; imports every page."""
    return (*go_bindings(), *(binding for page in PAGES for binding in page.load().bindings()))


def page_named(name: str) -> PageEntry | None:
    """Registration of a page; None if there is no page of this name."""
    return next((page for page in PAGES if page.name == name), None)
