"""Everything a person can get wrong, through the real command line: an exit code, a place, a reason, no traceback."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.paths import DATA, ROOT
from whatif.visible_text import is_visible

HEAD = """#:schema ../schemas/scenario.schema.json
# What if?
platform = "summit"

[application]
name = "Test"
rank_count = 16
iteration_count = 10

[application.grid]
scaling = "weak"
cells = { x = 1000, y = 1000 }

[application.phases.halo]
kind = "halo"
model = "postal"
neighbours = "faces"
element_size = "8 B"

[application.phases.work]
kind = "kernel"
model = "roofline"
dominant_operation = "fp_64"
metrics_per = "launch"
operations = "1 Gflop"
dram_size = "1 GB"
compute_fraction = 0.5
load_store_fraction = 0.1

[application.phases.pause]
kind = "overhead"
overhead_time = "3 us"
"""


def edited(old, new):
    assert HEAD.count(old) == 1, old
    return HEAD.replace(old, new)


def place(text, needle):
    """`line:column` of the only line that starts with a key."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith(needle)]
    assert len(lines) == 1, needle
    return f"{lines[0]}:1"


def test_keys_of_files_are_shown_as_text(whatif_main, tmp_path):
    (tmp_path / "k.toml").write_text('"\\u001b]0;PWNED\\u0007\\u202e" = 1\n')
    code, out, err = whatif_main("check", "k.toml")
    assert (code, out) == (3, "")
    assert r"k.toml:1:1: \x1b]0;PWNED\x07\u202e: " in err
    assert is_visible(err.replace("\n", ""))


def test_options_are_shown_as_text(whatif_main):
    code, _, err = whatif_main("run", "jacobi2d", "--\x1b]0;PWNED\x07")
    assert code == 2
    assert is_visible(err.replace("\n", ""))


def test_the_command_line_prints_messages_in_one_way():
    """Elsewhere click prints only what controls the terminal: progress and coloured pictures."""
    controls = re.compile(r'click\.(?:secho|echo)\((?:f?"\\r|terminal_picture\(picture\))')
    for path in (ROOT / "whatif" / "cli").glob("*.py"):
        calls = re.findall(r"click\.s?echo\(.*|(?<!\w)print\(.*", path.read_text())
        assert path.name == "echo.py" or all(map(controls.match, calls)), path


def test_the_scenario_of_these_tests_is_good(whatif_main, tmp_path):
    (tmp_path / "s.toml").write_text(HEAD)
    code, out, _ = whatif_main("run", "s.toml", "--format", "json")
    assert code == 0
    assert json.loads(out)["rows"][0]["total_time"] > 0


# One wrong line: what it becomes, the key the message must name, and what it must say.
HALO, WORK, GRID = "application.phases.halo", "application.phases.work", "application.grid"
SIZE = f"{HALO}.element_size"
OLD = 'element_size = "8 B"'
NO_UNIT, NO_NUMBER = "has no unit; write a quantity in B, such as `64 KiB`", "is not a number with a unit"
WRONG_LINES = [
    (OLD, 'element_sise = "8 B"', f"{HALO}.element_sise", "did you mean `element_size`"),
    (OLD, "exchanges = 2", f"{HALO}.exchanges", "did you mean `exchange_count`"),
    (OLD, 'zzz = "8 B"', f"{HALO}.zzz", "unknown key; known keys: concurrency,"),
    (OLD, 'element_size = "8"', SIZE, NO_UNIT),
    (OLD, "element_size = 8", SIZE, "has no unit"),
    (OLD, 'element_size = "8 Gb"', SIZE, "Gbit or GB"),
    (OLD, 'element_size = "3 us"', SIZE, "is in s; write a quantity in B"),
    (OLD, 'element_size = "0 us"', SIZE, "is in s; write a quantity in B"),
    (OLD, 'element_size = "-8 B"', SIZE, "must be greater than 0 B"),
    (OLD, "element_size = 0", SIZE, "must be greater than 0 B"),
    (OLD, "element_size = nan", SIZE, "not a finite number"),
    (OLD, "element_size = inf", SIZE, "not a finite number"),
    (OLD, "element_size = -inf", SIZE, "not a finite number"),
    (OLD, 'element_size = "nan B"', SIZE, NO_NUMBER),
    (OLD, 'element_size = "inf B"', SIZE, NO_NUMBER),
    (OLD, 'element_size = "1e999 B"', SIZE, "too large"),
    (OLD, 'element_size = "1 EB^9*EB^9*EB^9"', SIZE, "too large"),
    (OLD, 'element_size = ""', SIZE, "no value; write a quantity in B, such as `64 KiB`"),
    (OLD, "element_size = true", SIZE, "is not a quantity"),
    (OLD, 'element_size = ["8 B"]', SIZE, "is not a quantity"),
    (OLD, "element_size = 1979-05-27", SIZE, "is not a quantity"),
    (OLD, "element_size = { x = 1 }", SIZE, "is not a quantity"),
    (OLD, 'element_size = "= 8 B +"', SIZE, "at the end"),
    (OLD, "element_size = \"= __import__('os')\"", SIZE, "cannot read"),
    (OLD, 'element_size = "= n * 8 B"', SIZE, "`n`: neither a value of `[parameters]`"),
    (OLD, 'element_size = "= application.phases.halo.element_size"', SIZE, "depends on itself"),
    ("rank_count = 16", 'rank_count = "16 ranks"', "application.rank_count", "`16 ranks` is not a number; write"),
    ("rank_count = 16", "rank_count = 0", "application.rank_count", "a whole number of at least 1"),
    ("rank_count = 16", "rank_count = -4", "application.rank_count", "a whole number of at least 1"),
    ("rank_count = 16", "rank_count = 1.5", "application.rank_count", "a whole number of at least 1"),
    ("rank_count = 16", "rank_count = 9007199254740993", "application.rank_count", "beyond 2^53"),
    ("rank_count = 16", "rank_count = " + "9" * 400, "application.rank_count", "beyond 2^53"),
    ("rank_count = 16", 'rank_count = "1e300"', "application.rank_count", "of at least 1 and at most 2^53"),
    ("rank_count = 16", "rank_count = 1e16", "application.rank_count", "a whole number of at least 1 and at most 2^53"),
    ("rank_count = 16", 'rank_count = "16 s"', "application.rank_count", "is in s"),
    ("rank_count = 16", "ranks = 16", "application.rank_count", "missing key"),
    ("compute_fraction = 0.5", "compute_fraction = 1.5", f"{WORK}.compute_fraction", "between 0 and 1"),
    ("compute_fraction = 0.5", "compute_fraction = -0.1", f"{WORK}.compute_fraction", "between 0 and 1"),
    ('overhead_time = "3 us"', 'overhead_time = "-3 us"',
     "application.phases.pause.overhead_time", "at least 0 s"),
    ('model = "postal"', 'model = "postall"', f"{HALO}.model", "did you mean `postal`"),
    ('model = "postal"', "model = 3", f"{HALO}.model", "is not one of postal, max_rate"),
    ('model = "postal"', 'model = "loggp"',
     f"{HALO}.model", "`loggp` has no parameters; Summit has postal, max_rate"),
    ('kind = "halo"', 'kind = "hallo"', f"{HALO}.kind", "did you mean `halo`"),
    ('kind = "halo"', "", HALO, "missing key `kind`; one of kernel, measured_kernel, halo"),
    ('neighbours = "faces"', "", f"{HALO}.neighbours", "missing key; one of faces, all"),
    ('scaling = "weak"', "", f"{GRID}.scaling", "missing key; one of weak, strong"),
    ('kind = "overhead"', "kind = 3", "application.phases.pause.kind", "is not one of"),
    ('scaling = "weak"', "scaling = true", f"{GRID}.scaling", "is not one of weak, strong"),
    ('scaling = "weak"', 'scaling = "weak"\nperiodic = 1', f"{GRID}.periodic", "must be true or false"),
    ('scaling = "weak"', 'scaling = "weak"\nperiodic = "yes"', f"{GRID}.periodic", "must be true or false"),
    ('scaling = "weak"', 'scaling = "weak"\ndecomposition = "given"',
     f"{GRID}.ranks", "requires ranks along x, y"),
    ("cells = { x = 1000, y = 1000 }", "cells = {}", f"{GRID}.cells", "at least 1 item"),
    ("cells = { x = 1000, y = 1000 }", "cells = 1000", f"{GRID}.cells", "must be a table"),
    ("cells = { x = 1000, y = 1000 }", 'cells = { "x.y" = 1000 }', f"{GRID}.cells.x.y", "must start with a letter"),
    ("cells = { x = 1000, y = 1000 }", "cells = { x = 1000, y = 0 }", f"{GRID}.cells.y", "at least 1"),
    ("[application.phases.pause]", "[application.phases.total]", "application.phases.total", "`total` is reserved"),
    ("[application.phases.pause]", "[application.phases.9a]", "application.phases.9a", "must start with a letter"),
    ("[application.phases.pause]", '[application.phases."Δt"]', "application.phases.Δt", "hold only ASCII letters"),
    ('name = "Test"', "name = 3", "application.name", "must be a text in quotes"),
    ('metrics_per = "launch"', 'metrics_per = "launch"\nfollows = "cells"',
     f"{WORK}.profiled_cells", "requires the cells of the profiled run along x, y"),
    ('metrics_per = "launch"', 'metrics_per = "launch"\nfollows = "cells"\nprofiled_cells = { x = 10 }',
     f"{WORK}.profiled_cells", "along x, y"),
    ('neighbours = "faces"', 'neighbours = "faces"\nmessage_sizes = { x = "1 B" }',
     f"{HALO}.message_sizes", "needs exactly the keys x, y"),
    ('platform = "summit"', 'platform = "my machine"', "platform", "has only ASCII letters, digits"),
    ('platform = "summit"', 'platform = "sumit"', "platform", "did you mean `summit`"),
    ('platform = "summit"', 'platform = "/etc/passwd"', "platform", "put the file next to the scenario"),
    ('platform = "summit"', 'platform = "../summit"', "platform", "or name its folder by --platform-dir"),
    ('platform = "summit"', f'platform = "{"a" * 300}"', "platform", "not found"),
    ('platform = "summit"', "platform = 3", "platform", "must be a table"),
    ('platform = "summit"', 'extends = "../x"', "extends", "put the file next to this one"),
    ('platform = "summit"', 'extends = "jacobi3d"', "extends", "did you mean `jacobi2d`"),
    ('platform = "summit"', "extends = 3", "extends", "known:"),
    ('platform = "summit"', f'extends = "{"a" * 300}"', "extends", "not found"),
    ('platform = "summit"', 'platform = "summit"\nsources = 3', "sources", "must be a table"),
    ('platform = "summit"', 'platform = "summit"\nsources = { a = { grade = "good", source = "x" } }',
     "sources.a.grade", "is not one of measured, datasheet, assumed"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "key", "reported"), WRONG_LINES)
