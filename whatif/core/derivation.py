"""Derivations: the equation of a result and its inputs with values, units, sources and grades, down to parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whatif.axes import first_number
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.fit_range import extrapolations
from whatif.core.result import CATEGORY_TIMES
from whatif.core.sweep import may_be_stated
from whatif.core.term import Program, Reference, Term
from whatif.equations import latex, latex_text
from whatif.errors import InfeasiblePointError, UsageError
from whatif.models.quantities import FloatArray
from whatif.plain_text import is_plain
from whatif.plotting.presentable import Presentable
from whatif.schema.parameters import worst
from whatif.table import Table, number_text, warned
from whatif.units import ONE, Dimension, Quantity, crossed, format_quantity
from whatif.visible_text import visible, visible_json

RESULT = "total_time"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Node of a derivation: a parameter, a constant, or a term with its inputs."""

    name: str
    """The parameter or term."""
    parameter: str
    """The parameter that it feeds in the term above; empty at the top."""
    value: str
    share: float | None
    """Share of the iteration's time, for times of one iteration."""
    grade: str
    source: str
    equation: str = ""
    note: str = ""
    inputs: tuple[Explanation, ...] = ()
    number: float | None = None
    """Value in base units, where it is one number."""
    unit: str = ""
    verbatim: bool = False
    """Whether the equation is an expression of a file, not in the notation of formulas."""

    @property
    def origin(self) -> str:
        """Grade and source of a parameter, or lowest grade of a term and the source of its equation."""
        return f"{self.grade}; {self.source}" if self.source else self.grade

    @property
    def alias(self) -> str:
        """Parameter that it feeds in the term above, where that has another name; else empty."""
        return "" if self.parameter == self.name else self.parameter


