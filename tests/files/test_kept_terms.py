"""Slow values kept in a file: an interrupted study continues, other inputs are computed again, other files refused."""

from __future__ import annotations

import json

import pytest

import whatif
from whatif.core import evaluate
from whatif.files import kept_terms

VARY = {"application.rank_count": [6, 12, 24], "platform.node.gpu_count": [1, 2, 4]}
SIMULATED = {"application.communication": "simulated"}
HEAD = json.dumps({"question": {"program": f"whatif {whatif.__version__}"}}).encode() + b"\n"
LATENCY = {"platform.network.inter_node.postal.eager.latency": "x10"}


@pytest.fixture(autouse=True)
def every_value_is_kept(monkeypatch):
    monkeypatch.setattr(kept_terms, "SLOW", 0.0)


@pytest.fixture
def computed(monkeypatch):
    """Names of the terms that are computed."""
    names, value_of_term = [], evaluate.value_of_term

    def counted(program, term, values):
        names.append(term.name)
        return value_of_term(program, term, values)

    monkeypatch.setattr(kept_terms, "value_of_term", counted)
    return names


def sought(path, **others):
    with whatif.resumable(path):
        found = whatif.seek("jacobi2d", VARY, minimise="iteration_time", overrides={**SIMULATED, **others})
        return found.readable_table().to_pandas()


def test_nothing_is_computed_twice(tmp_path, computed):
    first = sought(tmp_path / "log.jsonl")
    assert "halo.simulated_time" in computed
    computed.clear()
    assert sought(tmp_path / "log.jsonl").equals(first)
    assert computed == []


def test_interrupted_search_continues_with_the_same_answer(tmp_path, computed):
    path = tmp_path / "log.jsonl"
    whole = sought(path)
    text = path.read_bytes()
    count = len(computed)
    computed.clear()
    path.write_bytes(text[: len(text) // 2])
    assert sought(path).equals(whole)
    assert 0 < len(computed) < 0.7 * count
    assert path.read_bytes() == text


@pytest.mark.parametrize("length", [0, 1, 30])
def test_file_whose_first_line_was_cut_off_is_begun_anew(tmp_path, length):
    path = tmp_path / "log.jsonl"
    whole = sought(path)
    text = path.read_bytes()
    path.write_bytes(text[:length])
    assert sought(path).equals(whole)
    assert path.read_bytes() == text


def test_changed_inputs_are_computed_again(tmp_path, computed):
    sought(tmp_path / "log.jsonl")
    computed.clear()
    changed = sought(tmp_path / "log.jsonl", **LATENCY)
    assert "halo.simulated_time" in computed
    assert changed.equals(sought(tmp_path / "other.jsonl", **LATENCY))


def test_changed_trace_is_computed_again(tmp_path, computed):
    trace, scenario, times = tmp_path / "two_ranks.txt", tmp_path / "traced.toml", []
    application = '[application]\nname = "traced"\nrank_count = 2\niteration_count = 1\n'
    phase = '[application.phases.trace]\nkind = "trace"\nmodel = "postal"\nfile = "two_ranks.txt"\n'
    scenario.write_text(f'platform = "lassen"\n{application}{phase}')
    for count, pause in enumerate((1e-3, 2e-3), 1):
        trace.write_text("".join(f"{rank} init\n{rank} sleep {pause}\n{rank} finalize\n" for rank in range(2)))
        with whatif.resumable(tmp_path / "log.jsonl"):
            times.append(float(whatif.run(scenario)["iteration_time"]))
        assert len([name for name in computed if name.endswith(".times")]) == count
    assert times == pytest.approx([1e-3, 2e-3])


def test_calibration_and_sensitivity_continue(tmp_path, computed, whatif_main):
    for words in (
        ("calibrate", "jacobi2d", "--set", "application.communication=simulated"),
        ("sensitivity", "jacobi2d", "--set", "application.communication=simulated", "--show", "ladder"),
    ):
        first = whatif_main(*words, "--log", "log.jsonl")
        assert first[0] == 0
        computed.clear()
        assert whatif_main(*words, "--log", "log.jsonl") == first
        assert computed == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"runs,time\n1,2\n", "not a file of `--log`, not overwritten"),
        (b"runs,time", "not a file of `--log`, not overwritten"),
        ("Größe\n".encode("latin-1"), "not a file of `--log`, not overwritten"),
        (b'{"question": {"program": "whatif 0.0.1"}}\n', "was written for other inputs"),
        (HEAD + b'{"key": "a"}\n', "not the value of a term"),
        (HEAD + f'{{"key": "a", "shape": [1], "value": [{10**309}]}}\n'.encode(), "not the value of a term"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    path = tmp_path / "log.jsonl"
    path.write_bytes(text)
    with pytest.raises(whatif.WhatifError, match=message):
        sought(path)
    assert path.read_bytes() == text