def test_one_wrong_line(whatif_main, tmp_path, old, new, key, reported):
    text = edited(old, new)
    (tmp_path / "s.toml").write_text(text)
    code, out, err = whatif_main("run", "s.toml", "--format", "json")
    assert code == 3
    assert out == ""
    found = re.findall(r"^(?:whatif: )?s\.toml:(\d+):(\d+): ([^:]+): (.*)$", err, re.MULTILINE)
    matching = [
        (int(line), int(column)) for line, column, shown, message in found if shown == key and reported in message
    ]
    assert matching, err
    line, _ = matching[0]
    # The line named is the one with the key, or the header of the table that lacks it.
    last = key.rpartition(".")[2]
    shown = text.splitlines()[line - 1]
    assert last in shown or shown.startswith("["), shown
    assert whatif_main("check", "s.toml")[0] == 3


PLATFORM_LINES = [
    ('bandwidth = "3 us"', "is in s; write a quantity in B/s, such as `12.5 GB/s`"),
    ('bandwidth = "12.5"', "has no unit; write a quantity in B/s"),
    ('bandwidth = "12.5 Gb/s"', "Gbit or GB"),
    ("bandwidth = 0", "must be greater than 0 B/s"),
    ('bandwidth = "0 GB/s"', "must be greater than 0 B/s"),
    ('bandwidth = "0 ns/B"', "write a quantity in B/s"),
    ('bandwidth = "-1 GB/s"', "must be greater than 0 B/s"),
    ('bandwidth = "1e-320 s/B"', "must be greater than 0 B/s"),
    ('bandwith = "1 GB/s"', "did you mean `bandwidth`"),
]


@pytest.mark.parametrize(("line", "message"), PLATFORM_LINES)
def test_one_wrong_line_of_a_platform(whatif_main, tmp_path, line, message):
    text = f'extends = "summit"\nname = "Mine"\n[network.inter_node.postal.eager]\n{line}\n'
    (tmp_path / "mine.toml").write_text(text)
    (tmp_path / "s.toml").write_text(edited('"summit"', '"mine"'))
    key = f"network.inter_node.postal.eager.{line.partition(' ')[0]}"
    code, _, err = whatif_main("run", "s.toml")
    assert (code, f"mine.toml:4:1: platform.{key}: " in err, message in err) == (3, True, True), err
    code, _, err = whatif_main("check", "mine.toml")
    assert (code, f"mine.toml:4:1: {key}: " in err, message in err) == (3, True, True), err


def test_the_ends_of_a_link_and_values_below_a_bound_are_explained(whatif_main, tmp_path):
    text = """extends = "summit"
[node.links.a]
ends = ["nic0", "gpu0"]
bandwidth = "1 GB/s"
[node.cpu]
sustained_fraction = 0
"""
    (tmp_path / "mine.toml").write_text(text)
    code, _, err = whatif_main("check", "mine.toml")
    assert code == 3
    assert "`nic0` must be `cpu`, `gpu` or `switch` and a number, such as `gpu0`" in err
    assert "`0` is not allowed; it must be greater than 0 and at most 1" in err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("platfrm,rank_count,iteration_time [us]\nsummit,6,5400\n", "did you mean `platform`"),
        (
            "platform,rank_count,iteration_time [us]\nsummit,6,5400\nsummit,12\n",
            "a.csv:3:1: a row that was cut off\n",
        ),
        ("rank_count,iteration_time [ms]\n6,abc\n", "a.csv:2:1: iteration_time [ms]: `abc` is not a number\n"),
        ("rank_count,iteration_time\n6,5\n12,x\n18,y\n24,z\n", "a.csv:3:1: iteration_time: `x` is not a number; state"),
        ("rank_count,iteration_time [ms]\n6,5\nabc,5\n", "a.csv:3:1: rank_count: `abc` is not a number"),
        ("rank_count,iteration_time [ms]\n6,5\nabc,5\n12,4\n", "a.csv:3:1: rank_count: `abc` is not a number\n"),
        (
            "rank_count,iteration_time [ms]\n6,1e400\n",
            "a.csv:2:1: iteration_time [ms]: inf: too large for a 64-bit float",
        ),
        ("platform,iteration_time [ms]\nsummit,5\n\nsummt,4\n", "a.csv:4:1: `summt`: platform not found"),
    ],
)
def test_files_of_runs_name_what_is_wrong(whatif_main, tmp_path, rows, message):
    (tmp_path / "a.csv").write_text(rows)
    code, _, err = whatif_main("validate", "jacobi2d", "--runs", "a.csv")
    assert code == 3
    assert message in err


def test_a_scenario_that_extends_a_platform_is_told_how_to_use_it(whatif_main, tmp_path):
    (tmp_path / "mine.toml").write_text('extends = "summit"\n[node]\ngpu_count = 4\n')
    (tmp_path / "app.toml").write_text('extends = "mine.toml"\n[application]\nrank_count = 4\n')
    code, _, err = whatif_main("run", "app.toml")
    assert code == 3
    assert 'app.toml:1:1: extends: `mine.toml` is a platform, not a scenario: `platform = "mine"` uses it' in err
    assert "unknown key" not in err


def test_a_machine_in_other_words_is_answered_with_the_keys(whatif_main, tmp_path):
    text = """name = "M"
node_count = 4
[node]
sockets = 2
gpus = 4
gpu = "h100-sxm5-80gb"
[network]
inter_node = "infiniband-400"
nics = 4
"""
    (tmp_path / "mine.toml").write_text(text)
    code, _, err = whatif_main("check", "mine.toml")
    assert code == 3
    assert "`sockets`: unknown key; did you mean `socket_count`?" in err
    assert "`gpus`: unknown key; did you mean `gpu_count`?" in err
    assert "`nics`: unknown key; did you mean `port_count`?" in err
    assert 'node.gpu: must be a table, or a part (`whatif list parts`): `gpu.extends = "h100-sxm5-80gb"`' in err
    assert '`inter_node.extends = "infiniband-400"`' in err


def test_an_application_in_other_words_is_answered_with_the_keys(whatif_main, tmp_path):
    text = """name = "solver"
platform = "frontier"
[application]
name = "solver"
num_ranks = 512
tasks_per_node = 8
[application.phases.sweep]
kind = "kernel"
flops = "300 Mflop"
dram_bytes = "200 MB"
precision = "fp64"
[application.phases.halo]
kind = "halo"
bytes = "1 MiB"
"""
    (tmp_path / "mine.toml").write_text(text)
    code, _, err = whatif_main("check", "mine.toml")
    assert code == 3
    assert "mine.toml:1:1: name: `name`: unknown key; did you mean `application.name` or `platform.name` or" in err
    assert "`num_ranks`: unknown key; did you mean `rank_count`?" in err
    assert "`tasks_per_node`: unknown key; did you mean `ranks_per_node`?" in err
    assert "`flops`: unknown key; did you mean `operations`?" in err
    assert "`dram_bytes`: unknown key; did you mean `dram_size`?" in err
    assert "`precision`: unknown key; did you mean `dominant_operation`?" in err
    assert "`bytes`: unknown key; did you mean `message_size`?" in err


@pytest.mark.parametrize(
    ("stated", "listed"),
    [
        ('operation = "broadcast"', "one of best, binomial_tree, scatter_ring_allgather, linear_broadcast, "
         "ring_broadcast, switch_multicast, measured\n"),
        ('operation = "reduce"\nmodel = "postal"', "one of best, binomial_tree, linear_reduce, measured\n"),
        ('operation = "allreduce"\nmodel = "nccl"', "one of best, ring, hierarchical, double_binary_tree, measured\n"),
        ('operation = "reduce"\nalgorithm = "tree"', "not one of best, binomial_tree, linear_reduce, measured\n"),
        ('model = "nccl"', "one of best, recursive_doubling, rabenseifner, ring, bidirectional_ring"),
    ],
)  # fmt: skip
def test_algorithms_are_those_of_the_stated_operation(whatif_main, tmp_path, stated, listed):
    text = f'extends = "jacobi2d"\n[application.phases.new]\nkind = "collective"\nmessage_size = "8 B"\n{stated}\n'
    (tmp_path / "mine.toml").write_text(text)
    code, _, err = whatif_main("check", "mine.toml")
    assert code == 3
    assert listed in err


