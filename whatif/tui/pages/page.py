"""What all pages have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from textual.containers import Container

from whatif.tui.study import Study


class Job(NamedTuple):
    """What a page wants computed beside: a function of a module, and what it is called with."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Page(Container):
    """One of the screens. `show` draws at once what is at hand; what takes long is gathered beside and `take`n.

    A page is only shown while it is in sight. Its bindings work wherever the focus is on the desk.
    """

    NAME: ClassVar[str]
    WIDE: ClassVar[bool] = False
    """Whether the page is worth more than the leaves beside it."""

    def show(self, study: Study) -> None:
        """Show a study."""
        raise NotImplementedError

    def job(self, study: Study) -> Job | None:
        """What to compute beside for a study; None where nothing is missing."""
        return None

    def take(self, value: Any) -> None:
        """Show what was computed beside for the study shown last."""

    def enter(self) -> None:
        """Take the focus, where the page wants it."""
