"""Reasons why jobs have no answer, which their pages show in place of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

from whatif.errors import WhatifError

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
