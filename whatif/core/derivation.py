"""Derivations: the equation of a result and its inputs with values, units, sources and grades, down to parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whatif.axes import first_number
from whatif.core.derivation_formats import latex_lines, markdown_lines, plain_tree
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.fit_range import extrapolations
from whatif.core.result import CATEGORY_TIMES
from whatif.core.sweep import may_be_stated
from whatif.core.term import Program, Reference, Term
from whatif.errors import InfeasiblePointError, UsageError
from whatif.models.quantities import FloatArray
from whatif.plain_text import is_plain
from whatif.plotting.presentable import Presentable
from whatif.schema.parameters import worst
from whatif.table import Table
from whatif.units import ONE, Dimension, Quantity, crossed, format_quantity
from whatif.visible_text import visible_json

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
        return tuple(f"warning: {text}" for text in self.extrapolated)

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
        return Table.of_rows(columns, list(_rows(self.tree, 0, self.depth, set())))

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the tree, `{"name": .., "value": .., "number": .., "unit": .., "inputs": [..]}`, and notes.

        The inputs of a term are stated where it occurs first; elsewhere it is `"repeated": true`.
        """
        tree = plain_tree(self.tree, self.depth)
        return tree | {"notes": [*self.notes, *([f"infeasible: {self.reason}"] if self.reason else [])]}

    def to_json(self) -> str:
        """The plain data as JSON."""
        return visible_json(json.dumps(self.to_dict(), ensure_ascii=False, indent=1))

    def to_markdown(self) -> str:
        """The tree as nested lists with formulas between `$$`."""
        return "\n".join(markdown_lines(self.tree, self.depth))

    def to_latex(self) -> str:
        r"""A list `description` for a document with the package amsmath: each term with equation, inputs, sources."""
        return "\n".join(latex_lines(self.tree, self.depth))

    def raise_if_infeasible(self) -> None:
        """Raise `InfeasiblePointError` if the point is infeasible."""
        if self.reason:
            raise InfeasiblePointError(f"infeasible: {self.reason}")

    def __repr__(self) -> str:
        return "\n".join(lines(self.tree, 1))


def _rows(node: Explanation, depth: int, most: int | None, seen: set[str]) -> Iterator[tuple[Any, ...]]:
    share = np.nan if node.share is None else node.share
    yield depth, node.parameter, node.name, node.value, share, node.grade, node.source, node.equation
    if node.name not in seen and (most is None or depth < most):
        seen.add(node.name)
        for child in node.inputs:
            yield from _rows(child, depth + 1, most, seen)


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
            shown(array, term.dimension),
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


def shown(array: FloatArray, dimension: Dimension, most: int = 9) -> str:
    """One value with its unit, or the values of a small array, or the shape of a large one."""
    values = array.ravel()
    if values.size == 1:
        return format_quantity(float(values[0]), dimension)
    if values.size <= most:
        return "[" + ", ".join(format_quantity(float(value), dimension) for value in values) + "]"
    return f"array {crossed(array.shape)}, largest {format_quantity(float(np.max(values)), dimension)}"


def lines(tree: Explanation, depth: int | None = None) -> Iterator[str]:
    """Lines of the tree, one a node, with the equation and note of a term below it; in plain text with its level."""
    drawn = _lines(tree, "", "", depth, set())
    yield from (_levelled(line) for line in drawn) if is_plain() else drawn


def _levelled(line: str) -> str:
    """Line with the number of its level in the place of its branches."""
    branches, text = re.fullmatch(r"([│├└─ ]*)(.*)", line).groups()  # type: ignore[union-attr]
    return f"level {len(branches) // 3}: {text}" if "─" in branches or not branches else text


def _lines(node: Explanation, lead: str, indent: str, depth: int | None, shown_names: set[str]) -> Iterator[str]:
    name = f"{node.alias} = {node.name}" if node.alias else node.name
    share = f"  {node.share:.1%} of the iteration" if node.share is not None else ""
    yield f"{lead}{name}: {node.value}{share}  ({node.origin})"
    if node.name in shown_names and node.inputs:
        yield f"{indent}  (shown above)"
        return
    shown_names.add(node.name)
    if node.equation:
        yield f"{indent}  {node.equation}"
    if node.note:
        yield f"{indent}  note: {node.note}"
    if depth == 0:
        return
    for index, child in enumerate(node.inputs):
        last = index == len(node.inputs) - 1
        yield from _lines(
            child,
            indent + ("└─ " if last else "├─ "),
            indent + ("   " if last else "│  "),
            None if depth is None else depth - 1,
            shown_names,
        )
