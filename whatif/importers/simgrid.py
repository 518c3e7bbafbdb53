"""Files of SimGrid: measurements of platform-calibration (CSV), and the parameters of a platform (XML).

The CSV has rows `operation,size,start,duration` without headings, in bytes and seconds. In the ping-pong experiment a
row MPI_Send and a row MPI_Recv share their start: MPI_Recv is timed from the end of MPI_Send to the arrival of the
answer, so the round trip is the sum of both durations (`get_PingPongtime` of platform-calibration).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as Tree

import numpy as np
from numpy.typing import NDArray

from whatif.errors import InvalidFileError
from whatif.importers.numbers import MOST_ROWS, is_number, number_of, valid_measurements
from whatif.importers.text import CUT_OFF, chunks, pieces_of, read_text, refuse, text_of, whole_lines
from whatif.table import Column, Table
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, SECOND, UnitError, parse_quantity

if TYPE_CHECKING:
    import pandas as pd

MOST_XML: Final = 16 * 2**20
"""Bytes of a platform file."""

_XML = re.compile(r"\A\s*<(?:\?xml|!DOCTYPE|platform|config)")
_NAMES: Final = ("operation", "message_size", "start", "duration")
_ROW = re.compile(r"(?:\d+,)?[A-Za-z_]\w*,\d+,[-+\d.eE]+,[-+\d.eEnaN]+")
_TIMES: Final = ("smpi/os", "smpi/or", "smpi/ois")
_FACTORS: Final = ("smpi/bw-factor", "smpi/lat-factor")
_SIZES: Final = ("smpi/async-small-thresh", "smpi/async-small-thres", "smpi/send-is-detached-thresh")
_CALLS: Final = ("smpi/wtime", "smpi/iprobe", "smpi/test")
_LINKS: Final = {"lat": "latency", "bw": "bandwidth", "loopback_lat": "latency", "loopback_bw": "bandwidth"}


def read_simgrid(source: str | Path, file: str = "<text>") -> Table:
    """Calibration measurements (see `whatif.importers.message_tables`).

    A send with the receive of its answer is a `ping_pong`, one way: half the sum. Others keep the name of their
    operation (`recv`, `isend`, `iprobe`) and their duration. Raise `InvalidFileError` for rows of another form.
    """
    texts, file = pieces_of(source, file)
    frames: list[pd.DataFrame] = []
    operations: dict[str, int] = {}
    warnings: list[str] = []
    line, count = 1, 0
    for piece in texts:
        text, rest = whole_lines(piece)
        if rest.strip():
            warnings.append(f"{file}:{line + text.count(chr(10))}: {CUT_OFF}")
        if not text:
            continue
        frames.append(_frame(text, operations, file, line, warnings))
        line, count = line + text.count("\n"), count + len(frames[-1])
        if count > MOST_ROWS:
            raise refuse(file, f"more than {MOST_ROWS:,} rows: split the file")
    if not count:
        raise refuse(file, "no measurements in this file")
    columns = [np.concatenate([frame[name].to_numpy() for frame in frames]) for name in (*_NAMES, "line")]
    names = [name.removeprefix("MPI_").lower() for name in operations]
    return _measured(names, columns, file, warnings)


def is_platform(path: Path) -> bool:
    """Whether a file starts as a platform of SimGrid (XML) does, to be read by `read_platform`; False for a folder."""
    try:
        return path.is_file() and _XML.match(next(chunks(path), "")) is not None
    except InvalidFileError:
        return False


def _frame(text: str, operations: dict[str, int], file: str, line: int, warnings: list[str]) -> pd.DataFrame:
    """Some rows, with the number of their operation in place of its name; new ones are added to `operations`."""
    import pandas as pd

    width = text.split("\n", 1)[0].count(",") + 1
    if text.count(",") != text.count("\n") * (width - 1) or width not in {4, 5}:
        text = _without_cut_row(text, file, line, warnings)
        width = text.split("\n", 1)[0].count(",") + 1
    kinds: dict[Any, Any] = {"operation": "category", **dict.fromkeys(_NAMES[1:], float)}
    names = ["rank", *_NAMES][-width:]
    try:
        frame: pd.DataFrame = pd.read_csv(BytesIO(text.encode()), header=None, names=names, dtype=kinds, engine="c")
    except ValueError:
        _refuse_rows(text.splitlines(), file, line)
        raise refuse(file, "is not a table with one row a line", line) from None
    kind = frame["operation"].cat
    numbers = np.array([operations.setdefault(name, len(operations)) for name in kind.categories.astype(str)])
    return frame.assign(operation=numbers[kind.codes], line=line + np.arange(len(frame)))


def _without_cut_row(text: str, file: str, line: int, warnings: list[str]) -> str:
    lines = text.splitlines()
    if len(lines) > 1 and not _ROW.fullmatch(lines[-1]) and lines[-1].count(",") < lines[0].count(","):
        warnings.append(f"{file}:{line + len(lines) - 1}: a row that was cut off, left out")
        lines = lines[:-1]
    _refuse_rows(lines, file, line)
    return "\n".join(lines) + "\n"


def _refuse_rows(lines: list[str], file: str, line: int) -> None:
    width = lines[0].count(",") + 1
    for number, text in enumerate(lines, line):
        words = text.split(",")
        if len(words) != width or not _ROW.fullmatch(text) or not all(is_number(word) for word in words[-3:]):
            raise refuse(file, f"`{text[:60]}` is not a row `operation,size,start,duration`", number)


def _measured(names: list[str], columns: list[NDArray[Any]], file: str, warnings: list[str]) -> Table:
    operation, size, start, duration, line = columns
    send, receive = (names.index(name) if name in names else -1 for name in ("send", "recv"))
    first = _ping_pongs(operation, size, start, send, receive)
    halves = np.isin(operation, [send, receive]) if first.any() else np.zeros(len(operation), dtype=bool)
    if lost := int(halves.sum()) - 2 * int(first.sum()):
        warnings.append(f"{file}: {lost} sends or receives without the other half of their ping-pong, left out")
    keep = first | ~halves
    answered = np.append(duration[1:], 0.0)
    columns_kept = {
        "test": np.where(first, "ping_pong", np.array(names, dtype=object)[operation])[keep],
        "message_size": size[keep],
        "time": np.where(first, (duration + answered) / 2, duration)[keep],
        "pair_count": np.where(first, 1.0, np.nan)[keep],
        "process_count": 2.0,
        "window_size": 1.0,
    }
    return valid_measurements(
        columns_kept, line[keep], {"tool": "SimGrid platform-calibration", "file": file}, warnings
    )


def _ping_pongs(
    operation: NDArray[Any], size: NDArray[Any], start: NDArray[Any], send: int, receive: int
) -> NDArray[np.bool_]:
    """Mask of the sends of ping-pongs: the next row is a receive of the same size and start."""
    first = np.zeros(len(operation), dtype=bool)
    both = (operation[:-1] == send) & (operation[1:] == receive)
    first[:-1] = both & (size[:-1] == size[1:]) & (start[:-1] == start[1:])
    return first


def read_platform(source: str | Path, file: str = "<text>") -> Table:
    """The network parameters of a SimGrid platform file (XML) of at most 16 MiB, one row for each piece.

    Columns: `property` (`smpi/bw-factor`, or `CLUSTER/bw`), `message_size` (the least one of a piece, or a threshold),
    `factor` of bandwidth or latency, `time` and `time_per_byte` of smpi/os, or and ois (time = constant + size * per
    byte), `latency` and `bandwidth` of clusters. Bare numbers are bytes, seconds and B/s, as in SimGrid. Raise
    `InvalidFileError` for a text that is no such file; entities are refused, external files never read.
    """
    text, file = text_of(source, file, lambda path: read_text(path, MOST_XML))
    rows = [row for element in _elements(text, file) for row in _parameters(element, file)]
    if not rows:
        raise refuse(file, 'no network parameters in this file (`<prop id="smpi/bw-factor" ..>`, `<cluster bw=..>`)')
    return Table(
        {
            "property": Column(np.array([row["property"] for row in rows], dtype=object)),
            **{
                name: Column(np.array([row.get(name, np.nan) for row in rows], dtype=float), dimension)
                for name, dimension in _DIMENSIONS.items()
            },
        },
        {"tool": "SimGrid", "file": file},
    )


_DIMENSIONS: Final = {
    "message_size": BYTE,
    "factor": ONE,
    "time": SECOND,
    "time_per_byte": SECOND / BYTE,
    "latency": SECOND,
    "bandwidth": BYTE_PER_SECOND,
}


def _elements(text: str, file: str) -> Iterable[Tree.Element]:
    doctype = re.search(r"<!DOCTYPE[^>\[]*\[|<!ENTITY", text)
    if doctype:
        line = text.count("\n", 0, doctype.start()) + 1
        raise refuse(file, "a DOCTYPE with declarations is not read", line)
    try:
        root = Tree.fromstring(text)  # noqa: S314 - entities were refused, expat reads no external ones
    except Tree.ParseError as error:
        raise refuse(file, f"is not XML: {error.msg}", error.position[0]) from None
    return root.iter()


def _parameters(element: Tree.Element, file: str) -> list[dict[str, Any]]:
    name, value = element.get("id", ""), element.get("value", "")
    if element.tag == "prop":
        if name in _TIMES or name in _FACTORS:
            return [_piece(name, piece, file) for piece in value.split(";") if piece.strip()]
        if name in _SIZES or name in _CALLS:
            kind = "message_size" if name in _SIZES else "time"
            return [{"property": name, kind: number_of(value, file, key=name)}]
        return []
    if element.tag not in {"cluster", "link"}:
        return []
    given = {key: element.get(key) or element.get({"bw": "bandwidth", "lat": "latency"}.get(key, "")) for key in _LINKS}
    return [
        {"property": f"{name}/{key}", _LINKS[key]: _quantity(text, _LINKS[key], file)}
        for key, text in given.items()
        if text
    ]


def _piece(name: str, piece: str, file: str) -> dict[str, Any]:
    numbers = [number_of(word, file, key=name) for word in piece.split(":")]
    kinds = ("message_size", "factor") if name in _FACTORS else ("message_size", "time", "time_per_byte")
    if len(numbers) != len(kinds):
        raise refuse(file, f"`{piece[:60]}` must be `{':'.join(kinds)}`", key=name)
    return {"property": name, **dict(zip(kinds, numbers, strict=True))}


def _quantity(text: str, kind: str, file: str) -> float:
    """`12.5GBps`, `1Gbps` and `0.1us`; bare numbers are B/s and seconds."""
    dimension = _DIMENSIONS[kind]
    plain = text.replace("Bps", "B/s").replace("bps", "bit/s").strip()
    if re.fullmatch(r"[-+\d.eE]+", plain):
        return number_of(plain, file, key=kind)
    try:
        quantity = parse_quantity(plain)
    except UnitError as error:
        raise refuse(file, str(error), key=kind) from None
    if quantity.dimension != dimension:
        raise refuse(file, f"`{text[:40]}` must be in {dimension}", key=kind)
    return quantity.value
