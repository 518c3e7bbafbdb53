"""Time lines as files of other viewers: Chrome/Perfetto JSON and Paje."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from whatif.atomic import atomic_file
from whatif.errors import UsageError
from whatif.simulation.activity import GROUPS, Activity
from whatif.simulation.rank_programs import Kind

_LINK_FIELDS: Final = "Time date, Type string, Container string, Value string"
_PAJE_EVENTS: Final = {
    "PajeDefineContainerType": "Alias string, Type string, Name string",
    "PajeDefineStateType": "Alias string, Type string, Name string",
    "PajeDefineLinkType": "Alias string, Type string, StartContainerType string, EndContainerType string, Name string",
    "PajeDefineEntityValue": "Alias string, Type string, Name string, Color color",
    "PajeCreateContainer": "Time date, Alias string, Type string, Container string, Name string",
    "PajeDestroyContainer": "Time date, Type string, Name string",
    "PajeSetState": "Time date, Type string, Container string, Value string",
    "PajeStartLink": f"{_LINK_FIELDS}, StartContainer string, Key string",
    "PajeEndLink": f"{_LINK_FIELDS}, EndContainer string, Key string",
}
"""Fields of each event."""
_EVENT_NUMBER: Final = {name: number for number, name in enumerate(_PAJE_EVENTS)}
_HAPPENINGS: Final = ("PajeSetState", "PajeSetState", "PajeStartLink", "PajeEndLink")
"""A span begins, a span ends, a message begins, a message ends."""
_ORDER_IN_INSTANT: Final = np.array([1, 0, 1, 2], dtype=np.uint8)
_BLOCK: Final = 65_536
_COLOURS: Final = ("0.30 0.69 0.31", "0.13 0.59 0.95", "0.00 0.74 0.83", "1.00 0.60 0.00", "0.61 0.15 0.69")


def write_perfetto(activity: Activity, nodes: Sequence[int], path: Path) -> None:
    """Trace Event JSON that ui.perfetto.dev and chrome://tracing open: a process for each node, a thread for each rank,
    an arrow for each message; times in µs. Source: "Trace Event Format", the Chromium authors."""
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        out.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        for place, event in enumerate(_perfetto_events(activity, nodes)):
            out.write(",\n" if place else "")
            out.write(json.dumps(event))
        out.write("\n]}\n")


def _perfetto_events(activity: Activity, nodes: Sequence[int]) -> Iterator[dict[str, object]]:
    for rank, node in enumerate(nodes):
        place = {"pid": int(node), "tid": rank, "ph": "M"}
        yield {"name": "process_name", **place, "args": {"name": f"node {node}"}}
        yield {"name": "thread_name", **place, "args": {"name": f"rank {rank}"}}
    spans = zip(activity.rank, activity.group, activity.kind, activity.start, activity.end, strict=True)
    for rank, group, kind, start, end in spans:
        place = {"pid": int(nodes[rank]), "tid": int(rank), "ph": "X"}
        named = {"name": Kind(kind).name.lower(), "cat": GROUPS[group]}
        yield {**named, **place, "ts": start * 1e6, "dur": (end - start) * 1e6}
    for key, (sender, receiver, size, sent, received) in enumerate(_messages(activity)):
        common = {"name": "message", "cat": "message", "id": key}
        ends = (("s", sender, sent), ("f", receiver, received))
        for phase, rank, when in ends:
            more = {"bp": "e", "args": {"bytes": size}} if phase == "f" else {}
            yield {**common, "ph": phase, "pid": int(nodes[rank]), "tid": rank, "ts": when * 1e6, **more}


def _messages(activity: Activity) -> Iterator[tuple[int, int, float, float, float]]:
    columns = (activity.sender, activity.receiver, activity.message_size, activity.sent, activity.received)
    return zip(*(column.tolist() for column in columns), strict=True)


def write_paje(activity: Activity, nodes: Sequence[int], path: Path) -> None:
    """A Paje trace for ViTE or pj_dump: a container for each node and rank, its states, and links for messages; times
    in s, in ascending order. Source: Schnorr, "Paje trace file format", 2010."""
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        for number, (name, fields) in enumerate(_PAJE_EVENTS.items()):
            out.write(f"%EventDef {name} {number}\n")
            out.writelines(f"%       {field}\n" for field in fields.split(", "))
            out.write("%EndEventDef\n")
        out.writelines(f"{line}\n" for line in _paje_types())
        out.writelines(f"{line}\n" for line in _paje_containers(nodes))
        out.writelines(f"{line}\n" for line in _paje_events(activity))


def _paje(event: str, *words: object) -> str:
    return " ".join([str(_EVENT_NUMBER[event]), *map(str, words)])


def _paje_types() -> Iterator[str]:
    yield _paje("PajeDefineContainerType", "M", 0, '"machine"')
    yield _paje("PajeDefineContainerType", "N", "M", '"node"')
    yield _paje("PajeDefineContainerType", "R", "N", '"rank"')
    yield _paje("PajeDefineStateType", "S", "R", '"state"')
    yield _paje("PajeDefineLinkType", "L", "M", "R", "R", '"message"')
    for group, colour in zip(GROUPS, _COLOURS, strict=True):
        yield _paje("PajeDefineEntityValue", group, "S", f'"{group}"', f'"{colour}"')
    yield _paje("PajeDefineEntityValue", "idle", "S", '"idle"', '"0.90 0.90 0.90"')


def _paje_containers(nodes: Sequence[int]) -> Iterator[str]:
    yield _paje("PajeCreateContainer", "0.000000000", "m", "M", 0, '"machine"')
    for node in dict.fromkeys(int(node) for node in nodes):
        yield _paje("PajeCreateContainer", "0.000000000", f"n{node}", "N", "m", f'"node {node}"')
    for rank, node in enumerate(nodes):
        yield _paje("PajeCreateContainer", "0.000000000", f"r{rank}", "R", f"n{int(node)}", f'"rank {rank}"')


def _paje_events(activity: Activity) -> Iterator[str]:
    """All events by time; ends come before starts of the same instant."""
    times = np.concatenate([activity.start, activity.end, activity.sent, activity.received])
    ranks = np.concatenate([activity.rank, activity.rank, activity.sender, activity.receiver])
    counts = [len(activity.start)] * 2 + [len(activity.sent)] * 2
    what = np.repeat(np.arange(len(_HAPPENINGS), dtype=np.uint8), counts)
    first = np.cumsum([0, *counts[:-1]])
    # Only numbers are sorted: the lines of a long run would not fit into memory.
    order = np.lexsort((_ORDER_IN_INSTANT[what], times))
    for begin in range(0, len(order), _BLOCK):
        block = order[begin : begin + _BLOCK]
        columns = (what[block], block - first[what[block]], times[block], ranks[block])
        for event in zip(*(column.tolist() for column in columns), strict=True):
            yield _paje_event(activity, *event)


def _paje_event(activity: Activity, what: int, at: int, time: float, rank: int) -> str:
    """The line of a span or message, `at` in its columns, that begins or ends."""
    name, moment = _HAPPENINGS[what], f"{time:.9f}"
    if name == "PajeSetState":
        return _paje(name, moment, "S", f"r{rank}", "idle" if what else GROUPS[activity.group[at]])
    return _paje(name, moment, "L", "m", f'"{activity.message_size[at]:.15g} B"', f"r{rank}", at)


def write_timeline(activity: Activity, nodes: Sequence[int], path: Path) -> None:
    """Write the time line of all ranks in the format of the file's ending; raise `UsageError` for an unknown one."""
    check_timeline(path)
    TIMELINE_WRITERS[path.suffix](activity, nodes, path)


def check_timeline(path: Path) -> None:
    """Raise `UsageError` for a file name whose ending is no format of time lines."""
    if path.suffix not in TIMELINE_WRITERS:
        raise UsageError(f"{path}: the name of a time line ends in {' or '.join(TIMELINE_WRITERS)}")


TIMELINE_WRITERS: Final[dict[str, Callable[[Activity, Sequence[int], Path], None]]] = {
    ".json": write_perfetto,
    ".paje": write_paje,
}
"""Writers of time lines by the ending of the file name."""
