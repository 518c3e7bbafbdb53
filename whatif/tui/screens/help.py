"""What F1 tells: what has the focus, and every key that works there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from textual.content import Content
from textual.screen import Screen

from whatif.core.session import Session
from whatif.core.term import Term
from whatif.schema.parameters import Parameter
from whatif.tui.labels import MUTED, grade_style
from whatif.tui.pages.page import Page
from whatif.tui.widgets.parameter_help import allowed
from whatif.tui.widgets.parameter_tree import ParameterTree
from whatif.tui.widgets.prompt import PromptInput

Part = tuple[str, str]


def help_text(screen: Screen[None], page: Page[Any], tree: ParameterTree) -> tuple[Content, str]:
    """Text and title for what has the focus: a parameter, also while it is edited, or else the page."""
    if isinstance(screen.focused, ParameterTree | PromptInput) and tree.parameter is not None:
        parts, title = _parameter(tree.parameter, tree.session), tree.parameter.path
    else:
        parts, title = [(f"{page.help()}\n\n", "")], page.NAME
    return Content.assemble(*parts, *_keys(screen)), title


def _parameter(parameter: Parameter, session: Session) -> list[Part]:
    """Unit, range, meaning, source, and the terms that a parameter goes into."""
    unit = "a count or fraction" if str(parameter.dimension) == "1" else str(parameter.dimension)
    used = [term for term in session.program.terms.values() if parameter.path in term.references()]
    parts: list[Part] = [
        (f"{' '.join(parameter.description.split()) or parameter.path.rpartition('.')[2]}\n\n", "bold")
    ]
    if parameter.field is not None:
        parts += [("unit     ", MUTED), (f"{unit}\n", "")]
    parts += [("range    ", MUTED), (f"{allowed(parameter)}\n", "")]
    parts += [("value    ", MUTED), (f"{parameter.text()}\n", "")]
    parts += [("source   ", MUTED), (parameter.grade, grade_style(parameter.grade)), (f"  {parameter.source}\n", "")]
    for equation, names in _equations(used).items():
        parts += [("goes into ", MUTED), (f"{', '.join(names)}:  {equation}\n", "")]
    return [*parts, ("\n", "")]


def _equations(terms: Iterable[Term]) -> dict[str, list[str]]:
    """The equations that compute some terms, each with the terms that it computes."""
    found: dict[str, list[str]] = {}
    for term in terms:
        citation = term.citation
        equation = f"{citation.equation}  ({citation.source})" if citation else "a check, or a choice between values"
        found.setdefault(equation, []).append(term.name)
    return found


def _keys(screen: Screen[None]) -> list[Part]:
    """Every key that works now, with what it does."""
    keys: dict[str, list[str]] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        # What Textual binds by itself has no id; its keys are in the palette.
        words = binding.tooltip or binding.description
        if binding.id and words and active.enabled:
            keys.setdefault(words, []).append(screen.app.get_key_display(replace(binding, key_display=None)))
    return [
        part
        for words, known in keys.items()
        for part in ((f"{' '.join(known):>20}  ", "bold $text-primary"), (f"{words}\n", ""))
    ]