@pytest.mark.parametrize("word", ["bandwidth", "latency"])
@pytest.mark.parametrize("table", ["", "inter_node."])
def test_rates_of_messages_in_other_words_are_answered_with_what_changes_messages(whatif_main, table, word):
    code, _, err = whatif_main("run", "jacobi2d", "--set", f"platform.network.{table}{word}=20 GB/s")
    below = "" if table else "inter_node."
    assert code == 3
    assert f"`{word}`: unknown key; state the rates of messages by a part, `{below}extends = " in err
    assert f"or in the tables `{below}max_rate` or `{below}postal`" in err
    times = {whatif_main("run", "jacobi2d", "--format", "csv", *words)[1] for words in (
        (), ("--set", "platform.network.inter_node.extends=infiniband-200")
    )}  # fmt: skip
    assert len(times) == 2


def test_a_study_in_other_words_is_answered_with_the_keys(whatif_main, tmp_path):
    text = """title = "Machine of 2027"
present = { platform = "lassen", nodes = 100 }
bids.a = { platform = "alps", price_per_node = "100 kEUR", max_nodes = 5 }
mix.x = { scenario = "minife", share = 0.5 }
limits = { budget = "10 MEUR", years = 5 }
site = { pue = 1.2 }
"""
    (tmp_path / "tender.toml").write_text(text)
    code, _, err = whatif_main("check", "tender.toml")
    assert code == 3
    meant = {"title": "question", "nodes": "node_count", "price_per_node": "node_price", "max_nodes": "node_count",
             "share": "weight", "budget": "capital", "years": "lifetime",
             "pue": "power_usage_effectiveness"}  # fmt: skip
    for word, key in meant.items():
        assert f"`{word}`: unknown key; did you mean `{key}`?" in err


@pytest.mark.parametrize(
    "arguments", [("run", "mine.toml"), ("diff", "mine.toml", "jacobi2d"), ("explain", "mine.toml")]
)
def test_a_platform_in_place_of_a_scenario_is_told_how_to_use_it(whatif_main, tmp_path, arguments):
    (tmp_path / "mine.toml").write_text('extends = "summit"\nname = "Mine"\n[node]\ngpu_count = 4\n')
    code, out, err = whatif_main(*arguments)
    assert (code, out) == (3, "")
    assert "is a platform, not a scenario: `whatif run SCENARIO --platform mine.toml` uses it" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "mine.toml"), "mine.toml:1:1: is a part, not a scenario"),
        (("run", "jacobi2d", "--platform", "mine.toml"), "`mine` is a part, not a platform"),
    ],
)
def test_a_part_in_place_of_a_file_is_told_how_to_use_it(whatif_main, tmp_path, arguments, said):
    text = 'part = "cpu"\nname = "Mine"\ncore_count = 8\npeak_double_rate = "1 Tflop/s"\n'
    (tmp_path / "mine.toml").write_text(text)
    code, out, err = whatif_main(*arguments)
    assert (code, out) == (3, "")
    assert f'{said}: a platform names it in one of its tables, such as `cpu.extends = "epyc-9654"`' in err


def test_a_fit_into_a_scenario_in_place_of_a_platform_is_told_its_command(whatif_main, tmp_path):
    text = (ROOT / "scenarios" / "jacobi2d.toml").read_text()
    (tmp_path / "mine.toml").write_text(text)
    measured = ROOT / "docs" / "examples" / "osu_bw_nodes.txt"
    code, _, err = whatif_main("fit", "network", str(measured), "-o", "mine.toml")
    assert code == 3
    assert err.endswith("mine.toml:1:1: is a scenario, not a platform: `whatif run mine.toml` evaluates it\n")
    assert (tmp_path / "mine.toml").read_text() == text


def test_the_name_of_a_platform_in_place_of_a_scenario_is_told_how_to_use_it(whatif_main):
    code, out, err = whatif_main("run", "summit")
    assert (code, out) == (3, "")
    assert "summit: is a platform, not a scenario: `whatif run SCENARIO --platform summit` uses it" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "s.toml", "--platform", "summit", "--platform", "mine"),
        ("budget", "s.toml", "--platform", "mine", "--power", "1 MW"),
        ("run", "s.toml", "--sweep", "platform=summit, mine"),
    ],
)
def test_an_invalid_platform_is_an_error_and_not_a_machine_without_an_answer(whatif_main, tmp_path, arguments):
    (tmp_path / "s.toml").write_text('extends = "jacobi2d"\n')
    (tmp_path / "mine.toml").write_text('extends = "summit"\n[node.gpu]\npeak_double_rate = "7 TF/s"\n')
    code, out, err = whatif_main(*arguments)
    assert (code, out) == (3, "")
    assert "mine.toml:3:1: " in err
    assert "unknown unit `TF`; did you mean Tflop?" in err


def test_an_empty_platform_is_blamed_itself(whatif_main, tmp_path):
    (tmp_path / "empty.toml").write_text("")
    code, out, err = whatif_main("run", "jacobi2d", "--platform", "empty.toml")
    assert (code, out) == (3, "")
    assert err.startswith("whatif: empty.toml: is empty; `whatif new NAME --gpu GPU` writes a machine")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "jacobi2d", "--sweep", "rank_count=6, 12"),
        ("run", "jacobi2d", "--set", "rank_count=6"),
        ("seek", "jacobi2d", "--vary", "rank_count", "--target", "iteration_time <= 5 ms"),
    ],
)
def test_a_parameter_without_its_table_is_found(whatif_main, arguments):
    code, out, err = whatif_main(*arguments)
    assert code in (2, 3)
    assert out == ""
    assert err.rstrip().endswith("did you mean `application.rank_count`?")


def test_all_errors_of_a_file_are_reported_at_once(whatif_main, tmp_path):
    text = HEAD.replace('"8 B"', '"8 Gb"').replace("rank_count = 16", "rank_cuont = 16").replace('"3 us"', "3")
    (tmp_path / "s.toml").write_text(text)
    code, _, err = whatif_main("run", "s.toml")
    assert code == 3
    for place_of in ("rank_cuont", "element_size", "overhead_time"):
        assert f"s.toml:{place(text, place_of)}: " in err
    assert "application.rank_count: missing key" in err
    lines = [int(line) for line in re.findall(r"^s\.toml:(\d+):", err, re.MULTILINE)]
    assert lines == sorted(lines)
    assert len(lines) == 4


def test_errors_of_several_files_are_reported_at_once(whatif_main, tmp_path):
    (tmp_path / "mine.toml").write_text('extends = "summit"\nnode_cuont = 3\n')
    (tmp_path / "s.toml").write_text(edited('"summit"', '"mine"').replace("8 B", "8 b"))
    code, _, err = whatif_main("run", "s.toml")
    assert code == 3
    assert "mine.toml:2:1: platform.node_cuont" in err
    assert "s.toml:" in err
    code, out, err = whatif_main("check", "mine.toml", "jacobi2d", "s.toml", "nothing.toml")
    assert code == 3
    assert out == "jacobi2d: ok (scenario)\n"
    assert "node_cuont" in err
    assert "nothing.toml" in err


