"""Tables that several files state one above the other: the last file that states a key, or replaces the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

REMOVED: Final = "none"
"""Text in place of an inherited value that a file removes."""
NEVER: Final = -1
"""Index of no file."""
Stated = Sequence[tuple[int, Mapping[str, Any]]]
"""Content of a table by index of the file that states it, ascending."""


class StatedTable(NamedTuple):
    """A table that several files state, and its content after they were merged."""

    stated: Stated
    merged: Mapping[str, Any]
    last: Mapping[str, int]
    """Index of the last file that states a key."""
    replaced: int
    """Index of the last file that removes or replaces the table or one around it."""

    @classmethod
    def of(cls, stated: Stated, merged: Mapping[str, Any], replaced: int = NEVER) -> StatedTable:
        """Table whose content is replaced by some file, and by each of another `kind`."""
        last = {key: index for index, table in stated for key, value in table.items() if value is not None}
        return cls(stated, merged, last, max(replaced, _other_kind(stated)))

    def below(self, key: str, replaced: int) -> StatedTable | None:
        """Table at a key, which some file replaces; None for a key without a table."""
        merged = self.merged.get(key)
        if not isinstance(merged, dict):
            return None
        values = [(index, table[key]) for index, table in self.stated if key in table]
        removed = max((index for index, value in values if value == REMOVED), default=NEVER)
        tables = [(index, value) for index, value in values if isinstance(value, dict)]
        return StatedTable.of(tables, merged, max(self.replaced, replaced, removed))


def _other_kind(stated: Stated) -> int:
    """Index of the last file that states another `kind` of a table than those before it."""
    found, before = NEVER, None
    for index, table in stated:
        kind = table.get("kind")
        if "kind" in table and not isinstance(kind, dict) and kind != before:
            found = index
        before = before if kind is None else kind
    return found


def removes_any(data: Mapping[str, Any]) -> bool:
    """Whether tables have the text that removes an inherited value."""
    return any(removes_any(value) if isinstance(value, dict) else value == REMOVED for value in data.values())
