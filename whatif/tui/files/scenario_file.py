"""The files behind the open scenario, and what changed in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from whatif.core.program_files import documents_of, named_files
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.schema.load import not_empty, stated_platform
from whatif.schema.phase_edits import on_disk
from whatif.schema.toml import Document, read_document
from whatif.tui.state import ExplorerState

Stamp = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class FileChanges:
    """A scenario on the newest text of its files, what that changed, and which edits conflict with it."""

    scenario: Scenario
    changes: tuple[str, ...]
    conflicts: dict[str, str]
    """By the path of an edited parameter."""


class ScenarioFile:
    """The scenario's file and those it rests on, as they were last read.

    They are looked at by their time and size: notices of changes do not reach a network file system's other nodes.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.path = Path(scenario.document.name).resolve()
        self._stamps: dict[Path, Stamp] = {}
        self._named: dict[Path, Stamp] = {}
        self.watch(scenario.program)

    def watch(self, program: Program) -> None:
        """Look at the files of a program from now on."""
        names = [Path(document.name).resolve() for document in documents_of(program)]
        self._named = {path: stamp(path) for path in named_files(program)}
        self._stamps = {path: stamp(path) for path in (self.path, *names)} | self._named

    def touched(self) -> bool:
        """Whether a file changed since this was asked last."""
        now = {path: stamp(path) for path in self._stamps}
        before, self._stamps = self._stamps, now
        return now != before

    @property
    def gone(self) -> bool:
        """Whether the scenario's file no longer exists."""
        return self._stamps.get(self.path) is None

    def reread(self, state: ExplorerState) -> FileChanges:
        """The scenario on the present files; raise `InvalidFileError` for invalid ones."""
        scenario = state.session.scenario
        document = self._read(on_disk(scenario.document))
        fresh = scenario.reread(document)
        _ = fresh.program
        changes = tuple(_differences(scenario.original, fresh.original))
        edited = state.unsaved()
        conflicts = {path: text for path, text in changes if path in edited}
        replaced = (path.name for path, read in self._named.items() if self._stamps[path] != read)
        return FileChanges(fresh, (*(text for _, text in changes), *replaced), conflicts)

    def _read(self, present: Document) -> Document:
        document = not_empty(read_document(self.path))
        return present if document.text == present.text else document


def stamp(path: Path) -> Stamp:
    """Time, size and number of a file, by which a change is noticed; None without the file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _differences(before: Program | None, after: Program | None) -> Iterable[tuple[str, str]]:
    """Path and text of every changed parameter."""
    old, new = (program.parameters if program is not None else {} for program in (before, after))
    for path in (*old, *(path for path in new if path not in old)):
        was, now = (parameters[path].text() if path in parameters else "not there" for parameters in (old, new))
        if was != now:
            yield path, f"{path}: {was} → {now}"


def values_before(scenario: Scenario) -> dict[str, str]:
    """Texts of the edited values in the file; `platform` for its machine."""
    original = scenario.original
    if original is None:
        return {}
    values = {
        path: original.parameters[path].text(digits=None) for path in scenario.overrides if path in original.parameters
    }
    platform = stated_platform(scenario.document, scenario.folders)
    return values | ({"platform": platform} if scenario.platform is not None and platform is not None else {})
