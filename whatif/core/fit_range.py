"""Extrapolations: predictions outside the range that their parameters were fitted in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.core.evaluate import Evaluation, Points
from whatif.core.phases.collective_choice import compared_times
from whatif.core.term import Program, Reference, Term
from whatif.models.corrections import corrected_message_time, correction_time
from whatif.models.library_steps import by_domain_count, library_steps_time, long_tree_time
from whatif.models.measured_collectives import TimesBySize, tabulated_time
from whatif.models.protocol import by_protocol
from whatif.models.quantities import FloatArray
from whatif.schema.parameters import FittedParameter
from whatif.units import BYTE, ONE, Dimension, Quantity, format_quantity

_CALIBRATION: Final = "calibration"
_RANKS: Final = "rank_count"
_WORDS: Final = {
    "message_size": "sizes",
    "process_count": "process counts",
    "rank_count": "numbers of ranks",
    "cell_count": "cell counts",
    "halo_cell_count": "halo cell counts",
}


@dataclass(frozen=True, slots=True)
class FittedRange:
    """Range of one variable in which the parameters of a term were fitted, over all protocols."""

    term: str
    table: str
    """Path of the parameters: `network.inter_node.postal`."""
    variable: str
    reference: Reference
    dimension: Dimension
    low: float
    high: float
    measured: TimesBySize | None = None
    """Table of measured times that the range is of; it applies to its own ranks only."""


def fitted_ranges(program: Program) -> Iterator[FittedRange]:
    """Ranges in which times of messages and copies, and regressions, were fitted, as far as files state them."""
    by_size = [term for term in program.terms.values() if term.function is by_protocol]
    yield from _calibrated_range(program)
    chosen = {item for term in by_size for item in term.inputs.values() if item in program.terms}
    for term in program.terms.values():
        if term.function is by_protocol:
            # Whatever the protocol: its limits keep each within its own range, but for the ends.
            parts = [program.terms[str(item)] for item in term.inputs.values() if item in program.terms]
            yield from _ranges_of(program, term.name, [term, *parts], keys=2)
        elif term.function is tabulated_time:
            yield from _tabulated_ranges(term)
        elif term.function is library_steps_time:
            yield from _ranges_of(program, term.name, [term], keys=2)
        elif term.name not in chosen and term.function is not long_tree_time:
            yield from _ranges_of(program, term.name, [term], keys=1)


def _calibrated_range(program: Program) -> Iterator[FittedRange]:
    """Numbers of ranks of the runs that determined the corrections of messages and of added times."""
    corrected = (term for term in program.terms.values() if term.function in (correction_time, corrected_message_time))
    paths = [str(item) for term in corrected for item in term.inputs.values() if str(item).startswith(_CALIBRATION)]
    fits = [fit for path in paths if (fit := program.parameters[path].fitted) is not None]
    if bounds := [fit.ranges[_RANKS] for fit in fits if _RANKS in fit.ranges]:
        low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
        yield FittedRange(_CALIBRATION, _CALIBRATION, _RANKS, f"application.{_RANKS}", ONE, low, high)


def _tabulated_ranges(term: Term) -> Iterator[FittedRange]:
    """Sizes of each table of measured times."""
    path, size = "network.collectives.measured", "message_size"
    for table in term.options["tables"]:
        yield FittedRange(term.name, path, size, term.inputs[size], BYTE, table.sizes[0], table.sizes[-1], table)


def _ranges_of(program: Program, name: str, parts: Sequence[Term], keys: int) -> Iterator[FittedRange]:
    """Ranges of the parameters of some terms; the last `keys` of their paths are not part of the table's name."""
    paths = [item for part in parts for item in part.inputs.values() if isinstance(item, str)]
    first = next((path for path in paths if _fit_at(program, path) is not None), None)
    if first is None:
        return
    table = first.rsplit(".", keys)[0]
    # A choice by protocol has the range of the whole table: some of its parameters may not be determined by a fit.
    inside = [path for path in program.parameters if path.startswith(f"{table}.")] if keys > 1 else []
    known = [fit for path in dict.fromkeys([*paths, *inside]) if (fit := _fit_at(program, path)) is not None]
    for variable in dict.fromkeys(variable for fit in known for variable in fit.ranges):
        bounds = [fit.ranges[variable] for fit in known if variable in fit.ranges]
        reference = next((part.inputs[variable] for part in parts if variable in part.inputs), None)
        if reference is not None:
            words = table.removeprefix("platform.").removesuffix(".coefficients")
            low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
            yield FittedRange(name, words, variable, reference, program.dimension(reference), low, high)


