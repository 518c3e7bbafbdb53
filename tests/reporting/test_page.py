"""A report as a page: its numbers are those of the other verbs, its texts are texts, and a browser shows it alone."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import importlib.util
import io
import json
import re
import shlex
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import whatif
from tests.one_phase import one_phase
from tests.paths import ROOT
from tests.scenarios_at_hand import FEW
from tests.tui.test_serve import PATIENCE, browsed, chromium, opened
from whatif.cli.progress import ProgressLine
from whatif.cli.report import command
from whatif.core.scenario import EvaluationRequest, Scenario
from whatif.core.sweep import file_axes, grid_of, parse_option
from whatif.extras import install_command
from whatif.reporting import contents as findings
from whatif.reporting import sections as report_sections
from whatif.reporting.html_page import other_scenario, report_html, report_words
from whatif.tui.jobs.report_job import report
from whatif.units import SECOND, format_quantity

ASKED = ("minife_gpus_per_node", "--against", "summit")
ELSEWHERE = {"jacobi2d", "minife_gpus_per_node"}
"""Scenarios whose pages other tests look at."""
VOID = {"meta", "link", "br", "col", "wbr"}
EVIL = """# What if <script>alert(1)</script> & "quotes" were asked?
[platform]
extends = "summit"
name = "<img src=x onerror=alert(2)> $\\\\frac$ 漢字"
[application]
name = "</title><script>alert(3)</script>\\u0000 --> ]]>"
rank_count = 6
iteration_count = 10
[application.phases.work]
kind = "overhead"
overhead_time = "3 us"
[sources.application]
grade = "measured"
source = "<a href='javascript:alert(4)'>here</a>"
"""


class Read(HTMLParser):
    """A page taken apart: every element is closed where it should be; texts by the section they stand in."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts, self.rows = [], [], [], {"": []}, {}
        self.feed(text)
        self.close()
        assert self.open == []

    def assert_says(self, *words):
        """Fail if words are not among the texts, or if the page holds anything that a browser would run or load."""
        assert {"script", "img"}.isdisjoint(self.tags)
        assert not [name for name, _ in self.attributes if name.startswith("on")]
        everything = "".join(item for texts in self.texts.values() for item in texts)
        assert not [item for item in words if item not in everything]

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append((tag, dict(attributes).get("id") if tag == "section" else None))
        if tag == "tr":
            self.rows.setdefault(self.section, []).append([])
        if tag in ("td", "th") and self.rows.get(self.section):
            self.rows[self.section][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    @property
    def section(self):
        return next((name for _, name in reversed(self.open) if name), "")

    def handle_data(self, data):
        self.texts.setdefault(self.section, []).append(data)
        if {"td", "th"} & {tag for tag, _ in self.open}:
            self.rows[self.section][-1][-1] += data

    def table(self, section):
        """The cells behind the first one of each row, by the first one."""
        return {row[0]: row[1:] for row in self.rows[section]}


def assert_alone(text, page, least=4):
    """Nothing runs, nothing is fetched, every picture is there and every name once."""
    assert page.tags.count("svg") == page.tags.count("figure") >= least
    assert {"script", "img", "iframe"}.isdisjoint(page.tags)
    for name, value in page.attributes:
        assert name not in ("src", "action")
        assert not name.startswith("on")
        assert not name.endswith("href") or value.startswith(("#", "data:"))
    assert not re.search(r"url\((?!#)|@import", text)
    names = [value for name, value in page.attributes if name == "id"]
    assert len(names) == len(set(names))


def written(whatif_main, *words, code=0):
    found, out, err = whatif_main("report", *words, "-o", "r.html")
    assert (found, out) == (code, "")
    return Path("r.html").read_text(), err


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """One page that several tests look at, of a stated time."""
    path = tmp_path_factory.mktemp("asked") / "r.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        command.main([*ASKED, "-o", str(path)], standalone_mode=False)
    return path


def test_the_command_at_its_end_makes_the_same_page_again(asked, whatif_main, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    text = asked.read_text()
    assert "2023-11-14 22:13 UTC" in text
    (line,) = re.findall(r"<pre><code>(.*)</code></pre>", text)
    words = shlex.split(html.unescape(line))
    assert words == ["whatif", "report", *ASKED, "-o", str(asked)]
    written(whatif_main, *ASKED)
    assert Path("r.html").read_text() == text.replace(str(asked), "r.html")


def test_progress_names_what_is_computed_and_drawn(whatif_main, monkeypatch):
    shown = []
    monkeypatch.setattr(ProgressLine, "__call__", lambda line, text: shown.append(text))
    written(whatif_main, "minife", "--sweep", "application.rank_count=6, 12")
    assert shown == [
        "the sweep", "the sweep: 2 of 2 points", "the elasticities", "the ladder of ideals", "pictures: The answer",
        "pictures: Where the time goes", "pictures: The sweep", "pictures: What it depends on",
        "pictures: Why the other differs",
    ]  # fmt: skip


@pytest.mark.parametrize("seconds", ["999999999999", "9" * 20, "today"])
def test_an_impossible_time_of_the_build_is_refused(whatif_main, monkeypatch, seconds):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
    code, _, err = whatif_main("report", "minife", "-o", "r.html")
    assert (code, Path("r.html").exists()) == (2, False)
    assert "SOURCE_DATE_EPOCH" in err
    assert "expected seconds since 1970, up to the year 9999" in err


@pytest.mark.parametrize("ranks", [[6, 12], np.array([6, 12]), "6, 12"])
def test_the_command_of_a_page_of_the_library_can_be_run(tmp_path, whatif_main, ranks):
    whatif.report("minife", tmp_path / "r.html", {"application.rank_count": ranks})
    text = (tmp_path / "r.html").read_text()
    (line,) = re.findall(r"<pre><code>(.*)</code></pre>", text)
    sweep = shlex.split(html.unescape(line))[4]
    assert whatif_main("run", "minife", "--sweep", sweep)[0] == 0


def test_the_command_of_changes_of_the_library_makes_the_same_page(tmp_path, whatif_main, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    changed = whatif.load("jacobi2d", overrides={"platform.node.gpu_count": 2})
    changes = {"platform.node.gpu_count": "x2", "application.grid.periodic": True}
    for scenario, overrides in ((changed, changes), ("jacobi2d", {**changes, "platform.node.gpu_count": 4})):
        whatif.report(scenario, tmp_path / "r.html", platform="lassen", overrides=overrides)
        text = (tmp_path / "r.html").read_text()
        (line,) = re.findall(r"<pre><code>(.*)</code></pre>", text)
        assert whatif_main(*shlex.split(html.unescape(line))[1:])[0] == 0
        assert (tmp_path / "r.html").read_text() == text.replace("periodic=True", "periodic=true")


def test_the_numbers_are_those_of_the_other_verbs(asked, whatif_main):
    scenario, text = ASKED[0], asked.read_text()
    page = Read(text)
    assert_alone(text, page)
    _, out, _ = whatif_main("run", scenario, "--point", "--format", "json")
    (row,) = json.loads(out)["rows"]

    def message(seconds):
        return format_quantity(seconds, SECOND).replace(" us", " µs").replace("-", "−")

    answer, phases = page.table("answer"), page.table("phases")
    assert {name: answer[name][0] for name in ("total_time", "kernel_time")} == {
        name: message(row[name]) for name in ("total_time", "kernel_time")
    }
    assert {name: phases[name][2] for name in row["terms"]} == {n: message(t) for n, t in row["terms"].items()}
    assert phases["matvec_inner"][3] == f"{row['terms']['matvec_inner'] / row['iteration_time']:.1%}"
    counts = [row[0] for row in page.rows["sweep"][1:]]
    assert counts == ["1", "2", "4", "8", "16"]
    _, out, _ = whatif_main("diff", scenario, "--platform", "summit", "--format", "json")
    (first, *_) = json.loads(out)["rows"]
    assert page.rows["against"][1][0] == first["change"]
    assert page.rows["against"][1][3].startswith(message(first["contribution"]))
    _, out, _ = whatif_main("sensitivity", scenario, "--format", "json")
    (first, *_) = json.loads(out)["rows"]
    assert page.rows["sensitivity"][1][:3] == [first["value"], first["now"], f"{first['elasticity']:+.3g}"]


def test_a_platform_next_to_the_scenario_is_found_by_name(tmp_path):
    (tmp_path / "faster.toml").write_text('extends = "summit"\nnode.gpu.dram_bandwidth = "2 TB/s"\n')
    (tmp_path / "app.toml").write_text('extends = "jacobi2d"\nplatform = "summit"\n')
    other = other_scenario("faster", Scenario.open(tmp_path / "app.toml"))
    assert other.program.parameters["platform.node.gpu.dram_bandwidth"].value == 2e12


def test_the_page_lists_values_with_source_and_grade_and_files_with_hash(whatif_main, tmp_path):
    (tmp_path / "mine.toml").write_text(one_phase("= a * 1 s", a=2.0))
    text, _ = written(
        whatif_main, "jacobi2d", "--set", "platform.node.gpu.dram_bandwidth=1 TB/s", "--against", "mine.toml"
    )
    page = Read(text)
    program = Scenario.open("jacobi2d", overrides={"platform.node.gpu.dram_bandwidth": "1 TB/s"}).program
    table, found = "", {}
    for row in page.rows["values"][1:]:
        if len(row) == 1:
            tables = sorted({p.rpartition(".")[0] for p in program.parameters}, key=len, reverse=True)
            table = next(path for path in tables
                         if row[0].startswith(path))  # fmt: skip
            shared = row[0].removeprefix(table).strip()
        else:
            found[f"{table}.{row[0]}"] = (row[2], row[3] or shared)
    assert program.reached <= found.keys()
    assert {path: found[path][0] for path in program.reached} == {
        p: program.parameters[p].grade for p in program.reached
    }
    assert found["platform.node.gpu.dram_bandwidth"] == (
        "assumed", "--set platform.node.gpu.dram_bandwidth=1 TB/s"
    )  # fmt: skip
    memory = "application.phases.stencil.dram_size"
    assert found[memory] == ("measured", program.parameters[memory].source)
    assert 'class="assumed">assumed</td>' in text
    hashes = page.table("files")
    for name, path in {
        "shipped with whatif: scenarios/jacobi2d.toml": ROOT / "scenarios" / "jacobi2d.toml",
        "shipped with whatif: platforms/summit.toml": ROOT / "platforms" / "summit.toml",
        "mine.toml": tmp_path / "mine.toml",
    }.items():
        assert hashes[name] == [hashlib.sha256(path.read_bytes()).hexdigest()]
    assert str(ROOT) not in text


@pytest.mark.parametrize("scenario", sorted(set(FEW) - ELSEWHERE))
def test_every_scenario_has_its_page(whatif_main, monkeypatch, scenario):
    if scenario not in ("minife_devices", "minimd"):
        # Drawing takes most of the time, and is the same for all.
        monkeypatch.setattr(report_sections, "inline_svg", lambda description, name: "<svg></svg>")
    text, err = written(whatif_main, scenario)
    page = Read(text)
    assert "left out" not in err
    assert {"answer", "phases", "sensitivity", "equations", "values", "files"} <= page.texts.keys()
    assert ("sweep" in page.texts) is bool(Scenario.open(scenario).program.loaded.scenario.sweep)
    assert_alone(text, page)


def test_texts_of_files_are_texts(whatif_main, tmp_path):
    (tmp_path / "evil.toml").write_text(EVIL)
    text, _ = written(whatif_main, "evil.toml", "--sweep", "application.rank_count=1, 2, 3")
    page = Read(text)
    page.assert_says('<script>alert(1)</script> & "quotes"', "</title><script>alert(3)", "javascript:alert(4)")
    assert page.table("phases")["work"][0] == "overhead"


def test_an_infeasible_point_is_reported_with_its_reason(whatif_main):
    many = "application.rank_count=10000000"
    text, err = written(whatif_main, "jacobi2d", "--set", many, "--against", "lassen", code=4)
    assert err.endswith("has (platform.node_count); 1666667 needed, 4608 available\n")
    page = Read(text)
    assert "1666667 needed, 4608 available" in "".join(page.texts["answer"])
    assert {"phases", "sensitivity"}.isdisjoint(page.texts)
    text, err = written(whatif_main, "jacobi2d", "--set", many, "--sweep", "application.rank_count=6, 10000000")
    page = Read(text)
    assert "1 of 2 points have no answer" in "".join(page.texts["sweep"])
    assert page.rows["sweep"][2][1:3] == ["-", "-"]


def test_extrapolation_is_reported_once(monkeypatch):
    monkeypatch.setattr(report_sections, "inline_svg", lambda description, name: "<svg></svg>")
    scenario = Scenario.open("minife_gpus_per_node")
    found = findings.findings(scenario, grid_of(file_axes(scenario.program, 99), 99))
    message = {"extrapolated": {"halo: sizes of <1 GB> lie outside": np.True_}}
    page = Read(
        report_html(replace(found, point=replace(found.point, **message), sweep=replace(found.sweep, **message)), "w")
    )
    assert "".join(page.texts["answer"]).count("halo: sizes of <1 GB> lie outside") == 1


def test_report_on_slow_points_keeps_to_its_time(monkeypatch):
    scenario = Scenario.open("minife_gpus_per_node")
    grid = grid_of([parse_option("platform.node.gpu_count=1 .. 16 step 1", scenario.program, 99)], 99)
    whole = findings.findings(scenario, grid)
    assert whole.sweep.grid.size == 16
    assert whole.left_out == ()
    monkeypatch.setattr(findings, "_SIMULATED", 0.0)
    short = findings.findings(scenario, grid, scenario.on_platform("summit"), patience=0.0)
    assert [text.partition(":")[0] for text in short.left_out] == [
        "14 of the 16 points of the sweep", "the elasticities", "the ladder of ideals", "the difference"
    ]  # fmt: skip
    assert (short.elasticities, short.ladder, short.attribution) == ((), None, None)
    # The first point is there, the other one says that it is not.
    first, last = whole.sweep.columns["total_time"][[0, -1]]
    assert short.sweep.grid.axes[0].parameters["platform.node.gpu_count"].tolist() == [1, 16]
    np.testing.assert_array_equal(short.sweep.columns["total_time"], [first, np.nan])
    assert short.sweep.reason.tolist() == ["", "not computed: the time of the report was over"]
    assert findings.findings(scenario, grid, patience=99.0).sweep.columns["total_time"][-1] == last


def test_a_long_sweep_is_thinned_to_what_a_picture_shows():
    scenario = Scenario.open("jacobi2d")
    sweeps = (
        "platform.node.gpu.dram_bandwidth=1 TB/s .. 9 TB/s linear 3000", "application.rank_count=6 .. 600 step 6",
        "platform=summit, lassen",
    )  # fmt: skip
    grid = grid_of([parse_option(text, scenario.program, 10**6) for text in sweeps], 10**6)
    found = findings.findings(scenario, grid)
    assert found.left_out == ("595,000 of the 600,000 points of the sweep",)
    assert found.sweep.grid.shape == (200, 25, 1)
    assert found.sweep.grid.axes[0].parameters["platform.node.gpu.dram_bandwidth"][[0, -1]].tolist() == [1e12, 9e12]
    block = report_sections.sweep(found, found.sweep).section[-1]
    assert (block.title, len(block.sheet.rows)) == ("40 of 5000 points", 40)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("jacobi2d", "-o", "r.pdf"), 2, "r.pdf: the report file must end in .html: -o r.html; print that page"),
        (("jacobi2d", "-o", "r.svg"), 2, "-o r.html; `whatif run -o` writes tables and pictures"),
        (("nosuch", "-o", "r.html"), 3, "nosuch: no such file"),
        (("jacobi2d", "--against", "frontir", "-o", "r.html"), 2, "file; did you mean `frontier`?"),
        (("jacobi2d", "--sweep", "nosuch=1", "-o", "r.html"), 2, "no such parameter"),
        (("jacobi2d",), 2, "missing option '-o'"),
    ],
)
def test_invalid_arguments_are_refused_without_a_file(whatif_main, tmp_path, words, code, message):
    found, _, err = whatif_main("report", *words)
    assert found == code
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("module", "words"), [("jinja2", "reports need Jinja2"), ("matplotlib", "pictures need")])
def test_without_its_libraries_the_extra_is_named(whatif_main, monkeypatch, module, words):
    monkeypatch.setitem(sys.modules, module, None)
    code, _, err = whatif_main("report", "jacobi2d", "-o", "r.html")
    assert code == 2
    assert words in err
    assert install_command("report") in err


