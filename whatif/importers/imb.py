"""Output of the Intel MPI Benchmarks (IMB-MPI1): point-to-point tests, alone or in groups, and collectives.

A test starts with `# Benchmarking PingPong`, states its processes (`# #processes = 2`, or `# ( 4 groups of 2 processes
each running simultaneous )`) and lists rows under `#bytes #repetitions t[usec] Mbytes/sec`. The time of a ping-pong is
one way, half a round trip. A Mbyte is 2^20 B up to version 4 and 10^6 B from 2017 on, decided by the
numbers of the file. Source: Intel MPI Benchmarks User Guide.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.importers.numbers import RowReader, Section, table_of
from whatif.importers.text import pieces_of
from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.units import counted

_BANNER = re.compile(r"#.*MPI Benchmark\w*(?: Suite)?\s+V?(\d[\w. ]*?)\s*(?:,.*)?", re.IGNORECASE)
_DATE = re.compile(r"# Date\s*:\s*(.+?)\s*")
_COMMAND = re.compile(r"#\s+(\S*IMB-\S+.*?)\s*")
_PINNED = re.compile(r"\[\d+\] MPI startup\(\):\s+([01])\s+\d+\s+([A-Za-z][\w.-]*)\s.*")
_TEST = re.compile(r"#\s*Benchmarking\s+(\S+).*")
_PROCESSES = re.compile(r"#\s*#processes = (\d+).*")
_GROUPS = re.compile(r"#\s*\(\s*(\d+) groups of (\d+) processes.*")

_NOTES: Final = (("command", _COMMAND), ("date", _DATE), ("version", _BANNER))
_MODE = re.compile(r"#\s*MODE: (NON-)?AGGREGATE\s*")
_HEADING = re.compile(r"\s*(?:#?Group\s+)?(?:#bytes\s+)?#repetitions\s.*", re.IGNORECASE)

_TESTS: Final = {
    "pingpong": "ping_pong", "pingpongspecificsource": "ping_pong", "pingponganysource": "ping_pong",
    "pingping": "ping_ping", "pingpingspecificsource": "ping_ping", "pingpinganysource": "ping_ping",
    "uniband": "bandwidth", "biband": "bidirectional_bandwidth",
}  # fmt: skip
_STREAMS: Final = ("bandwidth", "bidirectional_bandwidth")
_MESSAGES: Final = {"sendrecv": 2.0, "exchange": 4.0, "bidirectional_bandwidth": 2.0}
"""Messages that pass a process in the time of a row, where they are not one."""
WINDOW: Final = 64
"""Messages in flight in Uniband and Biband."""
_COLUMNS: Final = {
    "group": ("group", 1.0),
    "#bytes": ("message_size", 1.0),
    "#repetitions": ("repetition_count", 1.0),
    "t[usec]": ("time", 1e-6),
    "t_min[usec]": ("minimum_time", 1e-6),
    "t_max[usec]": ("maximum_time", 1e-6),
    "t_avg[usec]": ("time", 1e-6),
    "t_pure[usec]": ("time", 1e-6),
    "mbytes/sec": ("bandwidth", 1.0),
    "msg/sec": ("message_rate", 1.0),
    "defects": ("defects", 1.0),
}


def read_imb(source: str | Path, file: str = "<text>") -> Table:
    """IMB output as a table of measurements (see `whatif.importers.message_tables`).

    If t_min, t_max and t_avg are printed, `time` is the average; of IMB-NBC it is t_pure, without computation. A test
    of IMB-EXT whose transfers are completed together ends with `_aggregate`. `bandwidth` is the printed one, that of
    all pairs, or, for Sendrecv and Exchange, that of one process; of several groups it prints one (the slowest, or each
    in a row of its own), and that is multiplied by their number. Raise `InvalidFileError` for a row with other words
    than numbers, and for a text without results.
    """
    texts, file = pieces_of(source, file)
    rows = RowReader(file, _read_line).read(texts)
    _warn_of_defects(rows)
    test, groups, processes = (rows.constant("test", ""), *map(rows.constant, ("group_count", "process_count")))
    size, time = np.nan_to_num(rows.column("message_size")), rows.column("time")
    rate, printed = rows.column("message_rate"), rows.column("bandwidth")
    pairs = processes * rows.constant("pairs_of_process")
    messages = rows.constant("message_count")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        passed = messages * size * np.where(np.isnan(pairs), 1.0, pairs / groups)
        printed = printed * _megabyte(rows, passed, time, printed)
        streamed = np.where(size > 0, passed / printed, messages * pairs / rate)
        bandwidth = printed * groups
    columns = {
        "test": test,
        "message_size": size,
        "pair_count": pairs,
        "process_count": processes,
        "window_size": rows.constant("window_size", 1.0),
        "time": np.where(np.isnan(time), streamed, time),
        "minimum_time": rows.column("minimum_time"),
        "maximum_time": rows.column("maximum_time"),
        "bandwidth": bandwidth,
        "message_rate": rate,
        "repetition_count": rows.column("repetition_count"),
        "buffers": "host",
    }
    return table_of(rows, columns)


def _warn_of_defects(rows: RowReader) -> None:
    lines = rows.lines[rows.column("defects") > 0]
    if len(lines):
        rows.warnings.append(f"{rows.file}:{lines[0]}: {counted(len(lines), 'row')} with wrong results (defects)")


def _megabyte(rows: RowReader, passed: FloatArray, time: FloatArray, printed: FloatArray) -> float:
    """Size of a Mbyte in B, 10^6 or 2^20: the one that agrees with the times, or else that of the version."""
    version = rows.notes.get("version", "")
    stated = 2.0**20 if re.match(r"[1-4](?:\.|$)", version) else 1e6
    # Both columns are printed with two decimals: small values are too coarse for a comparison to 5 %.
    clear = (printed > 10) & (time > 1e-6)
    seen = passed[clear] / time[clear] / printed[clear]
    near = seen[np.abs(seen / 1.024e6 - 1) < 0.05]
    if len(near) < 3:
        return stated
    fitting = 2.0**20 if np.median(near) > 1.024e6 else 1e6
    if version and fitting != stated:
        text = f"by its times a Mbyte of this file is {fitting:,.0f} B, but {stated:,.0f} B in version {version}"
        rows.warnings.append(f"{rows.file}: {text}")
    return fitting


def _read_line(section: Section, line: str) -> Section:
    if "#" in line and _HEADING.fullmatch(line):
        words = re.findall(r"#?[^\s#]+", line.lower())
        return Section(tuple(_COLUMNS.get(word, ("", 1.0)) for word in words), section.constants)
    if not line.startswith("#"):
        return _placed(section, line)
    if test := _TEST.fullmatch(line):
        return _titled(section, test[1])
    if count := _PROCESSES.fullmatch(line):
        return section.having(process_count=float(count[1]))
    if groups := _GROUPS.fullmatch(line):
        return section.having(group_count=float(groups[1]), process_count=float(groups[1]) * float(groups[2]))
    found = {name: match[1] for name, pattern in _NOTES if (match := pattern.fullmatch(line))}
    if (mode := _MODE.fullmatch(line)) and (test := section.constant("test")):
        found["test"] = test.removesuffix("_aggregate") + ("" if mode[1] else "_aggregate")
    return section.having(**found)


def _placed(section: Section, line: str) -> Section:
    """Section with the node of one of the first two processes, if Intel MPI prints it in a line (I_MPI_DEBUG=4)."""
    pinned = _PINNED.match(line)
    if pinned is None:
        return section
    section = section.having(**{f"node_{pinned[1]}": pinned[2]})
    first, second = section.constant("node_0"), section.constant("node_1")
    return section.having(nodes=f"{first}, {second}") if first and second else section


def _titled(section: Section, name: str) -> Section:
    test = name.lower().removeprefix("multi-")
    kept: dict[str, Any] = {note: section.constant(note) for note in ("version", "date", "command", "nodes")}
    fresh = Section().having(tool="Intel MPI Benchmarks", **kept)
    meaning = _TESTS.get(test, test)
    fresh = fresh.having(test=meaning, message_count=_MESSAGES.get(meaning, 1.0), group_count=1.0)
    if test in _TESTS:
        fresh = fresh.having(process_count=2.0, pairs_of_process=0.5)
    return fresh.having(window_size=float(WINDOW)) if meaning in _STREAMS else fresh
