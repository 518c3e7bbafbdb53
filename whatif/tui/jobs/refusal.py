"""Reasons why jobs have no answer, which their pages show in place of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from whatif.errors import InvalidFileError, WhatifError

P = ParamSpec("P")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class JobRefusal:
    """Reason why there is no answer."""

    reason: str


def answer_or_refusal(job: Callable[P, Answer]) -> Callable[P, Answer | JobRefusal]:
    """Job that returns the reason of its failure in place of raising it."""

    @wraps(job)
    def answered(*arguments: P.args, **options: P.kwargs) -> Answer | JobRefusal:
        try:
            return job(*arguments, **options)
        except WhatifError as problem:
            return JobRefusal(str(problem))
        except MemoryError:
            return JobRefusal("this needs more memory than is available")

    return answered


@contextmanager
def naming_other_readers(paths: Sequence[Path], verb: str) -> Iterator[None]:
    """Errors of reading files as those of a verb of `whatif import`, with the verb that reads them."""
    try:
        yield
    except InvalidFileError as error:
        from whatif.api.file_kinds import with_reader  # noqa: PLC0415 - not for the explorer itself

        raise with_reader(error, paths, verb) from None
