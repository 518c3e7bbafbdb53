"""The pictures in `screenshots/`: what is asked for in each, and how several become one."""

import asyncio
import re
from itertools import pairwise
from typing import NamedTuple

from tests.driver import GPUS, MEMORY, Driver
from whatif.core.scenario import Scenario
from whatif.tui.app import Explorer
from whatif.tui.page_registry import screens
from whatif.tui.screens.main_screen import MainScreen

# More GPUs in a node with less to do each and faster memory: what would still faster memory bring?
STORY = (
    "set application.grid.cells.x = 4096",
    f"set {GPUS} = 8",
    f"nudge {MEMORY} = +1 factor",
    f"sweep {MEMORY}",
)
NETWORK = "platform.network.inter_node.max_rate.rendezvous.base_bandwidth"
VARIANTS = (f"nudge {MEMORY} = +1 factor", "variant fork", f"nudge {GPUS} = -1 factor", "show screen = variants")
HEAT = (
    "set application.grid.cells.x = 512",
    f"sweep {MEMORY}",
    f"also {NETWORK}",
    "show explore.second = heat",
)


class Scene(NamedTuple):
    """One picture: how large, in which colours, of which scenario, after which commands, with the cursor where."""

    name: str
    size: tuple[int, int] = (120, 36)
    theme: str = "whatif-dark"
    lines: tuple[str, ...] = STORY
    scenario: str = "jacobi2d"
    parameter: str = MEMORY
    keys: tuple[str, ...] = ()


BEFORE = {
    "fit": ("show fit.files = tests/data/importers/network/blue_waters/ppn2_max_rate1.txt",),
    "decide": ("show decide.decision = why",),
    "runs": (
        "show runs.files = tests/data/runs/zeus/bert_squad_v100.csv",
        "show runs.formula = time_per_epoch ~ batch_size + power_limit",
        "show runs.pinned = time_per_epoch ~ batch_size + power_limit",
        "show runs.formula = time_per_epoch ~ batch_size * power_limit + I(power_limit**2)",
    ),
    "study": ("show study.file = successor",),
    "profile": ("show profile.file = tests/data/profiles/ahead/lammps_summit.nvvp",),
}


def pages(names, lines=STORY):
    """The commands that lead to each of some pages, from one to the next."""
    shown = [(*BEFORE.get(name, ()), f"show screen = {name}") for name in names]
    return {name: sum(shown[: number + 1], lines) for number, name in enumerate(names)}


SCREENS = tuple(page.name for page in screens())
LINES = pages(SCREENS)
SIZES = {"80x24": (80, 24), "120x36": (120, 36)}
LARGE = ("explore", "messages", "why")
"""The pages that have another layout where there is much room."""
THEMES = (
    "whatif-dark", "whatif-light", "whatif-colour-blind", "whatif-colour-blind-light", "nord", "ansi-dark",
)  # fmt: skip
SCENES = [
    *(Scene(f"{name}-{size}", SIZES[size], lines=LINES[name]) for size in SIZES for name in SCREENS),
    *(Scene(f"{name}-200x50", (200, 50), lines=lines) for name, lines in pages(LARGE).items()),
    Scene("explore-heat", lines=HEAT),
    Scene("explore-crosshair", keys=("tab", *["right"] * 9)),
    Scene("explore-table", lines=(*STORY, "show picture = table")),
    Scene("explore-mistake", theme="whatif-light", keys=("enter", *"1600", "enter")),
    Scene("domains", lines=("show screen = messages",), keys=("d",)),
    Scene("help", keys=("f1",)),
    Scene("task-best", lines=(), scenario="minife", parameter=GPUS, keys=("s", "z", "enter")),
    Scene("task-variants", lines=VARIANTS, scenario="minife"),
    Scene("task-elasticity", lines=("show screen = why",), keys=("m",)),
    Scene("form", lines=(), parameter="application.phases.halo", keys=("f4", "right", "down", "down", "down", "8")),
]
GALLERY = [Scene(theme, (96, 28), theme) for theme in THEMES]
FILM = [
    Scene("film", (110, 32), lines=lines, parameter=parameter)
    for lines, parameter in (
        ((), GPUS),
        (STORY[:1], "application.grid.cells.x"),
        (STORY[:2], GPUS),
        (STORY[:3], MEMORY),
        (STORY, MEMORY),
        ((*STORY, f"nudge {MEMORY} = +1 factor"), MEMORY),
        ((*STORY, f"also {NETWORK}", "show explore.second = heat"), NETWORK),
        *((lines, MEMORY) for lines in pages(("roofline", "compare", "why")).values()),
    )
]


