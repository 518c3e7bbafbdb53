"""The command line: shapes of the output, files, streams, and the same numbers whichever way they come."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
import subprocess
import sys

import numpy as np
import pytest
from pyarrow import parquet

import whatif.cli.main
import whatif.core.grid_run
from tests.paths import ROOT
from whatif.axes import Grid
from whatif.core.grid_run import run, run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.files.result_writers import write_file
from whatif.schema.shipped import shipped_names

TIMES = ["total_time", "iteration_time", "communication_time", "kernel_time", "transfer_time", "overhead_time"]
GPUS, MODEL = "platform.node.gpu_count", "application.phases.halo.model"
BANDWIDTH = "platform.node.gpu.dram_bandwidth"
SWEEP = ("--sweep", f"{GPUS}=2, 4", "--sweep", f"{MODEL}=postal, k_model")


@pytest.fixture
def good(whatif_main):
    """Like `whatif_main`, where nothing may go wrong: stdout."""

    def call(*arguments):
        code, out, err = whatif_main(*arguments)
        assert code == 0, err
        return out

    return call


def answers(text):
    """What a JSON document says about times: everything but the name of the file."""
    document = json.loads(text)
    return {key: value for key, value in document.items() if key != "scenario"}


def test_json_of_one_point(good):
    document = json.loads(good("run", "jacobi2d", "--point", "--format", "json"))
    assert {"scenario", "axes", "units", "rows"} <= set(document)
    assert (document["scenario"], document["axes"], len(document["rows"])) == ("jacobi2d", [], 1)
    row = document["rows"][0]
    assert set(TIMES) | {"terms"} <= set(row)
    assert list(row["terms"]) == ["pack", "halo", "unpack", "stencil", "reduce", "overhead"]
    assert set(document["units"]) == set(row) - {"grade"}
    assert {document["units"][name] for name in TIMES} == {"s"}
    np.testing.assert_allclose(sum(row["terms"].values()), row["iteration_time"], rtol=1e-12, atol=0)
    np.testing.assert_allclose(row["total_time"], 100 * row["iteration_time"], rtol=1e-12, atol=0)
    assert 0.005 < row["iteration_time"] < 0.05


def test_json_of_a_grid(good):
    document = json.loads(good("run", "jacobi2d", *SWEEP, "--format", "json"))
    assert document["axes"] == [GPUS, MODEL]
    points = [(row[GPUS], row[MODEL]) for row in document["rows"]]
    assert points == [(2, "postal"), (2, "k_model"), (4, "postal"), (4, "k_model")]
    assert all(set(row) == {GPUS, MODEL, "terms", "grade", *document["units"]} for row in document["rows"])
    assert len({row["communication_time"] for row in document["rows"]}) >= 3
    for row in document["rows"]:
        alone = good(
            "run", "jacobi2d", "--point", "--format", "json",
            "--set", f"{GPUS}={row[GPUS]:.0f}", "--set", f"{MODEL}={row[MODEL]}",
        )  # fmt: skip
        # A value that is set is assumed, one that is swept is asked.
        assert {**row, **json.loads(alone)["rows"][0], "grade": row["grade"]} == row


def test_json_of_tied_parameters(good):
    tied = f"{GPUS}=2, 4; {BANDWIDTH}=1 TB/s, 2 TB/s"
    document = json.loads(good("run", "jacobi2d", "--sweep", tied, "--format", "json"))
    assert document["axes"] == [GPUS, BANDWIDTH]
    assert document["tied"] == [[GPUS, BANDWIDTH]]
    assert [(row[GPUS], row[BANDWIDTH]) for row in document["rows"]] == [(2, 1e12), (4, 2e12)]
    assert document["units"][BANDWIDTH] == "B/s"


def test_csv_has_the_numbers_of_json(good):
    document = json.loads(good("run", "jacobi2d", *SWEEP, "--format", "json"))
    header, *rows = csv.reader(io.StringIO(good("run", "jacobi2d", *SWEEP, "--format", "csv")))
    assert header[:3] == [GPUS, MODEL, "total_time [s]"]
    assert {f"{name} [s]" for name in TIMES} <= set(header)
    assert "terms.halo [s]" in header
    assert len(rows) == len(document["rows"])
    for row, expected in zip(rows, document["rows"], strict=True):
        assert len(row) == len(header)
        for name, text in zip(header, row, strict=True):
            plain = re.sub(r" \[\w+\]$", "", name)
            value = expected["terms"][plain[6:]] if plain.startswith("terms.") else expected.get(plain, "")
            assert (text == value) if isinstance(value, str) else (float(text) == value)


def test_units_of_swept_parameters_are_in_the_header(good):
    out = good("run", "jacobi2d", "--sweep", f"{BANDWIDTH}=1 TB/s", "--sweep", f"{GPUS}=2", "--format", "csv")
    assert out.startswith(f"{BANDWIDTH} [B/s],{GPUS},total_time [s],")
    assert out.splitlines()[1].startswith("1000000000000.0,2.0,")


def test_markdown(good):
    lines = good("run", "jacobi2d", *SWEEP, "--format", "markdown").splitlines()
    assert len(lines) == 6
    assert len({line.count("|") for line in lines}) == 1
    assert lines[0].startswith(f"| {GPUS} | {MODEL} | total_time |")
    assert set(lines[1]) <= set("|-: ")
    assert re.search(r"\| 2 \| postal \| [\d.]+ s \|", lines[2])


def test_table_has_straight_columns(good):
    lines = good("run", "jacobi2d", *SWEEP).splitlines()
    assert len(lines) == 5
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split()[:3] == [GPUS, MODEL, "total_time"]
    assert "setup_time" not in lines[0]


def test_parquet_equals_csv(good, tmp_path):
    out = good("run", "jacobi2d", *SWEEP, "-o", "x.parquet")
    assert out == ""
    table = parquet.read_table(tmp_path / "x.parquet")
    header, *rows = csv.reader(io.StringIO(good("run", "jacobi2d", *SWEEP, "--format", "csv")))
    assert table.column_names == [re.sub(r" \[\w+\]$", "", name) for name in header]
    for index, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        texts = [row[index] for row in rows]
        values = column.to_pylist()
        assert values == (
            texts if name in (MODEL, "infeasible", "grade", "extrapolated") else [float(text) for text in texts]
        ), name
    assert table.schema.field("total_time").metadata == {b"unit": b"s"}
    assert table.schema.field(GPUS).metadata == {b"unit": b""}


@pytest.mark.parametrize(
    ("file", "form"), [("x.csv", "csv"), ("x.json", "json"), ("x.md", "markdown"), ("x.txt", "table")]
)
def test_format_follows_the_name_of_the_file(good, tmp_path, file, form):
    assert good("run", "jacobi2d", *SWEEP, "-o", file) == ""
    assert (tmp_path / file).read_text(encoding="utf-8") == good("run", "jacobi2d", *SWEEP, "--format", form)
    assert good("run", "jacobi2d", *SWEEP, "-o", "y.xyz", "--format", form) == ""
    assert (tmp_path / "y.xyz").read_bytes() == (tmp_path / file).read_bytes()
    assert stat.S_IMODE((tmp_path / file).stat().st_mode) == 0o666 & ~current_mask()


def current_mask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("form", ["csv", "json", "markdown", "table", "parquet"])
def test_an_error_in_the_middle_parameters_the_old_file(tmp_path, form):
    target = tmp_path / "x"
    target.write_text("old")
    scenario = Scenario.open("jacobi2d")

    def broken():
        yield from run(scenario, Grid((parse_option(f"{GPUS}=1, 2", scenario.program, 10),)), chunk_points=1)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        write_file(broken(), form, target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_output_goes_through_links_and_into_pipes(good, tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    good("run", "jacobi2d", "--point", "-o", "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("total_time [s],")
    os.mkfifo(tmp_path / "pipe.csv")
    with subprocess.Popen(["cat", tmp_path / "pipe.csv"], stdout=subprocess.PIPE, text=True) as reader:
        good("run", "jacobi2d", "--point", "-o", "pipe.csv")
        assert (tmp_path / "pipe.csv").is_fifo()
        assert reader.communicate(timeout=20)[0] == (tmp_path / "real.csv").read_text()


def test_a_sweep_of_several_chunks_equals_one_of_one_chunk(good):
    scenario = Scenario.open("jacobi2d")
    options = [f"{BANDWIDTH}=100 GB/s .. 4 TB/s log 300", f"{GPUS}=1 .. 250 step 1"]
    grid = grid_of([parse_option(option, scenario.program, 10**6) for option in options], 10**6)
    assert grid.size == 75_000 > whatif.core.grid_run.CHUNK_POINTS
    whole = run_whole(scenario, grid)
    parts = list(run(scenario, grid))
    assert len(parts) == 2
    for name in ("columns", "terms"):
        for key, array in getattr(whole, name).items():
            pieces = [part.grid.spread(getattr(part, name)[key]) for part in parts]
            assert np.array_equal(np.concatenate(pieces), grid.spread(array), equal_nan=True), key
    out = good("run", "jacobi2d", *(word for option in options for word in ("--sweep", option)), "--format", "csv")
    rows = out.splitlines()
    assert len(rows) == 1 + grid.size
    totals = grid.spread(whole.columns["total_time"]).ravel()
    assert [float(row.split(",")[2]) for row in rows[1::1000]] == totals[::1000].tolist()


def test_stdout_holds_data_only(whatif_main):
    code, out, err = whatif_main("run", "jacobi2d", *SWEEP, "--format", "json")
    assert code == 0
    assert json.loads(out)
    assert "How does the iteration time" in err
    assert "platform Summit; lowest grade of its values: assumed" in err
    assert f"{GPUS} (2) x {MODEL} (2)" in err


def test_platform_option(good):
    summit = json.loads(good("run", "jacobi2d", "--point", "--format", "json", "--set", "application.rank_count=64"))
    lassen = json.loads(
        good(
            "run",
            "jacobi2d",
            "--point",
            "--format",
            "json",
            "--set",
            "application.rank_count=64",
            "--platform",
            "lassen",
        )
    )
    assert (summit["platform"], lassen["platform"]) == ("Summit", "Lassen")
    assert summit["rows"] != lassen["rows"]
    both = json.loads(
        good(
            "run",
            "jacobi2d",
            "--sweep",
            "platform=summit, lassen",
            "--set",
            "application.rank_count=64",
            "--format",
            "json",
        )
    )
    assert [row["total_time"] for row in both["rows"]] == [
        document["rows"][0]["total_time"] for document in (summit, lassen)
    ]
    assert [row["platform"] for row in both["rows"]] == ["summit", "lassen"]


def bandwidth(good, *arguments):
    """The device bandwidth that a scenario sees, through `whatif explain`."""
    return good("explain", *arguments, BANDWIDTH).partition(": ")[2].partition("  (")[0]


def machine(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'extends = "lassen"\nname = "Mine"\n[node.gpu]\ndram_bandwidth = "{value}"\n')


def test_platforms_are_found_next_to_the_scenario_then_in_folders_then_shipped(good, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "s.toml").write_text('extends = "jacobi2d"\nplatform = "summit"\n')
    assert bandwidth(good, "here/s.toml") == "779.411 GB/s"
    machine(tmp_path / "first" / "summit.toml", "1 TB/s")
    machine(tmp_path / "second" / "summit.toml", "2 TB/s")
    assert bandwidth(good, "here/s.toml", "--platform-dir", "first") == "1 TB/s"
    assert bandwidth(good, "here/s.toml", "--platform-dir", "second", "--platform-dir", "first") == "2 TB/s"
    machine(tmp_path / "here" / "summit.toml", "3 TB/s")
    assert bandwidth(good, "here/s.toml", "--platform-dir", "first") == "3 TB/s"
    assert bandwidth(good, "jacobi2d", "--platform-dir", "first", "--platform", "summit") == "1 TB/s"
    assert bandwidth(good, "here/s.toml", "--set", f"{BANDWIDTH}=4 TB/s") == "4 TB/s"


def test_a_scenario_may_extend_another(good, tmp_path):
    (tmp_path / "base.toml").write_text('extends = "jacobi2d"\n[application]\nrank_count = 96\n')
    (tmp_path / "s.toml").write_text(
        f'extends = "base"\n[sweep.a]\n"{GPUS}" = [2, 3]\n[platform.node.gpu]\nname = "New"\n'
    )
    document = json.loads(good("run", "s.toml", "--format", "json"))
    assert document["axes"] == [GPUS], "the sweep of the extending scenario replaces that of its base"
    direct = good(
        "run", "jacobi2d", "--set", "application.rank_count=96", "--sweep", f"{GPUS}=2, 3", "--format", "json"
    )
    assert document["rows"] == json.loads(direct)["rows"]


@pytest.mark.parametrize("name", shipped_names("scenarios"))
def test_a_resolved_scenario_is_the_same_question(good, tmp_path, name):
    (tmp_path / "resolved.toml").write_text(good("resolve", name))
    for arguments in (("--point",), ()):
        original = good("run", name, "--format", "json", *arguments)
        assert answers(good("run", "resolved.toml", "--format", "json", *arguments)) == answers(original)
    (tmp_path / "again.toml").write_text(good("resolve", "resolved.toml"))
    assert answers(good("run", "again.toml", "--format", "json")) == answers(good("run", name, "--format", "json"))
    parameters = [line.split("\t")[:4] for line in good("list", "parameters", name).splitlines()]
    assert [line.split("\t")[:4] for line in good("list", "parameters", "resolved.toml").splitlines()] == parameters
    assert good("check", "resolved.toml") == "resolved.toml: ok (scenario)\n"


def test_a_resolved_change_stays_a_change(good, tmp_path):
    changes = ("--set", f"{BANDWIDTH}=1 TB/s", "--set", "application.grid.periodic=true", "--platform", "lassen")
    changes += ("--set", "application.rank_count== 2 * 2 ** 6", "--set", f"{MODEL}=postal")
    (tmp_path / "resolved.toml").write_text(good("resolve", "jacobi2d", *changes))
    original = json.loads(good("run", "jacobi2d", *changes, "--point", "--format", "json"))
    again = json.loads(good("run", "resolved.toml", "--point", "--format", "json"))
    assert again["rows"] == original["rows"]
    assert again["grade"] == original["grade"] == "assumed"


def test_explain_names_equation_unit_source_and_grade(good):
    out = good("explain", "jacobi2d", "halo")
    assert out.startswith("halo: ")
    assert "% of the iteration" in out.splitlines()[0]
    assert "T = α + k n β" in out
    assert "short_limit = platform.network.intra_socket.short_limit: 128 B  (measured; " in out
    assert "(datasheet; Choi et al., ICS 2020, Table 1)" in out
    assert "Choi et al., ICS 2020, Table 4" in out
    assert "us  (measured; Choi et al., ICS 2020, Table 3)" in out
    assert "postal model is applied" not in out


def test_explain_reports_where_the_postal_model_is_used(good):
    arguments = ("explain", "jacobi2d", "halo", "--platform", "lassen", "--set", f"{MODEL}=max_rate")
    out = good(*arguments, "--set", "application.rank_count=64")
    notes = [line for line in out.splitlines() if "postal model is applied" in line]
    assert notes
    assert all("the platform has no max_rate parameters for intra_socket messages" in note for note in notes)


def test_small_fractions_are_shown(good):
    """1.28e-5 is not 0."""
    out = good("explain", "jacobi2d", "application.phases.pack.load_store_fraction")
    assert ": 1.2812e-05  (measured; " in out


def test_explain_of_every_result_and_phase(good):
    for name in ("total_time", "iteration_time", "stencil", "application.rank_count", "grid.ranks"):
        assert good("explain", "jacobi2d", name).strip()
    deep, shallow = good("explain", "jacobi2d"), good("explain", "jacobi2d", "--depth", "1")
    assert len(shallow) < len(deep) / 5
    assert deep.startswith("iteration.time: ")
    assert good("explain", "jacobi2d", "iteration_time").startswith(deep[:60])
    assert len(good("explain", "jacobi2d", "iteration_time")) > 3 * len(deep)


def test_list(good):
    assert [line.split("\t")[0] for line in good("list", "platforms").splitlines()] == list(shipped_names("platforms"))
    scenarios = [line.split("\t") for line in good("list", "scenarios").splitlines()]
    assert [name for name, _ in scenarios] == list(shipped_names("scenarios"))
    assert all(scenario.endswith(("?", ".")) for _, scenario in scenarios)
    parameters = {line.split("\t")[0]: line.split("\t")[1:] for line in good("list", "parameters").splitlines()}
    assert parameters[GPUS][:3] == ["6", "numeric", "datasheet"]
    assert parameters[MODEL][:2] == ["k_model", "structural"]
    assert parameters["platform.node.gpu.l2_bandwidth"][1] == "not used"
    assert all(len(columns) == 4 for columns in parameters.values())
    of_machine = [line.split("\t")[:2] for line in good("list", "parameters", "--platform", "turin").splitlines()]
    assert ["platform.node.cpu.core_count", "128"] in of_machine
    assert all(path.startswith("platform.") for path, _ in of_machine)


def test_schema_is_json(good):
    for kind in ("platform", "scenario"):
        assert json.loads(good("schema", kind))["title"] == f"whatif {kind} file"


def test_help_lists_every_verb(good):
    out = good("--help")
    for verb in whatif.cli.main.VERBS:
        assert len(re.findall(rf"^  {verb} ", out, re.MULTILINE)) == 1
        assert "Usage: " in good(verb, "--help")
    headings = ["Options", "Predict", "Decide", "Measure", "Write and check files"]
    assert re.findall(r"^(\S.*):$", out, re.MULTILINE) == headings
    assert re.search(r"3\s+invalid\s+file", out)
    assert re.fullmatch(r"whatif, version \d+\.\d+\.\d+\n", good("--version"))


def test_swept_text_may_hold_anything(good, tmp_path):
    """Names of files are swept as texts, and break neither CSV nor Markdown."""
    awkward = 'a"b|c'
    for name in (awkward, "d"):
        (tmp_path / name).write_text("0\n0\n")
    (tmp_path / "s.toml").write_text(
        'extends = "jacobi2d"\n[application]\nrank_count = 2\n'
        '[application.grid]\nmapping = "file"\nmapping_file = "d"\n'
    )
    sweep = ("--sweep", f"application.grid.mapping_file={awkward}, d")
    out = good("run", "s.toml", *sweep, "--format", "csv")
    assert [row[0] for row in csv.reader(io.StringIO(out))][1:] == [awkward, "d"]
    lines = good("run", "s.toml", *sweep, "--format", "markdown").splitlines()
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_names_of_phases_do_not_change_numbers(good, tmp_path):
    text = (ROOT / "scenarios" / "jacobi2d.toml").read_text(encoding="utf-8")
    (tmp_path / "s.toml").write_text(
        text.replace("phases.stencil", "phases.halo_time").replace("phases.pack", "phases.k")
    )
    one = json.loads(good("run", "s.toml", "--point", "--format", "json"))["rows"][0]
    other = json.loads(good("run", "jacobi2d", "--point", "--format", "json"))["rows"][0]
    assert list(one["terms"].values()) == list(other["terms"].values())


def process(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "whatif", *arguments], capture_output=True, text=True, check=False, timeout=60, **options
    )


def test_from_another_folder_by_shipped_name(tmp_path):
    done = process("run", "jacobi2d", "--point", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["scenario"] == "jacobi2d"
    there = process("run", str(ROOT / "scenarios" / "jacobi2d.toml"), "--point", "--format", "json", cwd="/")
    assert there.stdout == done.stdout


@pytest.mark.parametrize(
    "arguments", ["run jacobi2d --format csv", "explain jacobi2d", "list parameters", "schema scenario"]
)
def test_a_reader_that_goes_away_is_no_error(tmp_path, arguments):
    many = "--sweep 'platform.node.gpu.dram_bandwidth=1 TB/s .. 2 TB/s linear 4000'"
    sweep = many if arguments.startswith("run") else ""
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m whatif {arguments} {sweep} | head -c 10"],
        capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0
    assert len(done.stdout.encode()) == 10
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_full_disk_is_an_error(tmp_path):
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m whatif run jacobi2d --point > /dev/full"],
        capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


def test_exit_code_of_ok():
    assert process("check", "jacobi2d", "summit", str(ROOT / "platforms" / "lassen.toml")).returncode == 0


@pytest.mark.parametrize("words", [[], ["open"], ["open", "minife"]])
def test_the_explorer_refuses_a_pipe_and_names_the_verb_for_it(words):
    done = subprocess.run(
        [sys.executable, "-m", "whatif", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "needs a terminal; for data in a pipe or file use `whatif run`" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("output", [("--plot",), ("-o", "sweep.svg")])
def test_a_sweep_without_a_feasible_point_has_no_picture(whatif_main, tmp_path, output):
    code, out, err = whatif_main("run", "minife", "--sweep", "application.rank_count=1e9, 2e9", *output)
    assert (code, out, list(tmp_path.iterdir())) == (4, "", [])
    assert "whatif: infeasible: at most 16,777,216 ranks" in err


def test_every_infeasible_point_has_its_own_reason(good):
    sweeps = ("--sweep", "application.rank_count=100, 100000", "--sweep", "application.memory_size=1 GB, 20 GB")
    rows = json.loads(good("run", "jacobi2d", *sweeps, "--format", "json"))["rows"]
    nodes = "the ranks need more nodes than the platform has (platform.node_count)"
    needed = "the memory of a rank (application.memory_size, at least one copy of its cells)"
    memory = f"{needed} does not fit the device (platform.node.gpu.memory_size)"
    assert [row.get("infeasible") for row in rows] == [None, memory, nodes, nodes]
    assert [row["total_time"] is None for row in rows] == [False, True, True, True]
    table = list(csv.DictReader(io.StringIO(good("run", "jacobi2d", *sweeps, "--format", "csv"))))
    assert [row["infeasible"] for row in table] == ["", memory, nodes, nodes]


def test_a_structural_sweep_keeps_the_reason_of_each_platform(good):
    rows = json.loads(good("run", "jacobi2d", "--sweep", "platform=summit, bridges", "--format", "json"))["rows"]
    assert "infeasible" not in rows[0]
    assert rows[1]["infeasible"].startswith("the ranks need more nodes")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("summit", "platform Summit: 1,536 ranks on 256 nodes;"),
        ("lumi", "platform LUMI in place of summit: 1,536 ranks on 192 nodes;"),
    ],
)
def test_another_platform_is_told_from_that_of_the_question(whatif_main, name, words):
    assert f"\n{words} lowest grade" in whatif_main("run", "jacobi2d", "--platform", name, "--point")[2]


def test_grade_of_a_sweep_over_platforms_is_the_worst(whatif_main):
    """Summit's values are published, but for its switches; a network of Frontier is assumed by rule."""
    kernels = (f"application.phases.{name}=none" for name in ("pack", "unpack", "stencil", "reduce"))
    plain = [f"--set={its}" for its in ("application.congestion=none", *kernels)]
    for platforms, grade in (("summit", "datasheet"), ("summit, frontier", "assumed")):
        err = whatif_main("run", "jacobi2d", "--sweep", f"platform={platforms}", *plain)[2]
        assert f"lowest grade over all of them: {grade}" in err
        assert "lowest grade of its values" not in err
    assert "over all of them" not in whatif_main("run", "jacobi2d", "--point")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "jacobi2d", "--platform", "summit", "--platform=lassen"), "--platform: given 2 times"),
        (("run", "jacobi2d", "-o", "a.csv", "--output", "b.csv"), "--output: given 2 times"),
        (("study", "successor", *["--sweep", "limits.power=1 MW, 2 MW"] * 3), "--sweep: given 3 times"),
        (("fit", "collectives", "x.txt", "--platform", "summit", "--platform", "alps"), "--platform: given 2 times"),
    ],
)
def test_an_option_with_one_value_is_refused_twice(whatif_main, words, message):
    code, out, err = whatif_main(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"whatif: {message}, it has one value here")


def test_options_with_several_values_and_flags_are_repeated(whatif_main):
    sets = ("--set", "platform.node.gpu_count=4", "--set", "application.rank_count=8", "--point", "--point")
    assert whatif_main("run", "jacobi2d", *sets)[0] == 0
