"""Key bindings that are not among the first in the footer."""

from __future__ import annotations

from textual.binding import Binding


def extra_binding(name: str, keys: str, action: str, label: str, tooltip: str) -> Binding:
    """Binding that the footer shows only if space permits; without a label never."""
    return Binding(keys, action, label, show=False, tooltip=tooltip, id=name)
