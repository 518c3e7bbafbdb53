"""Motifs: small tables of phases to begin with, and the phases of other scenarios, by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from whatif.errors import UsageError, did_you_mean
from whatif.schema.load import extend_chain, open_document, question_of
from whatif.schema.phase_text import PHASES, block_of
from whatif.schema.shipped import is_file, shipped_names
from whatif.schema.toml import Document, merge, read_document
from whatif.schema.toml_text import toml_text

_FOLDER: Final = Path(__file__).with_name("motifs")


@dataclass(frozen=True)
class Motif:
    """Phases that can be added to a scenario: those of a motif, or of another scenario."""

    name: str
    description: str
    document: Document
    phases: dict[str, Any]

    def block(self, phase: str) -> str:
        """TOML of one of its phases, with comments where its file has any."""
        return block_of(self.document.text, phase) or toml_text({PHASES[0]: {PHASES[1]: {phase: self.phases[phase]}}})


@cache
def motifs() -> tuple[Motif, ...]:
    """Motifs of the program, by name."""
    return tuple(_motif(path.stem, read_document(path)) for path in sorted(_FOLDER.glob("*.toml")))


def _motif(name: str, document: Document, folders: tuple[Path, ...] = ()) -> Motif:
    words = question_of(document.text).rstrip(".")
    return Motif(name, words, document, phases_of(document, folders))


def application_of(document: Document, folders: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Table of the application of a scenario, merged with that of the scenarios that it extends."""
    search = (*(() if document.folder is None else (document.folder,)), *folders)
    merged: dict[str, Any] = {}
    for item in extend_chain(document, "scenarios", search):
        application = item.data.get("application")
        merged = merge(merged, application if isinstance(application, dict) else {})
    return merged


def phases_of(document: Document, folders: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Tables of the phases of a scenario, and of those that it extends, in order."""
    phases = application_of(document, folders).get("phases")
    return {name: table for name, table in (phases or {}).items() if isinstance(table, dict)}


def motif_named(source: str, folders: tuple[Path, ...] = ()) -> Motif:
    """Motif of a name, or phases of a scenario: `SCENARIO`, or `SCENARIO:PHASE` for one of them.

    `SCENARIO` is a shipped name or a path. Raise `UsageError` for an unknown motif or phase, `InvalidFileError` for a
    file that cannot be read.
    """
    known = {motif.name: motif for motif in motifs()}
    if source in known:
        return known[source]
    name, phase = (source, "") if is_file(Path(source)) else _split(source)
    scenarios = shipped_names("scenarios")
    if not is_file(Path(name).expanduser()) and name not in scenarios:
        near = did_you_mean(name, (*known, *scenarios))
        message = "no such motif, scenario or file"
        raise UsageError(f"`{source}`: {message}{near}; motifs: {', '.join(known)}; phases of a scenario: minife:dot")
    found = _motif(name, open_document(Path(name).expanduser(), "scenarios"), folders)
    if phase and phase not in found.phases:
        near = did_you_mean(phase, found.phases)
        raise UsageError(f"`{source}`: {name} has no phase `{phase}`{near}; it has {', '.join(found.phases) or 'none'}")
    if not found.phases:
        raise UsageError(f"`{source}`: has no phases")
    phases = {phase: found.phases[phase]} if phase else found.phases
    return Motif(found.name, found.description, found.document, phases)


def _split(source: str) -> tuple[str, str]:
    name, _, phase = source.rpartition(":")
    return (name, phase) if name else (source, "")
