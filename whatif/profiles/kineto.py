"""Kineto, the profiler of PyTorch: Chrome traces as JSON, plain or packed with gzip (`.pt.trace.json.gz`).

`{"deviceProperties": [..], "traceEvents": [..]}`, or the array alone; an event is `{"ph": "X", "cat": .., "name": ..,
"ts": .., "dur": .., "args": {"device", "stream", "correlation", "bytes"}}`, times in µs. Operations of a device have
the categories `kernel`, `gpu_memcpy` and `gpu_memset`, names of copies are `Memcpy HtoD (Pageable -> Device)`. The
call with the same `correlation` says whether a copy is asynchronous (`cudaMemcpyAsync`), and its size on AMD GPUs.
Events are read one at a time, whatever the size of the file. Source: pytorch/kineto, "output_json", `CuptiActivity`;
Google, "Trace Event Format".
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import math
import re
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.sqlite import MOST_OPERATIONS
from whatif.importers.text import UNPACKING_ERRORS, most_unpacked, open_unpacked, readable, refuse
from whatif.profiles.profile_data import (
    COPY,
    DIRECTIONS,
    FILL,
    KERNEL,
    MEMORY_KINDS,
    OperationBatch,
    Profile,
    copy_memories,
    cuda_peaks,
    device_table,
    matched,
    operation_table,
    plain_memory,
    touches_symbol,
)
from whatif.schema.toml import shown_path

MOST_TEXT: Final = 8 * 2**30
"""Bytes of a trace, unpacked, that are read."""
LONGEST_VALUE: Final = 16 * 2**20
"""Characters of an event or of another value of a trace."""

_CHUNK: Final = 2**20
_HEAD: Final = 2**16
_CATEGORIES: Final = {
    "kernel": KERNEL, "gpu_memcpy": COPY, "memcpy": COPY, "gpu_memset": FILL, "memset": FILL,
}  # fmt: skip
_OPERATIONS: Final = (KERNEL, COPY, FILL)
_ENDS: Final = {"H": "host", "D": "device", "A": "device", "P": "peer"}
_COPY_NAME: Final = re.compile(r"Memcpy ([A-Z])to([A-Z])(?: \(([\w ]+) -> ([\w ]+)\))?")
_AMD_NAME: Final = re.compile(r"Copy(Host|Device)To(Host|Device)")
_FILL_NAME: Final = re.compile(r"Memset \(([\w ]+)\)")
# Whole ns of a time line that begins at its first event stay within 63 bits.
_LATEST, _LONGEST = 2.0**52, 2.0**40
_Stream = gzip.GzipFile | io.BufferedReader


def is_kineto(head: str) -> bool:
    """Whether a text begins as a Chrome trace does."""
    return head.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and ('"traceEvents"' in head or '"ph"' in head)


def read_head(path: Path) -> bytes:
    """The first bytes of a file, unpacked; empty for a packed file that is damaged."""
    with readable(path), suppress(*UNPACKING_ERRORS), open_unpacked(path) as file:
        return file.read(_HEAD)
    return b""


def read_kineto(path: Path) -> Profile:
    """A trace of Kineto: its kernels, copies and fills, its devices.

    Raise `InvalidFileError` with the line for a text that is no JSON or is cut off, and for one that is too large or
    has no operations of a device.
    """
    file, found = shown_path(path), _Found()
    with readable(path):
        try:
            with open_unpacked(path) as stream:
                for event in _Reader(stream, file, min(MOST_TEXT, most_unpacked(path))).events(found.properties):
                    found.add(event, file)
        except UNPACKING_ERRORS as error:
            place = f"after {len(found.start):,} operations"
            raise refuse(file, f"the packed file is damaged or cut off {place}: {error}") from None
    notes = {"tool": "Kineto", "version": str(found.properties.get("schemaVersion", ""))[:40]}
    parts = found.parts() if len(found.start) else []
    operations = operation_table(parts, file, notes, found.warnings(file))
    return Profile(operations, device_table(_devices(found.properties.get("deviceProperties")), operations))


class _Reader:
    """Values of a JSON text one after the other, without the whole text."""

    def __init__(self, stream: _Stream, file: str, most: int) -> None:
        self._stream, self._file, self._most = stream, file, most
        self._decoder, self._utf8 = json.JSONDecoder(strict=False), codecs.getincrementaldecoder("utf-8")("replace")
        self._text, self._place, self._line, self._size = "", 0, 1, 0
        self._is_whole = False
        self._space = re.compile(r"[ \t\r\n\ufeff]*")

    def events(self, properties: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of a trace; anything else is put into `properties` unchanged."""
        if self._next() == "[":
            yield from self._elements()
            return
        self._expect("{")
        while self._next() != "}":
            key = self._value()
            self._expect(":")
            if key == "traceEvents" and self._next() == "[":
                yield from self._elements()
            elif key in {"schemaVersion", "deviceProperties"}:
                properties[key] = self._value()
            else:
                self._value()
            if self._next() != "}":
                self._expect(",")

    def _elements(self) -> Iterator[dict[str, Any]]:
        self._expect("[")
        while self._next() != "]":
            value = self._value()
            if isinstance(value, dict):
                yield value
            if self._next() != "]":
                self._expect(",")
        self._expect("]")

    def _next(self) -> str:
        """The next character that is no space."""
        while True:
            space = self._space.match(self._text, self._place)
            self._place = space.end() if space else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                raise self._refused("the text is cut off")

    def _expect(self, character: str) -> None:
        if self._next() != character:
            raise self._refused(f"no JSON of a trace: expected `{character}`, found `{self._text[self._place]}`")
        self._place += 1

    def _value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._place)
            except RecursionError:
                raise self._refused("values are nested too deeply") from None
            except ValueError as error:
                if len(self._text) - self._place > LONGEST_VALUE or not self._more():
                    raise self._refused(f"no JSON, or cut off: {getattr(error, 'msg', error)}") from None
                continue
            # A number may go on in what was not read yet.
            if end < len(self._text) or not self._more():
                self._place = end
                return value

    def _more(self) -> bool:
        """Read on, dropping what is done; at least as much as is waiting, so that a long value is not read in vain."""
        if self._is_whole:
            return False
        block = self._stream.read(max(_CHUNK, len(self._text) - self._place))
        self._is_whole = not block
        self._size += len(block)
        if self._size > self._most:
            raise self._refused(f"larger than {self._most // 2**20} MiB when unpacked: profile a shorter run")
        self._line += self._text.count("\n", 0, self._place)
        self._text = self._text[self._place :] + self._utf8.decode(block, final=self._is_whole)
        self._place = 0
        return True

    def _refused(self, message: str) -> Exception:
        return refuse(self._file, message, self._line + self._text.count("\n", 0, self._place))