@browsed
@pytest.mark.skipif(importlib.util.find_spec("aiohttp") is None, reason="no aiohttp to ask the browser with")
def test_a_browser_shows_the_page_alone_in_light_and_dark_and_on_a_narrow_screen(asked, tmp_path):
    from PIL import Image

    async def looked_at(devtools):
        async with asyncio.timeout(PATIENCE), opened(devtools, asked.as_uri()) as page:
            await page.call("Log.enable")
            while await page.evaluate("document.readyState") != "complete":
                await asyncio.sleep(0.1)
            pictures = []
            for theme, width in (("light", 900), ("dark", 900), ("light", 400)):
                scheme, size = {"name": "prefers-color-scheme", "value": theme}, {"width": width, "height": 700}
                await page.call("Emulation.setEmulatedMedia", features=[scheme])
                await page.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
                fits = await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                pictures.append(((await page.call("Page.captureScreenshot", format="png"))["data"], fits))
            heads = await page.evaluate("[...document.querySelectorAll('h2')].map(head => head.innerText)")
            boxes = await page.evaluate("[...document.querySelectorAll('svg')].map(svg => svg.getBBox().height > 0)")
            return pictures, heads, boxes, page.events

    with chromium(tmp_path / "profile") as devtools:
        pictures, heads, boxes, events = asyncio.run(looked_at(devtools))
    for number, (picture, _) in enumerate(pictures):
        (tmp_path / f"{number}.png").write_bytes(base64.b64decode(picture))
    assert heads == ["The answer", "Where the time goes", "The sweep", "What it depends on", "Why Summit differs",
                     "Equations", "Values", "Files and versions"]  # fmt: skip
    assert boxes == [True] * 8
    assert all(fits for _, fits in pictures)
    assert len({picture for picture, _ in pictures}) == 3
    light, dark, _ = (Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB") for picture, _ in pictures)
    assert [image.getpixel((2, 2)) for image in (light, dark)] == [(255, 255, 255), (20, 24, 29)]
    assert all(len(image.getcolors(2**20)) > 20 for image in (light, dark))
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    wrong = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    assert [event for event in events if event["method"] in wrong] == []


def test_the_explorer_writes_the_page_that_its_command_writes(whatif_main, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    scenario = Scenario.open("minife", platform="lassen", overrides={"platform.node.gpu_count": "2"})
    grid = grid_of([parse_option("application.rank_count = 8, 16", scenario.program, 10)], 10)
    assert report(EvaluationRequest(scenario, grid), tmp_path / "r.html") == f"written to {tmp_path / 'r.html'}"
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    words = shlex.split(report_words(scenario, tmp_path / "r.html", axes=grid.axes))
    assert whatif_main(*words[1:])[0] == 0
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == page
