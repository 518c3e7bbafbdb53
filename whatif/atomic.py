"""Atomic writing of files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whatif.errors import UsageError


@contextmanager
def writable(path: str | Path) -> Iterator[None]:
    """Access to a file or folder; that it cannot be written is a `UsageError`."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


@contextmanager
def atomic_file(path: Path, keep: tuple[type[BaseException], ...] = (KeyboardInterrupt,)) -> Iterator[Path]:
    """Temporary file in the folder of `path` that replaces it when the block ends without an error.

    If the block ends with an error in `keep`, such as an interrupt, the file is kept as `NAME.partial`, so that no
    computed data is lost.
    """
    with writable(path):
        path = path.resolve() if path.is_symlink() else path
        if path.exists() and not path.is_file():
            # Pipes and devices are written directly; replacing them would cut off their readers.
            yield path
            return
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(_mode(path))
        temporary.replace(path)
    except (KeyboardInterrupt, OSError, UsageError) as problem:
        kept = _kept(temporary, path) if isinstance(problem, keep) else ""
        if isinstance(problem, KeyboardInterrupt):
            problem.args = (f"{str(problem) or 'interrupted'}{kept}",)
            raise
        message = f"{path}: cannot be written: {problem.strerror}" if isinstance(problem, OSError) else str(problem)
        raise UsageError(f"{message}{kept}") from problem
    except UnicodeEncodeError:
        raise UsageError(f"{path}: not written: a file name in it is not UTF-8; rename that file") from None
    finally:
        temporary.unlink(missing_ok=True)


def require_writable(path: str | Path) -> None:
    """Raise `UsageError` for a file that cannot be written, before the work that it is to hold."""
    place = Path(path)
    with writable(path):
        if place.exists() and not place.is_file():
            return
        if not place.parent.is_dir():
            raise UsageError(f"{path}: no folder {place.parent}")
        tempfile.TemporaryFile(dir=place.parent).close()


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all; line ends are not changed."""
    with atomic_file(Path(path)) as temporary:
        temporary.write_bytes(text.encode())


def _kept(temporary: Path, path: Path) -> str:
    """Keep the partial file if it is not empty; return a remark for the error message."""
    if not temporary.stat().st_size:
        return ""
    partial = path.with_name(f"{path.name}.partial")
    temporary.replace(partial)
    return f"; partial results are in {partial}"


def _mode(path: Path) -> int:
    """Permissions of a file: unchanged, or the default for a new file, as mkstemp makes private files."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
