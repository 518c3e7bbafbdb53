"""JSON Schemas: what they accept, and one error for one mistake, which names the key."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import tomli
from click.testing import CliRunner

from tests.paths import ROOT
from whatif.cli.schema import command
from whatif.schema.json_schema import file_schema

TAPLO = Path(sys.executable).parent / "taplo"
FOLDERS = {"scenario": "scenarios", "platform": "platforms", "study": "studies"}
OLD = ROOT / "tests" / "data" / "format_1"
SHIPPED = [(kind, path) for kind, folder in FOLDERS.items() for path in sorted((ROOT / folder).glob("*.toml"))]
SCENARIO = """
format = 1
platform = "summit"
[application]
name = "x"
rank_count = 4
iteration_count = 10
[application.grid]
scaling = "weak"
cells = { x = 8, y = "= 2 * n" }
[application.phases.halo]
kind = "halo"
model = "postal"
neighbours = "faces"
halo_width = 1
[application.phases.host]
kind = "overhead"
overhead_time = "3 us"
[parameters]
n = 4
[sweep.ranks]
"application.rank_count" = "1, 2, 4"
"""
SERVING = """
platform = "dgx_h100"
[application]
kind = "serving"
rank_count = 8
transformer.extends = "llama-3-70b"
plan = { input_length = 1000, output_length = 100 }
"""
HPL = """
platform = "dahu"
[application]
kind = "hpl"
matrix_size = 1000
block_size = 128
process_rows = 4
process_columns = 4
"""
BASES = {
    "scenario": SCENARIO,
    "serving": SERVING,
    "hpl": HPL,
    "platform": (OLD / "summit.toml").read_text(encoding="utf-8"),
    "study": (OLD / "successor.toml").read_text(encoding="utf-8"),
}


@cache
def validator(kind):
    """Validator of a kind of file; its package is imported here, as it takes longer than to collect half the tests."""
    import jsonschema

    return jsonschema.Draft7Validator(file_schema(kind if kind in FOLDERS else "scenario"))


def leaves(errors):
    """Errors without those that only gather others."""
    return [leaf for error in errors for leaf in (leaves(error.context) if error.context else [error])]


def found(kind, data):
    return leaves(validator(kind).iter_errors(data))


def changed(kind, path, value):
    """A valid file with one value replaced, or without it for None."""
    data = tomli.loads(BASES[kind])
    *tables, key = path.split("/")
    below = data
    for table in tables:
        below = below.setdefault(table, {})
    if value is None:
        del below[key]
    else:
        below[key] = value
    return data


@pytest.mark.parametrize("kind", FOLDERS)
def test_schema_file_equals_the_output_of_the_command(kind):
    """Rewrite with `whatif schema KIND > schemas/KIND.schema.json`."""
    text = (ROOT / "schemas" / f"{kind}.schema.json").read_text(encoding="utf-8")
    assert text == CliRunner().invoke(command, [kind]).output
    validator(kind).check_schema(file_schema(kind))
    assert file_schema(kind)["$id"] == f"urn:whatif:schema:{kind}:1"


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=lambda value: value if isinstance(value, str) else value.stem)
def test_every_shipped_file_is_accepted(kind, path):
    assert found(kind, tomli.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("kind", BASES)
def test_files_that_are_changed_below_are_accepted(kind):
    assert found(kind, tomli.loads(BASES[kind])) == []


PARTIAL = [
    ("platform", 'extends = "summit"\nnode_count = 3'),
    ("platform", 'extends = "summit"\nnode.gpu.dram_bandwidth = "1 TB/s"'),
    ("platform", 'extends = "summit"\nnode.gpu = "none"\nnode.gpu_count = "none"'),
    ("platform", 'extends = "summit"\nnode.host_link.lane_bandwidth = "4 GB/s"'),
    ("platform", 'name = "a"\nnode_count = 2\nnode.socket_count = 2\nnetwork.inter_node.extends = "ethernet-400"'),
    ("scenario", 'extends = "jacobi2d"'),
    ("scenario", 'extends = "jacobi2d"\nplatform = "lassen"\nformat = 1'),
    ("scenario", 'extends = "jacobi2d"\nplatform = { extends = "summit", node_count = "= 3 * n" }\nparameters.n = 2'),
    ("scenario", 'extends = "jacobi2d"\nplatform.node.gpu_count = 8\napplication.grid = "none"\n[sweep]'),
    ("scenario", 'extends = "jacobi2d"\napplication.phases.halo.halo_width = 2'),
    ("scenario", 'extends = "jacobi2d"\napplication.phases.halo = { kind = "overhead", overhead_time = 0 }'),
    ("scenario", 'extends = "llama_serving"\napplication.plan.input_length = 10'),
    ("scenario", SCENARIO.replace('platform = "summit"', "")),
    ("scenario", SCENARIO.replace('platform = "summit"', "platform.node_count = 3")),
    ("scenario", f'{SCENARIO}\n[application.phases.model]\nextends = "tracking_time"\nvariables.x1 = "3 MB"'),
    ("scenario", SCENARIO.replace('"3 us"', '"3 us +- 10 %"').replace("rank_count = 4", 'rank_count = "= n"')),
]


@pytest.mark.parametrize(("kind", "text"), PARTIAL)
def test_a_file_or_table_that_extends_another_one_may_omit_keys(kind, text):
    assert found(kind, tomli.loads(text)) == []


HALO = "application/phases/halo"
MISTAKES = [
    # Keys.
    ("scenario", f"{HALO}/halo_widht", 2, "halo_widht"),
    ("scenario", "application/ranks_per_gpuu", 2, "ranks_per_gpuu"),
    ("scenario", "aplication", {}, "aplication"),
    ("scenario", "application/phases/2nd", {"kind": "overhead", "overhead_time": 0}, "2nd"),
    ("scenario", "platform", {"extends": "summit", "node": {"gpuu_count": 3}}, "gpuu_count"),
    ("serving", "application/plan/decode_nodes_", 3, "decode_nodes_"),
    ("hpl", "application/blok_size", 3, "blok_size"),
    ("platform", "node/gpu/l3_bandwidth", "1 TB/s", "l3_bandwidth"),
    ("platform", "network/inter_node/postal/eager/bandwith", "1 GB/s", "bandwith"),
    ("study", "limits/capitel", "4 MUSD", "capitel"),
    # Missing keys.
    ("scenario", "application", None, "application"),
    ("scenario", "application/rank_count", None, "rank_count"),
    ("scenario", "application/grid/scaling", None, "scaling"),
    ("scenario", "application/phases", None, "phases"),
    ("scenario", f"{HALO}/kind", None, "kind"),
    ("scenario", f"{HALO}/model", None, "model"),
    ("scenario", "application/phases/host/overhead_time", None, "overhead_time"),
    ("hpl", "application/block_size", None, "block_size"),
    ("serving", "application/plan/output_length", None, "output_length"),
    ("platform", "node_count", None, "node_count"),
    ("platform", "node/gpu/dram_bandwidth", None, "dram_bandwidth"),
    ("platform", "node/host_link/kind", None, "kind"),
    ("platform", "network/inter_node/postal/eager/latency", None, "latency"),
    ("platform", "sources/node", {"grade": "measured"}, "source"),
    ("study", "present", None, "present"),
    ("study", "present/platform", None, "platform"),
    # Choices.
    ("scenario", f"{HALO}/kind", "hallo", "kind"),
    ("scenario", f"{HALO}/model", "postall", "model"),
    ("scenario", "application/kind", "hp", "kind"),
    ("scenario", "application/runs_on", "gpus", "runs_on"),
    ("scenario", "format", 2, "format"),
    ("platform", "node/host_link/kind", "wire", "kind"),
    ("platform", "sources/node", {"grade": "good", "source": "x"}, "grade"),
    ("study", "criterion", "speed", "criterion"),
    # Values: a unit is not checked, only that a quantity has one.
    ("scenario", "application/phases/host/overhead_time", 3, "overhead_time"),
    ("scenario", "application/phases/host/overhead_time", ["3 us"], "overhead_time"),
    ("scenario", "application/rank_count", 0, "rank_count"),
    ("scenario", "application/rank_count", 2.5, "rank_count"),
    ("scenario", "application/rank_count", [4], "rank_count"),
    ("scenario", "application/grid", 3, "grid"),
    ("scenario", "application/grid/periodic", 1, "periodic"),
    ("scenario", "platform", 3, "platform"),
    ("scenario", "sweep/ranks/application.rank_count", 3, "application.rank_count"),
    ("scenario", "sweep/ranks/application.rank_count", [[3]], "application.rank_count"),
    ("platform", "node/gpu/dram_bandwidth", 900, "dram_bandwidth"),
    ("platform", "node/gpu", "v100", "gpu"),
    ("platform", "node_count", True, "node_count"),
    ("study", "present/node_count", 0, "node_count"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "path", "value", "key"), MISTAKES)
def test_one_mistake_is_one_error_that_names_the_key(kind, path, value, key):
    from jsonschema.exceptions import best_match

    data = changed(kind, path, value)
    errors = found(kind, data)
    assert len(errors) == 1, [error.message for error in errors]
    best = best_match(validator(kind).iter_errors(data))
    assert best.message == errors[0].message
    assert f"'{key}'" in best.message or key in best.absolute_path, (best.json_path, best.message)
    assert len(best.message) < 300


WRONG_PARTS = [
    ("platform", 'extends = "summit"\nnodes = 3', "nodes"),
    ("platform", 'extends = "summit"\nnode.host_link.lane_count_ = 3', "lane_count_"),
    ("scenario", 'extends = "jacobi2d"\napplication.phases.halo.halo_widht = 2', "halo_widht"),
    ("scenario", 'extends = "jacobi2d"\napplication.phases.halo.halo_width = 0.5', "halo_width"),
    ("scenario", 'extends = "jacobi2d"\napplication.phases.a = { kind = "halo", overhead_time = 0 }', "overhead_time"),
    ("scenario", 'extends = "jacobi2d"\napplication.rank_cuont = 3', "rank_cuont"),
    ("scenario", 'extends = "llama_serving"\napplication.plan.inputlength = 10', "inputlength"),
    ("scenario", 'extends = "jacobi2d"\nextend = "x"', "extend"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "key"), WRONG_PARTS)
def test_one_mistake_in_a_partial_file_is_one_error(kind, text, key):
    errors = found(kind, tomli.loads(text))
    assert len(errors) == 1, [error.message for error in errors]
    assert f"'{key}'" in errors[0].message or key in errors[0].absolute_path


def test_a_number_without_unit_shows_what_to_write():
    error = found("scenario", changed("scenario", "application/phases/host/overhead_time", 3))[0]
    assert error.message == "3 is not one of [0, 'a text with unit, such as `3.5 us`']"


def checked(text, folder):
    """Messages of taplo for a scenario, each once: it repeats one at every line of the table."""
    (folder / "schemas").symlink_to(ROOT / "schemas")
    (folder / "scenarios").mkdir()
    path = folder / "scenarios" / "s.toml"
    path.write_text(f"#:schema ../schemas/scenario.schema.json\n{text}")
    done = subprocess.run([TAPLO, "lint", "--colors", "never", path], capture_output=True, cwd=folder, check=False)
    lines = done.stderr.decode().splitlines()
    return {line.removeprefix("error: ") for line in lines if line.startswith("error: ")}


@pytest.mark.skipif(not TAPLO.exists(), reason="the taplo wheel is not installed beside Python")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", None),
        ("halo_width", "halo_widht", "Additional properties are not allowed ('halo_widht' was unexpected)"),
        ('kind = "halo"', "", '"kind" is a required property'),
        ('model = "postal"', 'model = "postall"', '"postall" is not one of ['),
        ('"3 us"', "3", '3 is not one of [0,"a text with unit, such as `3.5 us`"]'),
        ("iteration_count = 10", "", '"iteration_count" is a required property'),
    ],
)
def test_an_editor_shows_one_message_for_one_mistake(old, new, message, tmp_path):
    messages = checked(SCENARIO.replace(old, new, 1) if old else SCENARIO, tmp_path)
    assert len(messages) == (message is not None), messages
    assert message is None or messages.pop().startswith(message)


@pytest.mark.skipif(not TAPLO.exists(), reason="the taplo wheel is not installed beside Python")
def test_taplo_finds_nothing_wrong_in_shipped_files():
    files = [str(path) for _, path in SHIPPED]
    done = subprocess.run([TAPLO, "lint", *files], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
