"""Time lines as files: what Perfetto and Paje viewers read is what the ranks did."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from shlex import split
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import DATA
from whatif.core.evaluate import evaluate
from whatif.files.timeline_files import TIMELINE_WRITERS
from whatif.simulation.activity import GROUPS, Activity
from whatif.studies.scenario_sources import open_source
from whatif.studies.simulation_run import simulate

TRACES = DATA / "traces"


@pytest.fixture(scope="module", params=["goal/binary_tree_32.goal", "simgrid", "otf2"])
def replayed(request: pytest.FixtureRequest) -> tuple[Activity, list[int]]:
    file = "simgrid/actions_waitall.txt" if request.param == "simgrid" else request.param
    scenario = open_source(
        str(TRACES / file), platform="lassen", overrides={"application.ranks_per_node": "2"}
    ).scenario
    simulation = simulate(scenario.program, evaluate(scenario.program))
    return simulation.activity, simulation.node.tolist()


def written(replayed: tuple[Activity, list[int]], path: Path) -> str:
    TIMELINE_WRITERS[path.suffix](*replayed, path)
    return path.read_text(encoding="utf-8")


def paje_events(text: str) -> list[tuple[str, dict[str, str]]]:
    """The events of a Paje trace by the names that its own header declares."""
    header, _, body = text.rpartition("%EndEventDef\n")
    names: dict[str, tuple[str, list[str]]] = {}
    for definition in header.split("%EventDef ")[1:]:
        (name, number), *fields = (line.strip("% ").split() for line in definition.splitlines())
        names[number] = name, [field[0] for field in fields if field[0] != "EndEventDef"]
    events = []
    for line in body.splitlines():
        number, *words = split(line)
        name, fields_of = names[number]
        events.append((name, dict(zip(fields_of, words, strict=True))))
    return events


def test_perfetto_spans_sum_to_the_times_of_each_rank(replayed, tmp_path):
    spent, nodes = replayed
    events: list[dict[str, Any]] = json.loads(written(replayed, tmp_path / "t.json"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert all(span["dur"] >= 0 for span in spans)
    times = np.zeros((spent.rank_count, len(GROUPS)))
    for span in spans:
        assert span["pid"] == nodes[span["tid"]]
        times[span["tid"], GROUPS.index(span["cat"])] += span["dur"] * 1e-6
    assert_allclose(times, spent.rank_times(), rtol=1e-9, atol=0)


def test_perfetto_arrows_begin_at_the_sender_and_end_at_the_receiver(replayed, tmp_path):
    spent, _ = replayed
    events = json.loads(written(replayed, tmp_path / "t.json"))["traceEvents"]
    ends = {(event["ph"], event["id"]): event for event in events if event["ph"] in {"s", "f"}}
    assert len(ends) == 2 * len(spent.sent) > 0
    for key in range(len(spent.sent)):
        begin, end = ends["s", key], ends["f", key]
        assert (begin["tid"], end["tid"]) == (spent.sender[key], spent.receiver[key])
        assert begin["ts"] <= end["ts"]
        assert end["args"]["bytes"] == spent.message_size[key]


def test_paje_events_are_in_the_order_of_time_and_within_containers_that_exist(replayed, tmp_path):
    spent, nodes = replayed
    containers, last = {"0"}, 0.0
    kinds: Counter[str] = Counter()
    for name, event in paje_events(written(replayed, tmp_path / "t.paje")):
        kinds[name] += 1
        if "Time" in event:
            assert float(event["Time"]) >= last
            last = float(event["Time"])
        for field in ("Container", "StartContainer", "EndContainer"):
            assert event.get(field, "0") in containers
        if name == "PajeCreateContainer":
            containers.add(event["Alias"])
    assert kinds["PajeCreateContainer"] == 1 + len(set(nodes)) + spent.rank_count
    assert kinds["PajeSetState"] == 2 * len(spent.start)


def test_every_paje_link_ends_with_the_key_and_the_size_it_began_with(replayed, tmp_path):
    spent, _ = replayed
    open_links: dict[str, dict[str, str]] = {}
    closed = 0
    for name, event in paje_events(written(replayed, tmp_path / "t.paje")):
        if name == "PajeStartLink":
            open_links[event["Key"]] = event
        if name == "PajeEndLink":
            begun, key = open_links.pop(event["Key"]), int(event["Key"])
            assert begun["Value"] == event["Value"] == f"{spent.message_size[key]:.0f} B"
            assert begun["StartContainer"] == f"r{spent.sender[key]}"
            assert event["EndContainer"] == f"r{spent.receiver[key]}"
            closed += 1
    assert not open_links
    assert closed == len(spent.sent) > 0


def test_paje_states_are_open_for_as_long_as_each_rank_was_busy(replayed, tmp_path):
    spent, _ = replayed
    busy = np.zeros((spent.rank_count, len(GROUPS)))
    state: dict[str, tuple[str, float]] = {}
    for name, event in paje_events(written(replayed, tmp_path / "t.paje")):
        if name != "PajeSetState":
            continue
        value, since = state.get(event["Container"], ("idle", 0.0))
        if value != "idle":
            busy[int(event["Container"][1:]), GROUPS.index(value)] += float(event["Time"]) - since
        state[event["Container"]] = event["Value"], float(event["Time"])
    # Times are written to the ns.
    assert np.abs(busy - spent.rank_times()).max() < 1e-9 * (1 + 2 * len(spent.start))
    assert all(value == "idle" for value, _ in state.values())


def test_sizes_and_the_order_within_an_instant_are_kept(tmp_path):
    both = np.array([0, 1], dtype=np.int32)
    spent = Activity(
        rank=np.array([0, 0, 1], dtype=np.int32),
        group=np.array([0, 1, 2], dtype=np.uint8),
        kind=np.array([1, 2, 3], dtype=np.uint8),
        start=np.array([0.0, 1.0, 0.0]),
        end=np.array([1.0, 2.0, 2.0]),
        sender=both[:1],
        receiver=both[1:],
        message_size=np.array([1234567.0]),
        sent=np.array([2.0]),
        received=np.array([2.0]),
        rank_count=2,
    )
    events = paje_events(written((spent, [0, 0]), tmp_path / "t.paje"))
    happened = [(name, event["Time"], event["Value"]) for name, event in events if "Value" in event]
    assert happened == [
        ("PajeSetState", "0.000000000", "compute"),
        ("PajeSetState", "0.000000000", "receive"),
        ("PajeSetState", "1.000000000", "idle"),
        ("PajeSetState", "1.000000000", "send"),
        ("PajeSetState", "2.000000000", "idle"),
        ("PajeSetState", "2.000000000", "idle"),
        ("PajeStartLink", "2.000000000", "1234567 B"),
        ("PajeEndLink", "2.000000000", "1234567 B"),
    ]