def together(scenes):
    """The scenes in groups, each for one explorer: its commands go on from those of the scene before."""
    groups = [scenes[:1]]
    for before, scene in pairwise(scenes):
        same = (scene.scenario, scene.size) == (before.scenario, before.size)
        if same and not before.keys and scene.lines[: len(before.lines)] == before.lines:
            groups[-1].append(scene)
        else:
            groups.append([scene])
    return groups


async def _drawn(scenes):
    app = Explorer(Scenario.open(scenes[0].scenario), replay=scenes[0].lines)
    async with app.run_test(size=scenes[0].size) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: any(isinstance(screen, MainScreen) for screen in app.screen_stack))
        await driver.until(lambda: len(app.runner.history.lines) == len(scenes[0].lines))
        return [await _shown(driver, scene) for scene in scenes]


async def _shown(driver, scene):
    app = driver.app
    app.theme = scene.theme
    await app.runner.replay(scene.lines[len(app.runner.history.lines) :], app.action_save)
    await driver.calm()
    # From its top, as in an explorer that has just been opened.
    driver.tree.action_move(-1000)
    driver.tree.select(scene.parameter)
    for key in scene.keys:
        await driver.press(key)
    await _steady(driver)
    return app.export_screenshot(title="whatif")


async def _steady(driver, looks=5):
    """Wait until several looks at the screen, one after the other, see the same."""
    same, before = 0, None
    while same < looks:
        await driver.calm()
        await driver.pilot.pause(0.02)
        seen = driver.app.screen._compositor.render_strips()
        same = same + 1 if seen == before else 0
        before = seen


def pictures(scenes, name="terminal"):
    """Scenes as SVG; `name` tells their styles from those of others in one file."""
    drawn = [svg for group in together(scenes) for svg in asyncio.run(_drawn(group))]
    return [re.sub(r"terminal-\d+", name.format(number), svg) for number, svg in enumerate(drawn)]


def _size(svg):
    left, top, width, height = re.search(r'viewBox="([^"]+)"', svg)[1].split()
    assert (left, top) == ("0", "0")
    return float(width), float(height)


def _inside(svg, x, y, name):
    """A picture as a part of another one."""
    width, height = _size(svg)
    head = f'<svg class="{name}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return re.sub(r"<svg class=\"rich-terminal\"", head, svg, count=1)


def gallery():
    """The same scene in several themes, two beside each other."""
    drawn = pictures(GALLERY, "theme-{}")
    width, height = _size(drawn[0])
    parts = [_inside(svg, (i % 2) * width, (i // 2) * height, "theme") for i, svg in enumerate(drawn)]
    rows = (len(drawn) + 1) // 2
    return _whole(2 * width, rows * height, "", parts)


def film(seconds=1.8):
    """Scenes one after the other, for ever: each is seen for its part of the time."""
    drawn = pictures(FILM, "frame-{}")
    width, height = _size(drawn[0])
    parts = [_inside(svg, 0, 0, f"frame f{i}") for i, svg in enumerate(drawn)]
    share, whole = 100 / len(parts), seconds * len(parts)
    rules = [f"@keyframes show {{ 0%, {share:.4f}% {{ opacity: 1 }} {share + 0.001:.4f}%, 100% {{ opacity: 0 }} }}"]
    rules.append(f".frame {{ opacity: 0; animation: show {whole:g}s step-end infinite }}")
    rules += [f".f{i} {{ animation-delay: {i * seconds:g}s }}" for i in range(len(parts))]
    return _whole(width, height, f"<style>{' '.join(rules)}</style>", parts)


def _whole(width, height, style, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">'
    return "\n".join([head, style, *parts, "</svg>", ""])
