"""One core at work: a process that reads commands as lines of JSON and answers with times in ns.

Started by `team` as `python -m whatif.measuring.core_worker FLAGS RANK CPU [BLAS]`: FLAGS is the descriptor of the
memory that all workers share for their barrier. It ignores interrupts: it ends with its input, or is ended.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.measuring.routines import BLAS, Blas, clock_block, compiled, letters_array, places_of

_SIZES: Final = 5
_APART: Final = 168
"""Values between the places of arrays in their pages: a third of a page, in whole cache lines."""
_BLOCK: Final = 512
"""Rows that are moved at most."""


class CoreWorker:
    """State of one worker: its arrays, which are kept from one command to the next of the same size."""

    def __init__(self, flags: NDArray[np.int64], rank: int, library: str | None) -> None:
        self.flags, self.rank, self.clock = flags, rank, clock_block()
        self.blas = Blas(library)
        self.letters, self.sizes = letters_array(), np.ones(_SIZES, dtype=np.int32)
        self._made: dict[str, tuple[Any, list[NDArray[Any]]]] = {}

    def answer(self, command: Mapping[str, Any]) -> list[list[int]]:
        """Start and end of each round, in ns."""
        run = {
            "triad": self._stream,
            "convolution": self._stream,
            "multiply_add": self._multiply_add,
            "gemm": self._gemm,
            "hpl": self._hpl,
        }
        times = np.zeros((int(command["rounds"]), 2), dtype=np.int64)
        ending = (times, self.flags, self.rank, int(command["count"]), int(command["turn"]), self.clock)
        run[command["do"]](command, ending)
        return times.tolist()

    def _stream(self, command: Mapping[str, Any], ending: tuple[Any, ...]) -> None:
        length = int(command["length"])
        longest = int(command["longest"][self.rank]) if "longest" in command else length
        arrays = self._kept("stream", longest, lambda: _apart(longest))
        used = (array[:length] for array in (arrays if command["do"] == "triad" else arrays[:2]))
        compiled()[command["do"]](*used, command["sweeps"], *ending)

    def _multiply_add(self, command: Mapping[str, Any], ending: tuple[Any, ...]) -> None:
        kind = np.dtype(command["precision"])
        values, factors = np.zeros(int(command["length"]), dtype=kind), np.array([0.5, 1.0], dtype=kind)
        compiled()["multiply_add"](values, factors, command["sweeps"], *ending)

    def _gemm(self, command: Mapping[str, Any], ending: tuple[Any, ...]) -> None:
        kind, (m, n, k) = np.dtype(command["precision"]), command["shape"]
        name = {"float64": "dgemm", "float32": "sgemm"}[kind.name]

        def made() -> list[NDArray[Any]]:
            return [np.full(m * n, 0.5, kind), np.full(m * k, 0.5, kind), np.full(n * k, 0.5, kind)]

        arrays = self._kept("gemm", (kind.name, m, n, k), made)
        scalars = np.array([1.0, -1.0], dtype=kind)
        self.sizes[:4] = m, n, k, m
        places = places_of(self.letters, self.sizes, scalars, arrays)
        arguments = np.array(self.blas.arguments("dgemm", places), dtype=np.int64)
        compiled()["routine"](self.blas.addresses[name], arguments, command["sweeps"], *ending)

    def _hpl(self, command: Mapping[str, Any], ending: tuple[Any, ...]) -> None:
        largest = int(command["largest"])
        arrays = self._kept("hpl", largest, lambda: _hpl_arrays(largest))
        matrix, panel, rows, block, scalars = arrays
        self.sizes[3] = largest + 8
        places = places_of(self.letters, self.sizes, scalars, [matrix, panel, rows])
        routines = np.array([self.blas.addresses[name] for name in BLAS], dtype=np.int64)
        arguments = np.array([self.blas.arguments(name, places) for name in BLAS], dtype=np.int64)
        plan = np.array(command["plan"], dtype=np.int64)
        compiled()["hpl_calls"](plan, routines, arguments, self.sizes, matrix, panel, rows, block, *ending)

    def _kept(self, name: str, key: object, make: Any) -> list[NDArray[Any]]:
        """Arrays of the last command of this name and key; those of other commands are dropped first."""
        if name not in self._made or self._made[name][0] != key:
            self._made.clear()
            self._made[name] = (key, make())
        return self._made[name][1]


def _apart(length: int) -> list[NDArray[Any]]:
    """Three arrays at different places of their pages: stores and loads of equal places hinder each other."""
    return [np.ones(length + 3 * _APART)[at * _APART :][:length] for at in range(3)]


def _hpl_arrays(largest: int) -> list[NDArray[Any]]:
    """Matrix, panel, rows, indices of rows that are moved, and scalars; factors are small, so that nothing grows."""
    random = np.random.default_rng(1)
    matrix = random.uniform(-0.5, 0.5, (largest + 8) * (largest + 1))
    panel, rows = (random.uniform(-0.5, 0.5, (largest + 1) * 257) / largest for _ in range(2))
    return [matrix, panel, rows, random.integers(0, largest, _BLOCK), np.array([1.0, -1.0])]


def main(words: list[str]) -> None:
    """Answer commands until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, rank, cpu = map(int, words[:3])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cpu})
    flags = np.frombuffer(mmap.mmap(descriptor, 0), dtype=np.int64)
    worker = CoreWorker(flags, rank, words[3] if len(words) > 3 else None)
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
