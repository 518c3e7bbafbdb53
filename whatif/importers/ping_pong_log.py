"""Logs of two ping-pong programs: mpitest (Choi et al.) and nodecomm (Bienz et al.).

mpitest writes for each run `[Rank 0] comp time: .. us, comm time: .. us, total time: .. us` and the same for rank 1;
the message size is in the name of the file, `4096b.out`. Its comm time is a round trip: half the mean of both
ranks' is the one-way time that the paper's Table 2 is fitted to; the ranks' own halves are least and greatest time.

nodecomm writes `Pingpong for`, the ranks that send and their partners, and rows of a size and the time of 1, 2, .. k
pairs at once. Its sizes are numbers of integers of 4 B and its times round trips: with 16 pairs the largest messages
then move 6.4 GB/s, the injection bandwidth of a Gemini link of Blue Waters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from whatif.importers.numbers import number_of, valid_measurements
from whatif.importers.text import CUT_OFF, read_as_it_ends, refuse, text_of, whole_lines
from whatif.table import Table

INTEGER_SIZE: Final = 4
"""Bytes of what nodecomm counts."""

_RANK = re.compile(r"\[Rank (\d+)\] comp time: *\S+ us, comm time: *(\S+) us")
_SIZE = re.compile(r"(?:^|[/\\_-])(\d+)b(?:\.\w+)*$", re.IGNORECASE)
_RANKS = re.compile(r"(master|partner):\s*([\d,\s]+)")


def read_ping_pong_log(source: str | Path, file: str = "<text>") -> Table:
    """A log as ping-pong measurements (see `whatif.importers.message_tables`), one row for each run or cell.

    Raise `InvalidFileError` for a log of mpitest whose name does not end in a size (`4096b.out`), for a time that is
    no number, for a text without results, and for a file larger than 64 MiB.
    """
    text, file = text_of(source, file, read_as_it_ends)
    if re.search(r"^Pingpong for", text, re.MULTILINE):
        return _nodecomm(text, file)
    return _mpitest(text, file)


def _mpitest(text: str, file: str) -> Table:
    size = _SIZE.search(file)
    if size is None:
        raise refuse(file, "the message size must be in the name of a log of mpitest, such as `4096b.out`")
    found = [(match, number) for number, line in enumerate(text.splitlines(), 1) if (match := _RANK.match(line))]
    times = {rank: [number_of(match[2], file, line) for match, line in found if match[1] == rank] for rank in "01"}
    lines = np.array([line for match, line in found if match[1] == "0"], dtype=int)
    count = min(map(len, times.values()))
    warnings = [f"{file}: runs with the time of one rank only, left out"] if len(found) > 2 * count else []
    first, second = (np.array(values[:count]) * 0.5e-6 for values in times.values())
    columns = _ping_pongs(np.full(count, float(size[1])), (first + second) / 2, np.ones(count))
    columns |= {"minimum_time": np.minimum(first, second), "maximum_time": np.maximum(first, second)}
    return valid_measurements(columns, lines[:count], {"tool": "mpitest", "file": file}, warnings)


def _nodecomm(text: str, file: str) -> Table:
    ranks: dict[str, list[str]] = {}
    cells: list[tuple[float, float, int, int]] = []
    partners: list[str] = []
    whole, rest = whole_lines(text)
    for number, line in enumerate(whole.splitlines(), 1):
        if match := _RANKS.match(line):
            ranks[match[1]] = match[2].replace(",", " ").split()
            partners += ranks["partner"][:1] if match[1] == "partner" else []
        elif len(ranks) == 2 and re.match(r"\d+\s", line):
            cells += _row(line, len(ranks["master"]), file, number)
    size, time, pairs, lines = (
        (np.array(column, dtype=float) for column in zip(*cells, strict=True)) if cells else (np.empty((4, 0)))
    )
    warnings = [_several(file, partners)] if len(partners) > 1 else []
    warnings += [f"{file}:{text.count(chr(10)) + 1}: {CUT_OFF}"] if rest.strip() else []
    columns = _ping_pongs(size * INTEGER_SIZE, time / 2, pairs)
    return valid_measurements(columns, lines, {"tool": "nodecomm", "file": file}, warnings)


def _row(line: str, pair_count: int, file: str, number: int) -> list[tuple[float, float, int, int]]:
    size, *times = (number_of(word, file, number) for word in line.split())
    if len(times) > pair_count:
        raise refuse(file, f"{len(times)} times for {pair_count} pairs", number)
    return [(size, time, count, number) for count, time in enumerate(times, 1)]


def _several(file: str, partners: Sequence[str]) -> str:
    shown = ", ".join(partners[:10]) + (", .." if len(partners) > 10 else "")
    return f"{file}: {len(partners)} sets of partners (from rank {shown}); which of them share a node is unknown"


def _ping_pongs(size: object, time: object, pairs: np.ndarray) -> dict[str, object]:
    return {
        "test": "ping_pong",
        "message_size": size,
        "time": time,
        "pair_count": pairs,
        "process_count": 2 * pairs,
        "window_size": 1.0,
        "buffers": "host",
    }
