"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whatif.errors import UsageError


@contextmanager
def atomic_file(path: Path, keep: tuple[type[BaseException], ...] = (KeyboardInterrupt,)) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends without an error.

    Ended by the user or by another error to `keep` it for, it stays beside it as `NAME.partial`, so that nothing
    computed is lost.
    """
    try:
        path = path.resolve() if path.is_symlink() else path
        if path.exists() and not path.is_file():
            # A pipe or a device is written to as it stands; a file in its place would cut off whoever reads it.
            yield path
            return
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(_mode(path))
        temporary.replace(path)
    except (KeyboardInterrupt, OSError, UsageError) as problem:
        kept = _kept(temporary, path) if isinstance(problem, keep) else ""
        if isinstance(problem, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted{kept}") from None
        said = f"{path}: cannot be written: {problem.strerror}" if isinstance(problem, OSError) else str(problem)
        raise UsageError(f"{said}{kept}") from problem
    finally:
        temporary.unlink(missing_ok=True)


def _kept(temporary: Path, path: Path) -> str:
    """Leave what is written so far beside the file, if that is anything; what to tell of it."""
    if not temporary.stat().st_size:
        return ""
    partial = path.with_name(f"{path.name}.partial")
    temporary.replace(partial)
    return f"; what was computed is in {partial}"


def _mode(path: Path) -> int:
    """Who may read and write a file: as before, or, for a new one, as any file of its owner. mkstemp's are private."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
