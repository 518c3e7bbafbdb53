"""Docstrings as Markdown: examples of an interpreter session are code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_SESSION = re.compile(r"(?:^>>> .*(?:\n(?!\n).+)*\n?)+", re.MULTILINE)


class Sessions(griffe.Extension):
    """Puts examples of an interpreter session into blocks of code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a function or class."""
        if obj.docstring:
            obj.docstring.value = _SESSION.sub(
                lambda session: f"```pycon\n{session[0].rstrip()}\n```\n", obj.docstring.value
            )
