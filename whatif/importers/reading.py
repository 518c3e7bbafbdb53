"""Readers of other programs' files fail in one way only: with an error about their file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from whatif.errors import WhatifError
from whatif.importers.text import refuse
from whatif.schema.toml import shown_path

_MOST_WORDS: Final = 300
"""Characters of a reason."""


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