class _Found:
    """Operations and calls as columns, one value an event."""

    def __init__(self) -> None:
        self.properties: dict[str, Any] = {}
        self.start, self._time, self._size = array("d"), array("d"), array("d")
        self._device, self._stream, self._correlation = array("q"), array("q"), array("d")
        self._operation, self._names = bytearray(), list[str]()
        self._calls, self._are_asynchronous, self._call_sizes = array("d"), array("d"), array("d")
        self._known: dict[str, str] = {}
        self._lost = 0

    def add(self, event: Mapping[str, Any], file: str) -> None:
        """Take an event of a device, and a call that copies or fills; leave others."""
        if event.get("ph") != "X":
            return
        name, details = str(event.get("name", "")), event.get("args")
        details = details if isinstance(details, dict) else {}
        operation = _CATEGORIES.get(str(event.get("cat", "")).lower())
        if operation:
            self._add_operation(operation, name, event, details)
        elif "Memcpy" in name or "Memset" in name:
            self._calls.append(_real(details.get("correlation")))
            self._are_asynchronous.append("Async" in name)
            self._call_sizes.append(_real(details.get("size")))
        if len(self.start) > MOST_OPERATIONS:
            raise refuse(file, f"more than {MOST_OPERATIONS:,} operations: profile a shorter run")

    def _add_operation(self, operation: str, name: str, event: Mapping[str, Any], details: Mapping[str, Any]) -> None:
        start, time = _real(event.get("ts")), _real(event.get("dur"))
        if not (abs(start) < _LATEST and 0 <= time < _LONGEST):
            self._lost += 1
            return
        self.start.append(start)
        self._time.append(time)
        self._size.append(_real(details.get("bytes")))
        self._device.append(_whole(details.get("device", event.get("pid"))))
        self._stream.append(_whole(details.get("stream", event.get("tid"))))
        self._correlation.append(_real(details.get("correlation")))
        self._operation.append(_OPERATIONS.index(operation))
        self._names.append(self._known.setdefault(name, name))

    def parts(self) -> list[OperationBatch]:
        """The operations by kind; copies and fills with the data of their calls."""
        start = np.array(self.start)
        first = np.rint((start - start.min()) * 1e3).astype(np.int64)
        last = first + np.rint(np.array(self._time) * 1e3).astype(np.int64)
        columns = {"start": first, "end": last, "device": np.array(self._device), "stream": np.array(self._stream)}
        kind, names = np.frombuffer(bytes(self._operation), dtype=np.uint8), np.array(self._names, dtype=object)
        calls, keys = np.array(self._calls), np.array(self._correlation)
        is_asynchronous = matched(keys, calls, np.array(self._are_asynchronous))
        size = np.array(self._size)
        size = np.where(np.isnan(size), matched(keys, calls, np.array(self._call_sizes)), size)
        parts = []
        for number, operation in enumerate(_OPERATIONS):
            chosen = kind == number
            said = {"message_size": size[chosen], "is_asynchronous": is_asynchronous[chosen]} if number else {}
            times = {name: values[chosen] for name, values in columns.items()}
            parts.append(OperationBatch(operation, **times, **said, **_texts(operation, names[chosen])))
        return parts

    def warnings(self, file: str) -> list[str]:
        """Warnings: events without times, rounded times."""
        said = []
        if self._lost:
            said.append(f"{file}: {self._lost} operations left out: no time or duration")
        if len(self._time) and not np.modf(np.array(self._time))[0].any():
            said.append(f"{file}: durations are whole microseconds, as older versions write them: short ones are rough")
        return said


