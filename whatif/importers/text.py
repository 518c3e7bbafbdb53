"""Text files of any size, plain or packed with gzip, read safely: whole lines in chunks, no binary, no web page."""

from __future__ import annotations

import gzip
import io
import zlib
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from whatif.errors import InvalidFileError, Problem, WhatifError
from whatif.schema.toml import shown_path

CHUNK_SIZE: Final = 2**20
"""Bytes read at a time."""
LONGEST_LINE: Final = 4 * 2**20
"""Bytes of a line."""
MOST_TEXT: Final = 64 * 2**20
"""Bytes of a file that is read as a whole."""
UNPACKING_ERRORS: Final = (EOFError, zlib.error, gzip.BadGzipFile)
"""Errors of a packed file that is damaged or cut off."""
_GZIP: Final = b"\x1f\x8b"
# A spreadsheet's "Unicode text" is UTF-16 with a mark of its byte order.
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_OTHERS: Final = {
    b"PK\x03\x04": "a workbook of a spreadsheet or a ZIP archive: save the sheet as CSV, or unpack the archive",
    b"\xfd7zXZ": "a file packed with xz: unpack it with `unxz`",
    b"\x28\xb5\x2f\xfd": "a file packed with zstd: unpack it with `unzstd`",
    b"BZh91AY&SY": "a file packed with bzip2: unpack it with `bunzip2`",
}
"""Formats that are not read, by their first bytes, with what to do."""
_MOST_WORDS: Final = 300
"""Characters of the reason why a file cannot be read."""
# A packed text shrinks to a tenth or a thirtieth; what unpacks to more of its size is made to fill a memory.
_LARGEST_RATIO: Final = 300


def file_problem(file: str, message: str, line: int = 0, key: str = "") -> Problem:
    """Problem of a file, or of one of its lines."""
    return Problem(file, line, 1 if line else 0, key, message)


def refuse(file: str, message: str, line: int = 0, key: str = "") -> InvalidFileError:
    """Error about a file that cannot be read in the expected format."""
    return InvalidFileError([file_problem(file, message, line, key)])


def refuse_special(path: Path) -> None:
    """Raise `InvalidFileError` for a pipe, a socket or a device, which may never end or be read only once."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise refuse(shown_path(path), "not a regular file")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Access to a file; that it cannot be read, or is packed and damaged, is an `InvalidFileError`."""
    try:
        yield
    except UNPACKING_ERRORS as error:
        raise refuse(shown_path(path), f"the packed file is damaged or cut off: {error}") from None
    except OSError as error:
        raise refuse(shown_path(path), f"cannot be read: {error.strerror}") from None


@contextmanager
def reading(path: Path, form: str) -> Iterator[None]:
    """Reading of a file in a format: what its reader did not foresee is an `InvalidFileError`, with its cause.

    It stands where a format is chosen, so that a reader need not think of everything that a damaged file can hold.
    """
    try:
        yield
    except WhatifError:
        raise
    except MemoryError:
        raise refuse(shown_path(path), f"cannot be read as {form}: it needs more memory than is available") from None
    except Exception as problem:
        why = f"{type(problem).__name__}: {problem}"[:_MOST_WORDS]
        line = getattr(problem, "lineno", 0)
        raise refuse(shown_path(path), f"cannot be read as {form}: {why}", line or 0) from problem


def read_text(path: Path, limit: int = MOST_TEXT) -> str:
    """A whole file as text that ends with a line; see `read_as_it_ends`."""
    text = read_as_it_ends(path, limit)
    return text if text.endswith("\n") or not text else text + "\n"


def read_as_it_ends(path: Path, limit: int = MOST_TEXT) -> str:
    """A whole file as text; raise `InvalidFileError` for one that is not text or is larger than the limit."""
    parts, size = [], 0
    for part in chunks(path):
        size += len(part)
        if size > limit:
            raise refuse(shown_path(path), f"larger than {limit // 2**20} MiB")
        parts.append(part)
    return "".join(parts)


