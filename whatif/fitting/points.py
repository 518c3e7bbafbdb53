"""Rows of measurements for a network fit: the tests and pairs to use, and doubts about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, did_you_mean
from whatif.fitting.input_checks import FEWEST_SIZES, ONE_KIND, POOR, disagreement, falls, refuse_invalid_numbers
from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.units import BYTE, SECOND, format_quantity
from whatif.vocabulary import UNKNOWN_PAIRS, PointWeighting

WINDOWED: Final = ("bandwidth",)
"""Tests with several messages in flight: their time is that of a message in a stream."""
MESSAGE_TESTS: Final = ("ping_pong", "ping_ping", "sendrecv", "exchange", *WINDOWED)
"""Tests whose times are those of messages between two processes; all others are of collectives or both ways."""
LONG_TAIL: Final = 2.0
"""Least ratio of the 99th percentile to the mean time of a size that is reported."""
NOT_STATED: Final = "not stated"
"""Name of rows without a kind of buffers."""
SHORTEST_BETWEEN_NODES: Final = 0.7e-6
"""Time in s of a message below which no network is assumed: the shortest that was measured between nodes is 1.04 us
(Fugaku, IMB; `platforms/fugaku.toml`), and within a socket up to 0.6 us (Summit; `platforms/summit.toml`)."""

# `-N` of srun is the number of nodes; that of mpirun and aprun the number of processes on each.
_ONE_NODE = re.compile(r"\bsrun\b.*\s(?:-N|--nodes)[ =]*1(?=\s|$)")
_NODES: Final = "nodes"
"""Note of the importers with the nodes of the first two processes: `n1, n2`."""
_HINT: Final = "if they share a node, fit another distance (`--distance intra-socket` or `inter-socket`)"

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class MessagePoints:
    """Measured times of messages, sorted by size and then by count; three arrays of one length."""

    message_size: FloatArray
    process_count: FloatArray
    """k, the pairs of processes that communicate at the same time."""
    time: FloatArray

    def __len__(self) -> int:
        return len(self.time)

    def where(self, chosen: NDArray[Any]) -> MessagePoints:
        """Points that a mask or an index selects."""
        return MessagePoints(self.message_size[chosen], self.process_count[chosen], self.time[chosen])

    @property
    def counts(self) -> FloatArray:
        """The different process counts, ascending."""
        return np.unique(self.process_count)

    def alone(self) -> MessagePoints:
        """Points with the fewest processes, to which a postal model is fitted."""
        return self.where(self.process_count == self.process_count.min())

    def weights(self, weighting: PointWeighting) -> FloatArray:
        """1/σ² of each time: σ = t (relative), 1 (uniform) or √n (sqrt_size, at least 1)."""
        if weighting == "relative":
            return self.time**-2.0
        return np.ones(len(self)) if weighting == "uniform" else 1.0 / np.maximum(self.message_size, 1.0)


@dataclass(frozen=True, eq=False)
class Choice:
    """The rows chosen: for the postal model, and for the models of sharing if there are several counts."""

    test: str
    points: MessagePoints
    shared_test: str
    shared: MessagePoints | None
    why_unshared: str
    """Reason why `shared` is None; empty if it is not."""
    warnings: tuple[str, ...]

    @property
    def lone_latency(self) -> bool:
        """Whether `shared` are streams, whose gap is no latency, while `points` are lone messages that determine it."""
        return self.shared_test in WINDOWED and self.test not in WINDOWED


def choose(table: Table, test: str | None = None, buffers: str | None = None) -> Choice:
    """The rows to fit: ping-pongs before windowed tests, of one kind of buffers; `UsageError` if that is not clear."""
    mask = _of_buffers(table, buffers)
    tests = table.columns["test"].values.astype(str)
    requested = {name: mask & (tests == name) for name in _tests_to_fit(sorted(set(tests[mask].tolist())), test)}
    rows, left_out = _countable(table, requested)
    sets = {name: _points(table, chosen, name) for name, chosen in rows.items()}
    first = next(iter(sets))
    shared_test = next((name for name in sets if len(sets[name].counts) > 1), "")
    unshared = "" if shared_test else why_unshared(table, rows)
    choice = Choice(first, sets[first], shared_test, sets.get(shared_test), unshared, ())
    used = {name: rows[name] for name in dict.fromkeys((first, shared_test)) if name}
    reported = (*used.values(), *(requested[name] & np.logical_not(rows.get(name, False)) for name in requested))
    unused = rows_in_words(table, mask & ~np.logical_or.reduce(reported)) if test is None else ""
    warnings = (*left_out, *_choice_warnings(table, choice, used), *([f"not used: {unused}"] if unused else []))
    return replace(choice, warnings=warnings)


def _tests_to_fit(present: list[str], test: str | None) -> list[str]:
    """Tests to fit, by preference. Raise `UsageError` without any, or without the requested one."""
    if test is None:
        preferred: list[str] = [name for name in ("ping_pong", *WINDOWED) if name in present]
        if not preferred:
            names = ", ".join(present) or "none"
            raise UsageError(f"no ping-pong or bandwidth test among the measurements (found: {names})")
        return preferred
    if test not in present:
        hint = did_you_mean(test, present)
        raise UsageError(f"no rows of the test `{test}`; there are {', '.join(present)}{hint}")
    if test not in MESSAGE_TESTS:
        reason = f"its time is not that of a message to another process; {', '.join(MESSAGE_TESTS)} can be fitted"
        raise UsageError(f"the test `{test}`: {reason}")
    return [test]


def _choice_warnings(table: Table, choice: Choice, used: Mapping[str, Mask]) -> Iterator[str]:
    """Warnings about the chosen rows."""
    fewest = choice.points.counts[0]
    if fewest > 1:
        yield f"measured with {pairs_in_words([fewest])} at a time: a lone message is faster"
    if choice.test in WINDOWED:
        stream = f"the times of the {choice.test} test are those of a message in a stream of them"
        yield f"{stream}: their latency is the gap between messages, not the time of a lone one"
    if choice.shared_test not in ("", choice.test):
        postal, shared = (rows_in_words(table, used[name]) for name in (choice.test, choice.shared_test))
        yield f"postal is fitted to {postal}; max_rate and injection to {shared}"
    if choice.lone_latency:
        yield "the latencies of max_rate and injection are those of postal: a stream determines only its gap"
    for chosen in used.values():
        if warning := _mixed(table, chosen):
            yield warning
        yield from _tails(table, chosen)


def _countable(table: Table, rows: Mapping[str, Mask]) -> tuple[dict[str, Mask], list[str]]:
    """Rows by test without those of unknown pairs, with warnings about these. Raise `UsageError` if none is left."""
    kept, problems = {}, []
    for name, chosen in rows.items():
        left_out = without_pairs(table, chosen)
        if left_out.any():
            problems.append(without_pairs_in_words(table, left_out, name))
        if (chosen & ~left_out).any():
            kept[name] = chosen & ~left_out
    if not kept:
        raise UsageError("\n".join(problems))
    return kept, [f"left out: {problem}" for problem in problems]


def _mixed(table: Table, mask: NDArray[np.bool_]) -> str:
    files, *keys, time = (table.columns[name].values[mask] for name in ("file", "message_size", "pair_count", "time"))
    count = np.nan_to_num(keys[1], nan=1.0)
    text = disagreement(files, {"message_size": keys[0], "pair_count": count}, time, POOR)
    return text and f"{text}; {ONE_KIND}"


def _tails(table: Table, mask: Mask) -> Iterator[str]:
    """Warning about messages that take much longer than the mean, which is fitted, where percentiles are known."""
    worst, mean, size = (table.columns[name].values[mask] for name in ("p99_time", "time", "message_size"))
    with np.errstate(invalid="ignore"):
        ratio = np.nan_to_num(worst / mean)
    if ratio.max(initial=0.0) > LONG_TAIL:
        at = int(ratio.argmax())
        told = (
            f"one message in a hundred of {format_quantity(float(size[at]), BYTE)} takes {ratio[at]:.2g} times the mean"
        )
        yield f"{told} or more; the parameters are those of the mean"


def _of_buffers(table: Table, buffers: str | None) -> NDArray[np.bool_]:
    held = table.columns["buffers"].values.astype(str)
    kinds = {kind or NOT_STATED: kind for kind in sorted(set(held.tolist()))}
    if buffers is None and len(kinds) > 1:
        message = f"the measurements are of several kinds of buffers ({', '.join(kinds)})"
        raise UsageError(f"{message}; choose one by `--buffers`")
    if buffers is not None and (buffers or NOT_STATED) not in kinds:
        hint = did_you_mean(buffers, kinds)
        raise UsageError(f"no measurements with buffers `{buffers}`; `--buffers` can be {', '.join(kinds)}{hint}")
    chosen = next(iter(kinds), "") if buffers is None else buffers or NOT_STATED
    mask: NDArray[np.bool_] = held == kinds.get(chosen, "")
    return mask


def _points(table: Table, mask: NDArray[np.bool_], test: str) -> MessagePoints:
    size, count, time = (table.columns[name].values[mask] for name in ("message_size", "pair_count", "time"))
    count = np.where(np.isnan(count), 1.0, count)
    bad = ~(np.isfinite(size) & np.isfinite(time) & (time > 0) & (size >= 0))
    if bad.any():
        raise UsageError(f"{bad.sum()} rows of the {test} test have no time above zero or no message size")
    _refuse_counts(count, table.columns["file"].values[mask], test)
    refuse_invalid_numbers(f"the {test} test", size, time)
    order = np.lexsort((count, size))
    points = MessagePoints(size[order], count[order], time[order])
    _refuse_useless(points.alone(), test)
    return points


def _refuse_counts(count: FloatArray, files: NDArray[Any], test: str) -> None:
    bad = ~((count >= 1) & np.isfinite(count) & (count == np.floor(count)))
    if bad.any():
        at = int(np.argmax(bad))
        file = f"{files[at]}: " if files[at] else ""
        example = f"a pair count of {count[at]:g}; it must be a whole number from 1"
        raise UsageError(f"{file}{bad.sum()} rows of the {test} test have an invalid pair count, such as {example}")


def _refuse_useless(points: MessagePoints, test: str) -> None:
    sizes = np.unique(points.message_size)
    if len(sizes) == 1:
        raise UsageError(f"the {test} test has one message size only: latency and bandwidth cannot be separated")
    if len(sizes) < FEWEST_SIZES:
        raise UsageError(f"the {test} test has {len(sizes)} message sizes; at least {FEWEST_SIZES} are needed")
    if points.time.min() == points.time.max():
        raise UsageError(f"all times of the {test} test are equal: there is nothing to fit")
    if falls(points.message_size, points.time):
        raise UsageError(
            f"the times of the {test} test go down with message size: are these bandwidths, or the columns mixed up?"
        )


def on_one_node(table: Table, choice: Choice) -> str:
    """Why the processes of chosen rows appear to share a node: names, command line or times; empty if they do not."""
    names = [text.split(", ") for text in table.notes.get(_NODES, "").split("; ") if text]
    if shared := next((first for first, second in names if first == second), ""):
        return f"both processes ran on the node {shared}, as the file says, but the distance is between nodes: {_HINT}"
    if command := next((text for text in table.notes.get("command", "").split("; ") if _ONE_NODE.search(text)), ""):
        return f"the processes were started on one node (`{command[:80]}`), but the distance is between nodes: {_HINT}"
    shortest = float(choice.points.time.min())
    if choice.test == "ping_pong" and shortest < SHORTEST_BETWEEN_NODES:
        told, least = (format_quantity(time, SECOND) for time in (shortest, SHORTEST_BETWEEN_NODES))
        return f"the shortest message takes {told}, and messages between nodes more than {least}: {_HINT}"
    return ""


def without_pairs(table: Table, rows: Mask) -> Mask:
    """Mask of the rows of one test whose pair count is unknown and not 1.

    Rows without a count are lone pairs where no row has one, but in files of tests of several pairs.
    """
    unknown: Mask = rows & np.isnan(table.columns["pair_count"].values)
    if (rows & ~unknown).any():
        return unknown
    files = table.notes.get(UNKNOWN_PAIRS, "").split("; ")
    several: Mask = unknown & np.isin(table.columns["file"].values.astype(str), [file for file in files if file])
    return several


def without_pairs_in_words(table: Table, left_out: Mask, test: str) -> str:
    """Warning about rows of `without_pairs`: their files, and how to give the count."""
    files = ", ".join(dict.fromkeys(table.columns["file"].values[left_out].astype(str))) or "a table"
    missing = f"{left_out.sum()} rows of the {test} test do not state how many pairs communicate at the same time"
    give = "write it below the title of OSU's output, `# [ pairs: 4 ]`, or give `pair_count` for a CSV file"
    return f"{files}: {missing}; {give}"


def rows_in_words(table: Table, rows: Mask) -> str:
    """Some rows by test with its pair counts: `23 rows of bandwidth with 8 pairs, 23 of allreduce`; empty for none."""
    tests = table.columns["test"].values[rows].astype(str)
    pairs = table.columns["pair_count"].values[rows]
    groups = []
    for test in dict.fromkeys(tests.tolist()):
        same = pairs[tests == test]
        counts = np.unique(same[np.isfinite(same)])
        groups.append(f"{len(same)} of {test}" + (f" with {pairs_in_words(counts)}" if len(counts) else ""))
    return ", ".join(groups).replace(" of ", " rows of ", 1)


def pairs_in_words(counts: Sequence[float] | NDArray[Any]) -> str:
    """`1 pair`, `1, 2 pairs`."""
    listed = ", ".join(f"{count:g}" for count in counts)
    return f"{listed} pair" + ("" if listed == "1" else "s")


def why_unshared(table: Table, rows: Mapping[str, Mask]) -> str:
    """Reason why the rows of some tests contain nothing about sharing: each test has one pair count, or none."""
    counts = {test: np.unique(table.columns["pair_count"].values[chosen]) for test, chosen in rows.items()}
    if all(np.isnan(found).all() for found in counts.values()):
        return "no pair_count was given"
    if len({float(found[0]) for found in counts.values()}) == 1:
        return "all measurements have the same number of pairs"
    words = ("no pair count" if np.isnan(found[0]) else f"{pairs_in_words(found)} only" for found in counts.values())
    each = ", ".join(f"{test} has {text}" for test, text in zip(counts, words, strict=True))
    return f"{each}, and one test needs two pair counts"