def _texts(operation: str, names: NDArray[Any]) -> dict[str, NDArray[Any]]:
    if operation == KERNEL:
        return {"name": names}
    known, places = (
        np.unique(names.astype(str), return_inverse=True) if len(names) else (np.empty(0), names.astype(int))
    )
    kinds = np.array([_copy_kind(name) for name in known.tolist()], dtype=object).reshape(-1, 3)[places]
    if operation == COPY:
        memory, is_symbol = copy_memories(kinds[:, 0], kinds[:, 1], kinds[:, 2])
        return {"direction": kinds[:, 0], "memory": memory, "is_symbol": is_symbol}
    return {"memory": plain_memory(kinds[:, 1]), "is_symbol": touches_symbol(kinds[:, 1])}


@lru_cache(maxsize=1000)
def _copy_kind(name: str) -> tuple[str, str, str]:
    """Direction, memory of the source and of the target by the name of a copy; of a fill the memory alone."""
    if match := _COPY_NAME.match(name):
        ends = (_ENDS.get(match[1], ""), _ENDS.get(match[2], ""))
        return DIRECTIONS.get(ends, ""), _kind(match[3]), _kind(match[4])
    if match := _AMD_NAME.match(name):
        return DIRECTIONS.get((match[1].lower(), match[2].lower()), ""), "unknown", "unknown"
    match = _FILL_NAME.match(name)
    return "", _kind(match[1]) if match else "unknown", "unknown"


def _kind(word: str | None) -> str:
    return word.lower() if word and word.lower() in MEMORY_KINDS else "unknown"


def _real(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _whole(value: Any) -> int:
    """Number of a device or stream; 0 where it is missing."""
    real = _real(value)
    return int(real) if abs(real) < 2**53 else 0


def _devices(properties: Any) -> Iterator[dict[str, Any]]:
    for row in properties if isinstance(properties, list) else []:
        if isinstance(row, dict):
            count, clock = _real(row.get("numSms")), _real(row.get("clockRate")) * 1e3
            capability = (_whole(row.get("computeMajor")), _whole(row.get("computeMinor")))
            yield {
                "device": _whole(row.get("id")),
                "name": str(row.get("name", ""))[:200],
                "processor_count": count,
                "clock_rate": clock,
                "memory_size": _real(row.get("totalGlobalMem")),
                **cuda_peaks(capability, count, clock),
            }
