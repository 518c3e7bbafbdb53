"""Plain text for screen readers: words in place of columns, pictures and frames (`WHATIF_PLAIN=1`)."""

from __future__ import annotations

import os
import re
from typing import Final

_DRAWN: Final = re.compile("[\u2500-\u259f\u2800-\u28ff]")
"""Frames, blocks and dots that pictures consist of."""


def is_plain() -> bool:
    """Whether output is plain text: the variable `WHATIF_PLAIN` is set, and not to 0."""
    return os.environ.get("WHATIF_PLAIN", "0") not in ("", "0")


def undrawn(text: str) -> str:
    """Text with spaces for the characters that only draw."""
    return _DRAWN.sub(" ", text)
