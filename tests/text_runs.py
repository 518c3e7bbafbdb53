"""Lines of text runs, as widgets of the explorer draw them, as tests read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whatif.plotting.cells import TextRun


def text_of(lines: Iterable[Sequence[TextRun]]) -> list[str]:
    """The letters of each line."""
    return ["".join(run.text for run in line) for line in lines]


def columns_with(line: Sequence[TextRun], style: str) -> set[int]:
    """The columns of a line whose letters or background have a style."""
    places, column = set[int](), 0
    for run in line:
        if style in (run.style, run.fill) and (run.fill or run.text.strip()):
            places |= set(range(column, column + len(run.text)))
        column += len(run.text)
    return places
