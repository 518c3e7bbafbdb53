"""Errors for users, each with its documented exit code; printed without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHOWN_PROBLEMS = 50
EXPECTED_LEVEL = "expected a level above 0 % and below 100 %, such as 95%"
_BEGINNING = 3
"""Least number of first letters that find a word."""

EXIT_DEFECT = 1
EXIT_USAGE = 2
EXIT_INVALID_FILE = 3
EXIT_INFEASIBLE = 4
EXIT_MOVED = 5
NOT_TOML, NOT_UTF8, TOO_LARGE, NO_TRACE = "not TOML", "not UTF-8", "larger than", "no trace"
"""Beginnings of messages for files of another kind."""


class WhatifError(Exception):
    """An error with a message for the user."""

    exit_code = EXIT_USAGE


class UsageError(WhatifError):
    """An invalid option: an unknown parameter, a malformed sweep, a grid that is too large."""


class InfeasiblePointError(WhatifError):
    """An infeasible point; the message is the reason."""

    exit_code = EXIT_INFEASIBLE


class MovedError(WhatifError):
    """Results that differ from the stored ones."""

    exit_code = EXIT_MOVED


class ToleranceError(WhatifError):
    """Errors of predictions that are larger than a tolerance."""

    exit_code = EXIT_MOVED


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem at one position in a file; `line` and `column` count from 1, 0 means unknown."""

    file: str
    line: int
    column: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class InvalidFileError(WhatifError):
    """All problems of the files of one scenario or platform."""

    exit_code = EXIT_INVALID_FILE

    def __init__(self, problems: Sequence[Problem]) -> None:
        shown = [str(problem) for problem in problems[:SHOWN_PROBLEMS]]
        more = len(problems) - len(shown)
        super().__init__("\n".join([*shown, f"and {more} more problem{'s' * (more > 1)}"] if more else shown))
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type[InvalidFileError], tuple[Sequence[Problem]]]:
        """Pickle the problems rather than their text, for worker processes."""
        return type(self), (self.problems,)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Hint with the nearest known words, `; did you mean `bandwidth`?`: those that begin like it, else similar ones;
    empty if there are none."""
    known = list(known)
    same = [name for name in known if name.casefold() == word.casefold()]
    # `b200` of `b200-sxm` and `gb200`, `b200-sxm-180gb` of `b200-sxm`.
    whole = [name for name in known if _is_part(word, name) or _is_part(name, word)][:4]
    begun = [name for name in known if name.casefold().startswith(word.casefold())] if len(word) >= _BEGINNING else []
    near = same or whole or begun[:2] or list(dict.fromkeys(difflib.get_close_matches(word, known, n=2, cutoff=0.65)))
    return f"; did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else ""


def _is_part(start: str, name: str) -> bool:
    """Whether a name begins with another one and a hyphen."""
    return name.casefold().startswith(f"{start.casefold()}-")


def listed(names: Iterable[str], most: int = 20) -> str:
    """`` `a`, `b`, .. ``: the first names in a message."""
    shown = [f"`{name}`" for name in names]
    return ", ".join(shown[:most]) + (", .." if len(shown) > most else "")


def abridged(names: Sequence[object], most: int) -> str:
    """`a, b and 7 more`: the first names of a list."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def require_choice(option: str, value: object, known: Sequence[str]) -> None:
    """Raise `UsageError` for a value of an option that is not one of its choices."""
    if value not in known:
        hint = did_you_mean(str(value), known)
        raise UsageError(f"--{option} {value}: expected one of {', '.join(known)}{hint}")


def require_least(option: str, value: float | None, least: int) -> None:
    """Raise `UsageError` for a number of an option below the least that is allowed; None is not stated."""
    if value is not None and value < least:
        raise UsageError(f"--{option} {value}: expected at least {least}")


def require_level(level: float) -> None:
    """Raise `UsageError` for a level of intervals that is not between 0 and 1."""
    if not 0 < level < 1:
        raise UsageError(f"--level {100 * level:g}%: {EXPECTED_LEVEL}")