@dataclass(frozen=True, eq=False, repr=False)
class TermExplanation(Presentable):
    """Derivation of one result, phase, term or parameter, with the remarks on its evaluation."""

    tree: Explanation
    depth: int | None = None
    """Levels shown below the top; None for all of them."""
    extrapolated: tuple[str, ...] = ()
    reason: str = ""
    """Reason why the point is infeasible; empty if it is feasible."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Inputs outside the range that their model was fitted in."""
        return warned(self.extrapolated)

    def lines(self) -> tuple[str, ...]:
        """The tree as text."""
        return tuple(lines(self.tree, self.depth))

    def table(self) -> Table:
        """One row per node: its depth, the argument it supplies, name, value, share of the iteration, grade, source
        and equation. The inputs of a term follow where it occurs first."""
        columns = {
            "depth": ONE, "argument": None, "name": None, "value": None, "share": ONE, "grade": None, "source": None,
            "equation": None,
        }  # fmt: skip
        return Table.of_rows(columns, list(_rows(self.tree, 0, self.depth, {})))

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the tree, `{"name": .., "value": .., "number": .., "unit": .., "inputs": [..]}`, and notes.

        The inputs of a term are stated where it occurs first; elsewhere it is `"repeated": true`.
        """
        tree = _plain(self.tree, self.depth, {})
        return tree | {"notes": [*self.notes, *([f"infeasible: {self.reason}"] if self.reason else [])]}

    def to_json(self) -> str:
        """The plain data as JSON."""
        return visible_json(json.dumps(self.to_dict(), ensure_ascii=False, indent=1))

    def to_markdown(self) -> str:
        """The tree as nested lists with formulas between `$$`."""
        return "\n".join(_markdown(self.tree, self.depth, "", {}))

    def to_latex(self) -> str:
        r"""A list `description` for a document with the package amsmath: each term with equation, inputs, sources."""
        return "\n".join(_latex(self.tree, self.depth))

    def raise_if_infeasible(self) -> None:
        """Raise `InfeasiblePointError` if the point is infeasible."""
        if self.reason:
            raise InfeasiblePointError(f"infeasible: {self.reason}")

    def __repr__(self) -> str:
        return "\n".join(lines(self.tree, 1))


def explanation(program: Program, name: str, depth: int | None = None) -> TermExplanation:
    """Derivation of a result, phase, term or parameter. Raise `UsageError` for an unknown name."""
    evaluation = evaluate(program)
    tree = explain(evaluation, name)
    return TermExplanation(tree, depth, tuple(extrapolations(evaluation)), evaluation.obstacle())


def explain(evaluation: Evaluation, name: str = RESULT) -> Explanation:
    """Derivation of a result, phase, term or parameter at one point. Raise `UsageError` for an unknown name."""
    program = evaluation.program
    if name in program.missing:
        raise UsageError(program.lack(name))
    target = {**{phase.phase: phase.term for phase in program.phases}, **program.results}.get(name, name)
    if target not in program.terms and target not in program.parameters and may_be_stated(target, program):
        raise UsageError(f"`{name}` is not stated in this scenario")
    if target not in program.terms and target not in program.parameters:
        known = [*program.columns, *program.terms, *program.parameters]
        raise UsageError(f"`{name}`: no such result, phase, term or parameter{program.hint(name, known)}")
    return _Explainer(evaluation).node(target, "")


class _Explainer:
    """Builds the tree of one evaluation; a term that feeds several others is one node, else there are billions."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.known: dict[str, Explanation] = {}
        self.evaluation = evaluation
        self.program: Program = evaluation.program
        self.timed = _terms_of_iteration(self.program)
        self.iteration = first_number(evaluation.values[self.program.columns["iteration_time"]])

    def node(self, reference: Reference, parameter: str) -> Explanation:
        if isinstance(reference, Quantity):
            value = format_quantity(reference.value, reference.dimension)
            return Explanation(
                "constant", parameter, value, None, "stated", "constant of the model",
                number=reference.value, unit=_unit(reference.dimension),
            )  # fmt: skip
        if reference in self.program.terms:
            if reference not in self.known:
                self.known[reference] = self._term(self.program.terms[reference])
            return replace(self.known[reference], parameter=parameter)
        found = self.program.parameters[reference]
        error = "" if found.fitted is None else f" ± {format_quantity(found.fitted.standard_error, found.dimension, 2)}"
        number = found.value if isinstance(found.value, float) else None
        return Explanation(
            found.path,
            parameter,
            f"{found.text()}{error}",
            None,
            found.grade,
            found.source,
            number=number,
            unit="" if number is None else _unit(found.dimension),
        )

    def _term(self, term: Term) -> Explanation:
        array = self.evaluation.masked_term(term)
        citation = term.citation
        grades = (self.program.parameters[path].grade for path in self.program.inputs_of(term.name))
        return Explanation(
            term.name,
            "",
            shown(term.name, array, term.dimension),
            self._share(term, array),
            worst(grades),
            citation.source if citation else "",
            citation.equation if citation else "",
            term.note,
            tuple(self.node(reference, name) for name, reference in term.inputs.items()),
            first_number(array) if array.size == 1 and np.isfinite(array).all() else None,
            _unit(term.dimension) if array.size == 1 else "",
            citation.verbatim if citation else False,
        )

    def _share(self, term: Term, array: FloatArray) -> float | None:
        if term.name not in self.timed or array.size != 1 or not self.iteration > 0:
            return None
        return first_number(array) / self.iteration


def _unit(dimension: Dimension) -> str:
    """Base unit; empty for plain numbers."""
    return "" if dimension == ONE else str(dimension)


def _terms_of_iteration(program: Program) -> set[str]:
    """Names of the terms whose value is a part of one iteration's time."""
    names = {phase.term for phase in program.phases}
    return names | {program.columns[name] for name in ("iteration_time", *CATEGORY_TIMES) if name in program.columns}


def shown(name: str, array: FloatArray, dimension: Dimension, most: int = 9) -> str:
    """Texts of the values of a term: one value, or those of a small array, or the shape of a large one."""
    values = array.ravel()
    if values.size == 1:
        return number_text(name, float(values[0]), dimension)
    if values.size <= most:
        return "[" + ", ".join(number_text(name, float(value), dimension) for value in values) + "]"
    return f"array {crossed(array.shape)}, largest {number_text(name, float(np.max(values)), dimension)}"


def lines(tree: Explanation, depth: int | None = None) -> Iterator[str]:
    """Lines of the tree, one a node, with the equation and note of a term below it; in plain text with its level."""
    drawn = _lines(tree, "", "", depth, {})
    yield from (_levelled(line) for line in drawn) if is_plain() else drawn