@pytest.mark.parametrize(
    ("verb", "file", "advice"),
    [
        ("run", "HPL.dat", "HPL.dat: an input of HPL; `whatif hpl HPL.dat --platform PLATFORM` simulates its runs\n"),
        ("run", "ours.goal", "ours.goal: of another program; `whatif import trace ours.goal` reads it\n"),
        ("compare", "HPCG.txt", "HPCG.txt: of another program; `whatif import logs HPCG.txt` reads it\n"),
        (
            "run",
            "runs.csv",
            "runs.csv: a table, not a scenario; `whatif validate SCENARIO --runs runs.csv` compares measured runs\n",
        ),
        ("run", "ours.nvvp", "ours.nvvp: of another program; `whatif import profile ours.nvvp` reads it\n"),
        ("check", "ours.nvvp", "ours.nvvp: of another program; `whatif import profile ours.nvvp` reads it\n"),
        ("run", "long.goal", "long.goal: of another program; `whatif import trace long.goal` reads it\n"),
        ("run", "some.png", "some.png: this is a binary file, not text\n"),
        ("run", "cut.json", "cut.json:2:1: not JSON: Expecting value; is the file cut off?\n"),
        (
            "import",
            "HPL.dat",
            "HPL.dat: an input of HPL; `whatif hpl HPL.dat --platform PLATFORM` simulates its runs\n",
        ),
    ],
)
def test_a_file_of_another_program_is_answered_with_the_verb_that_reads_it(verb, file, advice, whatif_main, tmp_path):
    (tmp_path / "HPL.dat").write_text("HPLinpack benchmark input file\n")
    (tmp_path / "ours.goal").write_text("num_ranks 1\nrank 0 {\nl1: calc 10\n}\n")
    (tmp_path / "ours.nvvp").write_bytes((ROOT / "docs" / "examples" / "lammps.nvvp").read_bytes())
    (tmp_path / "long.goal").write_text("num_ranks 1\nrank 0 {\nl1: calc 10\n}\n" + "\n" * 1_000_000)
    (tmp_path / "some.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (tmp_path / "runs.csv").write_text("rank_count,iteration_time [s]\n2,0.1\n")
    (tmp_path / "cut.json").write_text('{"a": [1,\n')
    logs = DATA / "runs" / "logs" / "hpcg" / "HPCG-Benchmark_3.1_8nodes.txt"
    (tmp_path / "HPCG.txt").write_bytes(logs.read_bytes())
    words = {"import": ("import", "trace", file), "compare": ("compare", file, "--platform", "summit")}
    code, out, err = whatif_main(*words.get(verb, (verb, file)))
    assert (code, out) == (3, "")
    assert err.endswith(f"whatif: {advice}")


RAW = {
    "syntax": (b'a = "b\n', "s.toml:1:7: not TOML"),
    "end": (b"a = [1,", "s.toml:1:1: not TOML"),
    "twice": (b"a = 1\na = 2\n", "s.toml:2:6: not TOML: `a` is stated twice"),
    "control": (b'a = "\x01"\n', "s.toml:1:6: not TOML"),
    "nul": (b"\x00", "s.toml:1:1: not TOML"),
    "utf8": (b"# ok\na = '\xff'\n", "s.toml:2:1: not UTF-8: byte 0xff; save the file as UTF-8 text"),
    "no closing quote": (b'a = "one\nb = 2\n', "s.toml:1:9: not TOML: a text has no closing quote\n"),
    "no closing apostrophe": (b"a = 'one\nb = 'two'\n", "s.toml:1:9: not TOML: a text has no closing quote\n"),
    "no quote at all": (b"a = 'one\nb = 2\n", "s.toml:3:1: not TOML: a text has no closing quote\n"),
    "no closing bracket": (b"a = [1\nb = 2\n", "s.toml:2:1: not TOML: Unclosed array\n"),
    "utf16": ("a = 1".encode("utf-16"), "s.toml:1:1: not UTF-8"),
    "brackets": (b"x = " + b"[" * 100_000 + b"]" * 100_000, "s.toml:1:1: not TOML"),
    "open": (b"x = " + b"[" * 100_000, "s.toml:1:1: not TOML"),
    "braces": (b"x = " + b"{ a = " * 50_000, "s.toml:1:1: not TOML"),
    "keys": (b"a." * 100_000 + b"a = 1", "s.toml:1:1: not TOML"),
    "deep": (b"a." * 900 + b"a = 1", "s.toml:1:1: a: tables are nested"),
    "digits": (b"a = " + b"1" * 10_000, "s.toml:1:1: not TOML"),
    "carriage returns": (
        b'# Mine\rplatform = "summit"\r',
        "; its lines end with CR alone: convert them, such as with `tr '\\r' '\\n' < OLD > NEW`",
    ),
    "large": (b"# " + b"x" * 10_000_000, "s.toml: larger than 1000 kB"),
    "empty": (b"", "s.toml: is empty; `whatif new` writes a scenario to begin with"),
    "list": (b"application = [1]\nplatform = [2]", "s.toml:1:1: application: `[1]` must be a table"),
    "tables": (b"[[application]]\n", "s.toml:1:1: application: "),
}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("platform = perlmutter", '; write `platform = "perlmutter"`'),
        ("a = 12 GB/s  # of a port", '; write `a = "12 GB/s"`'),
        ("a.b = True", "; write `a.b = true`"),
        ("a = off", "; write `a = false`"),
        ("a: 3.5", "; write `a = 3.5`"),
        ("rank_count = 64 ranks", "; write `rank_count = 64`"),
        ("scaling = weak;", '; write `scaling = "weak"`'),
        ("when = 3 hours", '; write `when = "3 hours"`'),
        ("a = “8 flop”", '; texts stand between straight quotes, `"`'),
        ("a = 1,5", ""),
        ("a b = 3", ""),
        ('a = "x" y', ""),
        ("a =", ""),
        ("a = 3\na = 4", ""),
    ],
)
def test_a_value_without_quotes_is_told_with_them(whatif_main, tmp_path, text, meant):
    (tmp_path / "s.toml").write_text(text + "\n")
    code, out, err = whatif_main("run", "s.toml")
    assert (code, out) == (3, "")
    _, sign, told = err.removesuffix("\n").partition("; ")
    assert sign + told == meant


BEFORE = 'platform = "summit"\n[application]\nname = "a"\nrank_count = 4\niteration_count = 1\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[phases.halo]\nkind = "halo"',
            "s.toml:6:1: phases: `phases`: unknown key; did you mean `application.phases`",
        ),
        ("[grid]", "grid: `grid`: unknown key; did you mean `application.grid`?"),
        ("[cpu]", "cpu: `cpu`: unknown key; did you mean `platform.node.cpu`?"),
        ("[application.grid]\ncells = [8, 4]", "`[8, 4]` must be a table: `cells = { x = 8, y = 4 }`"),
        (
            '[[application.phases]]\nkind = "halo"',
            "`[[application.phases]]`; write `[application.phases.NAME]`, each",
        ),
        ('[application.phases]\nkind = "halo"', "must be a table with a name: write `[application.phases.NAME]`, and"),
        ('[application.overlaps]\nphases = ["a", "b"]', "write `[application.overlaps.NAME]`, and this key in it"),
        ('name = "b"', "s.toml:6:11: not TOML: `name` is stated twice\n"),
        (
            "[platform.node]\ngpu_count = 2",
            "s.toml:6:15: not TOML: `platform.node`: the platform is stated already; to ",
        ),
        ("[application.grid]\n[application.grid]", "s.toml:7:18: not TOML: `application.grid` is stated twice"),
    ],
)
def test_a_table_in_the_wrong_place_is_told_where_it_belongs(whatif_main, tmp_path, text, message):
    (tmp_path / "s.toml").write_text(f"{BEFORE}{text}\n")
    code, _, err = whatif_main("run", "s.toml")
    assert code == 3
    assert message in err


@pytest.mark.parametrize("name", ["b200", "b200-sxm-180gb"])
def test_a_part_of_a_name_is_preferred_to_a_similar_one(whatif_main, name):
    err = whatif_main("run", "jacobi2d", "--set", f"platform.node.gpu.extends={name}")[2]
    assert "part not found; did you mean `b200-sxm`?" in err


@pytest.mark.parametrize("name", RAW)
def test_files_that_are_no_scenario(whatif_main, tmp_path, name):
    content, text = RAW[name]
    (tmp_path / "s.toml").write_bytes(content)
    for verb in ("run", "check", "explain", "resolve"):
        code, out, err = whatif_main(verb, "s.toml")
        assert (code, out) == (3, ""), verb
        assert text in err
        assert len(err) < 5000


