"""Base of the pages whose job answers a question that may take minutes: those are computed in the background."""

from __future__ import annotations

from typing import Any, Final

from whatif.tui.decisions.answers import Decision, DecisionRequest
from whatif.tui.decisions.background_decision import background_decision, decision_title, of_earlier_values
from whatif.tui.events import BackgroundRequested
from whatif.tui.jobs.background import BackgroundJobs
from whatif.tui.pages.page import Page, PageKey
from whatif.tui.state import ExplorerState
from whatif.tui.view_entries import V

WAITING: Final = "computing …"
"""Text in place of an answer that is not known yet."""
START_KEY = PageKey("start", "ampersand", "start", "background", "Compute the answer in the background")


class DecisionPage(Page[V]):
    """Base of the pages that show a `Decision`."""

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._decision: Decision | None = None
        self._inputs: tuple[object, ...] = ()
        self._answered: tuple[object, ...] = ()
        self._request: DecisionRequest | None = None

    @property
    def command(self) -> str:
        """Command line that gives the visible answer."""
        return self._decision.command if self._decision is not None and self._fresh else ""

    @property
    def answer_key(self) -> object:
        """Inputs of the answer."""
        return (self.NAME, *self._inputs) if self._inputs else None

    @property
    def _fresh(self) -> bool:
        return bool(self._inputs) and self._inputs == self._answered

    def answer_to_show(self, value: Any, jobs: BackgroundJobs) -> Any:
        """An answer, or in place of a refusal the answer for earlier values."""
        if not isinstance(value, Decision) or not value.seconds or self._request is None:
            return value
        earlier = jobs.earlier(decision_title(self._request.decision, self._request.result))
        known = None if earlier is None else earlier.answer
        return of_earlier_values(value, known) if isinstance(known, Decision) else value

    def take(self, value: Any) -> None:
        """Show the answer."""
        self._decision, self._answered = value, self._inputs
        self._fill()

    def _fill(self) -> None:
        """Show the answer that is known."""
        raise NotImplementedError

    @property
    def refused(self) -> bool:
        """Whether the visible answer was refused because it takes too long."""
        return self._fresh and self._decision is not None and self._decision.seconds > 0

    @property
    def startable(self) -> bool:
        """Whether an answer can be computed in the background: a refused one, or one not yet known."""
        return self._request is not None and (self.refused or not self._fresh)

    def action_start(self) -> None:
        """Compute the answer in the background."""
        if self._request is None or not self.startable:
            self.report("the answer is already known")
            return
        seconds = self._decision.seconds if self.refused and self._decision is not None else 0.0
        self.post_message(BackgroundRequested(background_decision(self._request, self.answer_key, self.NAME, seconds)))
