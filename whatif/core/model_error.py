"""Model error in samples: a factor on the time of each phase, as large as its accuracy card says.

The factor is log-normal, around the ratio of the card. Phases of one category share their deviates. One deviate belongs
to the application and is the same on all platforms, the other to the platform, or for kernels to its GPU: so the ratio
of two platforms is more certain than each of their times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from whatif.core.accuracy_cards import ITERATION, card_of, domain_card, library_operation, whole_card
from whatif.core.term import PhaseTerm, Program, Term
from whatif.models.quantities import Count, Seconds, model
from whatif.schema.accuracy import AccuracyCard
from whatif.schema.distributions import Distribution, Uncertain
from whatif.schema.fields import Domain, QuantityField
from whatif.schema.parameters import Parameter
from whatif.units import ONE, SECOND

_TABLE: Final = "model_error"
KERNEL_ERROR: Final = f"platform.{_TABLE}.kernel"
"""Deviate of the models of kernels that is not that of the application."""
_DEVIATE: Final = Uncertain(0.0, Distribution("normal", (0.0, 1.0), "normal(0, 1)"))


@model("T = t r exp(ln s (√ρ z_a + √(1 − ρ) z_m))", "accuracy cards of whatif: ratio r, scatter s, shared fraction ρ")
def uncertain_time(
    time: Seconds, shared_deviate: Count, own_deviate: Count, *, ratio: float, scatter: float, shared_fraction: float
) -> Seconds:
    """Time of a phase with the error of its model, for standard normal deviates. Elementwise.

    `shared_deviate` is z_a, of the application, `own_deviate` z_m, of the machine.
    """
    deviate = np.sqrt(shared_fraction) * shared_deviate + np.sqrt(1 - shared_fraction) * own_deviate
    return np.asarray(time * ratio * np.exp(np.log(scatter) * deviate))


@model("T = T_d where P ≤ g, else T_n", "definition: one link domain of g ranks")
def time_by_domain(inside_time: Seconds, across_time: Seconds, rank_count: Count, domain_rank_count: Count) -> Seconds:
    """Time of a collective of P ranks: T_d in one link domain, T_n across several. Elementwise."""
    return np.where(rank_count <= domain_rank_count, inside_time, across_time)


def with_model_errors(program: Program) -> Program:
    """Program whose phases have the errors of their models, with the deviates as uncertain parameters."""
    phases = {phase.term: phase for phase in program.phases}
    terms: dict[str, Term] = {}
    for name, term in program.terms.items():
        found = _with_error(program, phases[name]) if name in phases else [term]
        terms |= {item.name: item for item in found}
    uncertain = (term for term in terms.values() if term.function is uncertain_time)
    deviates = {path: _deviate(path) for term in uncertain for path in _paths_of_deviates(term)}
    return replace(program, terms=terms, parameters={**program.parameters, **deviates})


def _with_error(program: Program, phase: PhaseTerm) -> Iterator[Term]:
    """Time of a phase with the error of its model, after the terms that it needs."""
    exact, found = program.terms[phase.term], _card(program, phase)
    if found is None:
        yield exact
        return
    category, card = found
    # The last one has the name of the phase's term, so that all that depends on it has the error.
    yield replace(exact, name=f"{phase.term}.exact")
    uncertain = partial(_uncertain, f"{phase.term}.exact", category)
    inside, operation = domain_card(program, phase), library_operation(program, phase)
    if inside is None or operation is None:
        yield uncertain(card, phase.term)
        return
    names = {"inside_time": f"{phase.term}.in_domain", "across_time": f"{phase.term}.across_domains"}
    yield uncertain(inside, names["inside_time"])
    yield uncertain(card, names["across_time"])
    counts = {name: operation.inputs[name] for name in ("rank_count", "domain_rank_count")}
    yield Term(phase.term, time_by_domain, {**names, **counts}, SECOND)


def _uncertain(exact: str, category: str, card: AccuracyCard, name: str) -> Term:
    inputs = {"time": exact, "shared_deviate": f"{_TABLE}.{category}", "own_deviate": f"platform.{_TABLE}.{category}"}
    options = {key: getattr(card, key) for key in ("ratio", "scatter", "shared_fraction")}
    return Term(name, uncertain_time, inputs, SECOND, options=options)


def _paths_of_deviates(term: Term) -> Iterator[str]:
    return (str(path) for argument, path in term.inputs.items() if argument != "time")


def _card(program: Program, phase: PhaseTerm) -> tuple[str, AccuracyCard] | None:
    """Category of the deviates of a phase, and its card; None for a phase without one.

    Where one model computes all phases of an application, such as a training step, they have its card and deviates.
    """
    if (card := card_of(program, phase)) is not None:
        return phase.category, card
    whole = whole_card(program)
    shared = program.loaded.scenario.application.takes_model_error(phase.phase)
    return (ITERATION, whole) if whole is not None and shared else None


def _deviate(path: str) -> Parameter:
    field = QuantityField(ONE, Domain(minimum=-np.inf))
    return Parameter(path, _DEVIATE, field, ONE, (), None, "accuracy cards of the models", "measured")
