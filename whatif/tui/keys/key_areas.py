"""Keys that work now, by area: those of the page first, then those of the widget with the focus, then general ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, Final, NamedTuple

from rich.cells import cell_len
from textual.binding import ActiveBinding, Binding
from textual.screen import Screen

_ALWAYS: Final = ("screen.help", "app.quit")
"""Keys that have room before all others."""
_SOON: Final = ("app.undo", "screen.message")
"""Keys that have room before all others but those of the page."""


class KeyArea(IntEnum):
    """Areas of keys, in the order in which keys are shown."""

    PAGE = 0
    FOCUS = 1
    GENERAL = 2
    PALETTE = 3


class ActiveKey(NamedTuple):
    """Key that works now; a binding has one for each of its keys."""

    area: KeyArea
    binding: Binding
    enabled: bool
    display: str

    @property
    def documented(self) -> bool:
        """Whether it is a described key of this program; bindings of Textual itself have no id."""
        return bool(self.binding.id and self.binding.tooltip)

    @property
    def width(self) -> int:
        """Number of cells in the footer, with the gap to the next key."""
        return cell_len(self.display) + len(" ") + cell_len(self.binding.description) + len(" ")


def active_keys(screen: Screen[Any]) -> list[ActiveKey]:
    """Keys that work now, by area."""
    labels: Mapping[str, str] = getattr(screen, "labels", {})
    keys = (
        ActiveKey(
            _area(screen, active),
            replace(active.binding, description=labels.get(active.binding.id or "", active.binding.description)),
            active.enabled,
            screen.app.get_key_display(active.binding),
        )
        for active in screen.active_bindings.values()
    )
    return sorted(keys, key=lambda key: key.area)


def _area(screen: Screen[Any], active: ActiveBinding) -> KeyArea:
    if active.node not in (screen, screen.app):
        return KeyArea.FOCUS
    return KeyArea.PAGE if active.binding.action.startswith("page(") else KeyArea.GENERAL


def footer_keys(screen: Screen[Any], room: int) -> list[ActiveKey]:
    """Keys for a footer of some width: one of each labelled binding, hidden ones only if space permits."""
    first: dict[str, ActiveKey] = {}
    for key in active_keys(screen):
        if key.binding.description and (key.binding.show or key.documented):
            first.setdefault(key.binding.id or key.binding.action, key)
    keys, shown = list(first.values()), []
    for key in sorted(keys, key=_rank):
        if key.width <= room:
            shown.append(key)
            room -= key.width
    return sorted(shown, key=keys.index)


def _rank(key: ActiveKey) -> tuple[bool | KeyArea, ...]:
    """Order in which keys get room in the footer: help and the way out first, keys that their binding hides last."""
    name, elsewhere = key.binding.id, key.area is not KeyArea.PAGE
    return name not in _ALWAYS, not key.binding.show, elsewhere and name not in _SOON, elsewhere, key.area
