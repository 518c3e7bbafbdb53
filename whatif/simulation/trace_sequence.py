"""Traces of the same ranks one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whatif.simulation.communicators import IS_COLLECTIVE
from whatif.simulation.rank_programs import Loop, RankProgram, Trace

Communicators = tuple[NDArray[np.int32], ...]


def concatenated(traces: Sequence[Trace]) -> Trace:
    """Traces of the same ranks, one after another; their programs must all be relative and without loops."""
    communicators: Communicators = (np.empty(0, dtype=np.int32),)
    numbered = []
    for trace in traces:
        numbered.append([_renumbered(program, len(communicators) - 1) for program in trace.programs])
        communicators += trace.communicators[1:]
    choices = np.stack([trace.program_of for trace in traces], axis=1)
    distinct, which = np.unique(choices, axis=0, return_inverse=True)
    programs = [
        _concatenated([own[number] for own, number in zip(numbered, row, strict=True)]) for row in distinct.tolist()
    ]
    return Trace(tuple(programs), which.ravel().astype(np.int32), communicators)


def _renumbered(program: RankProgram, before: int) -> RankProgram:
    """Program whose communicators are numbered after `before` others; the world stays 0."""
    moved = IS_COLLECTIVE[program.kind] & (program.tag > 0)
    return replace(program, tag=np.where(moved, program.tag + before, program.tag).astype(np.int32))


def _concatenated(parts: Sequence[RankProgram]) -> RankProgram:
    ends = list(accumulate((len(part.waits) for part in parts), initial=0))
    starts = [part.wait_start[:-1] + first for part, first in zip(parts, ends, strict=False)]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("kind", "peer", "size", "tag", "waits")
    }
    wait_start = np.concatenate([*starts, [ends[-1]]]).astype(np.int64)
    return RankProgram(**columns, wait_start=wait_start, relative=True)


def repeated(trace: Trace, count: int) -> Trace:
    """Trace whose programs run `count` times."""
    if count == 1:
        return trace
    programs = (replace(program, loops=(Loop(0, len(program), count),)) for program in trace.programs)
    return replace(trace, programs=tuple(programs))
