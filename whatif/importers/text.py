"""Text files of any size, read safely: whole lines in chunks, never binary, never a web page by mistake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from whatif.errors import InvalidFileError, Problem
from whatif.schema.toml import shown_path

CHUNK_SIZE: Final = 2**20
"""Bytes read at a time."""
LONGEST_LINE: Final = 4 * 2**20
"""Bytes of a line."""
MOST_TEXT: Final = 64 * 2**20
"""Bytes of a file that is read as a whole."""


def refuse(file: str, message: str, line: int = 0, key: str = "") -> InvalidFileError:
    """Error about a file that cannot be read in the expected format."""
    return InvalidFileError([Problem(file, line, 1 if line else 0, key, message)])


def refuse_special(path: Path) -> None:
    """Raise `InvalidFileError` for a pipe, a socket or a device, which may never end or be read only once."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise refuse(shown_path(path), "not a regular file")


def read_text(path: Path, limit: int = MOST_TEXT) -> str:
    """A whole file as text that ends with a line; see `read_as_it_ends`."""
    text = read_as_it_ends(path, limit)
    return text if text.endswith("\n") or not text else text + "\n"


def read_as_it_ends(path: Path, limit: int = MOST_TEXT) -> str:
    """A whole file as text; raise `InvalidFileError` for one that is no text or larger than the limit."""
    parts, size = [], 0
    for part in chunks(path):
        size += len(part)
        if size > limit:
            raise refuse(shown_path(path), f"larger than {limit // 2**20} MiB")
        parts.append(part)
    return "".join(parts)


def chunks(path: Path, size: int = CHUNK_SIZE) -> Iterator[str]:
    """A file in pieces that end with a line; line ends are `\\n`, which only a last line that was cut off lacks."""
    name = shown_path(path)
    try:
        refuse_special(path)
        with path.open("rb") as file:
            rest = b""
            first = True
            while block := file.read(size):
                if first:
                    _refuse_other(name, block)
                    block, first = block.removeprefix(b"\xef\xbb\xbf"), False
                whole, end, rest = (rest + block).rpartition(b"\n")
                if len(rest) > LONGEST_LINE:
                    raise refuse(name, f"a line is longer than {LONGEST_LINE // 2**20} MiB")
                if end:
                    yield _decoded(whole + end)
            if rest:
                yield _decoded(rest)
    except OSError as error:
        raise refuse(name, f"cannot be read: {error.strerror}") from None


def _decoded(block: bytes) -> str:
    return (block.replace(b"\r\n", b"\n") if b"\r" in block else block).decode("utf-8", "replace")


def _refuse_other(name: str, head: bytes) -> None:
    start = head[:1024].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise refuse(name, "this is a web page (HTML), perhaps an error page that was saved under this name", 1)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise refuse(name, "this is UTF-16 text; save it as UTF-8")
    if b"\0" in head:
        raise refuse(name, "this is a binary file, not text")


def whole_lines(text: str) -> tuple[str, str]:
    """Whole lines of a piece, and its rest, which is empty unless the file ends within a line."""
    whole, end, rest = text.rpartition("\n")
    return whole + end, rest


CUT_OFF: Final = "a last row without a line end may be cut off, left out"
"""Warning about such a row, whose last number may have lost digits."""


def pieces(text: str) -> tuple[str, ...]:
    """Text in the form of `chunks`: line ends are `\\n`, the last line has one."""
    return (text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n") + "\n",) if text else ()
