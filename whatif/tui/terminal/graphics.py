"""Graphics of the terminal: its protocol, the size of its cells, and pictures that a worker process draws for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Final

from textual.app import App

from whatif.plotting.placed import CellSize, PixelRequest
from whatif.plotting.terminal_graphics import DrawnPicture, Protocol, draw_picture, prepare
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.latest_only import LatestOnly

_KITTY: Final = ("kitty", "ghostty")
"""Terminals with the protocol of kitty and its placeholders for cells; those without them have sixel."""
_SIXEL: Final = ("foot", "wezterm", "iterm", "mintty", "contour", "mlterm", "rio")
_WITHOUT: Final = ("tmux", "screen", "dumb", "linux")
_GRACE_SECONDS: Final = 10.0
"""Time that a picture out of date may still take: it is drawn in less, unless the process has just begun."""
_FIRST_KONSOLE: Final = 220400
"""Version of Konsole since which it draws sixels."""


def protocol_of(environment: Mapping[str, str]) -> Protocol | None:
    """Graphics protocol that the terminal is known for; None within tmux and screen.

    The terminal is not asked: Textual takes answers that it does not know for keys, and waiting delays the start.
    """
    term = environment.get("TERM", "").lower().removeprefix("xterm-")
    names = term, environment.get("TERM_PROGRAM", "").lower()
    if term.startswith(_WITHOUT) or not {"TMUX", "STY"}.isdisjoint(environment):
        return None
    if "KITTY_WINDOW_ID" in environment or any(name.startswith(_KITTY) for name in names):
        return "kitty"
    konsole = environment.get("KONSOLE_VERSION", "")
    if any(name.startswith(_SIXEL) for name in names) or (konsole.isdigit() and int(konsole) >= _FIRST_KONSOLE):
        return "sixel"
    return None


def cell_size() -> CellSize | None:
    """Size of a cell in pixels, as the terminal reports it to the operating system; None if not reported."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
        import struct  # noqa: PLC0415
        import termios  # noqa: PLC0415

        answer = fcntl.ioctl(sys.__stderr__ or 2, termios.TIOCGWINSZ, bytes(8))
    except (ImportError, OSError, ValueError):
        return None
    rows, columns, width, height = struct.unpack("HHHH", answer)
    size = CellSize(width // max(columns, 1), height // max(rows, 1))
    return size if size.width > 1 and size.height > 1 else None


class Graphics:
    """Pictures for a terminal, drawn one at a time; sixel if the user requests pixels on an unknown one."""

    def __init__(self, app: App[Any], environment: Mapping[str, str], *, asked: bool) -> None:
        known = protocol_of(environment)
        self.protocol: Protocol = known or "sixel"
        self._app = app
        self.available = (asked or known is not None) and cell_size() is not None and _installed()
        self._taken: Callable[[DrawnPicture], None] = lambda _: None
        self._latest = LatestOnly(self._take, lambda _: None, _GRACE_SECONDS)

    def write(self, sequence: str) -> None:
        """Write to the terminal, between the frames of Textual."""
        driver = self._app._driver
        if driver is not None:
            driver.write(sequence)

    def warm(self) -> None:
        """Load what draws before it is needed; a picture that was requested already does so."""
        if self.available and not self._latest.busy:
            self._latest.ask(Job(prepare, ()))

    def ask(self, request: PixelRequest, number: int, taken: Callable[[DrawnPicture], None]) -> None:
        """Request a picture in place of the last one; `taken` gets it."""
        self._taken = taken
        self._latest.ask(Job(draw_picture, (request, self.protocol, number)))

    def _take(self, drawn: DrawnPicture | None) -> None:
        if drawn is not None:
            self._taken(drawn)

    def close(self) -> None:
        """Release the worker process."""
        self._latest.close()


def _installed() -> bool:
    return all(find_spec(name) is not None for name in ("textual_image", "matplotlib"))