@pytest.mark.parametrize("name", ["folder.toml", ".", ".."])
def test_a_folder_is_no_file(whatif_main, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.toml").mkdir()
    for verb in (("run", name), ("check", name), ("study", name)):
        code, out, err = whatif_main(*verb)
        assert (code, out, err) == (3, "", f"whatif: {name}: is a folder, not a file\n")
    assert "`folder.toml`: platform is a folder" in whatif_main("run", "jacobi2d", "--platform", "folder.toml")[2]


def test_a_folder_does_not_hide_a_shipped_name(whatif_main, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jacobi2d").mkdir()
    assert whatif_main("check", "jacobi2d")[0] == 0


def test_a_platform_file_in_the_present_folder_is_a_hint(whatif_main, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours.toml").write_text('extends = "summit"\n')
    assert "did you mean the file `ours.toml`?" in whatif_main("run", "jacobi2d", "--platform", "ours")[2]


def test_a_table_as_text_names_its_keys(whatif_main):
    err = whatif_main("run", "jacobi2d", "--set", "application.grid.cells={x=100, y=100}")[2]
    assert "is a text, not a table; set its keys, such as application.grid.cells.x" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sensitivity", "jacobi2d", "--result", "hallo"), "`hallo`: no such result or phase; did you mean `halo`"),
        (("compare", "jacobi2d", "--platform", "summit,frontier"),
         "--platform summit,frontier: one name each time: --platform summit --platform frontier"),
        (("explain", "jacobi2d", "gpu_count"), "did you mean `platform.node.gpu_count`?"),
        (("explain", "jacobi2d", "dram_bandwidth"), "did you mean `platform.node.gpu.dram_bandwidth`?"),
        (("run", "jacobi2d", "--platform", "generic_cpu", "--sweep", "platform.node.gpu_count=1, 2"),
         "Generic server has no GPUs: there is no `platform.node.gpu_count`"),
        (("new", "x", "--gpu", "h100-sxm"), "did you mean `h100-sxm5-80gb`?"),
        (("run", "jacobi2d", "--sweep", "platform.price.lifetime=1 year, 2 years"),
         "`platform.price.lifetime` is not stated in this scenario; give it a value first with --set"),
        (("run", "jacobi2d", "--set", "platform.price.node_price=50 kUSD", "--sweep",
          "platform.price.node_price=50 kUSD, 60 kUSD"),
         "has no effect on any result of this scenario; total_cost needs platform.price.lifetime and"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do(whatif_main, words, message):
    code, out, err = whatif_main(*words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("application.phases.stencil.operations=8 Flops", "unknown unit `Flops`; write a quantity in flop, such as"),
        ("application.phases.stencil.operations=8 GFlop", "did you mean `Gflop`?"),
        ("platform.price.node_price=40 M", "unknown unit `M`; write a price such as `12 MUSD`"),
        ("platform.price.node_price=40 kUSD/node", "unknown unit `node`; write a price such as `12 MUSD`"),
        ("platform.node.gpu.dram_bandwidth=900 gb/s", "unknown unit `gb`; did you mean `GB/s` or `Gbit/s`?"),
        ("platform.node.gpu.dram_bandwidth=900 GB/S", "unknown unit `S`; did you mean `GB/s`?"),
        ("platform.node.gpu.dram_bandwidth=900 gb", "unknown unit `gb`; write a quantity in B/s, such as"),
    ],
)
def test_suggested_units_are_those_that_the_value_can_have(whatif_main, text, message):
    assert message in whatif_main("run", "jacobi2d", "--set", text)[2]


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        ('kind = "allreduce"', 'trace, gemm; write `kind = "collective"` with `operation = "allreduce"`\n'),
        ('kind = "roofline"', 'trace, gemm; write `kind = "kernel"` with `model = "roofline"`\n'),
        ('kind = "kernal"', "did you mean `kernel`?"),
        ('kind = "halo"\noperation = "allreduce"', "unknown key; `operation` is a key of the kind `collective`\n"),
        ('kind = "kernel"\ntime = "3 ms"', "`kernel_time` is a key of the kind `measured_kernel`, `overhead_time` is"),
        ('kind = "overhead"\ntime = "3 ms"', "`time`: unknown key; did you mean `overhead_time`?"),
        ('kind = "overhead"\nzzz = "3 ms"', "`zzz`: unknown key; known keys: kind, overhead_time"),
    ],
)
def test_the_keys_and_values_of_another_kind_of_phase_name_that_kind(whatif_main, tmp_path, phase, message):
    head = 'extends = "jacobi2d"\n[application.phases.own]\n'
    (tmp_path / "mine.toml").write_text(head + phase)
    code, _, err = whatif_main("check", "mine.toml")
    assert code == 3
    assert message in err


def test_an_expression_of_gpus_on_a_machine_without_them_says_so(whatif_main):
    code, _, err = whatif_main("run", "game_of_life", "--platform", "generic_cpu")
    assert code == 3
    assert "`platform.node.gpu.dram_bandwidth`: Generic server has no GPUs" in err


def test_a_wrong_algorithm_is_that_of_its_option(whatif_main):
    trace = ROOT / "docs" / "examples" / "tree.goal"
    code, _, err = whatif_main("simulate", trace, "--platform", "summit", "--collective", "alreduce=ring")
    assert code == 2
    assert "--collective alreduce=ring: `alreduce` is not a collective: barrier, " in err
    assert err.endswith("; did you mean `allreduce` or `reduce`?\n")


def test_explain_takes_the_names_of_phases_that_results_have(whatif_main):
    assert whatif_main("explain", "jacobi2d", "terms.halo") == whatif_main("explain", "jacobi2d", "halo")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "successor"), "successor: is a study, not a scenario: `whatif study successor` answers it"),
        (("run", "successor.toml"), "is a study, not a scenario: `whatif study successor` answers it"),
        (("run", "jacobi2d", "--platform", "successor"), "`successor` is a study, not a platform: `whatif study"),
        (("run", "a100-sxm4-80gb"), "is a part, not a scenario: `--set platform.node.gpu.extends=a100-sxm4-80gb`"),
        (("run", "epyc-7742"), "is a part, not a scenario: `--set platform.node.cpu.extends=epyc-7742` uses it"),
        (("run", "nvlink2-3"), "is a part, not a scenario: a platform names it in one of its tables"),
        (("study", "jacobi2d"), "jacobi2d: is a scenario, not a study: `whatif run jacobi2d` evaluates it"),
        (("study", "summit"), "summit: is a platform, not a study: `whatif run SCENARIO --platform summit` uses it"),
    ],
)
def test_a_shipped_name_of_another_kind_is_told_its_command(whatif_main, words, said):
    code, out, err = whatif_main(*words)
    assert (code, out) == (3, "")
    assert said in err


def test_a_path_that_is_not_there_is_not_answered_with_shipped_names(whatif_main):
    assert whatif_main("run", "sub/nothing.toml") == (3, "", "whatif: sub/nothing.toml: no such file\n")
    assert whatif_main("run", "/dev/null") == (3, "", "whatif: /dev/null: is not an ordinary file\n")


@pytest.mark.parametrize("name", ["nothing", "nothing.toml", "", "a" * 300, "a\nb", "-"])
def test_files_that_are_not_there(whatif_main, name):
    code, out, err = whatif_main("run", "--", name)
    assert (code, out) == (3, "")
    assert "no such file" in err
    assert "jacobi2d" in err


def test_the_nearest_scenario_is_suggested(whatif_main):
    code, _, err = whatif_main("run", "jacobi2")
    assert code == 3
    assert "did you mean `jacobi2d`" in err


@pytest.mark.parametrize(
    ("files", "loop"),
    [
        ({"a": "a"}, "a -> a"),
        ({"a": "b", "b": "a"}, "a -> b -> a"),
        ({"a": "b", "b": "c", "c": "a"}, "a -> b -> c -> a"),
        ({"a": "b", "b": "c", "c": "b"}, "a -> b -> c -> b"),
    ],
)
def test_a_file_that_extends_itself(whatif_main, tmp_path, files, loop):
    for name, base in files.items():
        (tmp_path / f"{name}.toml").write_text(f'extends = "{base}"\nnode_count = 3\n')
    (tmp_path / "s.toml").write_text(edited('"summit"', '"a"'))
    for arguments in (
        ("run", "s.toml"),
        ("check", "a.toml"),
        ("run", "jacobi2d", "--platform", "a", "--platform-dir", "."),
    ):
        code, _, err = whatif_main(*arguments)
        assert code == 3
        assert f"extends itself: {loop}" in err
        assert re.search(r"[abc]\.toml:1:1: (platform\.)?extends: ", err)


def test_scenarios_may_extend_and_not_themselves(whatif_main, tmp_path):
    (tmp_path / "s.toml").write_text('extends = "t"\n')
    (tmp_path / "t.toml").write_text('extends = "s"\n')
    code, _, err = whatif_main("run", "s.toml")
    assert code == 3
    assert "t.toml:1:1: extends: extends itself: s -> t -> s" in err


def test_a_chain_that_is_too_long(whatif_main, tmp_path):
    for number in range(30):
        (tmp_path / f"p{number}.toml").write_text(f'extends = "p{number + 1}"\n')
    (tmp_path / "p30.toml").write_text('extends = "summit"\n')
    assert whatif_main("run", "jacobi2d", "--platform-dir", ".", "--platform", "p0")[0] == 3
    assert whatif_main("run", "jacobi2d", "--platform-dir", ".", "--platform", "p25")[0] == 0


SWEEPS = [
    (["platform.node.gpu_count=1 .. 4 step 0"], "the step must be greater than 0"),
    (["platform.node.gpu_count=1 .. 4 step -1"], "the step must be greater than 0"),
    (["platform.node.gpu_count=4 .. 1 step 1"], "START must not be above STOP"),
    (["platform.node.gpu_count=1 .. 1e12 step 1"], "points; the limit is 10,000,000"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s .. 1 TB/s linear 1000000000000"], "the limit is 10,000,000"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s .. 1 TB/s log 1000000000000"], "the limit is 10,000,000"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s .. 1 TB/s log " + "9" * 5000], "sweep `platform.node.gpu"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s .. 2 GB/s step 1e-300 B/s"], "points; the limit is"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s .. 2 GB/s step 1 s"], "is in s; write a quantity in B/s"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s .. 2 GB/s step 1"], "has no unit"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s .. 2 GB/s linear 1"], "number of points of at least 2"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s .. 2 GB/s linear x"], "number of points of at least 2"),
    (["platform.node.gpu.dram_bandwidth=0 .. 2 GB/s log 3"], "must be greater than 0 B/s"),
    (["application.memory_size=0 .. 2 GB log 3"], "a log range needs ends greater than 0"),
    (["platform.node.gpu.dram_bandwidth=1 .. 2 log 3"], "has no unit"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s .. 2 GB/s"], "its number of points or its step; write"),
    (["platform.node.gpu.dram_bandwidth=.."], "sweep `platform.node.gpu.dram_bandwidth`"),
    (["platform.node.gpu.dram_bandwidth="], "expected PATH=SPEC"),
    (["platform.node.gpu.dram_bandwidth"], "expected PATH=SPEC"),
    (["=3"], "no such parameter"),
    ([""], "expected PATH=SPEC"),
    (["platform.node.gpu.dram_bandwidth=nan GB/s"], "is not a number with a unit"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s, inf"], "is not a number with a unit"),
    (["platform.node.gpu.dram_bandwidth=1 GB/s,"], "no value; write a quantity in B/s"),
    (["platform.node.gpu.dram_bandwidth=0"], "must be greater than 0 B/s"),
    (["platform.node.gpu.dram_bandwidth== 3 GB/s"], "must be a number, not an expression"),
    (["platform.node.gpu.dram_bandwith=1 GB/s"], "did you mean `platform.node.gpu.dram_bandwidth`"),
    (["platform.node.gpu_count=1 .. 4 linear 3"], "2.5 is not allowed; it must be a whole number"),
    (["platform.node.gpu_count=1.5"], "a whole number of at least 1\n"),
    (["platform.node.gpu_count=1e16"], "a whole number of at least 1 and at most 2^53"),
    (["platform.node.gpu_count=1 .. 1e16 log 3"], "a whole number of at least 1 and at most 2^53"),
    (["platform.node.gpu_count=*1e16"], "a whole number of at least 1 and at most 2^53"),
    (["platform.node.gpu_count=1, 2", "platform.node.gpu_count=3"], "swept on more than one axis"),
    (["platform.node.gpu_count=1; platform.node.gpu_count=3"], "given twice"),
    (["platform.node.gpu_count=1, 2; application.rank_count=3"], "tied parameters need the same number of values"),
    (["platform.node.gpu_count=1;"], "expected PATH=SPEC"),
    (["application.phases.halo.model=postal, posta"], "did you mean `postal`"),
    (["application.grid.periodic=true, maybe"], "is not one of true, false"),
    (["application.phases.halo.kind=halo, kernel"], "is not one of halo"),
    (["platform.node.gpu.l2_bandwidth=1 GB/s"], "has no effect on any result of this scenario"),
    (["application.phases=1"], "no such parameter"),
    (["sweep.x=1"], "no such parameter"),
    *(
        ([f"platform.node.gpu_count={text}"], f"`{text}` is not a list or range of values; write `1, 2, 4`, `START ..")
        for text in ("1-8", "1:8", "1:8:2", "1 to 8", "1 2 4", "[1,2,4]", "(1, 2)", "range(1,8)")
    ),
    (["platform.node.gpu.dram_bandwidth=1 GB/s to 2 GB/s"], "is not a list or range of values; write"),
    (["platform.node.gpu_count=1 .. 4000 step 1", "application.rank_count=1 .. 4000 step 1"], "16,000,000 points"),
]  # fmt: skip


