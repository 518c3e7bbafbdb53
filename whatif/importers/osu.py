"""Output of the OSU micro-benchmarks, versions 3 to 7: point-to-point tests and collectives.

A test starts with `# OSU MPI Latency Test v5.6`, may name buffers (`# Send Buffer on DEVICE (D) and ..`), pairs and
window (`# [ pairs: 2 ] [ window size: 64 ]`), and lists rows under `# Size  Latency (us)`, from version 7.2 on with
percentiles of the times if asked (`P99 Tail Lat(us)`; others than 50, 90 and 99 are left out, and those of bandwidths).
`osu_mbw_mr -V` has a column for each window; that of 64 messages is read, and its table of message rates is left out.
A file may hold several outputs, with other lines between them, and each line may carry the name of a process (`0: `,
`[1,0]<stdout>:`).
OSU's MB is 10^6 B. Source: https://mvapich.cse.ohio-state.edu/benchmarks/.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from whatif.importers.numbers import RowReader, Section, table_of
from whatif.importers.text import pieces_of
from whatif.table import Table
from whatif.units import UnitError, parse_unit
from whatif.vocabulary import UNKNOWN_PAIRS

DEFAULT_WINDOW: Final = 64
"""Messages in flight in `osu_bw`, `osu_bibw` and `osu_mbw_mr` if the output does not state the window."""

_TITLE = re.compile(r"#\s*OSU\s+(.+?)(?:\s+Test)?(?:\s+v(\d\S*))?\s*")
_BUFFERS = re.compile(r"#\s*Send Buffer on (\w+).*Receive Buffer on (\w+)", re.IGNORECASE)
_LIBRARY = re.compile(r"(?:MPI(?:-(\w+))?|(NCCL|RCCL))[ _]")
_PAIRS = re.compile(r"pairs:\s*(\d+)", re.IGNORECASE)
_WINDOW = re.compile(r"window size:\s*(\d+)", re.IGNORECASE)
_WINDOWS = re.compile(r"#(?:\s+\d+){2,}\s*")
_RATES = "# Message Rate Profile"
_COMMAND = re.compile(
    r"(?:^|[\s|$+>`])((?:srun|mpirun|mpiexec|jsrun|aprun|ibrun|prun|flux run)\b.*osu.*)", re.IGNORECASE
)
_HEADING = re.compile(r"([A-Za-z][\w.-]*(?: [\w.-]+)*?) ?\(([^)]*)\)|(\S+)")

_TESTS: Final = {
    "latency": "ping_pong",
    "multi latency": "ping_pong",
    "bandwidth": "bandwidth",
    "bi-directional bandwidth": "bidirectional_bandwidth",
    "multiple bandwidth / message rate": "bandwidth",
}
_COLLECTIVES: Final = {
    "broadcast": "bcast",
    "all-to-all": "alltoall",
    "all-to-allv": "alltoallv",
    "all-to-allw": "alltoallw",
}


def read_osu(source: str | Path, file: str = "<text>") -> Table:
    """OSU output as a table of measurements (see `whatif.importers.message_tables`).

    Bandwidth tests get a time for each message, message_size * pair_count / bandwidth; in a bidirectional test two
    messages pass in that time, one each way. Raise `InvalidFileError` for a row that is not a row of numbers, and for a
    text without results. Before version 7 the multi-latency test does not print its pairs: where no command line
    does, they are NaN, and the note `UNKNOWN_PAIRS` names the file.
    """
    texts, file = pieces_of(source, file)
    rows = RowReader(file, _read_line).read(texts)
    size, bandwidth, time = rows.column("message_size"), rows.column("bandwidth"), rows.column("time")
    pairs = rows.constant("pair_count")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        streamed = rows.constant("direction_count") * size * pairs / bandwidth
    columns = {
        "test": rows.constant("test", ""),
        "message_size": np.where(np.isnan(size), 0.0, size),
        "pair_count": pairs,
        "process_count": rows.constant("process_count"),
        "window_size": rows.constant("window_size"),
        "time": np.where(np.isnan(time), streamed, time),
        "minimum_time": rows.column("minimum_time"),
        **{name: rows.column(name) for name in ("maximum_time", *_PERCENTILES.values())},
        "bandwidth": bandwidth,
        "message_rate": rows.column("message_rate"),
        "repetition_count": rows.column("repetition_count"),
        "buffers": rows.constant("buffers", ""),
    }
    table = table_of(rows, columns)
    uncounted = (table.columns["test"].values == "ping_pong") & np.isnan(table.columns["pair_count"].values)
    return replace(table, notes={**table.notes, UNKNOWN_PAIRS: file}) if uncounted.any() else table


def _read_line(section: Section, line: str) -> Section:
    if "osu" in line and (command := _COMMAND.search(line)):
        return section.having(command=command[1].strip())
    if not line.startswith("#"):
        return section
    if title := _TITLE.fullmatch(" ".join(line.split())):
        return _titled(section, title[1], title[2] or "")
    if buffers := _BUFFERS.match(line):
        source, target = buffers[1].lower(), buffers[2].lower()
        return section.having(buffers=source if source == target else f"{source} to {target}")
    if pairs := _PAIRS.search(line):
        section = section.having(pair_count=float(pairs[1]), process_count=2 * float(pairs[1]))
    if window := _WINDOW.search(line):
        return section.having(window_size=float(window[1]))
    return _headed(section, line) if section.constant("test") else section


def _of_windows(section: Section, windows: list[str]) -> Section:
    """Section whose rows have the bandwidth of each window: of the usual one, else the last, it is read."""
    read = str(DEFAULT_WINDOW) if str(DEFAULT_WINDOW) in windows else windows[-1]
    columns = tuple(("bandwidth", 1e6) if window == read else ("", 1.0) for window in windows)
    return Section((("message_size", 1.0), *columns), section.having(window_size=float(read)).constants)


def _titled(section: Section, title: str, version: str) -> Section:
    library = _LIBRARY.match(title)
    name = title[library.end() :].lower() if library else title.lower()
    on_device = bool(library and (library[1] or library[2]))
    command = section.constant("command")
    fresh = Section().having(tool="OSU micro-benchmarks", version=version, command=command)
    fresh = fresh.having(buffers="device" if on_device else "host", window_size=1.0, pair_count=1.0)
    test = _TESTS.get(name)
    if test is None:
        return fresh.having(test=_collective(name), pair_count=None, process_count=_process_count(command))
    if name.startswith("multi latency"):
        count = _process_count(command)
        return fresh.having(test=test, process_count=count, pair_count=count and count / 2)
    window = DEFAULT_WINDOW if "bandwidth" in name else 1
    directions = 2.0 if test == "bidirectional_bandwidth" else 1.0
    return fresh.having(test=test, process_count=2.0, window_size=float(window), direction_count=directions)


def _collective(name: str) -> str:
    name = re.sub(r"\b(?:latency|personalized exchange)\b", "", name).strip()
    plain = name.removeprefix("non-blocking").strip()
    plain = _COLLECTIVES.get(plain, re.sub(r"\W+", "_", plain).strip("_"))
    return f"i{plain}" if name.startswith("non-blocking") else plain


def _process_count(command: str | None) -> float | None:
    """Processes that a command line starts: `-n 4`, or `-N2 --ntasks-per-node=4`."""
    if not command:
        return None
    if match := re.search(r"\s(?:-n|-np|--np|--ntasks)[ =]*(\d+)(?=\s|$)", command):
        return float(match[1])
    nodes = re.search(r"\s(?:-N|--nodes)[ =]*(\d+)(?=\s|$)", command)
    each = re.search(r"\s--ntasks-per-node[ =]*(\d+)(?=\s|$)", command)
    return float(nodes[1]) * float(each[1]) if nodes and each else None


def _headed(section: Section, line: str) -> Section:
    """The columns that `# Size  Avg Latency(us)  Iterations` announces; a line that is no heading changes nothing."""
    if line.startswith(_RATES):
        return Section((), section.having(test=None).constants)
    if section.constant("test") == "bandwidth" and _WINDOWS.fullmatch(line):
        return _of_windows(section, line.split()[1:])
    words = line.removeprefix("#").strip()
    sized = re.match(r"(?:Message )?Size\b(?: ?\(?bytes\)?)?", words, re.IGNORECASE)
    rest = words[sized.end() :] if sized else words
    found = [_column(name or plain, unit) for name, unit, plain in _HEADING.findall(rest)]
    columns = tuple(column for column in found if column is not None)
    if not columns or not any(name for name, _ in columns) or len(columns) < len(found) - found.count(None):
        return section
    return Section(((("message_size", 1.0),) if sized else ()) + columns, section.constants)


def _column(name: str, unit: str) -> tuple[str, float] | None:
    """Column and scale of a heading; ("", 1) for a column that is not used, None for one without numbers."""
    name = name.lower()
    if name == "validation":
        return None
    if name in {"mb/s", "messages/s", "iterations"}:
        return {"mb/s": ("bandwidth", 1e6), "messages/s": ("message_rate", 1.0)}.get(name, ("repetition_count", 1.0))
    try:
        scale = parse_unit(unit)[1] if unit else 0.0
    except UnitError:
        scale = 0.0
    meaning = next((meant for pattern, meant in _MEANINGS if re.fullmatch(pattern, name)), "")
    return (meaning, scale) if scale and meaning else ("", 1.0)


_PERCENTILES: Final = {percentile: f"{percentile}_time" for percentile in ("p50", "p90", "p99")}
_MEANINGS: Final = (
    (r"min .*", "minimum_time"),
    (r"max .*", "maximum_time"),
    *((rf"{percentile} tail lat", name) for percentile, name in _PERCENTILES.items()),
    (r"(?:avg )?lat(?:ency)?|pure comm\.?", "time"),
    (r"bandwidth", "bandwidth"),
)
