"""Pauses of the tests of the explorer, in a process that gets no time."""

import asyncio
import time

import pytest
from textual.app import App, ComposeResult
from textual.message import Message
from textual.widgets import Static

HOPS = 10


class Hop(Message):
    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left


class Slow(Static):
    """Hands messages to another one, each as slowly as on a busy machine; the last message changes its height."""

    def on_hop(self, message: Hop) -> None:
        message.stop()
        time.sleep(0.03)
        if message.left:
            one, other = self.app.query(Slow)
            (one if self is other else other).post_message(Hop(message.left - 1))
        else:
            self.styles.height = 7


class SlowApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Slow()
        yield Slow()


@pytest.fixture(autouse=True)
def no_processor_time(monkeypatch):
    """A process that others leave no time: Textual takes it for idle."""
    monkeypatch.setattr("textual._wait.process_time", lambda: 0.0)


def test_a_pause_ends_when_all_messages_are_handled_and_drawn():
    async def main():
        app = SlowApp()
        async with app.run_test(size=(40, 12)) as pilot:
            slow = app.query(Slow).first()
            slow.post_message(Hop(HOPS))
            await pilot.pause()
            assert slow.size.height == 7

    asyncio.run(main())


def test_a_new_size_has_reached_all_widgets_after_a_resize():
    async def main():
        app = SlowApp()
        async with app.run_test(size=(40, 12)) as pilot:
            for size in ((80, 24), (20, 6), (120, 40)):
                await pilot.resize_terminal(*size)
                assert (app.screen.size, app.query(Slow).first().size.width) == (size, size[0])

    asyncio.run(main())