@pytest.mark.parametrize(("sweeps", "message"), SWEEPS)
def test_wrong_sweeps_are_wrong_usage(whatif_main, tmp_path, sweeps, message):
    (tmp_path / "s.toml").write_text(HEAD)
    options = [word for sweep in sweeps for word in ("--sweep", sweep)]
    code, out, err = whatif_main("run", "s.toml", *options)
    assert (code, out) == (2, "")
    assert message in err


def test_limit_of_points_can_be_set(whatif_main):
    sweep = ("--sweep", "platform.node.gpu_count=1 .. 9 step 1")
    assert whatif_main("run", "jacobi2d", *sweep, "--max-points", "9")[0] == 0
    code, _, err = whatif_main("run", "jacobi2d", *sweep, "--max-points", "8")
    assert code == 2
    assert "9 points; the limit is 8" in err
    assert whatif_main("run", "jacobi2d", "--max-points", "0")[0] == 2


@pytest.mark.parametrize(
    ("key", "spec", "message"),
    [
        ("platform.node.gpu.dram_bandwith", '"1 GB/s"', "did you mean `platform.node.gpu.dram_bandwidth`"),
        ("platform.node.gpu.dram_bandwidth", '"1 GB"', "is in B; write a quantity in B/s"),
        ("platform.node.gpu.dram_bandwidth", '["1 GB/s", 3]', "has no unit"),
        ("platform.node.gpu.dram_bandwidth", '["1 GB/s", nan]', "not a finite number"),
        ("platform.node.gpu.l2_bandwidth", '"1 GB/s"', "has no effect on any result"),
        ("application.phases.halo.model", '["postal", "none"]', "is not one of"),
        ("platform.node.gpu_count", '"1 .. 1e12 step 1"', "points; the limit is 10,000,000"),
        ("platform.node.gpu_count", '"1 .. 4 step 0"', "the step must be greater than 0"),
        ("platform.node.gpu_count", "[]", "at least 1 item"),
        ("platform.node.gpu_count", '""', "at least 1 character"),
        ("platform.node.gpu_count", "[true]", "`True` must be a number"),
        ("platform.node.gpu_count", "[[1]]", "[1]"),
        ("platform.node.gpu_count", "3", "`3`"),
    ],
)
def test_wrong_sweeps_of_a_file_name_their_place(whatif_main, tmp_path, key, spec, message):
    text = f'{HEAD}\n[sweep.mine]\n"{key}" = {spec}\n'
    (tmp_path / "s.toml").write_text(text)
    for verb in ("run", "check"):
        code, out, err = whatif_main(verb, "s.toml")
        assert (code, out) == (3, ""), err
        line = len(text.splitlines())
        assert re.search(rf"s\.toml:({line}|{line - 1}):1: sweep\.mine", err), err
        assert message in err


def test_two_axes_of_a_file_with_one_parameter(whatif_main, tmp_path):
    axis = '"platform.node.gpu_count" = [1, 2]\n'
    (tmp_path / "s.toml").write_text(f"{HEAD}\n[sweep.a]\n{axis}[sweep.b]\n{axis}")
    code, _, err = whatif_main("run", "s.toml")
    assert code in (2, 3)
    assert "`platform.node.gpu_count` is swept on more than one axis" in err


SETS = [
    ("application.rank_count", 2, "expected PATH=VALUE"),
    ("", 2, "expected PATH=VALUE"),
    ("=3", 2, "expected PATH=VALUE"),
    ("platform=lassen", 2, "use --platform NAME"),
    ("application.rank_cuont=3", 3, "did you mean `rank_count`"),
    ("application.rank_count=", 3, "no value; write a number such as 16"),
    ("application.rank_count=four", 3, "is not a number; write a number such as 16"),
    ("application.rank_count=nan", 3, "is not a number; write a number such as 16"),
    ("application.rank_count=-1", 3, "a whole number of at least 1"),
    ("application.rank_count=true", 3, "is not a quantity"),
    ("application.rank_count.x=1", 3, "is not a quantity"),
    ("application.rank_count=16 .. 64", 3, "`16 .. 64` is a range: `S` (explorer) or `--sweep` sweeps it"),
    ("platform.node.gpu.dram_bandwidth=1 TB/s, 2 TB/s", 3, "`1 TB/s, 2 TB/s` is a list: `S`"),
    ("platform.node.gpu.dram_bandwidth=1,5 TB/s", 3, "no comma in numbers"),
    ("platform.price=9 MEUR", 3, "`9 MEUR` must be a table; known keys: energy_price, lifetime, machine_price"),
    ("application=3", 3, "must be a table\n"),
    ("application.grid=some", 3, "must be a table"),
    ("application..rank_count=3", 3, "unknown key"),
    (".=3", 3, "unknown key"),
    ("application.phases.halo.kind=kernel", 3, "missing key"),
    ("application.phases.tim.overhead_time=1 s", 3, "no phase `tim`; phases: pack, halo, unpack, stencil"),
    ("application.phases.haloo.halo_width=2", 3, "no phase `haloo`; did you mean `halo`?"),
    ("halo.halo_width=2", 3, "did you mean `application.phases.halo`?"),
    ("application.phases.new.kind=overhead", 3, "new.overhead_time: missing key"),
    ("application.phases.new.kind=halo", 3, "new.model: missing key; one of postal, max_rate"),
    ("application.phases.halo.model=nonsense", 3, "is not one of"),
    ("application.phases.halo=3", 3, "application.phases.halo"),
    ("application.grid.periodic=maybe", 3, "must be true or false"),
    ("application.phases.halo.element_size== 8 B *", 3, "at the end"),
    ("platform.node.gpu.dram_bandwidth=3 us", 3, "is in s"),
    ("platform.node.gpu_count=x0", 3, "`x0` of 6 is 0; it must be a whole number of at least 1"),
    ("sources.x=1", 3, "sources.x"),
    ("sweep.x=1", 3, "sweep.x"),
    ("extends=jacobi2d", 3, "extends"),
    ("platform.extends=lassen", 3, "extends"),
    ("parameters.x=1 EB^9*EB^9*EB^9", 3, "too large"),
    (".".join(["a"] * 5000) + "=1", 2, "no value lies more than 20 tables deep"),
    ("application.name." + ".".join(["a"] * 15) + "=1", 3, "must be a text"),
    ("parameters." + ".".join(["a"] * 15) + "=1", 3, "is not a quantity"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "message"), SETS, ids=[text[:40] for text, _, _ in SETS])
def test_set_of_nonsense(whatif_main, text, expected, message):
    code, out, err = whatif_main("run", "jacobi2d", "--point", "--set", text)
    assert (code, out) == (expected, "")
    assert message in err
    assert expected == 2 or "--set " in err


MAPPINGS = {
    "missing": ("map.txt", None, "`map.txt` cannot be read: No such file or directory"),
    "folder": ("folder", None, "`folder` cannot be read: Is a directory"),
    "parameters": ("../map.txt", b"0\n" * 16, "plain name of a file in the folder of the scenario"),
    "absolute": ("/etc/passwd", None, "plain name of a file in the folder of the scenario"),
    "parent": ("..", None, "cannot be read"),
    "nothing": ("", None, "cannot be read"),
    "nul": ("a\\u0000b", None, "null"),
    "long": ("a" * 300, None, "cannot be read"),
    "text": ("map.txt", b"0\nfoo\n", "must hold one node number a line"),
    "floats": ("map.txt", b"0.5\n", "must hold one node number a line"),
    "bytes": ("map.txt", b"\xff\xfe", "must hold one node number a line"),
    "negative": ("map.txt", b"0\n-1\n", "found -1"),
    "huge": ("map.txt", b"9" * 30, "found 999"),
    "digits": ("map.txt", b"9" * 5000, "must hold one node number a line"),
    "empty": ("map.txt", b"", "it is empty"),
}


@pytest.mark.parametrize("name", MAPPINGS)
def test_mapping_files(whatif_main, tmp_path, name):
    file, content, reported = MAPPINGS[name]
    (tmp_path / "here" / "folder").mkdir(parents=True)
    text = edited('scaling = "weak"', f'scaling = "weak"\nmapping = "file"\nmapping_file = "{file}"')
    (tmp_path / "here" / "s.toml").write_text(text)
    if content is not None:
        (tmp_path / "here" / file).write_bytes(content)
    code, _, err = whatif_main("run", "here/s.toml")
    assert code == 3
    assert f"here/s.toml:{place(text, 'mapping_file')}: application.grid.mapping_file: " in err
    assert reported in err
    assert len(err) < 2000


