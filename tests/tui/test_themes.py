"""The themes: can every text be read, can every curve be told from the others, by whatever eyes, in every theme."""

from __future__ import annotations

import asyncio
import itertools

import numpy as np
import pytest
from rich.color import Color as RichColor
from rich.style import Style
from textual.app import App, ComposeResult
from textual.color import Color
from textual.theme import BUILTIN_THEMES
from textual.widgets import Static

from tests.driver import GPUS, MEMORY, drive
from whatif.tui.config import Config
from whatif.tui.themes import DEFAULT_THEME, THEMES, series_variables
from whatif.tui.widgets.data_table import TableView

NOT_ANSI = [theme for theme in BUILTIN_THEMES.values() if not theme.ansi]
SERIES = [f"series-{number}" for number in range(1, 7)]
TEXTS = [
    "foreground", "foreground-muted", "text-muted", "text-disabled", "footer-key-foreground",
    *(f"text-{role}" for role in ("primary", "secondary", "warning", "error", "success", "accent")), *SERIES,
]  # fmt: skip

# Machado, Oliveira and Fernandes, IEEE TVCG 15 (2009), table 1, severity 1.0; for linear RGB.
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}

# Ottosson, "A perceptual color space for image processing" (2020): linear RGB to OKLab.
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(colour):
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """The contrast ratio of WCAG 2.2."""
    low, high = sorted(linear(colour) @ (0.2126, 0.7152, 0.0722) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(colour, sight="normal"):
    seen = np.clip(SIGHTS[sight] @ linear(colour), 0, 1)
    return TO_LAB @ np.cbrt(TO_CONES @ seen)


def nearest(colours, sight="normal"):
    """The smallest distance between two of some colours in OKLab; 0.02 is about what a trained eye can tell."""
    places = [lab(colour, sight) for colour in colours]
    return min(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(places, 2))


def variables_of(theme):
    return {**series_variables(theme), **theme.to_color_system().generate(), **theme.variables}


def plain(value):
    return Color.parse(value).hex6.lower()


def mixed(ground, colour, share):
    parts = [(int(ground[at : at + 2], 16), int(colour[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in parts)


def grounds_of(variables):
    named = {name: plain(variables[name]) for name in ("background", "surface", "panel", "footer-background")}
    return {**named, "cursor": mixed(named["background"], plain(variables["primary"]), 0.2)}


def test_the_measures_agree_with_published_values():
    # The definition's extremes; a grey that WCAG's own page names as the palest that passes on white.
    np.testing.assert_allclose(contrast("#000000", "#ffffff"), 21, rtol=1e-12, atol=0)
    assert contrast("#767676", "#ffffff") >= 4.5 > contrast("#777777", "#ffffff")
    # Ottosson's own: white has lightness 1 and no colour.
    np.testing.assert_allclose(lab("#ffffff")[0], 1, rtol=1e-6, atol=0)
    assert np.abs(lab("#ffffff")[1:]).max() < 1e-6
    # A red and a green that most people tell apart at a glance, and deuteranopes hardly.
    assert nearest(["#d03030", "#5f7f20"]) > 0.2
    assert nearest(["#d03030", "#5f7f20"], "deuteranopia") < 0.06


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_every_text_can_be_read_on_every_ground(theme):
    variables = variables_of(theme)
    poor = {
        (text, ground): round(ratio, 2)
        for text in TEXTS
        for ground, colour in grounds_of(variables).items()
        if (ratio := contrast(plain(variables[text]), colour)) < 4.5
    }
    assert not poor


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_six_curves_differ(theme):
    assert nearest([variables_of(theme)[name] for name in SERIES]) > 0.1


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", [*THEMES, *NOT_ANSI], ids=lambda theme: theme.name)
def test_six_curves_differ_for_the_colour_blind(theme, sight):
    assert nearest([variables_of(theme)[name] for name in SERIES], sight) > 0.075


def test_the_faint_texts_are_fainter_than_the_plain_one():
    for theme in THEMES:
        variables = variables_of(theme)
        faint = [
            contrast(plain(variables[name]), plain(variables["background"]))
            for name in ("foreground", "text-muted", "text-disabled")
        ]
        assert faint == sorted(faint, reverse=True)
        assert len(set(faint)) == 3


@pytest.mark.parametrize("theme", NOT_ANSI, ids=lambda theme: theme.name)
def test_curves_can_be_read_and_told_apart_in_every_theme_of_textual(theme):
    variables = variables_of(theme)
    colours = [variables[name] for name in SERIES]
    assert nearest(colours) > 0.1
    assert min(contrast(colour, plain(variables["background"])) for colour in colours) >= 4.5


def test_themes_of_the_terminal_get_six_colours_of_the_terminal():
    ansi = [theme for theme in BUILTIN_THEMES.values() if theme.ansi]
    assert {theme.name for theme in ansi} >= {"ansi-dark", "ansi-light"}
    for theme in ansi:
        colours = series_variables(theme)
        assert list(colours) == SERIES
        assert len(set(colours.values())) == 6
        assert all(0 <= Color.parse(colour).ansi < 16 for colour in colours.values())
        # On white yellow cannot be read, nor blue on black.
        assert ("ansi_yellow" if not theme.dark else "ansi_blue") not in colours.values()


class Swatch(App[None]):
    """Uses the variables as the explorer does."""

    CSS = "Static { color: $series-6; background: $background; }"

    def __init__(self):
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)

    def get_theme_variable_defaults(self):
        return series_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield Static("curve", markup=False)


def test_a_stylesheet_finds_the_curves_in_every_theme():
    async def shown():
        app = Swatch()
        async with app.run_test() as pilot:
            for name in sorted(app.available_themes):
                app.theme = name
                await pilot.pause()
                yield name, app.query_one(Static).styles.color

    async def collected():
        return {name: colour async for name, colour in shown()}

    colours = asyncio.run(collected())
    assert set(colours) == {*BUILTIN_THEMES, *(theme.name for theme in THEMES)}
    for theme in (*THEMES, *BUILTIN_THEMES.values()):
        assert colours[theme.name] == Color.parse(variables_of(theme)["series-6"]), theme.name


def test_names_are_those_of_the_explorer_and_the_first_choice_is_among_them():
    names = [theme.name for theme in THEMES]
    assert DEFAULT_THEME in names
    assert all(name.startswith("whatif-") for name in names)
    assert not set(names) & set(BUILTIN_THEMES)


def seen_colours(style, theme):
    """Text and ground of a style as a terminal shows them."""
    front = (style.color or RichColor.default()).get_truecolor(theme)
    ground = (style.bgcolor or RichColor.default()).get_truecolor(theme, foreground=False)
    return [colour.hex for colour in ((ground, front) if style.reverse else (front, ground))]


def pointed_at(driver, text):
    """Segments with another ground of the first row that has some with a text, those that show anything."""
    variables = variables_of(driver.app.current_theme)
    plain = (None, "default", *(Color.parse(variables[name]).hex6.lower() for name in ("background", "surface")))
    lines = [strip for strip in driver.app.screen._compositor.render_strips() if text in strip.text]
    rows = (
        [
            one
            for one in line
            if any(map(str.isalnum, one.text))
            and (one.style.reverse or getattr(one.style.bgcolor, "name", None) not in plain)
        ]
        for line in lines
    )
    return next((row for row in rows if text in "".join(one.text for one in row)), [])


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light", *(theme.name for theme in THEMES)])
def test_selected_rows_can_be_read(name, tmp_path):
    async def check(driver):
        theme = driver.app.ansi_theme
        assert contrast(*seen_colours(Style(), theme)) > 4.5

        def check_row(text):
            row = pointed_at(driver, text)
            assert row, text
            for segment in row:
                assert contrast(*seen_colours(segment.style, theme)) > 4.5, segment
                assert not segment.style.dim, segment

        # A value that was edited, one that is swept, one without effect, and a table.
        await driver.edit(MEMORY, "600 GB/s")
        for path, text in ((MEMORY, "dram_bandwidth"), (GPUS, "gpu_count"), ("platform.name", "Summit"),
                           ("platform.node", "node")):  # fmt: skip
            driver.tree.select(path)
            await driver.pilot.pause()
            check_row(text)
        await driver.press("v")
        driver.main_screen.query_one(TableView).focus()
        await driver.pilot.pause()
        check_row(" ms")
        await driver.go("files")
        check_row("jacobi2d")
        await driver.pilot.press("ctrl+p")
        await driver.until(lambda: "Undo the last change" in driver.screen_text())
        await driver.pilot.pause()
        check_row("Undo the last change")

    drive(check, config=Config(theme=name), recovery_folder=tmp_path)
