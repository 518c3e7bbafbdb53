"""Window of a time line: the part that is visible, moved and scaled within the whole."""

from __future__ import annotations

from typing import Final

from whatif.plotting.lanes import Window

_SHORTEST: Final = 1e-9
"""Shortest window, as a share of the whole."""


def window_of(window: Window | None, whole: float) -> Window:
    """Window within a time line that lasts `whole` seconds; all of it for None."""
    start, end = window or (0.0, whole)
    return _within(start, end - start, whole)


def moved(window: Window | None, whole: float, shift: float, factor: float) -> Window | None:
    """Window moved by a share of its length and scaled around its middle; None for the whole time line."""
    low, high = window_of(window, whole)
    length = (high - low) * factor
    low, high = _within((low + high - length) / 2 + shift * (high - low), length, whole)
    return None if high - low >= whole else (low, high)


def _within(start: float, length: float, whole: float) -> Window:
    """Window of a length nearest to one that starts at `start`."""
    length = min(max(length, _SHORTEST * whole), whole)
    start = min(max(start, 0.0), whole - length)
    return start, start + length
