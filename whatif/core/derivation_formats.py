"""Derivations as plain data, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from whatif.equations import latex, latex_text
from whatif.visible_text import visible

if TYPE_CHECKING:
    from whatif.core.derivation import Explanation


def plain_tree(node: Explanation, depth: int | None) -> dict[str, Any]:
    """Node as plain data with its inputs, those of a term once; without keys for missing values."""
    return _plain(node, depth, set())


def _plain(node: Explanation, depth: int | None, seen: set[str]) -> dict[str, Any]:
    repeated = bool(node.inputs) and node.name in seen
    found = {
        "name": node.name,
        "argument": node.parameter,
        "value": node.value,
        "number": node.number,
        "unit": node.unit,
        "share": node.share,
        "grade": node.grade,
        "source": node.source,
        "equation": node.equation,
        "note": node.note,
        "repeated": repeated or None,
    }
    inputs: list[dict[str, Any]] = []
    if depth != 0 and not repeated:
        seen.add(node.name)
        inputs = [_plain(child, _below(depth), seen) for child in node.inputs]
    stated: dict[str, Any] = {key: value for key, value in found.items() if value not in ("", None)}
    return stated | {"inputs": inputs} if inputs else stated


def _below(depth: int | None) -> int | None:
    return None if depth is None else depth - 1


def markdown_lines(node: Explanation, depth: int | None) -> Iterator[str]:
    """Nested list, one item for each node, with the equation of a term as a formula; a term is derived once."""
    yield from _markdown(node, depth, "", set())


def _markdown(node: Explanation, depth: int | None, indent: str, seen: set[str]) -> Iterator[str]:
    named = f"`{node.alias}` = " if node.alias else ""
    share = f", {node.share:.1%} of the iteration" if node.share is not None else ""
    yield _marked_down(f"{indent}- {named}`{node.name}`: **{node.value}**{share} ({node.origin})")
    if node.name in seen and node.inputs:
        yield f"{indent}  (derived above)"
        return
    seen.add(node.name)
    if node.verbatim:
        yield f"{indent}  `{visible(node.equation, '')}`"
    elif node.equation:
        yield from ("", f"{indent}  $$", f"{indent}  {latex(node.equation)}", f"{indent}  $$", "")
    if node.note:
        yield _marked_down(f"{indent}  Note: {node.note}")
    for child in node.inputs if depth != 0 else ():
        yield from _markdown(child, _below(depth), f"{indent}  ", seen)


def _marked_down(line: str) -> str:
    """Line of Markdown whose text starts no tag and no formula."""
    return visible(line, "").replace("<", "&lt;").replace("$", "\\$")


def latex_lines(node: Explanation, depth: int | None) -> Iterator[str]:
    r"""List `description` with an item for each term: its value, equation, inputs with values, and sources.

    The list is flat, as LaTeX nests few levels. It needs the package amsmath and nothing else.
    """
    yield r"\begin{description}"
    for term in _terms(node, depth, set()):
        yield from _item(term)
    yield r"\end{description}"


def _terms(node: Explanation, depth: int | None, seen: set[str]) -> Iterator[Explanation]:
    """Nodes with an equation or inputs, each once, and the top in any case."""
    if seen and (node.name in seen or not (node.inputs or node.equation)):
        return
    seen.add(node.name)
    yield replace(node, inputs=()) if depth == 0 else node
    for child in node.inputs if depth != 0 else ():
        yield from _terms(child, _below(depth), seen)


def _item(node: Explanation) -> Iterator[str]:
    share = rf", {node.share:.1%}".replace("%", r"\%") + " of the iteration" if node.share is not None else ""
    yield rf"\item[{_code(node.name)}] {latex_text(node.value)}{share} ({latex_text(node.origin)})"
    if node.verbatim:
        yield _code(node.equation)
    elif node.equation:
        yield from (r"\begin{align*}", latex(node.equation), r"\end{align*}")
    if node.note:
        yield f"Note: {latex_text(node.note)}."
    if node.inputs:
        yield r"\begin{itemize}"
        yield from map(_input, node.inputs)
        yield r"\end{itemize}"


def _input(node: Explanation) -> str:
    named = f"{_code(node.alias)} = " if node.alias else ""
    # The source of a term is at its own item.
    origin = node.grade if node.inputs else node.origin
    return rf"\item {named}{_code(node.name)}: {latex_text(node.value)} ({latex_text(origin)})"


def _code(name: str) -> str:
    r"""Name in a typewriter face that may be broken after its points and underscores."""
    broken = latex_text(name).replace(".", r".\allowbreak{}").replace(r"\_", r"\_\allowbreak{}")
    return rf"\texttt{{{broken}}}"
