"""One exchange in which every rank posts all receives, then all sends, and waits for all, as a schedule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whatif.models.patterns import Pattern
from whatif.models.quantities import FloatArray
from whatif.simulation.flat_lists import list_starts
from whatif.simulation.rank_programs import Kind, RankProgram, Trace
from whatif.simulation.schedule import Schedule, Step


def exchange_schedule(pattern: Pattern, message_sizes: FloatArray) -> Schedule:
    """The messages of a pattern, `message_sizes` [kind] in B, posted in the order of `pattern.messages()`."""
    sender, receiver, kind, tag = _messages(pattern)
    count, ranks = len(sender), np.arange(pattern.rank_count)
    joins = np.full(len(ranks), -1)
    # Each message twice, at its receiver first; then what waits for all of a rank's.
    rank = np.concatenate([receiver, sender, ranks])
    step = np.repeat([Step.RECEIVE, Step.SEND, Step.JOIN], [count, count, len(ranks)]).astype(np.uint8)
    order = np.lexsort((np.arange(len(rank)), rank))
    rank, step = rank[order], step[order]
    last = np.cumsum(np.bincount(rank, minlength=len(ranks))) - 1
    is_message = step != Step.JOIN
    size = message_sizes[kind]
    return Schedule(
        rank_start=np.concatenate([[0], last + 1]).astype(np.int64),
        step=step,
        peer=np.concatenate([sender, receiver, joins])[order].astype(np.int32),
        size=np.concatenate([size, size, np.zeros(len(ranks))])[order],
        tag=np.concatenate([tag, tag, joins])[order].astype(np.int32),
        processor=None,
        next_start=list_starts(is_message),
        next=last[rank[is_message]].astype(np.int32),
        need_count=np.where(is_message, 0, np.bincount(rank)[rank] - 1).astype(np.int32),
        origin=(np.arange(len(rank)) - (last - np.bincount(rank) + 1)[rank]).astype(np.int32),
        origin_kind=np.array([Kind.COMPUTE, Kind.ISEND, Kind.IRECEIVE, Kind.WAIT], dtype=np.uint8)[step],
    )


def exchange_trace(pattern: Pattern, message_sizes: FloatArray) -> Trace:
    """The same as programs of the ranks, one each, with relative peers."""
    sender, receiver, kind, tag = _messages(pattern)
    count, ranks = len(sender), pattern.rank_count
    rank = np.concatenate([receiver, sender, np.arange(ranks)])
    calls = np.repeat([Kind.IRECEIVE, Kind.ISEND, Kind.WAIT], [count, count, ranks]).astype(np.uint8)
    order = np.lexsort((np.arange(len(rank)), rank))
    nothing = np.zeros(ranks)
    away = np.concatenate([sender - receiver, receiver - sender, nothing])
    ends = np.cumsum(np.bincount(rank, minlength=ranks))[:-1]
    kinds, peers = np.split(calls[order], ends), np.split(away[order], ends)
    sizes = np.split(np.concatenate([message_sizes[kind], message_sizes[kind], nothing])[order], ends)
    tags = np.split(np.concatenate([tag, tag, nothing])[order], ends)
    programs = (_program(*columns) for columns in zip(kinds, peers, sizes, tags, strict=True))
    return Trace(tuple(programs), np.arange(ranks, dtype=np.int32))


def _program(kind: NDArray[np.uint8], peer: FloatArray, size: FloatArray, tag: FloatArray) -> RankProgram:
    """Calls; the last one waits for all others."""
    waited = len(kind) - 1
    return RankProgram(
        kind=kind,
        peer=peer.astype(np.int32),
        size=size,
        tag=tag.astype(np.int32),
        wait_start=np.append(np.zeros(waited + 1, dtype=np.int64), waited),
        waits=np.arange(1, waited + 1, dtype=np.int32),
        relative=True,
    )


def _messages(pattern: Pattern) -> tuple[NDArray[np.int64], ...]:
    """Sender, receiver, kind and tag of every message to another rank; each batch has another tag."""
    columns = []
    for tag, (kind, sender, receiver) in enumerate(pattern.messages()):
        away = sender != receiver
        columns.append([sender[away], receiver[away], np.full(away.sum(), kind), np.full(away.sum(), tag)])
    joined = (np.concatenate(parts).astype(np.int64) for parts in zip(*columns, strict=True))
    return tuple(joined) if columns else tuple(np.empty(0, dtype=np.int64) for _ in range(4))
