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
_LEAVING: Final = ("escape", "ctrl+q")
_QUIET_MARKS: Final = 2
"""Marks in a row that pass empty queues: what a message leads to may be behind the first one."""


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
        self.pending_input: Widget | None = None
        """Input whose value was submitted and is being computed: keys wait while it has the focus, but for escape."""
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
        quiet = 0
        while not self._exit and quiet < _QUIET_MARKS:
            target = self.focused or self.screen
            mark = _Passed().set_sender(target)
            if target.post_message(mark):
                await self._until_passed(mark, target)
            stays = target is (self.focused or self.screen)
            busy = any(node.message_queue_size for node in target.ancestors_with_self)
            quiet = quiet + 1 if stays and not busy else 0

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
        """Wait until a window that is prepared is open, a value is computed, and enter finds the rows searched for."""
        while not self._exit and self._is_preparing(event):
            await asyncio.sleep(_LOOK_SECONDS)
            await self._until_handled()

    def _is_preparing(self, event: events.Event) -> bool:
        enter = isinstance(event, events.Key) and event.key == "enter"
        searches = (worker for worker in self.workers if worker.group == _SEARCH and not worker.is_finished)
        return self.preparing > 0 or self._is_pending() or (enter and any(searches))

    def _is_pending(self) -> bool:
        left = any(isinstance(event, events.Key) and event.key in _LEAVING for event in self._held)
        return self.focused is not None and self.focused is self.pending_input and not left


def is_pending(line: Widget) -> bool:
    """Whether the submitted value of an input is being computed."""
    return _explorer(line.app).pending_input is line


def set_pending(line: Widget, *, pending: bool) -> None:
    """State whether the submitted value of an input is being computed."""
    _explorer(line.app).pending_input = line if pending else None


async def before_window(app: App[Any], function: Callable[..., T], *arguments: object) -> T:
    """Result of a function, from a thread; keys wait for the window that is opened with it."""
    explorer = _explorer(app)
    explorer.preparing += 1
    try:
        return await asyncio.to_thread(function, *arguments)
    finally:
        explorer.preparing -= 1


def _explorer(app: App[Any]) -> KeysInOrder:
    assert isinstance(app, KeysInOrder)  # noqa: S101 - all windows belong to the explorer
    return app
