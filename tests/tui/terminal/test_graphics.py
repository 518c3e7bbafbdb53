"""Pictures of pixels in the explorer: where they are shown, and when the cells are there instead."""

import os
import select
import subprocess
import sys

import numpy as np
import pytest
from PIL import ImageColor

from tests.driver import drive
from tests.terminal_pictures import kitty_pictures, sixel_pictures
from whatif.plotting.placed import CellSize
from whatif.tui.config import Config
from whatif.tui.terminal.graphics import Graphics, cell_size, protocol_of
from whatif.tui.themes import THEMES


def kitty_images(text):
    return [found.image for found in kitty_pictures(text)]


KITTY = {"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"}
SERIES_1 = THEMES[0].variables["series-1"]
ASKED = Config(marker="pixels")


@pytest.mark.parametrize(
    ("environment", "protocol"),
    [
        (KITTY, "kitty"),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "foot-extra"}, "sixel"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "sixel"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "sixel"),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "230800"}, "sixel"),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "210400"}, None),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, None),
        ({"TERM": "dumb"}, None),
        ({"TERM": "linux"}, None),
        ({}, None),
        ({**KITTY, "TMUX": "socket,1,0"}, None),
        ({**KITTY, "STY": "1.pts"}, None),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "screen.xterm-kitty", "KITTY_WINDOW_ID": "1"}, None),
    ],
)
def test_protocol_is_that_of_a_terminal_known_to_have_it(environment, protocol):
    assert protocol_of(environment) == protocol


def test_cells_have_no_size_where_the_output_is_no_terminal(tmp_path, monkeypatch):
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr("sys.__stderr__", log)
        assert cell_size() is None


def test_cells_have_the_size_that_the_terminal_tells(monkeypatch):
    fcntl, pty, struct, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "struct", "termios"))
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb"), os.fdopen(theirs, "wb") as terminal:
        monkeypatch.setattr("sys.__stderr__", terminal)
        assert cell_size() is None, "a terminal that tells no pixels"
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 1200, 720))
        assert cell_size() == CellSize(10, 20)


