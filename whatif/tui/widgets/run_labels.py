"""Words and rows for a run simulated message by message: its inputs, its time, and the parts of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from whatif.plotting.lanes import Window
from whatif.studies.message_study import DISTANCE_LABELS
from whatif.studies.rank_lanes import RANK_KINDS, PathSummary, RunSummary
from whatif.table import Column, Table
from whatif.tui.labels import duration, percent
from whatif.tui.widgets.data_table import Cell, TableRows
from whatif.units import BYTE, ONE, SECOND, counted, format_quantity
from whatif.vocabulary import MODEL_LABELS

if TYPE_CHECKING:
    from whatif.models.quantities import FloatArray

_CHOOSE: Final = "y selects a rank, x one on the critical path"
_MARKED: Final = "; its messages are marked where they are sent and received"
_DISTANCES: Final = tuple(DISTANCE_LABELS.values())


def headed(summary: RunSummary) -> str:
    """Simulated run, its time, and its platform."""
    ranks, nodes = counted(len(summary.node), "rank"), counted(len(np.unique(summary.node)), "node")
    return f"{summary.title} · {duration(summary.run_time)} on {summary.machine} · {ranks} on {nodes}"


def window_words(window: Window, run_time: float, keys: str) -> str:
    """Which part of the run is visible, and the keys that show others."""
    whole = window[1] - window[0] >= run_time
    part = "whole run" if whole else f"{' .. '.join(map(duration, window))} of {duration(run_time)}"
    return f"{part} · {keys}"


def sentences(summary: RunSummary, rank: int | None, *, drawn: bool = True) -> list[str]:
    """The messages and their models, the result of the study, and the activity of a rank that may be drawn."""
    size, named = (
        format_quantity(summary.message_size, BYTE),
        [f"{phase} {_model(name)}" for phase, name in summary.models],
    )
    models = ", ".join(named) if len(named) > 1 else _model(summary.models[0][1])
    lines = [f"{counted(summary.message_count, 'message')} with {size} in all; cost model: {models}."]
    # One line, whether a rank is chosen or not: a picture that moves under the hand is hard to read.
    choose = f"{_CHOOSE}{_MARKED * drawn}."
    chosen = _rank_words(summary, rank) if rank is not None and rank < len(summary.node) else choose
    return [chosen, *lines, *_study_words(summary), *summary.remarks]


def _model(name: str) -> str:
    return MODEL_LABELS.get(name, name)


def _rank_words(summary: RunSummary, rank: int) -> str:
    spent = zip(RANK_KINDS.names, summary.times[rank].tolist(), strict=True)
    listed = ", ".join(f"{group} {duration(time)}" for group, time in spent if time > 0)
    return f"Rank {rank} on node {summary.node[rank]} ends at {duration(summary.ends[rank])}: {listed or 'nothing'}."


def _study_words(summary: RunSummary) -> list[str]:
    """Result of the study for the same run, if computed otherwise."""
    if summary.traced:
        return []
    given, ours = duration(summary.study_time), duration(summary.run_time)
    if summary.modelled:
        return [f"Analytic model {given}, simulated {ours}."]
    return [f"Phases simulated one by one {given} in all, simulated in a row {ours}."]


def path_facts(summary: RunSummary) -> tuple[tuple[str, str], ...]:
    """Parts of the critical path."""
    path = summary.path
    if path is None:
        return (("critical path", "not known: messages that share links depend on all others"),)
    times = {
        "critical path: computing": path.compute_time,
        "latency": float(path.latency_time.sum()),
        "transfer": float(path.transfer_time.sum()),
    }
    return tuple((name, f"{duration(time)} ({percent(time / summary.run_time)})") for name, time in times.items())


def path_rows(path: PathSummary | None) -> TableRows:
    """Waits of the critical path at each distance, and sensitivity of the run time to the costs there: as long as
    no other path becomes the longest, linearly."""
    titles = ("on the critical path", "messages", "latency", "size", "transfer", "latency +1 us", "transfer +10 %")
    rows = [] if path is None else [_path_row(path, place) for place in np.flatnonzero(path.wait_count).tolist()]
    return TableRows(titles, tuple(rows), frozenset((0,)))


def _path_row(path: PathSummary, place: int) -> tuple[Cell, ...]:
    count, transfer = float(path.wait_count[place]), float(path.transfer_time[place])
    numbers = (f"{count:,.0f}", duration(path.latency_time[place]), format_quantity(path.size[place], BYTE, 4))
    answers = (f"+{duration(1e-6 * count)}", f"+{duration(0.1 * transfer)}")
    return Cell(_DISTANCES[place], "text"), *(Cell(text) for text in (*numbers, duration(transfer), *answers))


def group_rows(summary: RunSummary) -> TableRows:
    """A row for each kind of work: the mean over the ranks, the most, and which rank has it."""
    titles = ("time of a rank", "mean", "share", "max", "at rank", "min")
    # What is left by rounding alone is no time.
    idle = np.maximum(summary.run_time * (1 - 1e-9) - summary.times.sum(axis=1), 0.0)
    spent = {**dict(zip(RANK_KINDS.names, summary.times.T, strict=True)), "idle": idle}
    rows = (_group_row(group, times, summary.run_time) for group, times in spent.items() if times.any())
    return TableRows(titles, tuple(rows), frozenset((0,)))


def _group_row(name: str, times: FloatArray, run_time: float) -> tuple[Cell, ...]:
    mean, most = float(times.mean()), int(times.argmax())
    rank = str(most) if times.min() < times[most] else "all"
    numbers = (duration(mean), percent(mean / run_time), duration(times[most]), rank, duration(times.min()))
    return Cell(name, "text"), *(Cell(text) for text in numbers)


def rank_times(summary: RunSummary) -> Table:
    """Time of each rank by activity, as `whatif simulate` prints it."""
    columns = {
        "rank": Column(np.arange(len(summary.node), dtype=np.float64), ONE),
        "node": Column(summary.node.astype(np.float64), ONE),
        "ends at": Column(summary.ends, SECOND),
        **{group: Column(summary.times[:, place], SECOND) for place, group in enumerate(RANK_KINDS.names)},
    }
    return Table(columns)


def node_times(summary: RunSummary) -> Table:
    """Least, median and most of the times of the ranks of each node: their end, their computing, and the rest."""
    nodes, first, counts = np.unique(np.sort(summary.node), return_index=True, return_counts=True)
    compute = summary.times[:, RANK_KINDS.names.index("compute")]
    columns = {
        "node": Column(nodes.astype(np.float64), ONE),
        "ranks": Column(counts.astype(np.float64), ONE),
    }
    kinds = {"done at": summary.ends, "compute": compute, "messages": summary.times.sum(axis=1) - compute}
    for name, times in kinds.items():
        ordered = times[np.lexsort((times, summary.node))]
        median = (ordered[first + (counts - 1) // 2] + ordered[first + counts // 2]) / 2
        spread = {"least": ordered[first], "median": median, "most": ordered[first + counts - 1]}
        columns |= {f"{name}, {word}": Column(values, SECOND) for word, values in spread.items()}
    return Table(columns)
