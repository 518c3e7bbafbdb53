"""Motifs: small tables of phases to begin with, and the phases of other scenarios, by name."""

from __future__ import annotations

import re
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from whatif.errors import InvalidFileError, UsageError, did_you_mean
from whatif.paths import exists, is_file, user_path
from whatif.plugins import PhaseFile, registered_phase_files, resolve
from whatif.schema.load import extend_chain, load_platform, open_document, question_of, stated_platform
from whatif.schema.phase_text import PHASES, block_of
from whatif.schema.shipped import MOST_FILES, shipped_names
from whatif.schema.toml import Document, merge, parse_document, read_document, shown_path
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
    merged: dict[str, Any] = {}
    for item in extend_chain(document, "scenarios", document.search(folders)):
        application = item.data.get("application")
        merged = merge(merged, application if isinstance(application, dict) else {})
    return merged


def phases_of(document: Document, folders: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Tables of the phases of a scenario, and of those that it extends, in order."""
    phases = application_of(document, folders).get("phases")
    return {name: table for name, table in (phases or {}).items() if isinstance(table, dict)}


def motif_named(source: str, folders: tuple[Path, ...] = (), into: Document | None = None) -> Motif:
    """Motif of a name, phases of a scenario, or those of a profile, a trace or profiled kernels.

    A scenario is `SCENARIO`, a shipped name or a path, or `SCENARIO:PHASE` for one of its phases. `into` is the
    scenario that takes in the phases: those of a file are made for its machine. Raise `UsageError` for an unknown motif
    or phase, `InvalidFileError` for a file that cannot be read.
    """
    known = {motif.name: motif for motif in motifs()}
    if source in known:
        return known[source]
    path = user_path(source)
    if into is not None and into.folder is not None and not exists(path):
        path = into.folder / path
    kind = phase_file(path)
    if kind is not None and into is not None:
        return _of_file(path, kind, into, folders)
    name, phase = (source, "") if is_file(Path(source)) else _split(source)
    scenarios = shipped_names("scenarios")
    if not is_file(user_path(name)) and name not in scenarios:
        near = did_you_mean(name, (*known, *scenarios))
        near = near or f"; motifs: {', '.join(known)}; phases of a scenario: minife:dot"
        raise UsageError(f"`{source}`: no such motif, scenario or file{near}")
    found = _motif(name, _scenario_file(name), folders)
    if phase and phase not in found.phases:
        near = did_you_mean(phase, found.phases)
        raise UsageError(f"`{source}`: {name} has no phase `{phase}`{near}; it has {', '.join(found.phases) or 'none'}")
    if not found.phases:
        raise UsageError(f"`{source}`: has no phases")
    phases = {phase: found.phases[phase]} if phase else found.phases
    return Motif(found.name, found.description, found.document, phases)


def _scenario_file(name: str) -> Document:
    path = user_path(name)
    with suppress(InvalidFileError) if path.suffix not in ("", ".toml") else nullcontext():
        document = open_document(path, "scenarios")
        if document.data:
            return document
    words = ", ".join(kind.words for kind in registered_phase_files().values())
    raise UsageError(f"{shown_path(path)}: neither a scenario nor any of: {words}")


def phase_file(path: Path) -> PhaseFile | None:
    """Kind of a file of another program that phases can be made from; None for any other path."""
    if path.suffix == ".toml" or not exists(path):
        return None
    return next((kind for kind in registered_phase_files().values() if resolve(kind.recognise)(path)), None)


def phase_files(folder: Path) -> tuple[tuple[str, str], ...]:
    """Files and folders, in a folder, that phases can be made from: name and description."""
    try:
        paths = sorted(islice(folder.iterdir(), MOST_FILES))
    except OSError:
        return ()
    found = ((path.name, phase_file(path)) for path in paths if not path.name.startswith("."))
    return tuple((name, kind.words) for name, kind in found if kind is not None)


def _of_file(path: Path, kind: PhaseFile, into: Document, folders: tuple[Path, ...]) -> Motif:
    name = stated_platform(into, folders)
    if name is None:
        raise UsageError(f"{shown_path(path)}: name the platform of the scenario first")
    try:
        text = resolve(kind.text)(path, load_platform(name, into.search(folders))[0], into.folder)
    except OSError as error:
        raise UsageError(f"{shown_path(path)}: cannot be read: {error.strerror}") from None
    return _motif(path.name, parse_document(text, shown_path(path), path.parent), folders)


def source_name(source: str) -> str:
    """Name of a phase for a source: that of the motif or phase, or of the file without its endings."""
    last = Path(source.rpartition(":")[2] or source).name
    return re.sub(r"^[^A-Za-z]+|\W+", "_", last.split(".")[0], flags=re.ASCII).strip("_") or "phase"


def _split(source: str) -> tuple[str, str]:
    name, _, phase = source.rpartition(":")
    return (name, phase) if name else (source, "")