def test_a_mapping_that_is_not_given(whatif_main, tmp_path):
    (tmp_path / "s.toml").write_text(edited('scaling = "weak"', 'scaling = "weak"\nmapping = "file"'))
    code, _, err = whatif_main("run", "s.toml")
    assert code == 3
    assert "application.grid.mapping_file" in err


@pytest.mark.parametrize("count", [1, 15, 17, 1000])
def test_a_mapping_of_the_wrong_length_is_impossible(whatif_main, tmp_path, count):
    (tmp_path / "s.toml").write_text(
        edited('scaling = "weak"', 'scaling = "weak"\nmapping = "file"\nmapping_file = "m"')
    )
    (tmp_path / "m").write_text("0\n" * count)
    code, _, err = whatif_main("run", "s.toml")
    assert code in (3, 4)
    assert "mapping" in err, "the reason must name the mapping"


NO_GRID = {
    "halo": 'kind = "halo"\nmodel = "postal"\nneighbours = "faces"',
    "structured_grid": 'kind = "structured_grid"\nhalo_cell_count = 1\ncell_rate = "1 1/s"\nhalo_rate = "1 1/s"',
    "kernel": 'kind = "kernel"\nmodel = "roofline"\ndominant_operation = "fp_64"\nmetrics_per = "cell"\n'
    'operations = "1 flop"\ndram_size = "1 B"\ncompute_fraction = 0.5\nload_store_fraction = 0.1',
    "follows": 'kind = "kernel"\nmodel = "roofline"\ndominant_operation = "fp_64"\nmetrics_per = "launch"\n'
    'operations = "1 flop"\ndram_size = "1 B"\ncompute_fraction = 0.5\nload_store_fraction = 0.1\n'
    'follows = "surface"\nprofiled_cells = { x = 1 }',
}


@pytest.mark.parametrize("name", NO_GRID)
def test_phases_that_need_a_grid(whatif_main, tmp_path, name):
    application = '[application]\nname = "T"\nrank_count = 4\niteration_count = 1\n'
    (tmp_path / "s.toml").write_text(f'platform = "summit"\n{application}[application.phases.p]\n{NO_GRID[name]}\n')
    code, _, err = whatif_main("run", "s.toml")
    assert code == 3
    assert "s.toml:6:1: application.phases.p: " in err
    assert "[application.grid]" in err


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ('["halo", "wrok"]', "no phase `wrok`"),
        ('["halo", "halo"]', "cannot overlap with itself"),
        ('["halo"]', "at least 2 items"),
        ('["halo", "work", "pause"]', "at most 2 items"),
        ('["halo", 3]', "must be a text"),
        ('["halo", "steps"]', "no phase `steps`"),
    ],
)
def test_overlaps(whatif_main, tmp_path, phases, message):
    structured = f"[application.phases.steps]\n{NO_GRID['structured_grid']}\n"
    (tmp_path / "s.toml").write_text(f"{HEAD}{structured}[application.overlaps.o]\nphases = {phases}\nfraction = 0.5\n")
    code, _, err = whatif_main("run", "s.toml")
    assert code == 3
    assert "application.overlaps.o.phases" in err
    assert message in err


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('direction = "host_to_device"', "either `transfer_size` or `halo`"),
        ('direction = "host_to_device"\nhalo = "halo"\ntransfer_size = "1 B"', "either `transfer_size` or `halo`"),
        ('direction = "host_to_device"\nhalo = "work"', "no halo phase `work`"),
        ('direction = "up"\nhalo = "halo"', "is not one of host_to_device"),
    ],
)
def test_transfers(whatif_main, tmp_path, lines, message):
    (tmp_path / "s.toml").write_text(f'{HEAD}[application.phases.copy]\nkind = "transfer"\n{lines}\n')
    code, _, err = whatif_main("run", "s.toml")
    assert code == 3
    assert "application.phases.copy" in err
    assert message in err


def test_output_that_cannot_be_written(whatif_main, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for target, text in (
        ("nowhere/x.csv", "no folder nowhere"),
        ("file/x.csv", "no folder file"),
        ("folder", "is a folder, not a file"),
        ("a" * 300 + ".csv", "too long"),
        ("x.xyz", "`.xyz` is no known format: use "),
        ("x", "x: the name has no ending: use "),
    ):
        code, out, err = whatif_main("run", "jacobi2d", "-o", target)
        assert (code, out) == (2, ""), target
        assert text in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "jacobi2d", "--format", "parquet"], "name a file with -o"),
        (["run", "jacobi2d", "--format", "xml"], "--format xml: expected one of table, json, "),
        (["run"], "missing argument"),
        (["run", "jacobi2d", "--point", "--sweep", "application.rank_count=1"], "exclude each other"),
        (["run", "jacobi2d", "--point", "--plot"], "--plot needs a sweep"),
        (["run", "jacobi2d", "--nonsense"], "no such option `--nonsense`\n"),
        (["new", "mine", "--gpu", "a100"], "mean `a100-sxm-64gb` or `a100-sxm4-40gb` or `a100-sxm4-80gb`?\n"),
        (["new", "mine", "--gpus", "4"], "no such option `--gpus`; did you mean `--gpus-per-node`?\n"),
        (["run", "jacobi2d", "--output-file", "x"], "no such option `--output-file`; did you mean `--output`?\n"),
        (["nonsense"], "no verb `nonsense`; known: run, open, "),
        (["rnu", "s.toml"], "no verb `rnu`; did you mean `run`?"),
        (["sweep", "s.toml"], "no verb `sweep`; write `whatif run SCENARIO --sweep PATH=RANGE`"),
        (["roofline", "s.toml"], "write `whatif show roofline SCENARIO`"),
        (["import", "s.toml"], "s.toml: no such file"),
        (["tune", "llama_training"], "a command comes first, then `llama_training`: grid, hpl, transformer"),
        (["import", "netwrok", "s.toml"], "no command `netwrok`; did you mean `network`?"),
        (["list", "nonsense"], "whatif: nonsense: expected one of platforms, parts, "),
        (["schema", "scenari"], "; did you mean `scenario`?\n"),
        (["explain", "jacobi2d", "halo_time"], "no such result, phase, term or parameter"),
        (["explain", "jacobi2d", "hallo"], "did you mean `halo`"),
        (["explain", "jacobi2d", "--depth", "-1"], "--depth -1: expected a whole number of at least 0\n"),
        (["explain", "jacobi2d", "--depth", "x"], "--depth x: expected a whole number of at least 0\n"),
        (["serve", "jacobi2d", "--port", "1.5"], "--port 1.5: expected a whole number from 0 to 65535\n"),
        (["fit", "kernel", ".", "--seed", "x"], "--seed x: expected a whole number of at least 0\n"),
        (["explain", "jacobi2d", "-o", "."], "--output .: is a folder, not a file\n"),
        (["run", "jacobi2d", "--platform-dir", "none"], "--platform-dir none: no such folder\n"),
        (["fit", "network", "none.txt"], "whatif: none.txt: no such file\n"),
        (["check"], "missing argument"),
    ],
)
def test_wrong_usage(whatif_main, arguments, message):
    code, out, err = whatif_main(*arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("option", "message"), [("sumit", "did you mean `summit`"), ("/etc/passwd", "is named without its folder")]
)
def test_wrong_platform_option(whatif_main, option, message):
    code, out, err = whatif_main("run", "jacobi2d", "--platform", option)
    assert (code, out) == (3, "")
    assert message in err
    code, _, err = whatif_main("run", "jacobi2d", "--sweep", f"platform=summit, {option}")
    assert code in (2, 3)
    assert message in err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("summit, lassen", "not found: one name is needed here; `--sweep 'platform=summit, lassen'` takes several"),
        ("dgx_*", "not found: one name is needed here; `--sweep 'platform=dgx_*'` takes several"),
        ("DGX H100", "not found; did you mean `dgx_h100`?"),
        ("my machine!", "not found: the name of such a file has only ASCII letters, digits"),
    ],
)
def test_platform_options_that_are_no_name(whatif_main, option, message):
    code, out, err = whatif_main("run", "jacobi2d", "--platform", option)
    assert (code, out) == (3, "")
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'extends = ["jacobi2d", "minife"]',
            "extends: `jacobi2d, minife`: scenario not found: one name is needed here\n",
        ),
        (
            'extends = ["./a.toml", "b.toml"]',
            "extends: `./a.toml, b.toml`: scenario not found: one name is needed here\n",
        ),
        (
            'platform = ["summit", "lassen"]',
            "platform: `summit, lassen`: platform not found: one name is needed here; "
            "`--sweep 'platform=summit, lassen'` takes several",
        ),
        ('[platform]\nextends = ["summit", "lassen"]', "`--sweep 'platform=summit, lassen'` takes several"),
    ],
)
def test_several_names_in_the_place_of_one(whatif_main, tmp_path, text, message):
    file = tmp_path / "several.toml"
    file.write_text(f"{text}\n")
    code, out, err = whatif_main("run", str(file))
    assert (code, out) == (3, "")
    assert message in err


