"""Output options that the verbs share: tables and pictures in files, and options without effect."""

from __future__ import annotations

import csv
import json
import re
import sys

import pytest

from tests.paths import ROOT

BANDWIDTH = "platform.node.gpu.dram_bandwidth"
VERBS = {
    "compare": ("compare", "jacobi2d", "--platform", "summit", "--platform", "lassen"),
    "budget": ("budget", "jacobi2d", "--platform", "summit", "--power", "1 MW"),
    "diff": ("diff", "minimd", "--platform", "summit"),
    "sensitivity": ("sensitivity", "jacobi2d"),
    "seek": ("seek", "jacobi2d", "--vary", BANDWIDTH, "--target", "iteration_time <= 5 ms"),
    "scale": ("scale", "jacobi2d_strong", "--nodes", "1 .. 8"),
    "tune grid": ("tune", "grid", "jacobi2d", "--set", "application.rank_count=24"),
    "simulate": ("simulate", "jacobi2d", "--set", "application.rank_count=6"),
    "validate": ("validate", "power"),
    "run": ("run", "jacobi2d"),
    "import runs": ("import", "runs", str(ROOT / "tests/data/runs/caliper/lulesh_grid_runs.csv")),
}


@pytest.mark.parametrize("suffix", ["csv", "json", "md", "txt"])
@pytest.mark.parametrize("words", VERBS.values(), ids=VERBS)
def test_file_holds_the_table_that_is_printed(whatif_main, tmp_path, words, suffix):
    formats = {"md": "markdown", "txt": "table"}
    code, printed, _ = whatif_main(*words, "--format", formats.get(suffix, suffix))
    assert (code, bool(printed)) == (0, True)
    assert whatif_main(*words, "-o", f"x.{suffix}")[:2] == (0, "")
    assert (tmp_path / f"x.{suffix}").read_text(encoding="utf-8") == printed


WRITTEN = {
    "table": (*VERBS["compare"], "-o", "x.csv"),
    "picture": (*VERBS["sensitivity"], "-o", "x.svg"),
    "table of run": ("run", "jacobi2d", "-o", "x.csv"),
    "picture of run": ("run", "jacobi2d", "-o", "x.svg"),
    "data set": ("run", "jacobi2d", "--on", "threads", "--workers", "1", "-o", "x"),
    "explanation": ("explain", "jacobi2d", "-o", "x.md"),
    "time line": (*VERBS["simulate"], "--timeline", "x.json"),
    "report": ("report", "minife", "-o", "x.html"),
    "page of a study": ("study", "successor", "-o", "x.html"),
    "example study": ("study", "--new", "x.toml"),
    "layout": ("tune", "grid", "jacobi2d", "--save", "x.toml"),
    "corrections": ("calibrate", "minimd", "-o", "x.toml"),
    "scenario": ("new", "x"),
}


@pytest.mark.parametrize("words", WRITTEN.values(), ids=WRITTEN)
def test_a_file_that_is_written_is_named_once(whatif_main, tmp_path, words):
    code, _, err = whatif_main(*words)
    written = [path.name for path in tmp_path.glob("x*")]
    assert code == 0
    assert [line for line in err.splitlines() if "written: " in line] == [f"written: {name}" for name in written] != []


@pytest.mark.parametrize("verb", ["compare", "validate", "import runs"])
def test_a_file_of_html_is_a_page_with_the_table_that_is_printed(whatif_main, tmp_path, verb):
    printed = whatif_main(*VERBS[verb], "--format", "html")[1]
    assert printed.startswith("<table>")
    assert whatif_main(*VERBS[verb], "-o", "x.html")[:2] == (0, "")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n')
    assert page.endswith(f"<body>\n{printed}</body>\n</html>\n")


