"""Remarks on how far a scenario agrees with measured runs: its calibration, and the accuracy of its predictions."""

from __future__ import annotations

from collections.abc import Iterator

from whatif.core.accuracy_cards import accuracy_notes, card_notes, own_card
from whatif.core.rule_notes import rule_notes
from whatif.core.term import Program
from whatif.schema.validated import platform_names
from whatif.units import counted

_PLATFORMS = "calibration.platforms."
_CORRECTIONS = "calibration."
_GROWTH = "calibration.application.doubling_time"


def model_notes(program: Program) -> tuple[str, ...]:
    """Calibration of a scenario, how far its predictions were from measured runs, and rates in place of others."""
    accuracy = (*accuracy_notes(program), *card_notes(program))
    return (*calibration_notes(program), *accuracy, *peak_notes(program), *rule_notes(program))


def peak_notes(program: Program) -> tuple[str, ...]:
    """Products of matrices that run on the vector units of the platform's GPU."""
    phases = program.loaded.scenario.application.phases.items()
    noted = ((name, program.terms[name].note) for name, phase in phases if phase.kind == "gemm")
    return tuple(f"{name}: {note}" for name, note in noted if note)


def calibration_source(program: Program) -> str:
    """Source of the corrections of a scenario; empty without any."""
    return next((item.source for path, item in program.parameters.items() if path.startswith(_CORRECTIONS)), "")


def calibration_notes(program: Program) -> tuple[str, ...]:
    """Number of the corrections of the results with their source, and corrections of other platforms."""
    known = [path for path in program.parameters if path.startswith(_CORRECTIONS)]
    used = [path for path in known if path in program.reached]
    notes = []
    if used:
        notes.append(f"calibrated: {counted(len(used), 'correction')} ({calibration_source(program)})")
    others = {path.removeprefix(_PLATFORMS).partition(".")[0] for path in known if path not in used}
    if elsewhere := sorted(name for name in others if any(path.startswith(f"{_PLATFORMS}{name}.") for path in known)):
        notes.append(f"calibration: the corrections of {', '.join(elsewhere)} are not used on this platform")
    return (*notes, *_growth_notes(program))


def _growth_notes(program: Program) -> Iterator[str]:
    """Added growth that is carried from the only platform with runs, where its cause is not known."""
    card = own_card(program, "iteration")
    if _GROWTH not in program.reached or card is None or len(card.platforms) != 1:
        return
    if card.platforms[0] not in platform_names(program.loaded.layers):
        runs = f"runs on {card.platforms[0]} alone"
        yield f"warning: calibration: {runs} do not show whether the added growth with the nodes is due to the network"