@pytest.fixture
def written(monkeypatch):
    """A terminal with cells of 10 x 20 pixels; what is written to it beside the frames."""
    for name in ("TMUX", "STY", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    sequences = []
    monkeypatch.setattr("whatif.tui.terminal.graphics.cell_size", lambda: CellSize(10, 20))
    monkeypatch.setattr("whatif.tui.widgets.pixel_picture.cell_size", lambda: CellSize(10, 20))
    monkeypatch.setattr("whatif.tui.widgets.pixel_picture.PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(Graphics, "write", lambda self, sequence: sequences.append(sequence))
    return sequences


def in_terminal(monkeypatch, **environment):
    for name in ("TERM", "TERM_PROGRAM", "KITTY_WINDOW_ID", "KONSOLE_VERSION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"COLORTERM": "truecolor", **environment}.items():
        monkeypatch.setenv(name, value)


def test_kitty_shows_a_picture_in_the_cells_of_the_plot_and_the_cells_return_with_a_key(written, monkeypatch):
    in_terminal(monkeypatch, **KITTY)

    async def check(driver):
        assert driver.state.view.marker == "pixels"
        await driver.until(lambda: driver.plot.shows_pixels)
        width, height = driver.plot.size
        assert driver.screen_text().count("\U0010eeee") == width * height
        [found] = kitty_pictures("".join(written))
        assert found.image.size == (10 * width, 20 * height)
        await driver.pilot.press("right_square_bracket", "tab")
        driver.plot.action_move(1, 0)
        await driver.pilot.pause()
        assert not driver.plot.shows_pixels
        assert "\U0010eeee" not in driver.screen_text()
        driver.plot.action_take_away()
        await driver.until(lambda: driver.plot.shows_pixels)

    drive(check)


def test_sixels_are_written_at_the_place_of_the_plot_and_again_after_what_covered_it(written, monkeypatch):
    in_terminal(monkeypatch, TERM="foot")

    async def check(driver):
        await driver.until(lambda: bool(written))
        x, y = driver.plot.content_region.offset
        assert written[-1].startswith(f"\x1b7\x1b[{y + 1};{x + 1}H\x1bP")
        [found] = sixel_pictures(written[-1])
        assert found.size == (10 * driver.plot.size.width, 20 * driver.plot.size.height)
        assert not driver.plot.render_line(5).text.strip()
        await driver.pilot.press("f1")
        await driver.until(lambda: not driver.plot.shows_pixels)
        assert driver.plot.render_line(0).text.strip()
        written.clear()
        await driver.pilot.press("escape")
        await driver.until(lambda: bool(written))

    drive(check)


def test_loading_what_draws_does_not_replace_a_picture_that_was_requested(written, monkeypatch):
    """On a busy machine the plot is there before the worker processes are started."""
    in_terminal(monkeypatch, TERM="foot")

    async def check(driver):
        await driver.until(lambda: driver.plot.shows_pixels)
        driver.plot.painted()
        driver.plot._waiting.stop()
        driver.plot._ask()
        driver.app.graphics.warm()
        await driver.until(lambda: driver.plot.shows_pixels)

    drive(check)


def test_a_picture_that_something_covers_is_asked_for_again_on_the_page_that_is_shown(written, monkeypatch):
    """A window that has just closed may cover the plot for a moment, and nothing draws the plot after that."""
    in_terminal(monkeypatch, TERM="foot")

    async def check(driver):
        await driver.until(lambda: driver.plot.shows_pixels)
        monkeypatch.setattr(type(driver.plot), "_uncovered", lambda plot: False)
        driver.plot._ask()
        assert driver.plot._waiting is not None
        driver.main_screen.action_go("files")
        await driver.until(lambda: driver.main_screen.page.NAME == "files")
        driver.plot._ask()
        assert driver.plot._waiting is None

    drive(check)


def test_no_sixels_are_written_over_a_toast_and_they_return_when_it_goes(written, monkeypatch):
    in_terminal(monkeypatch, TERM="foot")

    async def check(driver):
        await driver.until(lambda: driver.plot.shows_pixels)
        for number in range(6):
            driver.app.notify(f"{number}\nx\nx", timeout=1000)
        await driver.until(lambda: len(driver.app.screen.query("Toast")) == 6)
        await driver.pilot.pause()
        written.clear()
        driver.plot.refresh()
        await driver.until(lambda: not driver.plot.shows_pixels)
        assert not written
        driver.app.clear_notifications()
        await driver.until(lambda: bool(written))

    drive(check, notifications=True)


def test_a_picture_of_values_that_changed_meanwhile_is_dropped(written, monkeypatch):
    in_terminal(monkeypatch, TERM="foot")

    async def check(driver):
        await driver.until(lambda: driver.plot.shows_pixels)
        shown, version = driver.plot._picture, driver.plot._version
        driver.plot.redraw()
        await driver.pilot.pause()
        driver.plot._take(version, shown)
        assert not driver.plot.shows_pixels

    drive(check)


def test_a_plot_whose_page_was_left_asks_for_no_picture(written, monkeypatch):
    in_terminal(monkeypatch, TERM="foot")

    async def check(driver):
        await driver.until(lambda: driver.plot.shows_pixels)
        plot = driver.plot
        await driver.go("files")
        plot.redraw()
        plot._ask()
        plot._restore()
        written.clear()
        await driver.go("explore")
        await driver.until(lambda: plot.shows_pixels and bool(written))

    drive(check)


@pytest.mark.parametrize("protocol", [KITTY, {"TERM": "foot"}], ids=["kitty", "sixel"])
def test_without_colours_there_are_cells(written, monkeypatch, protocol):
    in_terminal(monkeypatch, **protocol, NO_COLOR="1")

    async def check(driver):
        await driver.until(lambda: driver.plot._waiting is None)
        await driver.pilot.pause(0.1)
        assert not written

    drive(check)


def test_unknown_terminals_have_pixels_only_for_those_who_ask(written, monkeypatch):
    in_terminal(monkeypatch, TERM="xterm-256color")

    async def braille(driver):
        assert driver.state.view.marker == "braille"
        seen = []
        for _ in range(3):
            await driver.press("M")
            seen.append(driver.state.view.marker)
        assert seen == ["block", "ascii", "braille"]

    async def pixels(driver):
        assert driver.state.view.marker == "pixels"
        await driver.until(lambda: bool(written))
        assert sixel_pictures(written[-1])

    drive(braille)
    drive(pixels, config=ASKED)


def test_without_the_extra_there_are_cells_even_for_those_who_ask(written, monkeypatch):
    in_terminal(monkeypatch, **KITTY)
    monkeypatch.setattr(
        "whatif.tui.terminal.graphics.find_spec", lambda name: None if name == "textual_image" else name
    )

    async def check(driver):
        assert not driver.app.graphics.available
        assert driver.plot.render_line(0).text.strip()

    drive(check, config=ASKED)


@pytest.mark.parametrize(("term", "decoded"), [("xterm-kitty", kitty_images), ("foot", sixel_pictures)])
def test_program_writes_its_picture_to_a_terminal_with_graphics(term, decoded, tmp_path):
    fcntl, pty, struct, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "struct", "termios"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 1200, 720))
    config = tmp_path / "config.toml"
    config.write_text("")
    dropped = ("TMUX", "STY", "NO_COLOR", "TERM_PROGRAM", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "TEXTUAL_DRIVER")
    # These two would be taken for the size of the terminal.
    dropped += ("COLUMNS", "LINES")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment |= {"TERM": term, "COLORTERM": "truecolor", "WHATIF_CONFIG": str(config), "HOME": str(tmp_path)}
    words = [sys.executable, "-m", "whatif", "open", "jacobi2d"]
    program = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = b""
    try:
        while not (images := decoded(written.decode(errors="replace"))):
            assert select.select([ours], [], [], 60)[0], written[-2000:]
            written += os.read(ours, 1 << 16)
    finally:
        program.kill()
        program.wait()
        os.close(ours)
    image = images[-1]
    # The legend and a curve: the colours of the theme.
    assert image.size == (720, 300)
    pixels = np.asarray(image).reshape(-1, 3).astype(int)
    blue = np.abs(pixels - ImageColor.getrgb(SERIES_1)).max(axis=1) < 12
    assert np.count_nonzero(blue) > 200
