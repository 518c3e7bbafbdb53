"""Checks of files: what platforms leave out, and the measured runs that a scenario names."""

from __future__ import annotations

import json

import pytest

import whatif
from whatif.schema.parameters import unused_sources
from whatif.schema.shipped import shipped_folder
from whatif.schema.toml import read_document

SCENARIO = 'runs = "own.csv"\nextends = "jacobi2d"\n'


@pytest.mark.parametrize(
    ("name", "text", "problem", "warning"),
    [
        ("owns.csv", "", "", "mine.toml:1:1: runs: own.csv: no such file; did you mean `owns.csv`?"),
        ("other.txt", "", "", "mine.toml:1:1: runs: own.csv: no such file"),
        ("own.csv", "rank_count,itration_time [us]\n4,100\n", "itration_time", ""),
        ("own.csv", "rank_count,iteration_time [us]\n4,100\n", "", ""),
    ],
)
def test_the_runs_that_a_scenario_names_are_checked(tmp_path, monkeypatch, name, text, problem, warning):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(SCENARIO)
    (tmp_path / name).write_text(text)
    found = whatif.check("mine.toml")
    assert len(found.problems) == bool(problem)
    assert all(problem in str(each) for each in found.problems)
    assert found.notes == ((f"warning: {warning}",) if warning else ())


def test_a_stored_result_that_is_missing_now_has_the_unit_of_a_time_only_if_it_is_one(tmp_path):
    stored = tmp_path / "results.json"
    whatif.check("jacobi2d", against=stored, update=True)
    results = json.loads(stored.read_text())
    results["results"]["jacobi2d"] |= {"total_cost": 5.0, "terms.gone": 5.0}
    stored.write_text(json.dumps(results))
    assert whatif.check("jacobi2d", against=stored).moved == (
        "jacobi2d: total_cost: 5 -> not there",
        "jacobi2d: terms.gone: 5 s -> not there",
    )


def test_what_a_platform_leaves_out_is_noted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    platform = """name = "M"
node_count = 4
node = { gpu_count = 4, socket_count = 2, gpu.extends = "h100-sxm5-80gb" }
network.inter_node.extends = "infiniband-400"
"""
    (tmp_path / "mine.toml").write_text(platform)
    (tmp_path / "whole.toml").write_text('extends = "frontier"\nprice.node_price = "1 USD"\n')
    (tmp_path / "cpu.toml").write_text(
        'name = "C"\nnode_count = 4\nnode.socket_count = 2\nnode.host.power = "1 kW"\n'
        'node.cpu = { name = "P", core_count = 8, peak_double_rate = "1 Tflop/s" }\n'
        'network.inter_node.extends = "infiniband-400"\nprice.node_price = "1 USD"\n'
    )
    (note,) = whatif.check("cpu.toml").notes
    assert note == "cpu.toml: not stated: node.host.memory_bandwidth (no kernels on processors)"
    absent = "node.host.power (no energy), node.peer_link (no links between GPUs), price (no costs)"
    assert whatif.check("mine.toml", "whole.toml", "dgx_h100").notes == (f"mine.toml: not stated: {absent}",)


def test_a_source_without_a_value_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entry = '{ grade = "measured", source = "me" }'
    text = f'extends = "summit"\nnode.gpu_count = 4\n[sources]\n"node.gpu_cuont" = {entry}\n"node.*" = {entry}\n'
    (tmp_path / "mine.toml").write_text(text)
    assert whatif.check("mine.toml").notes[1:] == (
        "warning: mine.toml:4:1: sources.node.gpu_cuont: `node.gpu_cuont` is not stated in this file; "
        "did you mean `node.gpu_count`?",
    )


@pytest.mark.parametrize("kind", ["platforms", "parts", "scenarios", "studies"])
def test_all_sources_of_shipped_files_have_values(kind):
    files = list(shipped_folder(kind).rglob("*.toml"))
    assert files
    assert not [problem for file in files for problem in unused_sources(read_document(file))]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('extends = "perlmutter"\nnodes = 2\n', "2:1: nodes: `nodes`: unknown key; did you mean `node_count`?"),
        ('extends = "base"\nnodes = 2\n', "2:1: nodes: `nodes`: unknown key; did you mean `node_count`?"),
        ('extends = "perlmuter"\n', "1:1: extends: `perlmuter`: platform not found; did you mean `perlmutter`?"),
        ('extends = "jacobi2x"\n', "1:1: extends: `jacobi2x`: scenario not found; did you mean `jacobi2d`?"),
        ('extends = "jacobi2d"\nnodes = 2\n', "2:1: nodes: `nodes`: unknown key; known keys: accuracy, application"),
        ('extends = "jacobi2d"\n[application]\n[limits]\n', "3:1: limits: `limits`: unknown key; known keys: acc"),
        ('[present]\nplatform = "summit"\n[bid.a]\n', "3:1: bid: `bid`: unknown key; did you mean `bids`?"),
    ],
)
def test_a_file_without_keys_that_tell_is_of_the_kind_that_it_extends(tmp_path, monkeypatch, text, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.toml").write_text('extends = "perlmutter"\n')
    (tmp_path / "mine.toml").write_text(text)
    assert any(str(each).startswith(f"mine.toml:{problem}") for each in whatif.check("mine.toml").problems)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sumit", "did you mean `summit`"),
        ("succesor", "did you mean `successor`"),
        ("xyzzy", "see `whatif list scenarios` or `whatif list platforms` or `whatif list studies`"),
    ],
)
def test_a_name_that_is_not_found_may_be_of_any_kind_that_is_checked(tmp_path, monkeypatch, name, hint):
    monkeypatch.chdir(tmp_path)
    (problem,) = whatif.check(name).problems
    assert hint in str(problem)
