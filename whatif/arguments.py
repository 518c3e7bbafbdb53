"""Arguments as texts: shares such as `20%`, and pairs `NAME=VALUE`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from whatif.errors import EXPECTED_LEVEL, UsageError
from whatif.units import parse_share

Share = float | str
"""A share: 0.2 or `20%`."""


def share_of(option: str, share: Share) -> float:
    """Share of 0 or more, above 1 only in per cent; raise `UsageError` that names the option, `--level` or `--spread
    assumed=`."""
    return _share(option, share, lambda _: True, "")


def positive_share(option: str, share: Share) -> float:
    """Share above 0 and at most 1; raise `UsageError` that names the option."""
    return _share(
        option, share, lambda number: 0 < number <= 1, "expected a share above 0 and at most 100 %, such as 95%"
    )


def level_of(share: Share) -> float:
    """Level of intervals, above 0 and below 1; raise `UsageError` that names `--level`."""
    return _share("--level", share, lambda number: 0 < number < 1, EXPECTED_LEVEL)


def _share(option: str, share: Share, accepts: Callable[[float], bool], expected: str) -> float:
    """Share that is accepted, above 1 only in per cent; raise `UsageError` that names the option."""
    stated = f"{option}{'' if option.endswith('=') else ' '}{share}"
    number = parse_share(share) if isinstance(share, str) else share
    if number is None or not 0 <= number < math.inf:
        raise UsageError(f"{stated}: {expected or 'expected a share, such as 20% or 0.2'}")
    if number > 1 and "%" not in str(share) and accepts(number / 100):
        raise UsageError(f"{stated}: is {number:.0%}; for {share} per cent write `{share}%`")
    if not accepts(number):
        raise UsageError(f"{stated}: {expected}")
    return number


def pairs(option: str, texts: Iterable[str], expected: str) -> dict[str, str]:
    """Values by name, of texts `NAME=VALUE`; raise `UsageError` for other texts, and for a name given twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise UsageError(f"{option} {text}: expected {expected}")
        if name in found:
            raise UsageError(f"{option} {text}: {name} is given already, as {found[name]}")
        found[name] = value
    return found
