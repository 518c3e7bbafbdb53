"""Columns of CSV files by the names of measurements: `message_size=size (bytes),time=elapsed [us],pair_count=4`.

Units come from the heading, `time (us)` or `time [us]`, or follow it in the mapping; a number without a known
unit is refused, never guessed. A value replaces a column that the file lacks: `pair_count=4`, `test=ping_pong`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from whatif.errors import InvalidFileError, UsageError, did_you_mean, listed
from whatif.importers.message_tables import COLUMNS
from whatif.importers.text import refuse
from whatif.units import ONE, Dimension, UnitError, parse_quantity, parse_unit

WORDS: Final = {
    "byte": "B", "bytes": "B", "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "msec": "ms", "msecs": "ms", "millisecond": "ms", "milliseconds": "ms", "usec": "us", "usecs": "us", "µsec": "us",
    "microsecond": "us", "microseconds": "us", "nsec": "ns", "nsecs": "ns", "nanosecond": "ns", "nanoseconds": "ns",
    "bytes/s": "B/s", "bytes/sec": "B/s", "mbytes/s": "MB/s", "mbytes/sec": "MB/s", "gbytes/s": "GB/s",
    "gbytes/sec": "GB/s", "hour": "h", "hours": "h", "minute": "min", "minutes": "min",
    "watt": "W", "watts": "W", "joule": "J", "joules": "J",
    "mm:ss": "s", "m:ss": "s", "hh:mm": "s", "h:mm": "s", "hh:mm:ss": "s", "h:mm:ss": "s", "d-hh:mm:ss": "s",
    "messages/s": "1/s", "messages/sec": "1/s", "msg/s": "1/s", "msg/sec": "1/s",
}  # fmt: skip
"""Units written out, in lower case."""
DURATIONS: Final = {"mm:ss": 60.0, "m:ss": 60.0, "hh:mm": 3600.0, "h:mm": 3600.0}
"""Seconds of the first part of a duration of two parts, by the form that a heading states."""
SYMBOLS: Final = {
    "B/sec": "B/s", "kB/sec": "kB/s", "MB/sec": "MB/s", "GB/sec": "GB/s", "MiB/sec": "MiB/s", "GiB/sec": "GiB/s",
    "MBps": "MB/s", "GBps": "GB/s", "Mbps": "Mbit/s", "Gbps": "Gbit/s",
}  # fmt: skip
"""Other symbols that mean one thing only, in these letters; `KB` and `Gb/s` do not."""
TESTS: Final = {
    "lat": "ping_pong", "latency": "ping_pong", "pingpong": "ping_pong", "ping-pong": "ping_pong",
    "bw": "bandwidth", "mbw": "bandwidth", "mbw_mr": "bandwidth", "bibw": "bidirectional_bandwidth",
    "pingping": "ping_ping", "ping-ping": "ping_ping",
}  # fmt: skip
"""Other names of tests, in lower case."""
EXAMPLE: Final = "message_size=size [B],time=time [us]"

_PAIR = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*(?:,(?=\s*[A-Za-z_]\w*\s*=)|$)", re.DOTALL)
_UNIT = re.compile(r"(|.*?\S)\s*+[(\[]\s*+([^()\[\]]*[^()\[\]\s])\s*+[)\]]\s*+", re.DOTALL)
TEXTS: Final = {name for name, dimension in COLUMNS.items() if dimension is None}


def parse_mapping(text: str, example: str = EXAMPLE) -> dict[str, str]:
    """Read `message_size=size (bytes),time=time (seconds)`; raise `UsageError`, also for a name given twice."""
    found = {match[1]: match[2] for match in _PAIR.finditer(text)}
    if not found or "".join(match[0] for match in _PAIR.finditer(text)) != text:
        raise UsageError(f"`{text[:80]}` is not a list such as `{example}`")
    names = [match[1] for match in _PAIR.finditer(text)]
    if twice := next((name for name in found if names.count(name) > 1), ""):
        raise UsageError(f"`{twice}` is given twice in `{text[:80]}`")
    return found


@dataclass(frozen=True)
class SheetLayout:
    """Layout of a file: its separator, the names of its columns, and the line of its heading."""

    separator: str
    names: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class ColumnSource:
    """Source of one column of measurements: a column of the file with a scale, or a value."""

    position: int = -1
    scale: float = 1.0
    value: Any = None


def own_names(sheet: SheetLayout) -> dict[str, str]:
    """The mapping of a file whose headings are the names of the columns of measurements."""
    own = {bare(name): name for name in sheet.names}
    return {name: own[name] for name in COLUMNS if name in own and name != "file"}


def sources_of(sheet: SheetLayout, mapping: Mapping[str, str], file: str) -> dict[str, ColumnSource]:
    """Source of each column of measurements that a mapping names; raise `UsageError`."""
    known = [name for name in COLUMNS if name != "file"]
    for name in mapping:
        if name not in known:
            raise UsageError(f"`{name}` is not a column of measurements: {', '.join(known)}{did_you_mean(name, known)}")
    if "message_size" not in mapping or not {"time", "bandwidth"} & mapping.keys():
        raise UsageError(
            f"{file}: name the columns of `message_size` and `time` or `bandwidth`, such as `{EXAMPLE}`; "
            f"the columns are {listed(sheet.names)}"
        )
    return {name: _source(sheet, name, text, file) for name, text in mapping.items()}


def _source(sheet: SheetLayout, name: str, text: str, file: str) -> ColumnSource:
    dimension = COLUMNS[name]
    position, unit = position_of(sheet, text), ""
    if position < 0 and (match := _UNIT.fullmatch(text)):
        position, unit = position_of(sheet, match[1]), match[2]
        refuse_other_unit(sheet.names[position] if position >= 0 else "", name, text, unit, file)
    if position < 0:
        return ColumnSource(value=_value(sheet, name, text, dimension))
    if dimension is None or (dimension == ONE and not unit):
        return ColumnSource(position)
    if not unit and (match := _UNIT.fullmatch(sheet.names[position])):
        unit = match[2]
    return ColumnSource(position, _scale(name, text, unit, dimension, file))


def refuse_other_unit(heading: str, name: str, stated: str, unit: str, file: str) -> None:
    """Refuse a unit in a mapping where the heading has another one that is known."""
    match = _UNIT.fullmatch(heading)
    try:
        known = match and _unit(match[2])
        differs = known is not None and known != _unit(unit)
    except UnitError:
        return
    if differs:
        hint = f"the column's heading is `{heading}`; to read it in its own unit, write `{name}={heading}`"
        raise UsageError(f"{file}: `{name}={stated}` has the unit {unit}, but {hint}")


def position_of(sheet: SheetLayout, name: str) -> int:
    """Position of a heading: exact, in other case, or without its unit; -1 for none."""
    for headings in (list(sheet.names), [bare(heading) for heading in sheet.names]):
        same = [at for at, heading in enumerate(headings) if heading == name]
        like = [at for at, heading in enumerate(headings) if heading.casefold() == name.strip().casefold()]
        if len(found := same or like) == 1:
            return found[0]
        if found:
            raise UsageError(f"`{name}` is the heading of {len(found)} columns")
    return -1


def bare(heading: str) -> str:
    """A heading without its unit."""
    return split_unit(heading)[0]


def split_unit(heading: str) -> tuple[str, str]:
    """Heading without its unit, and the unit or an empty text."""
    match = _UNIT.fullmatch(heading)
    return (match[1], match[2]) if match else (heading, "")


def _value(sheet: SheetLayout, name: str, text: str, dimension: Dimension | None) -> Any:
    lost = f"`{name}={text}`: {no_column(sheet, text)}"
    if dimension is None:
        if not re.fullmatch(r"[a-z_]+(?: to [a-z]+)?", text):
            raise UsageError(lost)
        return TESTS.get(text, text)
    try:
        quantity = parse_quantity(text)
    except UnitError:
        raise UsageError(lost) from None
    if quantity.dimension != dimension:
        raise UsageError(f"`{name}={text}`: must be in {dimension}")
    return quantity.value


def _scale(name: str, text: str, unit: str, dimension: Dimension, file: str) -> float:
    hint = f"write the unit behind the column, `{name}={text.partition('[')[0].strip()} [{_typical(dimension)}]`"
    if not unit:
        raise UsageError(f"{file}: `{text}` has no unit: {hint}")
    try:
        found, size = _unit(unit)
    except UnitError as error:
        raise UsageError(f"{file}: `{text}`: {error}; {hint}") from None
    if found != dimension:
        raise UsageError(f"{file}: `{text}`: {name} cannot be in {unit}; {hint}")
    return size


def _unit(unit: str) -> tuple[Dimension, float]:
    return parse_unit(symbol_of(unit))


def symbol_of(unit: str) -> str:
    """The symbol of a unit that is written out, such as `ms` for `milliseconds`; others as they are."""
    return SYMBOLS.get(unit) or WORDS.get(unit.lower(), unit)


def _typical(dimension: Dimension) -> str:
    return {"s": "us", "B/s": "MB/s"}.get(str(dimension), str(dimension))


def no_column(sheet: SheetLayout, name: str) -> str:
    """Message about a missing column, with the nearest headings or all of them."""
    hint = did_you_mean(name, sheet.names) or did_you_mean(bare(name), map(bare, sheet.names))
    return f"no column `{name}`{hint or f'; the columns are {listed(sheet.names)}'}"


def no_rows(file: str, where: Mapping[str, str], warnings: Sequence[str] = ()) -> InvalidFileError:
    """Error of a file without rows, or without any that the filters keep."""
    filters = " with " + ", ".join(f"{name}={value}" for name, value in where.items()) if where else ""
    return refuse(file, "; ".join([f"no rows{filters}", *warnings]))


def filters_of(sheet: SheetLayout, where: Mapping[str, str]) -> dict[int, str]:
    """Values to keep by position of their column. Raise `UsageError` for a missing column."""
    for name in where:
        if position_of(sheet, name) < 0:
            raise UsageError(no_column(sheet, name))
    return {position_of(sheet, name): value for name, value in where.items()}