def _fit_at(program: Program, path: str) -> FittedParameter | None:
    """Fit of a parameter; None without one, and for the name of a term."""
    return program.parameters[path].fitted if path in program.parameters else None


def extrapolations(evaluation: Evaluation) -> dict[str, Points]:
    """Inputs outside their fitted range, as texts (`PHASE: ..`), with the points of the grid where they are."""
    found: dict[str, Points] = {}
    for item in fitted_ranges(evaluation.program):
        reference = item.reference
        array = _values(evaluation, reference)
        term = evaluation.program.terms.get(reference) if isinstance(reference, str) else None
        axes = tuple(range(-len(term.core), 0)) if term is not None else ()
        applies = np.expand_dims(_applies(evaluation, item) & _has_ranks(evaluation, item), axes)
        beyond = ((array < item.low) | (array > item.high)) & applies
        if beyond.any():
            text = _words(item, np.broadcast_to(array, beyond.shape)[beyond])
            found[text] = found.get(text, np.False_) | beyond.any(axis=axes)
    return found


def _values(evaluation: Evaluation, reference: Reference) -> FloatArray:
    return np.asarray(reference.value if isinstance(reference, Quantity) else evaluation.values[reference])


def _applies(evaluation: Evaluation, item: FittedRange) -> Points:
    """Points at which fitted parameters are used: those at which their algorithm is the fastest; with a GPU library,
    those in one link domain or across several."""
    phase = item.term.partition(".")[0]
    times = compared_times(evaluation.program.terms, phase)
    if own := next((time for name, time in times.items() if item.term.startswith(f"{name}.")), ""):
        fastest = np.minimum.reduce(np.broadcast_arrays(*(evaluation.values[time] for time in times.values())))
        return np.asarray(evaluation.values[own] <= fastest)
    choice = evaluation.program.terms.get(f"{phase}.operation_time")
    if choice is None or choice.function is not by_domain_count:
        return np.True_
    domains = evaluation.values[str(choice.inputs["domain_count"])]
    return np.asarray((domains > 1) == (".between_domains." in item.table))


def _has_ranks(evaluation: Evaluation, item: FittedRange) -> Points:
    """Points with the ranks of a table of measured times."""
    if item.measured is None:
        return np.True_
    inputs = evaluation.program.terms[item.term].inputs
    ranks, node_ranks = (_values(evaluation, inputs[key]) for key in ("rank_count", "node_rank_count"))
    return item.measured.holds(ranks, node_ranks) > 0


def _words(item: FittedRange, beyond: FloatArray) -> str:
    words, lie = _WORDS.get(item.variable, item.variable), "lie" if item.variable in _WORDS else "lies"
    least, most, low, high = (
        format_quantity(float(value), item.dimension) for value in (beyond.min(), beyond.max(), item.low, item.high)
    )
    reach = least if least == most else f"{least} to {most}"
    phase = item.term.partition(".")[0]
    known = "was measured at" if item.table.endswith(".measured") else "was fitted to"
    if phase == _CALIBRATION:
        return f"{phase}: {words} of {reach} {lie} outside the {low} to {high} of its runs"
    return f"{phase}: {words} of {reach} {lie} outside the {low} to {high} that {item.table} {known}"
