"""Binary DUMPI traces as `libdumpi` writes them: one file for each rank, `PREFIX-0000.bin`, `PREFIX-0001.bin`, ..

    8 B ff aa dd "DUMPI"; i32 CPU second, i32 wall second, from which times count
    a record: u16 function, u8 mask, and as the mask says u16 thread, CPU time, wall time, counters; the arguments
        a time: u16 second and u32 ns of the entry, the same of the return
        counters: u8 count, and for each i64 at the entry, i64 at the return
        an array: u32 count, elements; a string: u32 length, bytes
    u16 293 after the last record
    header: u8 version[3], ..    footer: u64 f007fee7, u32 calls[291], u32 calls that were not recorded[291]
    64 B index: the first 8 B again, u64 place of sizes, functions, counters, header, times and records, footer, keys

All numbers are big-endian. Source: sst-dumpi, docs/traceformat.dox and dumpi/common.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct, error
from typing import Final

from whatif.importers.dumpi_arguments import RecordArguments
from whatif.importers.dumpi_calls import RankCalls
from whatif.importers.dumpi_records import STATUSES, Cursor, functions
from whatif.importers.operations import MOST_OPERATIONS
from whatif.importers.text import most_unpacked, open_unpacked, readable, refuse
from whatif.schema.toml import shown_path

BINARY_START: Final = b"\xff\xaa\xddDUMPI"
"""First bytes of a binary DUMPI file, and of the index at its end."""
MOST_BYTES: Final = 2**31
"""Bytes of a file that is read."""

_INDEX: Final = Struct(">8s7Q")
_SECONDS: Final = Struct(">ii")
_RECORD: Final = Struct(">HB")
_CLOCK: Final = Struct(">HIHI")
_COUNTERS: Final = Struct(">B")
_FUNCTIONS: Final = 291
_FUNCTION_OF_PROGRAM: Final = (291, 292)
_LAST: Final = b"\x01\x25"
_FOOTER: Final = Struct(f">Q{2 * _FUNCTIONS}I")
_FOOTER_START: Final = 0xF007FEE7
_OLDEST: Final = (0, 6, 9)
_CPU, _WALL, _THREAD, _COUNTED = 4, 8, 64, 128
_MASK: Final = STATUSES | _CPU | _WALL | _THREAD | _COUNTED
_SECOND: Final = 1_000_000_000


def read_binary_rank(path: Path) -> RankCalls:
    """The calls of the rank of one file.

    Raise `InvalidFileError` with the byte for a damaged record, a version before 0.6.9, or a file beyond 2 GiB. Of a
    file that was cut off, the calls before are kept, with a warning.
    """
    name = shown_path(path)
    most = min(MOST_BYTES, most_unpacked(path))
    with readable(path), open_unpacked(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise refuse(name, f"larger than {MOST_BYTES // 2**30} GiB, or packed to less than a 300th")
    return _RankFile(name, data).calls()


class _RankFile:
    """The bytes of a file, and where its parts are."""

    def __init__(self, file: str, data: bytes) -> None:
        self.file, self.data = file, data
        self.body, self.end, self.footer = len(BINARY_START), len(data), 0
        self.is_whole = False
        index = data.rfind(BINARY_START, max(len(data) - _INDEX.size, self.body))
        if index >= 0:
            self._read_index(index)

    def calls(self) -> RankCalls:
        """The calls of all whole records."""
        rank = RankCalls(self.file)
        cursor = Cursor(memoryview(self.data)[: self.end], self.body)
        start = cursor.position
        try:
            second = cursor.take(_SECONDS)[1]
            start = cursor.position
            while self.data[start : start + 2] != _LAST:
                self._record(rank, cursor, second)
                start = cursor.position
                if len(rank.operations) > MOST_OPERATIONS:
                    raise refuse(self.file, f"too large: more than {MOST_OPERATIONS:,} operations")
        except error:
            if self.is_whole:
                raise refuse(
                    self.file, f"the record at byte {start:,} is damaged: it reaches into the header"
                ) from None
        self._warn(rank, start)
        return rank

    def _read_index(self, index: int) -> None:
        """Take where the parts are from the index, which a file that was cut off lacks."""
        if index != len(self.data) - _INDEX.size:
            raise refuse(self.file, "written by DUMPI before 0.6.6, whose records differ")
        _, _, _, _, self.end, self.body, self.footer, _ = _INDEX.unpack_from(self.data, index)
        if not len(BINARY_START) <= self.body < self.end <= index - 3:
            places = f"records at {self.body:,} and header at {self.end:,}"
            raise refuse(self.file, f"the index at byte {index:,} is damaged: {places}")
        version = tuple(self.data[self.end : self.end + 3])
        if version < _OLDEST:
            shown = ".".join(map(str, version))
            raise refuse(self.file, f"written by DUMPI {shown}: the records of versions before 0.6.9 differ")
        self.is_whole = True

    def _record(self, rank: RankCalls, cursor: Cursor, second: int) -> None:
        """Add the call of the next record; times count from a second."""
        start = cursor.position
        number, mask = cursor.take(_RECORD)
        is_call = number < len(functions())
        if not (is_call or number in _FUNCTION_OF_PROGRAM) or mask & ~_MASK:
            self._refuse(start, f"function {number} with the mask {mask} is not known")
        cursor.skip(2 * bool(mask & _THREAD) + _CLOCK.size * bool(mask & _CPU))
        if not mask & _WALL:
            raise refuse(self.file, f"the call at byte {start:,} has no wall time, from which the computations follow")
        entry, entry_rest, back, back_rest = cursor.take(_CLOCK)
        if max(entry_rest, back_rest) >= _SECOND:
            self._refuse(start, "its time has more than 999,999,999 ns")
        if mask & _COUNTED:
            cursor.skip(16 * cursor.take(_COUNTERS)[0])
        if not is_call:
            cursor.skip(8)  # the address of a function of the program
            return
        body, function = cursor.position, functions()[number]
        values = cursor.arguments(function, mask)
        arguments = RecordArguments(self.file, function.name, start, self.data[body : cursor.position], values)
        rank.call(arguments, (second + entry) * _SECOND + entry_rest, (second + back) * _SECOND + back_rest)

    def _refuse(self, start: int, message: str) -> None:
        raise refuse(self.file, f"the record at byte {start:,} is damaged: {message}")

    def _warn(self, rank: RankCalls, end: int) -> None:
        """Add warnings about the end of the records and calls that were not recorded; refuse a file without calls."""
        if not rank.calls:
            raise refuse(self.file, "no whole record of a call in it")
        if not self.is_whole:
            rank.warnings[f"{self.file}: cut off: what followed byte {end:,} is left out"] += 1
        elif not rank.ended:
            rank.warnings[f"{self.file}: ends before MPI_Finalize: what followed is missing"] += 1
        if not 0 < self.footer <= len(self.data) - _FOOTER.size:
            return
        start, *counts = _FOOTER.unpack_from(self.data, self.footer)
        if start == _FOOTER_START:
            for function, count in zip(functions(), counts[_FUNCTIONS:], strict=False):
                rank.warn_of_ignored(function.name, count)