IMPOSSIBLE = {
    "nodes": (["--set", "application.rank_count=99999"], "more nodes than the platform has"),
    "memory": (["--set", "application.memory_size=17 GB"], "does not fit the device"),
    "ranks": (
        [
            word
            for text in ("decomposition=given", "ranks.x=3", "ranks.y=3")
            for word in ("--set", f"application.grid.{text}")
        ],
        "do not multiply to application.rank_count",
    ),
    "expression": (["--set", "application.rank_count== 7 / 2"], "must be a whole number of at least 1"),
    "too many": (
        ["--set", "application.rank_count=16777217", "--set", "platform.node_count=9999999"],
        "infeasible: ",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_point_that_cannot_exist(whatif_main, name):
    options, text = IMPOSSIBLE[name]
    code, out, err = whatif_main("run", "jacobi2d", "--point", "--format", "json", *options)
    assert code == 4
    assert text in err
    assert json.loads(out)["rows"][0]["total_time"] is None


def test_a_sweep_without_a_possible_point(whatif_main):
    sweep = ("--sweep", "application.memory_size=17 GB, 18 GB")
    code, out, err = whatif_main("run", "jacobi2d", *sweep, "--format", "json")
    assert code == 4
    assert [row["total_time"] for row in json.loads(out)["rows"]] == [None, None]
    assert "at least one copy of its cells) does not fit the device" in err


def test_a_sweep_with_some_possible_points(whatif_main):
    sweep = ("--sweep", "application.memory_size=15 GB, 17 GB, 16 GB")
    code, out, err = whatif_main("run", "jacobi2d", *sweep, "--format", "json")
    assert code == 0
    times = [row["total_time"] for row in json.loads(out)["rows"]]
    assert (times[0] == times[2] > 0, times[1]) == (True, None)
    assert "1 of 3 points infeasible: the memory of a rank (application.memory_size" in err
    assert err.count("the memory of a rank") == 1
    assert "infeasible at memory_size 17 GB\n" in err
    code, out, _ = whatif_main("run", "jacobi2d", *sweep, "--format", "csv")
    assert code == 0
    assert out.splitlines()[2].startswith("17000000000.0,,")
    code, out, _ = whatif_main("run", "jacobi2d", *sweep)
    assert code == 0
    assert re.search(r"17 GB +- +-", out)
    assert "nan" not in out


def test_a_time_beyond_every_float_is_not_passed_off_as_an_answer(whatif_main):
    code, out, _ = whatif_main(
        "run", "jacobi2d", "--point", "--format", "json", "--set", "application.iteration_count=9007199254740992",
        "--set", "application.phases.overhead.overhead_time=1e300 s",
    )  # fmt: skip
    assert json.loads(out)["rows"][0]["total_time"] is None
    assert code == 4


# The same through a process of its own: what Python prints when it dies cannot be hidden by the test.

PROCESSES = [
    (["run", "brackets.toml"], 3),
    (["run", "nul.toml"], 3),
    (["run", "a" * 300], 3),
    (["run", "jacobi2d", "--sweep", "platform.node.gpu_count=1 .. 1e12 step 1"], 2),
    (["run", "jacobi2d", "--set", "application.memory_size=17 GB"], 4),
    (["check", "jacobi2d", "summit", "brackets.toml"], 3),
]


@pytest.mark.parametrize(("arguments", "expected"), PROCESSES)
def test_a_process_of_its_own(tmp_path, arguments, expected):
    (tmp_path / "brackets.toml").write_text("x = " + "[" * 300_000)
    (tmp_path / "nul.toml").write_bytes(b"\x00")
    done = subprocess.run(
        [sys.executable, "-m", "whatif", *arguments], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == expected
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_terminals_that_cannot_show_every_character(tmp_path, encoding):
    done = subprocess.run(
        [sys.executable, "-m", "whatif", "explain", "jacobi2d", "halo"],
        capture_output=True, cwd=tmp_path, check=False, env={"PYTHONIOENCODING": encoding},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"halo" in done.stdout


def test_a_working_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    code = (
        "import os, sys; os.rmdir(os.getcwd()); sys.argv = ['whatif', 'run', 'jacobi2d', '--point']\n"
        "from whatif.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=gone, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("kind", ["gpu", "kernels", "transfer", "network", "runs", "trace"])
def test_an_empty_folder_has_nothing_to_import(kind, whatif_main, tmp_path):
    code, _, error = whatif_main("import", kind, str(tmp_path))
    assert code in (2, 3)
    assert re.search(r"no (files|measurements|trace)", error)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("import", "a" * 300), "no command `aaa"),
        (("compare", "jacobi2d", "--platform", "summit," + "a" * 300), "one name each time"),
        (("study", "successor", "--sweep", "=2 MW"), "--sweep =2 MW: expected PATH=SPEC"),
        (("new", ""), "expected the name of a file"),
        (("new", "."), "`.`: expected the name of a file"),
    ],
)
def test_names_that_no_file_can_have_are_wrong_usage(whatif_main, words, message):
    code, out, err = whatif_main(*words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bids.superclips.node_price=95 kUSD", "bids.superclips: no bid `superclips`; did you mean `superchips`?"),
        ("bids.x.node_price=95 kUSD", "no bid `x`; bids: processors, accelerators, superchips"),
        ("mix.heta.weight=0.5", "mix.heta: no application `heta`; did you mean `heat`?"),
        ("superchips.node_price=95 kUSD", "did you mean `bids.superchips` or"),
    ],
)
def test_set_of_a_bid_or_application_that_a_study_lacks(whatif_main, text, message):
    code, out, err = whatif_main("study", "successor", "--set", text)
    assert (code, out) == (3, "")
    assert message in err


def test_a_bid_of_a_file_without_its_platform_lacks_a_key(whatif_main, tmp_path):
    whatif_main("study", "--new", str(tmp_path / "s.toml"))
    file = tmp_path / "s.toml"
    file.write_text(file.read_text().replace('platform = "turin"\n', ""))
    code, _, err = whatif_main("check", str(file))
    assert (code, "bids.south.platform: missing key" in err) == (3, True)


def test_a_platform_that_is_not_there_is_told_before_remarks_on_the_others(whatif_main):
    code, out, err = whatif_main("run", "jacobi2d", "--sweep", "platform=sumit,frontier")
    assert (code, out) == (3, "")
    assert err == "whatif: --sweep: platform: `sumit`: platform not found; did you mean `summit` or `lumi`?\n"


def test_an_override_of_a_swept_parameter_is_told_to_have_no_effect(whatif_main):
    ranks = "application.rank_count"
    warning = f"warning: --set {ranks}=8: no effect, as the sweep gives its values\n"
    assert warning in whatif_main("run", "jacobi2d", "--sweep", f"{ranks}=6, 12", "--set", f"{ranks}=8")[2]
    assert "no effect" not in whatif_main("run", "jacobi2d", "--sweep", f"{ranks}=x1, x2", "--set", f"{ranks}=6")[2]
    assert "no effect" not in whatif_main("run", "llama_training", "--set", f"{ranks}=128")[2]


@pytest.mark.parametrize(
    ("words", "is_idle"),
    [
        (("--set", "platform.node.host.memory_size=1 TB"), True),
        (("--set", "platform.node.host.memory_size=1 TB", "--sweep", "platform=summit, lassen"), True),
        (("--set", "platform.node.gpu.dram_bandwidth=1 TB/s"), False),
        (("--set", "platform.network.inter_node.postal.short.latency=1 us"), True),
        (("--set", "platform.network.inter_node.postal.short.latency=1 us", "--set",
          "application.phases.halo.model=postal"), False),
        (("--set", "platform.network.inter_node.postal.short.latency=1 us", "--sweep",
          "application.phases.halo.model=postal, k_model"), False),
        (("--set", "application.name=Other", "--set", "application.phases.pack=none"), False),
    ],
)  # fmt: skip
def test_an_override_that_no_result_depends_on_is_told_so(whatif_main, words, is_idle):
    code, _, err = whatif_main("run", "jacobi2d", *words)
    assert code == 0
    assert (f"warning: --set {words[1]}: no result depends on it" in err) is is_idle
    assert ("no result depends" in err) is is_idle


def test_the_options_of_two_machines_are_told_to_those_who_name_one(whatif_main):
    code, _, err = whatif_main("project", __file__, "--platform", "frontier")
    assert (code, "`--to frontier`, and `--from` the measured one" in err) == (2, True)


@pytest.mark.parametrize(
    "swept",
    [
        "application.rank_count=abc", "application.rank_cout=1, 2", "application.rank_count", "platform.name=a, b",
        "application.rank_count=1 .. 8", "application.phases.halo.model=foo", "platform.node.gpu.extends=zzz*",
        "application.rank_count=1; platform.node.gpu_count=1, 2",
    ],
)  # fmt: skip
def test_a_wrong_sweep_names_the_option(whatif_main, swept):
    code, _, err = whatif_main("run", "jacobi2d", "--sweep", swept)
    assert code == 2
    assert err.startswith(("whatif: --sweep: `", "whatif: --sweep `"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run",), "missing argument 'SCENARIO'\nusage: whatif run [OPTIONS] SCENARIO; see `whatif run --help`"),
        (("run", "a", "b"), "got unexpected extra argument (b)\nusage: whatif run [OPTIONS] SCENARIO; see "),
        (("fit", "grid", "--qqq"), "no such option `--qqq`\nusage: whatif fit grid [OPTIONS] FILE..; see "),
        (("--nosuch",), "no such option `--nosuch`\nusage: whatif [OPTIONS] [COMMAND] [ARGS]...; see `whatif --help`"),
        (("run", "jacobi2d", "--set"), "option '--set' requires an argument\n"),
    ],
)
def test_errors_of_options_look_like_all_others(whatif_main, words, message):
    code, out, err = whatif_main(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"whatif: {message}")
