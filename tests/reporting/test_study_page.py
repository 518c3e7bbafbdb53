"""The page of a study: its numbers are those of the tables, its texts are texts, and a browser shows it alone."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import sys
import time
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.paths import ROOT
from tests.reporting.test_page import Read, assert_alone
from tests.studies.procurement.studies_at_hand import BIDS, SUMMIT, study_file
from tests.studies.procurement.test_study import SIX, throughput
from tests.tui.test_serve import PATIENCE, browsed, chromium, opened
from whatif.errors import UsageError
from whatif.extras import install_command
from whatif.reporting.study_page import pdf_of, study_html
from whatif.units import CARBON, JOULE, MONEY, SECOND, WATT, format_quantity

QUICK = {"mix.elements.target": "iteration_time <= 100 ms"}
"""A target that few nodes meet: the search for that of the file takes longer than all others."""
SECTIONS = [
    "question", "recommendation", "bids", "commitments", "equal", "targets", "sensitivity", "calibration", "questions",
    "reading", "files",
]  # fmt: skip
ESCAPE, REVERSED = "\\u001b[31m", "\\u202e"
EVIL = f"""
question = "<script>alert(1)</script> & \\"which\\" {ESCAPE}{REVERSED}?"
[rates.EUR]
value = "1.1 USD"
date = "2026-11-24"
source = "</p><img src=x onerror=alert(2)> <a href='javascript:alert(3)'>here</a>"
"""
needs_pdf = pytest.mark.skipif(importlib.util.find_spec("weasyprint") is None, reason="WeasyPrint is not installed")


@pytest.fixture(scope="module")
def found():
    return whatif.study("successor", overrides=QUICK)


@pytest.fixture(scope="module")
def text(found):
    return study_html(found, "whatif study successor -o page.html")


@pytest.fixture(scope="module")
def page(text):
    return Read(text)


def said(page, section):
    return " ".join("".join(page.texts[section]).split())


def typeset(text):
    """Text as pages show it."""
    return text.replace(" us", " µs").replace("-", "−")


def rows(found, show):
    return replace(found, show=show).to_dict()["rows"]


def test_the_page_has_every_section_in_order_and_stands_alone(text, page):
    assert [name for name in page.texts if name] == SECTIONS
    assert_alone(text, page, least=1)
    assert page.tags.count("th") > page.tags.count("tr") - page.tags.count("thead")
    scopes = [value for name, value in page.attributes if name == "scope"]
    assert len(scopes) == page.tags.count("th")
    labels = [value for name, value in page.attributes if name == "aria-label"]
    assert any("Whiskers are bands, from the 10% to the 90% quantile" in label for label in labels)


def test_the_recommendation_has_the_numbers_of_the_study(found, page):
    best = found.bids["accelerators"]
    low, high = found.band(best.throughput)
    words = said(page, "recommendation")
    assert f"accelerators is recommended: with a probability of {found.chances['accelerators']:.0%} it is" in words
    assert f"Its 163 nodes do {best.throughput[0]:.3g} times (band {low:.3g} to {high:.3g}) the work" in words
    assert f"at a price of {format_quantity(best.capital[0], MONEY['USD'])}" in words
    assert f"{best.throughput[0] / found.bids['superchips'].throughput[0] - 1:.1%} ahead of superchips" in words


def test_the_confidence_of_bands_and_commitments_is_that_of_the_study(page):
    at_97 = whatif.study("successor", overrides={**QUICK, "commit.confidence": 0.975})
    for shown, share in ((page, "90%"), (Read(study_html(at_97, "")), "97.5%")):
        assert f"Each end of a band, and each commitment, has a confidence of {share}." in said(shown, "question")
        assert f"meets the values to commit to with a probability of {share}," in said(shown, "commitments")


def test_a_chance_below_the_confidence_leaves_the_order_open(found):
    overrides = {**QUICK, "commit.confidence": 0.99}
    words = said(Read(study_html(whatif.study("successor", overrides=overrides), "")), "recommendation")
    assert "That is less than the confidence of 99%: the order of the bids is open." in words
    assert "open" not in said(Read(study_html(found, "")), "recommendation")


def test_the_tables_have_the_numbers_of_the_views(found, page):
    heads, *cells = page.rows["bids"]
    table = {row[0]: dict(zip(heads[1:], row[1:], strict=True)) for row in cells}
    for row in rows(found, "bids"):
        its = {title: numbers[row["machine"]] for title, numbers in table.items()}
        assert its["nodes"] == f"{row['nodes']:,.0f}"
        assert its["throughput of the mix"] == f"{row['throughput']:.4g}"
        assert its["price"] == format_quantity(row["price"], MONEY["USD"])
        assert its["power under load"] == format_quantity(row["power"], WATT)
    assert table["probability to be the best"] == {
        "accelerators": "96%", "superchips": "4%", "processors": "under 1%", "present": "-"
    }  # fmt: skip
    shown = [row for row in page.rows["commitments"] if row[0] != "application"]
    for row, its in zip(rows(found, "commitments"), shown, strict=True):
        assert its[3:5] == [typeset(format_quantity(row[key], SECOND)) for key in ("time", "time 90% sure")]
        assert its[5:7] == [f"{row[key]:,.0f}" for key in ("jobs per day", "jobs per day 90% sure")]
    equal = [row for row in rows(found, "jobs") if row["machine"] != "present"]
    assert [row[1] for row in page.rows["equal"][1:]] == [f"{row['equal nodes']:.4g}" for row in equal]
    turns = {row["value"]: row["turns at"] or "none" for row in rows(found, "turns")}
    assert {row[0]: row[2] for row in page.rows["sensitivity"] if row[0] in turns} == turns
    assert {row[2] for row in page.rows["targets"][1:]} == {f"{its.count:g}" for its in found.required.values()}


def test_what_the_study_states_is_on_the_page(page):
    listed = {tuple(row) for row in page.rows["files"]}
    assert ("bids.superchips.node_price", "120 kUSD +- 6 kUSD") in listed
    assert ("mix.elements.target", "iteration_time <= 100 ms") in listed
    assert any(name.startswith("options.") for name, *_ in listed)
    assert any(name.startswith("site.") for name, *_ in listed)


def test_the_questions_are_those_of_their_view(found, page):
    asked = rows(found, "questions")
    named = [row["value"] for row in asked if row["value"]]
    listed = [row[0] for row in page.rows["questions"] if row[0] != "value"]
    assert sorted(listed) == sorted(named)
    assert [row["question"] for row in asked if not row["value"]] == [
        "Is the price of a node firm? The study assumes 112.3 kUSD to 127.7 kUSD."
    ]
    assert "112.3 kUSD to 127.7 kUSD" in said(page, "questions")
    bandwidth = next(row for row in page.rows["questions"] if row[0] == "node.host.memory_bandwidth")
    (row,) = (row for row in asked if row["value"] == bandwidth[0])
    assert bandwidth[1:4] == [row["assumed"], *(typeset(f"{row[f'10 % {way}']:+.1%}") for way in ("lower", "higher"))]


def test_the_energy_of_a_days_work_is_that_of_hand_arithmetic(tmp_path):
    page = Read(study_html(whatif.study(study_file(tmp_path)), ""))
    energy = 100 * SUMMIT[0] * 86400 / throughput(100, SIX)
    table, place = page.table("bids"), page.rows["bids"][0].index("six") - 1
    assert table["energy for a day's work"][place] == format_quantity(energy, JOULE)
    assert table["carbon for a day's work"][place] == format_quantity(energy * 400 / 3.6e6, CARBON)


def test_every_warning_of_a_study_is_a_row_with_what_it_is_about(tmp_path):
    bid = '[bids.{}]\nplatform = "{}"\nnode_price = "{}"\n'
    bids = bid.format("six", "summit", "50 kUSD +- 30 kUSD") + bid.format("lumi", "lumi", "30 kUSD")
    path = study_file(tmp_path, bids=bids, limits='capital = "0.15 MUSD"')
    rows = dict(Read(study_html(whatif.study(path), "")).rows["calibration"])
    assert rows["six"].startswith("warning: cannot run the mix in ")
    assert rows["site"].startswith("warning: the PUE differs, 1 of present, six; 1.04 of lumi")


def test_the_files_are_listed_with_their_hashes(found, page):
    hashes = {row[0]: row[1] for row in page.rows["files"][1:]}
    for name in (
        "studies/successor.toml", "platforms/lassen.toml", "platforms/alps.toml", "platforms/parts/gh200-96gb.toml",
        "scenarios/minife.toml", "scenarios/minife_runs.csv",
    ):  # fmt: skip
        digest = hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
        assert hashes[f"shipped with whatif: {name}"] == digest
    assert "whatif study successor -o page.html" in said(page, "files")


def test_texts_of_files_are_texts_with_visible_control_characters(tmp_path):
    path = study_file(tmp_path)
    path.write_text(path.read_text().replace('question = "Which one?"', "").lstrip())
    path.write_text(EVIL.split("[rates", maxsplit=1)[0] + path.read_text() + "[rates" + EVIL.split("[rates")[1])
    text = study_html(whatif.study(path), "whatif \x1b[2J")
    words = ('<script>alert(1)</script> & "which" \\x1b[31m\\u202e?', "onerror=alert(2)", "javascript:alert(3)")
    Read(text).assert_says(*words)
    assert {char for char in text if unicodedata.category(char) in ("Cc", "Cf")} == {"\n"}


def test_a_bid_that_cannot_run_and_one_without_a_price(tmp_path):
    bids = '[bids.small]\nplatform = "summit"\nnode_count = 1\n[bids.four]\nplatform = "lassen"\nnode_count = 50\n'
    page = Read(study_html(whatif.study(study_file(tmp_path, bids=bids, limits="")), ""))
    words = said(page, "recommendation")
    assert "four is recommended: it is the only bid that runs the mix" in words
    assert "small cannot run the mix within the limits: a: 12 ranks need 2 nodes, the machine has 1" in words
    assert "price" not in words
    assert page.table("bids")["runs the mix"] == ["-", "no", "-"]
    assert said(page, "questions").count("What is the price? The study has none.") == 2


def test_without_a_bid_that_runs_the_page_says_so(tmp_path, whatif_main):
    study_file(tmp_path, bids='[bids.small]\nplatform = "summit"\nnode_count = 1\n', limits="")
    code, out, err = whatif_main("study", "study.toml", "-o", "page.html")
    assert (code, out) == (4, "")
    assert "no bid runs the mix within the limits" in err
    page = Read((tmp_path / "page.html").read_text())
    assert "No bid runs the mix within the limits" in said(page, "recommendation")
    assert "sensitivity" not in page.texts


def test_many_machines_are_shown_in_several_tables(tmp_path):
    bids = "".join(f'[bids.b{at}]\nplatform = "lassen"\nnode_price = "{40 + at} kUSD"\n' for at in range(7))
    page = Read(study_html(whatif.study(study_file(tmp_path, bids=bids)), ""))
    heads = [row for row in page.rows["bids"] if not row[0]]
    assert [len(row) - 1 for row in heads] == [5, 3]
    assert [name for row in heads for name in row[1:]] == [*(f"b{at}" for at in range(7)), "present"]


def test_the_command_line_writes_the_page_and_its_command_writes_it_again(tmp_path, whatif_main, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    study_file(tmp_path, bids=BIDS)
    words = ("study", "study.toml", "--set", "limits.capital=x0.5", "-o", "page.html")
    code, out, err = whatif_main(*words)
    assert (code, out) == (0, "")
    assert "best by throughput of the mix" in err
    text = (tmp_path / "page.html").read_text()
    assert "whatif study study.toml --set &#39;limits.capital=2.5 MUSD&#39; -o page.html" in text
    assert whatif_main("study", "study.toml", "--set", "limits.capital=2.5 MUSD", "-o", "page.html")[0] == 0
    assert (tmp_path / "page.html").read_text() == text
    code, out, _ = whatif_main("study", "study.toml", "--format", "html")
    assert (code, out[:7]) == (0, "<table>")
    code, _, _ = whatif_main("study", "study.toml", "--sweep", "limits.capital=4 MUSD, 5 MUSD", "-o", "sweep.html")
    assert (tmp_path / "sweep.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "page.html", "--show", "jobs"), "--show jobs: no effect on the page page.html"),
        (("-o", "page.htm"), "`.htm` is no known format"),
    ],
)
def test_invalid_outputs_are_refused(tmp_path, whatif_main, words, message):
    study_file(tmp_path)
    code, _, err = whatif_main("study", "study.toml", *words)
    assert code == 2
    assert message in err
    assert not list(tmp_path.glob("page*"))


def test_other_files_are_no_pages_of_the_library(tmp_path):
    with pytest.raises(UsageError, match=r"page.csv: the page of a study must end in .html or .pdf"):
        whatif.study_page(study_file(tmp_path), tmp_path / "page.csv")


def test_without_its_library_a_pdf_names_the_extra_and_the_browser(tmp_path, whatif_main, monkeypatch):
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    study_file(tmp_path)
    code, _, err = whatif_main("study", "study.toml", "-o", "page.pdf")
    assert code == 2
    assert f"a PDF needs WeasyPrint: {install_command('pdf')} (" in err
    assert "or write FILE.html and print it from a browser" in err
    assert not (tmp_path / "page.pdf").exists()


@needs_pdf
@pytest.mark.filterwarnings("ignore")
def test_the_pdf_is_the_page_on_several_sheets_and_loads_nothing(tmp_path, text):
    import weasyprint

    assert len(weasyprint.HTML(string=text).render().pages) > 4
    assert pdf_of(text).startswith(b"%PDF-")
    (tmp_path / "picture.svg").write_text("<svg/>")
    with pytest.raises(weasyprint.urls.FatalURLFetchingError):
        pdf_of(f'<p>text</p><img src="{(tmp_path / "picture.svg").as_uri()}">')


def test_the_page_takes_less_than_three_seconds_of_the_processor(found):
    found.required  # noqa: B018 - the search for a target is that of `--show commitments`
    began = time.process_time()
    study_html(found, "")
    assert time.process_time() - began < 3


@browsed
@pytest.mark.skipif(importlib.util.find_spec("aiohttp") is None, reason="no aiohttp to ask the browser with")
def test_a_browser_shows_the_page_on_wide_and_narrow_screens_and_in_print(text, tmp_path):
    (tmp_path / "page.html").write_text(text)

    async def looked_at(devtools):
        async with asyncio.timeout(PATIENCE), opened(devtools, (tmp_path / "page.html").as_uri()) as page:
            await page.call("Log.enable")
            while await page.evaluate("document.readyState") != "complete":
                await asyncio.sleep(0.1)
            fits = []
            # The last width is that of a sheet of A4 within its margins.
            for media, width in (("screen", 900), ("screen", 400), ("print", 688)):
                await page.call("Emulation.setEmulatedMedia", media=media)
                size = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": False}
                await page.call("Emulation.setDeviceMetricsOverride", **size)
                fits.append(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
            return fits, page.events

    with chromium(tmp_path / "profile") as devtools:
        fits, events = asyncio.run(looked_at(devtools))
    assert fits == [True] * 3
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    wrong = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    assert [event for event in events if event["method"] in wrong] == []


@pytest.mark.parametrize(
    ("bid", "path"),
    [
        ("processors", "node.cpu.dynamic_power"),
        ("processors", "node.host.memory_bandwidth"),
        ("superchips", "network.inter_node.max_rate.rendezvous.latency"),
    ],
)
def test_the_effect_of_an_assumed_value_is_that_of_a_changed_study(found, bid, path):
    (row,) = (row for row in rows(found, "questions") if (row["bid"], row["value"]) == (bid, path))
    before = found.bids[bid].throughput[0]
    for factor, column in ((0.9, "10 % lower"), (1.1, "10 % higher")):
        changed = whatif.study("successor", overrides={**QUICK, f"bids.{bid}.overrides.{path}": f"x{factor}"})
        assert_allclose(row[column], changed.bids[bid].throughput[0] / before - 1, rtol=1e-9, atol=0)
        assert np.sign(row[column]) != 0
