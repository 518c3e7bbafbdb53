"""Nodes that ranks take, and notes on several machines: each once with the machines that it is about."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from whatif.axes import first_number
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.parameter_paths import NODES_NEEDED, RANK_COUNT
from whatif.core.term import Program
from whatif.errors import abridged
from whatif.units import counted

_WARNING: Final = "warning: "
_PLATFORM: Final = "platform."
PLACED: Final = (RANK_COUNT, NODES_NEEDED)
"""Ranks, and the nodes that they take."""
_NAMED: Final = 4
"""Machines named in front of a note."""


def notes_by_machine(notes: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Notes on some machines, each once; a note that does not hold on all of them names its machines."""
    machines: dict[str, list[str]] = {}
    for machine, its in notes.items():
        for note in dict.fromkeys(its):
            machines.setdefault(note, []).append(machine)
    return tuple(
        note if len(its) == len(notes) else note_on(abridged(its, _NAMED), note) for note, its in machines.items()
    )


def note_on(subject: str, note: str) -> str:
    """Note with its subject in front; `warning: ` remains the first word."""
    text = note.removeprefix(_WARNING)
    return f"{note[: len(note) - len(text)]}{subject}: {text}"


def constant_notes(programs: Mapping[str, Program]) -> Iterator[str]:
    """Remark on the phases, overheads apart, that depend on no value of any of several machines: measured kernels."""
    if len(programs) < 2:
        return
    names = dict.fromkeys(
        phase.phase for program in programs.values() for phase in program.phases if phase.category != "overhead"
    )
    if same := [name for name in names if not any(_on_machine(program, name) for program in programs.values())]:
        yield f"{', '.join(same)}: the same on every machine, as no value of the platform is in the model"


def _on_machine(program: Program, phase: str) -> bool:
    """Whether the time of a phase depends on its platform."""
    terms = [its.term for its in program.phases if its.phase == phase]
    return any(path.startswith(_PLATFORM) for path in program.upstream(terms))


def placement(at: Evaluation) -> str:
    """Ranks at one point and the nodes that they take: `1,536 ranks on 256 nodes`; empty without such numbers."""
    ranks, nodes = (first_number(at.values[name]) for name in PLACED)
    return f"{counted(int(ranks), 'rank')} on {counted(int(nodes), 'node')}" if math.isfinite(ranks + nodes) else ""


def size_notes(programs: Mapping[str, Program], swept: Collection[str] = ()) -> Iterator[str]:
    """Remark on machines on which the same ranks take other numbers of nodes; none if that number is swept."""
    if any(not program.upstream([NODES_NEEDED]).isdisjoint(swept) for program in programs.values()):
        return
    parts = {name: program.part([NODES_NEEDED]) for name, program in programs.items()}
    sizes = {name: float(evaluate(part).numbers(NODES_NEEDED)) for name, part in parts.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{count:,.0f} of {name}" for name, count in sizes.items())
        yield f"the same ranks take other numbers of nodes: {listed}"
