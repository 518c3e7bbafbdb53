"""Sections of model functions: equation as MathML, arguments with units, source and validity from the code."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

from latex2mathml.converter import convert

from whatif.core.term import signature
from whatif.equations import latex
from whatif.models.quantities import Citation

MARK: Final = re.compile(r"<!-- equations: ([\w., ]+) -->")
_FORMULA: Final = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def with_equations(markdown: str) -> str:
    """Page whose marks `<!-- equations: MODULE, .. -->` are replaced by the functions of these modules."""
    return MARK.sub(
        lambda mark: "\n".join(section for name in mark[1].split(", ") for section in _sections(name)), markdown
    )


def with_mathml(html: str) -> str:
    """Page whose formulas in LaTeX are MathML, which browsers show and read aloud without a script."""
    return _FORMULA.sub(
        lambda formula: convert(_unescaped(formula[2]), display="block" if formula[1] == "div" else "inline"), html
    )


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def functions(module: str) -> Iterator[Any]:
    """Functions of a module that have an equation, in the order of the file."""
    for function in vars(importlib.import_module(module)).values():
        cited = isinstance(getattr(function, "citation", None), Citation)
        if cited and function.__module__ == module:
            yield function


def _sections(module: str) -> Iterator[str]:
    yield f"### `{module}`\n\n{_summary(importlib.import_module(module))[0]}\n"
    for function in functions(module):
        summary, rest = _summary(function)
        yield f"**`{function.__name__}`** {summary}\n"
        yield f"$$\n{latex(function.citation.equation)}\n$$\n"
        arguments = ", ".join(
            f"`{name}`{_unit(found.dimension)}" for name, found in signature(function).parameters.items()
        )
        yield (
            f"Arguments: {arguments}. Source: {function.citation.source}.\n"
            if arguments
            else f"Source: {function.citation.source}.\n"
        )
        if rest:
            yield f"{rest}\n"


def _summary(documented: Any) -> tuple[str, str]:
    """First paragraph of a docstring on one line, and the rest."""
    first, _, rest = inspect.cleandoc(documented.__doc__ or "").partition("\n\n")
    return " ".join(first.split()), rest


def _unit(dimension: object) -> str:
    return "" if dimension is None or str(dimension) == "1" else f" in {dimension}"


_NAME: Final = re.compile(
    r"(?<![^\W\d])(?!a (?!mod)[a-z]{2})[^\W\d_][^\W_²³]*\u0302?'*(?:_(?:\{[^}]*\}|\([^)]*\)|[^\W_]+))?"
)
_NO_SYMBOL: Final = re.compile(r"[a-z]{2,}|log2|[KMG]iB|[ΣΠ].*|(?:max|min)_.*")


def symbols(equation: str) -> list[str]:
    """Symbols of an equation in LaTeX, in their order: letters, and names with a capital or a subscript."""
    names = (name[0] for name in _NAME.finditer(equation))
    return list(dict.fromkeys(latex(name) for name in names if not _NO_SYMBOL.fullmatch(name)))
