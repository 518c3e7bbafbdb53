"""Accuracy cards of a program: those of its own runs, else those of its models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import tomli

from whatif.core.term import PhaseTerm, Program, Term
from whatif.models.gpu_collectives import library_time
from whatif.schema.accuracy import AccuracyCard
from whatif.schema.validated import platform_names
from whatif.units import counted

CARDS: Final = Path(__file__).with_name("accuracy_cards.toml")
"""Cards by category and model; `python -m tests.accuracy_cards` computes them from the shipped runs."""
ITERATION: Final = "iteration"
"""Category of cards of whole iterations; other results of an application have cards under their names."""
CALIBRATED: Final = "calibrated"
"""Model of phases with a correction."""
_KINDS: Final = {"measured_kernel": "measured_kernel", "gemm": "gemm"}
"""Kinds of phases with one model."""
_COLLECTIVE: Final = "collective"
LIBRARY: Final[Mapping[str | None, str]] = {None: "nccl", "verbs": "nccl_verbs", "libfabric": "nccl_libfabric"}
"""Models of collectives of a library of GPUs from data sheets, neither fitted nor from a table of times, across several
link domains, by `library_transport`; None: of all networks."""
LIBRARY_IN_DOMAIN: Final = "nccl_in_domain"
"""The same of ranks in one link domain."""
_FITTED: Final = ("regression", "structured_grid")
"""Kinds of phases that are models of runs."""
_ALIKE: Final = {"roofline_l2": "roofline"}
"""Models with the card of another one, as too few runs have them."""


@lru_cache(maxsize=1)
def model_cards() -> Mapping[tuple[str, str], AccuracyCard]:
    """Shipped cards by category and model."""
    tables: dict[str, Any] = tomli.loads(CARDS.read_text(encoding="utf-8"))
    return {
        (category, model): AccuracyCard(**card) for category, models in tables.items() for model, card in models.items()
    }


def model_of(program: Program, phase: PhaseTerm) -> str:
    """Name of the model of a phase, as in the cards; empty for a phase without one."""
    return CALIBRATED if f"{phase.phase}.corrected" in program.terms else _stated_model(program, phase)


def _stated_model(program: Program, phase: PhaseTerm) -> str:
    stated = program.loaded.scenario.application.phases.get(phase.phase)
    kind, model = getattr(stated, "kind", ""), str(getattr(stated, "model", ""))
    if kind == _COLLECTIVE:
        transport = program.loaded.scenario.platform.network.inter_node.library_transport
        return kind if library_operation(program, phase) is None else LIBRARY[transport]
    return _KINDS.get(kind, _ALIKE.get(model, model))


def library_operation(program: Program, phase: PhaseTerm) -> Term | None:
    """One operation of a library of GPUs from data sheets; None for another phase."""
    once = program.terms.get(f"{phase.phase}.operation_time")
    return once if once is not None and once.function is library_time else None


def own_card(program: Program, category: str) -> AccuracyCard | None:
    """Card of a category, or of the iteration, from runs of the scenario; None without any."""
    return program.loaded.scenario.accuracy.get(category)


def whole_card(program: Program) -> AccuracyCard | None:
    """Card of the whole iteration: that of the scenario's own runs, else that of the model of its application."""
    return own_card(program, ITERATION) or _application_card(program)


def _application_card(program: Program) -> AccuracyCard | None:
    return model_cards().get((ITERATION, program.loaded.scenario.application.accuracy_model))


def card_of(program: Program, phase: PhaseTerm) -> AccuracyCard | None:
    """Card of a phase: that of the scenario's own runs, else that of its model; None without either.

    Own runs on other platforms, or of kernels on other GPUs, contain the error of the application but not that of the
    platform: the variance that platforms do not share, by the card of the model, is added.
    """
    known, own = model_cards().get((phase.category, model_of(program, phase))), own_card(program, phase.category)
    if own is None:
        return known
    model = model_cards().get((phase.category, _stated_model(program, phase)))
    return own if model is None or _is_from_here(own, program) else _elsewhere(own, model)


