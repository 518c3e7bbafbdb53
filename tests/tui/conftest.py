"""Fixtures of tests of the explorer: a state, and pauses that end when nothing is left to do, not by the clock."""

from __future__ import annotations

import asyncio
import itertools

import pytest
import textual.app
import textual.pilot
from textual._compositor import Compositor
from textual._context import active_app, visible_screen_stack
from textual.app import App
from textual.geometry import Region
from textual.message_pump import MessagePump
from textual.pilot import Pilot

from tests.driver import jacobi2d_state
from whatif.tui.keys.keys_in_order import KeysInOrder

_QUIET_TURNS = 4
"""Turns of the event loop in a row with nothing to do: what a message leads to may come after the first one."""
_MOST_TURNS = 100_000
_LOOK_SECONDS = 0.001


@pytest.fixture(scope="session")
def state():
    """State of the explorer at its start."""
    return jacobi2d_state()


@pytest.fixture(autouse=True)
def _pauses_until_quiet(monkeypatch):
    """A busy machine needs longer than Textual waits: a key would come before the size or the focus that it is for."""
    monkeypatch.setattr(textual.app, "wait_for_idle", _until_quiet)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", _until_quiet)
    # It sends a message to every widget and waits for all of them: a quarter of the time of a key.
    monkeypatch.setattr(Pilot, "_wait_for_screen", _settled)


@pytest.fixture(autouse=True)
def _lines_are_not_put_together(monkeypatch):
    """Widgets draw what changed; without a terminal, lines of the screen are needed in pictures only."""
    render = Compositor.render_update

    def draw(compositor, full=False, screen_stack=None, simplify=False):
        if full:
            return render(compositor, full, screen_stack, simplify)
        visible_screen_stack.set(screen_stack or [])
        if compositor._dirty_regions:
            changed = Region.from_union(compositor._dirty_regions).intersection(compositor.size.region)
            compositor._dirty_regions.clear()
            list(compositor._get_renders(changed))
        return None

    monkeypatch.setattr(Compositor, "render_update", draw)


async def _settled(pilot: Pilot[object], timeout: float = 0.0) -> bool:
    """Wait until all widgets have handled their messages, to the end; whether nothing failed."""
    turns = itertools.count()
    while pilot.app._running and pilot.app.screen_stack:
        assert next(turns) < _MOST_TURNS, "a widget does not end to handle a message"
        await _until_quiet()
        if not any(_is_handling(node) for node in _nodes(pilot.app)):
            break
        await asyncio.sleep(_LOOK_SECONDS)
    return pilot.app._exception is None


def _is_handling(node: MessagePump) -> bool:
    """Whether a widget is within a message, waiting for something: else it waits for the next one."""
    return node._running and not node._closing and not node._message_queue.ready_event._waiters


def _nodes(app: App[object]) -> tuple[MessagePump, ...]:
    return (app, *app.screen.walk_children(with_self=True))


async def _until_quiet(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until the running app has handled all messages, and drawn what they changed."""
    app, quiet, turns = active_app.get(), 0, itertools.count()
    while app._running and quiet < _QUIET_TURNS:
        assert next(turns) < _MOST_TURNS, "the explorer does not come to rest"
        await asyncio.sleep(0)
        if app._resize_event is not None or _prepares(app):
            # A timer of Textual passes the new size on; a thread prepares the window.
            await asyncio.sleep(_LOOK_SECONDS)
        # Each drawing takes as long as dozens of messages: one for all of them.
        waiting = _has_messages(app)
        if not waiting:
            app.screen._on_timer_update()
        quiet = 0 if waiting or _is_busy(app) else quiet + 1


def _is_busy(app: App[object]) -> bool:
    screen = app.screen
    return (
        bool(app._resize_event or screen._layout_required or screen._callbacks) or _has_messages(app) or _prepares(app)
    )


def _has_messages(app: App[object]) -> bool:
    return any(node.message_queue_size or node._next_callbacks for node in _nodes(app))


def _prepares(app: App[object]) -> bool:
    """Whether a window is prepared, for which keys wait."""
    return isinstance(app, KeysInOrder) and app.preparing > 0