def open_unpacked(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Bytes of a file, unpacked if it is packed with gzip; reading may raise `UNPACKING_ERRORS`."""
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
    return gzip.open(path, "rb") if packed else path.open("rb")


def most_unpacked(path: Path) -> int:
    """Bytes that a file may have when it is unpacked."""
    return max(MOST_TEXT, _LARGEST_RATIO * path.stat().st_size)


def chunks(path: Path, size: int = CHUNK_SIZE) -> Iterator[str]:
    """A file in pieces that end with a line; line ends are `\\n`, which only a last line that was cut off lacks."""
    name = shown_path(path)
    with readable(path):
        refuse_special(path)
        with open_unpacked(path) as file:
            yield from _pieces_of(file, name, size, most_unpacked(path))


def _pieces_of(file: gzip.GzipFile | io.BufferedReader, name: str, size: int, most: int) -> Iterator[str]:
    rest, read = b"", 0
    for block in _blocks(file, name, size):
        if (read := read + len(block) + 1) > most:
            raise refuse(name, f"unpacks to more than {_LARGEST_RATIO} times its size")
        whole, end, rest = (rest + block).rpartition(b"\n")
        if len(rest) > LONGEST_LINE:
            raise refuse(name, f"a line is longer than {LONGEST_LINE // 2**20} MiB")
        if end:
            yield _decoded(whole + end)
    if rest:
        yield _decoded(rest)


def _blocks(file: gzip.GzipFile | io.BufferedReader, name: str, size: int) -> Iterator[bytes]:
    """Blocks of a file in UTF-8, without a mark of the byte order; line ends of `\\r` alone become `\\n`."""
    block = file.read(size)
    recoder = getincrementaldecoder("utf-16")("replace") if block.startswith(_UTF_16) else None
    head = _in_utf_8(block, recoder)
    _refuse_other(name, head)
    # "CSV (Macintosh)" of a spreadsheet has such line ends.
    line_end = b"\r" if b"\r" in head and b"\n" not in head else b"\n"
    yield head.removeprefix(b"\xef\xbb\xbf").replace(line_end, b"\n")
    while block := file.read(size):
        yield _in_utf_8(block, recoder).replace(line_end, b"\n")


def _in_utf_8(block: bytes, recoder: IncrementalDecoder | None) -> bytes:
    return block if recoder is None else recoder.decode(block).encode()


def _decoded(block: bytes) -> str:
    return (block.replace(b"\r\n", b"\n") if b"\r" in block else block).decode("utf-8", "replace")


def _refuse_other(name: str, head: bytes) -> None:
    start = head[:1024].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise refuse(name, "this is a web page (HTML), perhaps an error page that was saved under this name", 1)
    if start.startswith(b"version https://git-lfs"):
        raise refuse(name, "this is a pointer of Git LFS, not the file itself: fetch it with `git lfs pull`", 1)
    if known := next((words for mark, words in _OTHERS.items() if head.startswith(mark)), ""):
        raise refuse(name, f"this is {known}")
    if b"\0" in head:
        raise refuse(name, "this is a binary file, not text")


def whole_lines(text: str) -> tuple[str, str]:
    """Whole lines of a piece, and its rest, which is empty unless the file ends within a line."""
    whole, end, rest = text.rpartition("\n")
    return whole + end, rest


CUT_OFF: Final = "a last row without a line end may be cut off, left out; add a line end if it is complete"
"""Warning about such a row, whose last number may have lost digits."""


def pieces(text: str) -> tuple[str, ...]:
    """Text in the form of `chunks`: line ends are `\\n`, the last line has one."""
    unified = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    return (unified.removeprefix("\ufeff").removesuffix("\n") + "\n",) if text else ()


def pieces_of(source: str | Path, file: str) -> tuple[Iterable[str], str]:
    """The file at a path of any size, or a text, in pieces that end with a line; and its name in messages."""
    return (chunks(source), shown_path(source)) if isinstance(source, Path) else (pieces(source), file)


def text_of(source: str | Path, file: str, read: Callable[[Path], str] = read_text) -> tuple[str, str]:
    """The file at a path as a whole, read by a function, or a text; and its name in messages."""
    return (read(source), shown_path(source)) if isinstance(source, Path) else (source, file)