def domain_card(program: Program, phase: PhaseTerm) -> AccuracyCard | None:
    """Card of a phase with its ranks in one link domain; None if `card_of` holds for all ranks."""
    is_library = own_card(program, phase.category) is None and model_of(program, phase) in LIBRARY.values()
    return model_cards()[phase.category, LIBRARY_IN_DOMAIN] if is_library else None


def _is_from_here(card: AccuracyCard, program: Program) -> bool:
    """Whether runs of a card were on this platform, or kernels on its device."""
    device = program.loaded.scenario.kernel_device
    same_device = device is not None and device.name in card.devices
    return same_device or not set(platform_names(program.loaded.layers)).isdisjoint(card.platforms)


def _elsewhere(own: AccuracyCard, model: AccuracyCard) -> AccuracyCard:
    shared = math.log(own.scatter) ** 2
    alone = (1 - model.shared_fraction) * math.log(model.scatter) ** 2
    fraction = shared / (shared + alone) if shared + alone > 0 else 1.0
    return own.model_copy(update={"scatter": math.exp(math.sqrt(shared + alone)), "shared_fraction": fraction})


def accuracy_notes(program: Program) -> Iterator[str]:
    """Notes on the error of predictions at runs of the scenario or of its models, or on missing runs."""
    yield from _time_notes(program)
    model = program.loaded.scenario.application.accuracy_model
    for (result, known), card in model_cards().items():
        if known == model and result != ITERATION:
            yield f"{result} {_words(card, program, _of(card))}"


def _time_notes(program: Program) -> Iterator[str]:
    own = own_card(program, ITERATION)
    parts = {name: card for name, card in program.loaded.scenario.accuracy.items() if name != ITERATION}
    if own is not None:
        yield f"iteration {_words(own, program)}"
    elif parts:
        yield "; ".join(f"{name} {_words(card, program)}" for name, card in parts.items())
    elif fits := _fits(program):
        yield "; ".join(fits)
    elif (card := _application_card(program)) is not None:
        yield f"iteration {_words(card, program, _of(card))}"
    elif program.loaded.scenario.application.phases:
        yield "never compared with a run"


def card_notes(program: Program) -> Iterator[str]:
    """Error of the models of phases at the runs of their cards, for a scenario that was never compared with a run."""
    if program.loaded.scenario.accuracy or _application_card(program) is not None:
        return
    said: dict[str, list[str]] = {}
    for phase in program.phases:
        if (card := card_of(program, phase)) is not None:
            inside = domain_card(program, phase)
            words = _error(card) + ("" if inside is None else f", in one link domain {_error(inside)}")
            said.setdefault(words, []).append(phase.phase)
    if said:
        yield "models: " + "; ".join(f"{', '.join(names)} {words}" for words, names in said.items())


def _error(card: AccuracyCard) -> str:
    bias = "" if card.bias is None else f" (bias {100 * card.bias:+.2g}%)"
    runs = counted(card.run_count, f"{card.source} run".strip())
    return f"within {100 * card.mean_absolute_error:.2g}%{bias} of {runs}"


def _fits(program: Program) -> list[str]:
    """Fit of each phase to runs; none unless all phases are fitted."""
    found = []
    for name, phase in program.loaded.scenario.application.phases.items():
        values = (
            parameter.fitted
            for path, parameter in program.parameters.items()
            if phase.kind in _FITTED and path.startswith(f"application.phases.{name}.")
        )
        fitted = next(filter(None, values), None)
        if fitted is None:
            return []
        found.append(f"{name} fitted to {counted(fitted.point_count, 'run')}, RMS residual {fitted.residual:.1%}")
    return found


def _of(card: AccuracyCard) -> str:
    return f" of {', '.join(card.applications)}"


def _words(card: AccuracyCard, program: Program, of: str = "") -> str:
    here = "" if _is_from_here(card, program) else "; none on this platform"
    return f"{_error(card)}{of} on {', '.join(card.platforms)}{here}"