@pytest.mark.parametrize(
    ("words", "endings"),
    [
        (("run", "jacobi2d"), ".csv, .json, .md, .parquet, .txt, .svg, .png, .pdf"),
        (("sensitivity", "jacobi2d"), ".csv, .html, .json, .md, .txt, .svg, .png, .pdf"),
        (("import", "network", str(ROOT / "docs/examples/messages.csv")), ".csv, .html, .json, .md, .txt"),
        (("explain", "jacobi2d"), ".json, .md, .tex, .txt"),
    ],
)
def test_an_unknown_ending_is_answered_with_all_that_the_verb_writes(whatif_main, words, endings):
    code, out, err = whatif_main(*words, "-o", "x.xyz")
    assert (code, out) == (2, "")
    assert f"x.xyz: `.xyz` is no known format: use {endings}, or --format" in err


@pytest.mark.parametrize(
    ("words", "heading", "share"),
    [
        (("validate", "minimd", "--by", "result"), "mean_absolute_error", r"[\d.]+%"),
        (("validate", "minimd"), "error", r"[+-][\d.]+%"),
        (("diff", "minimd", "--platform", "summit"), "share", r"[+-][\d.]+%"),
    ],
)
def test_errors_and_shares_of_html_and_markdown_are_in_per_cent(whatif_main, words, heading, share):
    lines = whatif_main(*words, "--format", "markdown")[1].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    place = rows[0].index(heading)
    assert all(re.fullmatch(share, row[place]) for row in rows[2:])
    html = whatif_main(*words, "--format", "html")[1]
    assert html.count("%</td>") == "".join(lines).count("%")
    assert "%" not in whatif_main(*words, "--format", "csv")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*VERBS["compare"], "-o", "x.csv", "--format", "json"), "`.csv` is the format csv, not json"),
        ((*VERBS["compare"], "-o", "x.svg", "--format", "csv"), "--format csv: no effect on the picture x.svg"),
        ((*VERBS["budget"], "-o", "x.svg"), "x.svg: this result has no picture"),
        ((*VERBS["scale"], "--plot", "-o", "x.svg"), "--plot draws on the terminal"),
        ((*VERBS["scale"], "-o", "x.xyz"), "`.xyz` is no known format"),
        ((*VERBS["seek"], "--result", "total_time"), "--result: no effect without --equal-to"),
        ((*VERBS["seek"], "--within", "5%"), "--within: no effect without --pareto"),
        (("check", "jacobi2d", "--tolerance", "1%"), "--tolerance: no effect without --against"),
        (("run", "jacobi2d", "--on", "threads", "-o", "x.svg"), "--on threads: no effect on the picture x.svg"),
        (("study", "successor", "--new", "x.toml"), "successor: no effect with --new"),
        (("study", "--new", "x.toml", "--show", "jobs"), "--show: no effect with --new"),
        (("study", "--new", "x.toml", "--set", "a=b"), "--set: no effect with --new"),
        (("study", "--new", "x.toml", "-o", "x.csv"), "-o, --format and --plot: no effect with --new"),
        (
            ("study", "successor", "--sweep", "limits.power=2 MW", "--show", "jobs"),
            "--show jobs: no effect with --sweep",
        ),
        (("validate", "--platform-dir", "."), "--platform-dir: no effect without SCENARIO"),
        (("validate", "--by", "run", "-o", "x.csv"), "-o holds one table: name one TOPIC, or --by result"),
    ],
)
def test_output_without_effect_is_refused(whatif_main, tmp_path, words, message):
    code, out, err = whatif_main(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.glob("x.*"))


def test_relative_scale_of_a_picture(whatif_main):
    code, out, _ = whatif_main("run", "jacobi2d_strong", "--plot", "--relative", "efficiency")
    assert code == 0
    assert "parallel efficiency" in out
    code, _, error = whatif_main("run", "jacobi2d_strong", "--relative", "speedup")
    assert code == 2
    assert "--relative: no effect on a table; add --plot or -o FILE.svg" in error
    code, _, error = whatif_main("run", "minife_gpus_per_node", "--plot", "--relative", "efficiency")
    assert code == 2
    assert "efficiency of `iteration_time` over gpu_count: needs a time over `application.rank_count`" in error


