"""Regular expressions of users, bounded in time: no repetition whose matches could be divided in many ways."""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

LONGEST: Final = 500
"""Letters of a line that are searched."""
_MOST_LETTERS: Final = 500
_MOST_DIVIDED: Final = 2
_REPEATS: Final = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_FEW: Final = 20
_ALL: Final = frozenset(map(chr, range(128)))
_CATEGORIES: Final = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def compiled(text: str, groups: int) -> re.Pattern[str]:
    """Expression with a number of groups. Raise `ValueError` for one that is not valid, or could take too long.

    A search of a line costs its length to the power of the repetitions that may divide the same letters among them,
    plus one: so a repetition holds no other, no more than two may follow each other on the same letters, and nothing
    refers to another part of the line.
    """
    if len(text) > _MOST_LETTERS:
        raise ValueError(f"longer than {_MOST_LETTERS} letters")
    try:
        expression, tree = re.compile(text, re.ASCII), parser.parse(text, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"`{text}` is not a regular expression: {error}") from None
    if expression.groups < groups:
        raise ValueError(f"`{text}` has no group: put the value in parentheses, `time: (\\S+) s`")
    if expression.groups > max(groups, 0) and groups:
        raise ValueError(f"`{text}` has {expression.groups} groups: `(?:..)` is one that is no value")
    _check(tree, text, inside=False)
    if (count := _divided(tree)) > _MOST_DIVIDED:
        raise ValueError(
            f"`{text}` has {count} repetitions that can divide the same letters: at most {_MOST_DIVIDED}; "
            "`\\S+` is one word, `\\d{1,15}` a number, `.` any letter"
        )
    return expression


def _divided(tree: Any) -> int:
    """Most repetitions among which a sequence of one letter can be divided; those of any letter count everywhere."""
    items = list(_flat(tree))
    unbounded = [code in _REPEATS and argument[1] > _FEW for code, argument in items]
    letters = [_letters([item]) for item in items]
    wide = sum(many and found == _ALL for many, found in zip(unbounded, letters, strict=True))
    most = 0
    for letter in _ALL:
        count = 0
        for (code, argument), many, found in zip(items, unbounded, letters, strict=True):
            optional = code is codes.AT or (code in _REPEATS and argument[0] == 0)
            if many and found != _ALL and letter in found:
                count += 1
            elif letter not in found and not optional:
                count = 0
            most = max(most, count)
    return wide + most if wide else most


def _flat(tree: Any) -> Any:
    """Parts of an expression in their order, those of groups in place."""
    for code, argument in tree:
        if code is codes.SUBPATTERN:
            yield from _flat(argument[-1])
        else:
            yield code, argument


def _letters(tree: Any) -> frozenset[str]:
    """Letters that a part may match."""
    found: set[str] = set()
    for code, argument in tree:
        if code is codes.LITERAL:
            found.add(chr(argument))
        elif code is codes.NOT_LITERAL:
            found |= _ALL - {chr(argument)}
        elif code is codes.ANY:
            found |= _ALL
        elif code is codes.RANGE:
            found |= set(map(chr, range(argument[0], argument[1] + 1)))
        elif code is codes.CATEGORY:
            found |= _category(str(argument))
        elif code is codes.IN:
            inside = _letters([item for item in argument if item[0] is not codes.NEGATE])
            found |= _ALL - inside if argument[0][0] is codes.NEGATE else inside
        else:
            found |= {letter for part in _parts(code, argument) for letter in _letters(part)}
    return frozenset(found)


def _category(name: str) -> frozenset[str]:
    kind = name.rpartition("_")[2]
    inside = frozenset(letter for letter in _ALL if re.fullmatch(_CATEGORIES[kind], letter, re.ASCII))
    return _ALL - inside if "_NOT_" in name else inside


def _check(tree: Any, text: str, inside: bool) -> None:
    for code, argument in tree:
        if code in (codes.GROUPREF, codes.GROUPREF_EXISTS, codes.ASSERT, codes.ASSERT_NOT):
            raise ValueError(f"`{text}` refers to another part of the line: not allowed")
        repeats = code in _REPEATS and argument[1] > 1
        if repeats and inside:
            raise ValueError(f"`{text}` repeats a repetition: its matches could be divided in too many ways")
        for part in _parts(code, argument):
            _check(part, text, inside or repeats)


def _parts(code: Any, argument: Any) -> list[Any]:
    """Expressions that a part of an expression holds."""
    if code in _REPEATS:
        return [argument[2]]
    if code is codes.SUBPATTERN:
        return [argument[-1]]
    if code is codes.BRANCH:
        return list(argument[1])
    return [argument] if code is codes.ATOMIC_GROUP else []
