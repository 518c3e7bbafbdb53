"""Help of F1: the keys of the page, what has the focus, and every other key that works."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen

from whatif.core.session import Session
from whatif.core.term import Term
from whatif.schema.parameters import Parameter
from whatif.tui.keys.key_areas import ActiveKey, KeyArea, active_keys
from whatif.tui.labels import MUTED, StyledText, grade_style
from whatif.tui.page_registry import GROUPS
from whatif.tui.pages.page import Page
from whatif.tui.widgets.labelled_text import LABEL_END
from whatif.tui.widgets.parameter_tree import ParameterTree
from whatif.tui.widgets.prompt import PromptInput

_WIDGETS: Final = {
    "ParameterTree": "parameter",
    "PromptInput": "parameter",
    "PlotView": "crosshair",
    "WhyTree": "tree of terms",
}
"""Headings of the keys of widgets; those of all others are keys of a list."""


def help_text(screen: Screen[None], page: Page[Any], tree: ParameterTree) -> tuple[Content, str]:
    """Text and title: the page with its keys, then what has the focus, a parameter for one, then general keys."""
    about = {KeyArea.PAGE: [(f"{page.help()}\n\n", "")]}
    if isinstance(screen.focused, ParameterTree | PromptInput) and tree.parameter is not None:
        about[KeyArea.FOCUS] = _parameter(tree.parameter, tree.session)
    parts: list[StyledText] = []
    for area in KeyArea:
        # What Textual binds by itself has no id; its keys are in the palette.
        keys = [key for key in active_keys(screen) if key.area == area and key.binding.id]
        if area != KeyArea.PAGE and (keys or area in about):
            parts += [(f"{_heading(area, screen)}\n", "bold underline")]
        parts += [*about.get(area, []), *_lines(screen, keys), ("\n", "")]
    return Content.assemble(*parts), f"page {page.NAME}"


def _heading(area: KeyArea, screen: Screen[None]) -> str:
    return "general" if area == KeyArea.GENERAL else _WIDGETS.get(type(screen.focused).__name__, "list")


def _parameter(parameter: Parameter, session: Session) -> list[StyledText]:
    """Meaning, unit, range, source, and the terms that use a parameter."""
    unit = "a count or fraction" if str(parameter.dimension) == "1" else str(parameter.dimension)
    used = [term for term in session.program.terms.values() if parameter.path in term.references()]
    meaning = " ".join(parameter.description.split()) or parameter.path.rpartition(".")[2]
    parts: list[StyledText] = [(f"{parameter.path}\n", "bold"), (f"{meaning}\n\n", "")]
    if parameter.field is not None:
        parts += _labelled("unit", (unit, ""))
    parts += _labelled("range", (parameter.allowed, ""))
    parts += _labelled("value", (parameter.text(), ""))
    parts += _labelled("source", (parameter.grade, grade_style(parameter.grade)), (f"  {parameter.source}", ""))
    for equation, names in _equations(used).items():
        parts += _labelled("used by", (f"{', '.join(names)}:  {equation}", ""))
    return [*parts, ("\n", "")]


def _labelled(label: str, *texts: StyledText) -> list[StyledText]:
    return [(f"{label:<9}{LABEL_END}", MUTED), *texts, ("\n", "")]


def _equations(terms: Iterable[Term]) -> dict[str, list[str]]:
    """The equations that compute some terms, each with the terms that it computes."""
    found: dict[str, list[str]] = {}
    for term in terms:
        citation = term.citation
        equation = f"{citation.equation}  ({citation.source})" if citation else "a check, or a choice between values"
        found.setdefault(equation, []).append(term.name)
    return found


def _lines(screen: Screen[None], keys: Iterable[ActiveKey]) -> list[StyledText]:
    """One line for each binding; one for all keys that go to pages, and one for all that move a cursor."""
    lines: dict[str, list[str]] = {}
    for key in keys:
        if key.enabled:
            display = screen.app.get_key_display(replace(key.binding, key_display=None))
            lines.setdefault(_line(key.binding), []).append(display)
    return [
        part
        for words, known in lines.items()
        for part in ((f"{' '.join(known):>11}  {LABEL_END}", "bold $text-primary"), (f"{words}\n", ""))
    ]


def _line(binding: Binding) -> str:
    """Words of the line of a binding."""
    if binding.action.startswith("go_group("):
        titles = (group.title for group in GROUPS)
        return f"Go to {', '.join(titles)}; the same key again: to the next page of the group"
    return binding.tooltip or "Move the cursor"