def test_answers_of_a_sweep_on_stderr_and_in_json(whatif_main):
    code, out, error = whatif_main("run", "minife_gpus_per_node", "--format", "json")
    answers = json.loads(out)["answers"]
    assert code == 0
    assert answers[0]["kind"] == "optimum"
    assert "; ".join(answer["text"] for answer in answers) in error
    assert "answers" not in json.loads(whatif_main("run", "minife", "--point", "--format", "json")[1])


def test_a_misspelt_file_is_told_the_one_next_to_it(whatif_main, tmp_path):
    (tmp_path / "stencil.toml").write_text('extends = "jacobi2d"\n')
    assert whatif_main("run", "stencil.tml")[2].endswith("did you mean `stencil.toml`?\n")


def test_hpl_is_no_scenario_but_a_verb(whatif_main):
    code, _, err = whatif_main("run", "HPL")
    assert code == 3
    assert "HPL: no such file or shipped name; `whatif hpl HPL.dat --platform NAME` simulates" in err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("program", "`program`: no such scenario or topic; did you mean `programs`?"),
        ("minif", "minif: no such file or shipped name; did you mean `minife`"),
    ],
)
def test_a_misspelt_topic_or_scenario_is_told_what_was_meant(whatif_main, name, message):
    code, out, err = whatif_main("validate", name)
    assert code in (2, 3)
    assert out == ""
    assert message in err


def test_ends_of_bands_stand_apart(whatif_main):
    price = "platform.price.node_rate=0.0613 USD/h"
    asked = ("run", "jacobi2d", "--platform", "aws_p5", "--set", price, "--spread", "assumed=20%", "--samples", "16")
    code, out, _ = whatif_main(*asked)
    assert code == 0
    (cost,) = (line for line in out.splitlines() if line.startswith("total_cost"))
    assert cost.split()[2::2] == ["USD"] * 4


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("run", "jacobi2d", "--sweep", "platform.node.gpu_count=1, 2, 4"), ["iteration_time", "communication_time"]),
        (("run", "llama_training"), ["iteration_time", "token_rate", "model_rate"]),
        (("run", "minife", "--sweep", "platform=summit, lassen", "--sweep", f"{BANDWIDTH}=300 GB/s, 1 TB/s"), []),
        (("sensitivity", "jacobi2d"), ["elasticity"]),
    ],
    ids=["sweep", "training", "machines", "sensitivity"],
)
def test_a_narrow_terminal_omits_columns_and_names_them(whatif_main, monkeypatch, words, kept):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = whatif_main(*words)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    heading = out.splitlines()[0].split()
    assert set(kept) <= set(heading)
    whole = next(csv.reader(whatif_main(*words, "--format", "csv")[1].splitlines()))
    (line,) = (line for line in err.splitlines() if line.startswith("columns omitted at a width of 80: "))
    omitted = line.removeprefix("columns omitted at a width of 80: ").removesuffix("; --format csv has all").split(", ")
    assert omitted
    assert not set(omitted) & set(heading)
    assert set(omitted) <= {name.split(" [")[0] for name in whole}


def test_questions_to_the_vendors_are_shown_at_any_width(whatif_main, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    heading = whatif_main("study", "successor", "--show", "questions")[1].splitlines()[0]
    assert heading.split() == ["bid", "value", "question"]


@pytest.mark.parametrize(
    "words",
    [
        ("differences", "jacobi2d", "minife"),
        ("study", "successor", "--show", "questions"),
        ("run", "jacobi2d", "--platform", "titan", "--sweep", "application.rank_count=1536, 100000"),
        ("show", "roofline", "jacobi2d"),
    ],
    ids=["differences", "questions", "infeasible", "roofline"],
)
def test_long_texts_do_not_make_a_table_wider_than_the_terminal(whatif_main, monkeypatch, words):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    _, out, err = whatif_main(*words)
    assert max(map(len, out.splitlines())) <= 80
    assert "--format csv has all" in err


def test_a_pipe_has_all_columns(whatif_main, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, err = whatif_main("run", "jacobi2d", "--sweep", "platform.node.gpu_count=1, 2, 4")
    assert "mean_power" in out.splitlines()[0].split()
    assert "omitted" not in err
