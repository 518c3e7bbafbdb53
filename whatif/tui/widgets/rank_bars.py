"""Activity of every rank over time, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from textual import events
from textual.message import Message

from whatif.plotting.cells import Line
from whatif.plotting.lane_cells import lane_at, lane_runs
from whatif.plotting.lanes import Kinds, Lanes
from whatif.studies.rank_lanes import RANK_KINDS
from whatif.tui.widgets.picture import PictureOf

_WHEEL: Final = 3


class RankBars(PictureOf[tuple[Lanes, int, int | None]], can_focus=True):
    """Shows what every rank does when; a click chooses a rank, the wheel scrolls the page."""

    @dataclass(eq=False)
    class Pointed(Message):
        """The user points at a rank."""

        rank: int

    def __init__(self, kinds: Kinds = RANK_KINDS) -> None:
        super().__init__()
        self._kinds = kinds

    def show_lanes(self, lanes: Lanes | None, first: int, rank: int | None = None) -> None:
        """Show ranks from `first` on, one of them chosen, or nothing."""
        self.show((lanes, first, rank) if lanes is not None else None)

    @property
    def lane_count(self) -> int:
        """Number of all lanes, visible or not."""
        return len(self._shown[0].node) if self._shown is not None else 0

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw the ranks; without colours letters mark their activity."""
        if self._shown is None:
            return []
        return lane_runs(*self._shown, width, height, kinds=self._kinds, colours=not self.app.no_color)

    def on_click(self, event: events.Click) -> None:
        """Choose the rank under the mouse."""
        if self._shown is not None and self.size.area:
            lanes, first, _ = self._shown
            lane = lane_at(lanes, first, *self.size, event.y)
            if lane is not None:
                self.post_message(self.Pointed(lanes.first_rank + lane))

    async def on_mouse_scroll_down(self) -> None:
        """Go down the ranks."""
        await self.run_action(f"screen.page('scroll', {_WHEEL})")

    async def on_mouse_scroll_up(self) -> None:
        """Go up the ranks."""
        await self.run_action(f"screen.page('scroll', {-_WHEEL})")