def _levelled(line: str) -> str:
    """Line with the number of its level in the place of its branches."""
    branches, text = re.fullmatch(r"([│├└─ ]*)(.*)", line).groups()  # type: ignore[union-attr]
    return f"level {len(branches) // 3}: {text}" if "─" in branches or not branches else text


def _lines(node: Explanation, lead: str, indent: str, depth: int | None, seen: dict[str, bool]) -> Iterator[str]:
    name = f"{node.alias} = {node.name}" if node.alias else node.name
    share = f"  {node.share:.1%} of the iteration" if node.share is not None else ""
    yield f"{lead}{name}: {node.value}{share}  ({node.origin})"
    if _is_repeated(node, depth, seen):
        yield f"{indent}  (shown above)"
        return
    if node.equation:
        yield f"{indent}  {node.equation}"
    if node.note:
        yield f"{indent}  note: {node.note}"
    inputs = node.inputs if depth != 0 else ()
    for index, child in enumerate(inputs):
        last = index == len(inputs) - 1
        branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield from _lines(child, indent + branch, indent + below, _below(depth), seen)


def _below(depth: int | None) -> int | None:
    """Levels to show below a child; None for all of them."""
    return None if depth is None else depth - 1


def _is_repeated(node: Explanation, depth: int | None, seen: dict[str, bool]) -> bool:
    """Whether a term is shown above, with its inputs or, as here at the lowest level, without them.

    `seen` has the names of nodes, and whether their inputs are shown.
    """
    if node.inputs and (seen.get(node.name) or (depth == 0 and node.name in seen)):
        return True
    seen[node.name] = depth != 0
    return False


def _rows(node: Explanation, level: int, depth: int | None, seen: dict[str, bool]) -> Iterator[tuple[Any, ...]]:
    share = np.nan if node.share is None else node.share
    yield level, node.parameter, node.name, node.value, share, node.grade, node.source, node.equation
    if depth != 0 and not _is_repeated(node, depth, seen):
        for child in node.inputs:
            yield from _rows(child, level + 1, _below(depth), seen)


def _plain(node: Explanation, depth: int | None, seen: dict[str, bool]) -> dict[str, Any]:
    """Node as plain data with its inputs, those of a term once; without keys for missing values."""
    repeated = bool(node.inputs) and seen.get(node.name, False)
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
        seen[node.name] = True
        inputs = [_plain(child, _below(depth), seen) for child in node.inputs]
    stated: dict[str, Any] = {key: value for key, value in found.items() if value not in ("", None)}
    return stated | {"inputs": inputs} if inputs else stated


def _markdown(node: Explanation, depth: int | None, indent: str, seen: dict[str, bool]) -> Iterator[str]:
    """Nested list, one item for each node, with the equation of a term as a formula; a term is derived once."""
    named = f"`{node.alias}` = " if node.alias else ""
    share = f", {node.share:.1%} of the iteration" if node.share is not None else ""
    yield _marked_down(f"{indent}- {named}`{node.name}`: **{node.value}**{share} ({node.origin})")
    if _is_repeated(node, depth, seen):
        yield f"{indent}  (derived above)"
        return
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


def _latex(node: Explanation, depth: int | None) -> Iterator[str]:
    r"""List `description` with an item for each term: its value, equation, inputs with values, and sources.

    The list is flat, as LaTeX nests few levels. It needs the package amsmath and nothing else.
    """
    yield r"\begin{description}"
    terms: dict[str, Explanation] = {}
    _find_terms(node, depth, terms)
    for term in terms.values():
        yield from _item(term)
    yield r"\end{description}"


def _find_terms(node: Explanation, depth: int | None, found: dict[str, Explanation]) -> None:
    """Nodes with an equation or inputs, by name, without inputs if only the lowest level has them; the top always."""
    known = found.get(node.name)
    if found and (not (node.inputs or node.equation) or (known is not None and (known.inputs or depth == 0))):
        return
    found[node.name] = replace(node, inputs=()) if depth == 0 else node
    for child in node.inputs if depth != 0 else ():
        _find_terms(child, _below(depth), found)


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
