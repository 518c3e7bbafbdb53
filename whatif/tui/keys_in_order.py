"""Order of keys: each is handled, and the window that it opens is ready, before the next one goes anywhere."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from textual import events, on
from textual.app import App
from textual.command import CommandPalette
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

T = TypeVar("T")
_SEARCH: Final = CommandPalette._GATHER_COMMANDS_GROUP
_LOOK_SECONDS: Final = 0.01


class _Passed(Message):
    """Mark behind a key: where it is handled, the key was handled."""

    def __init__(self) -> None:
        super().__init__()
        self.done = asyncio.Event()


class KeysInOrder(App[None]):
    """Holds keys back until the one before was handled.

    Textual sends a key to whatever has the focus at once. Keys that come together, as in a burst of a remote terminal,
    would all go to the visible window before the first of them has opened another one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._held: deque[events.Key | events.Paste] = deque()
        self.preparing = 0
        """Number of windows that open when their contents are known."""
        self._typing: asyncio.Task[None] | None = None

    async def on_event(self, event: events.Event) -> None:
        """Hold a key back; handle any other event."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        self._held.append(event)
        if self._typing is None or self._typing.done():
            self._typing = asyncio.create_task(self._type())

    async def _type(self) -> None:
        """Handle the keys that are held back, one after the other."""
        try:
            while self._held and not self._exit:
                await self._until_ready(self._held[0])
                await super().on_event(self._held.popleft())
                await self._until_handled()
        except Exception as error:
            self._handle_exception(error)

    async def _until_handled(self) -> None:
        """Wait until all messages that a key led to are handled, and the focus stays where it is."""
        before = None
        while not self._exit and (target := self.focused or self.screen) is not before:
            before, mark = target, _Passed().set_sender(target)
            if target.post_message(mark):
                await self._until_passed(mark, target)

    async def _until_passed(self, mark: _Passed, target: Widget | Screen[Any]) -> None:
        """Wait until a mark was handled. A widget that is removed drops the messages that it has not handled."""
        passed = asyncio.ensure_future(mark.done.wait())
        while not (self._exit or passed.done()) and target.is_attached:
            await asyncio.wait({passed}, timeout=_LOOK_SECONDS)
        passed.cancel()

    @on(_Passed)
    def _passed(self, mark: _Passed) -> None:
        mark.done.set()

    async def _until_ready(self, event: events.Event) -> None:
        """Wait until a window that is being prepared is open, and enter finds the rows that were searched for."""
        while not self._exit and self._is_preparing(event):
            await asyncio.sleep(_LOOK_SECONDS)
            await self._until_handled()

    def _is_preparing(self, event: events.Event) -> bool:
        enter = isinstance(event, events.Key) and event.key == "enter"
        searches = (worker for worker in self.workers if worker.group == _SEARCH and not worker.is_finished)
        return self.preparing > 0 or (enter and any(searches))


async def before_window(app: App[Any], function: Callable[..., T], *arguments: object) -> T:
    """Result of a function, from a thread; keys wait for the window that is opened with it."""
    assert isinstance(app, KeysInOrder)  # noqa: S101 - all windows belong to the explorer
    app.preparing += 1
    try:
        return await asyncio.to_thread(function, *arguments)
    finally:
        app.preparing -= 1
