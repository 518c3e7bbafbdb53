"""Regular expressions: those of the program by Python, those of users in linear time by RE2."""

from __future__ import annotations

import re
from typing import Any, Final

from whatif.errors import UsageError
from whatif.extras import install_command

MOST_LETTERS: Final = 500
"""Letters of an expression of a user."""


def shipped_expression(text: str) -> re.Pattern[str]:
    """Compiled expression of the program; tests search lines made to be slow with it."""
    return re.compile(text, re.ASCII)


def user_expression(text: str) -> Any:
    """Compiled expression of a user, which takes time in proportion to the line (extra `logs`).

    Raise `ValueError` for one that RE2 does not know, such as a reference or a look-ahead.
    """
    try:
        import re2
    except ImportError:
        raise UsageError(f"patterns of your own need RE2: {install_command('logs')}") from None
    if len(text) > MOST_LETTERS:
        raise ValueError(f"longer than {MOST_LETTERS} letters")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise ValueError(f"`{text}` is not a regular expression of RE2: {reason}") from None


def checked(expression: Any, text: str, groups: int) -> Any:
    """Expression with a number of groups. Raise `ValueError` for another number."""
    if groups and expression.groups < groups:
        raise ValueError(f"`{text}` has no group: put the value in parentheses, `time: (\\S+) s`")
    if groups and expression.groups > groups:
        raise ValueError(f"`{text}` has {expression.groups} groups: `(?:..)` is one that is not a value")
    return expression
