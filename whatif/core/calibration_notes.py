"""Remarks on the calibration of a scenario: which runs it is from, and which corrections its platform does not use."""

from __future__ import annotations

from whatif.core.term import Program
from whatif.units import counted

_PLATFORMS = "calibration.platforms."


def calibration_notes(program: Program) -> tuple[str, ...]:
    """Number of the corrections of the results with their source, and corrections of other platforms."""
    known = [path for path in program.parameters if path.startswith("calibration.")]
    used = [path for path in known if path in program.reached]
    notes = []
    if used:
        source = program.parameters[used[0]].source
        notes.append(f"calibrated: {counted(len(used), 'correction')} ({source})")
    others = {path.removeprefix(_PLATFORMS).partition(".")[0] for path in known if path not in used}
    if elsewhere := sorted(name for name in others if any(path.startswith(f"{_PLATFORMS}{name}.") for path in known)):
        platform = program.loaded.scenario.platform.name
        notes.append(f"calibration: the corrections of {', '.join(elsewhere)} are not used on {platform}")
    return tuple(notes)
