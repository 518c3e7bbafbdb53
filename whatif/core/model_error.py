"""Model error in samples: a factor on the time of each phase, as large as its accuracy card says.

The factor is log-normal, around the ratio of the card. Phases of one category share their deviates. One deviate belongs
to the application and is the same on all platforms, the other to the platform, or for kernels to its GPU: so the ratio
of two platforms is more certain than each of their times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from whatif.core.accuracy_cards import ITERATION, card_of, whole_card
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


def with_model_errors(program: Program) -> Program:
    """Program whose phases have the errors of their models, with the deviates as uncertain parameters."""
    cards = {phase.term: found for phase in program.phases if (found := _card(program, phase)) is not None}
    if not cards:
        return program
    terms: dict[str, Term] = {}
    parameters = dict(program.parameters)
    for name, term in program.terms.items():
        if name not in cards:
            terms[name] = term
            continue
        category, card = cards[name]
        # Under the name of the phase's term, so that all that depends on it has the error.
        exact = f"{name}.exact"
        terms[exact] = replace(term, name=exact)
        inputs = {"time": exact}
        for argument, owner in (("shared_deviate", ""), ("own_deviate", "platform.")):
            path = f"{owner}{_TABLE}.{category}"
            inputs[argument] = path
            parameters[path] = _deviate(path)
        options = {name: getattr(card, name) for name in ("ratio", "scatter", "shared_fraction")}
        terms[name] = Term(name, uncertain_time, inputs, SECOND, options=options)
    return replace(program, terms=terms, parameters=parameters)


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
