"""Edits of the phases of a scenario: added, copied, deleted, moved, renamed, changed in kind.

An edit is a plain value. Edits are made in the text of the file, whose comments and order stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from whatif.errors import InvalidFileError, UsageError, WhatifError, did_you_mean
from whatif.schema.fields import KEY_PATTERN, KEY_RULE
from whatif.schema.motifs import Motif, application_of, motif_named, phases_of
from whatif.schema.phase_kinds import changed_kind
from whatif.schema.phase_references import descriptions, renamed_data, renamed_values, uses
from whatif.schema.phase_text import (
    PHASES,
    block_of,
    grid_block,
    moved_block,
    renamed,
    with_block,
    with_grid,
    without_block,
)
from whatif.schema.scenario_spec import RESERVED
from whatif.schema.toml import Document, KeyPath, dotted, parse_document
from whatif.schema.toml_sections import with_values
from whatif.schema.toml_text import toml_text, toml_value

PhaseWord = Literal["add", "copy", "delete", "move", "rename", "kind"]
# A new phase sends its messages like those that the scenario has already.
_LIKE_OTHERS: Final = {"halo": ("model", "neighbours", "concurrency"), "collective": ("model",)}


@dataclass(frozen=True, slots=True)
class PhaseEdit:
    """One edit of the phase `name`; `text` is the source, the new name, the steps or the kind."""

    word: PhaseWord
    name: str
    text: str = ""

    def line(self) -> str:
        """`phase WORD NAME` or `phase WORD NAME = TEXT`."""
        return f"phase {self.word} {self.name}" + (f" = {self.text}" if self.text else "")

    def overrides(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Overrides after the edit: those of a renamed phase follow it, those of a deleted one go."""
        if self.word == "rename":
            return {_follow(path, self): _follow(value, self) for path, value in values.items()}
        gone = tuple(f"application.{table}.{self.name}." for table in ("phases", "repeats"))
        dropped = self.word in ("delete", "kind")
        return {path: value for path, value in values.items() if not (dropped and path.startswith(gone))}


def _follow(text: Any, edit: PhaseEdit) -> Any:
    return renamed(text, edit.name, edit.text) if isinstance(text, str) else text


@dataclass(frozen=True, eq=False, kw_only=True)
class EditedDocument(Document):
    """A scenario file with edits of its phases that are not saved."""

    file: Document
    edits: tuple[PhaseEdit, ...]
    notes: tuple[str, ...] = field(default=())
    """Changes of the last edit besides its phase."""


class _Edited(NamedTuple):
    """Text after an edit, what its phases must then be, in order, and what else changed."""

    text: str
    phases: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def on_disk(document: Document) -> Document:
    """Document of the file, without edits of phases."""
    return document.file if isinstance(document, EditedDocument) else document


def edits_of(document: Document) -> tuple[PhaseEdit, ...]:
    """Edits of phases that the file does not have."""
    return document.edits if isinstance(document, EditedDocument) else ()


def rebased(document: Document, file: Document, folders: tuple[Path, ...] = ()) -> Document:
    """Document on another text of its file, with its edits of phases; raise `UsageError` if one does not fit it."""
    if file is on_disk(document):
        return document
    for edit in edits_of(document):
        try:
            file = edited(file, edit, folders)
        except WhatifError as problem:
            raise UsageError(f"`{edit.line()}` does not fit {file.name} any more: {problem}") from None
    return file


def edited(document: Document, edit: PhaseEdit, folders: tuple[Path, ...] = ()) -> Document:
    """Document after an edit of its phases; that of the file if the edits come to nothing.

    Raise `UsageError` for an impossible edit, `InvalidFileError` with the places that need a deleted phase.
    """
    made = _made(document, edit, folders)
    fresh = parse_document(made.text, document.name, document.folder)
    application = fresh.data.get("application", {})
    if list(application.get("phases", {}).items()) != list(made.phases.items()):
        raise _only_by_hand(document, edit.name)
    file = on_disk(document)
    if fresh.text == file.text:
        return file
    edits = (*edits_of(document), edit)
    return EditedDocument(
        document.name, fresh.text, fresh.data, document.folder, file=file, edits=edits, notes=made.notes
    )


def _made(document: Document, edit: PhaseEdit, folders: tuple[Path, ...]) -> _Edited:
    inherited, application = phases_of(document, folders), application_of(document, folders)
    if application.get("kind", "program") != "program":
        raise UsageError(f"{document.name}: this kind of application has no phases")
    if edit.word == "add":
        return _add(document, edit, application, folders)
    if edit.name not in inherited:
        raise UsageError(f"there is no phase `{edit.name}`{did_you_mean(edit.name, inherited)}")
    if edit.word == "copy":
        return _copy(document, edit, inherited)
    bare = replace(document, data={key: value for key, value in document.data.items() if key != "application"})
    below = edit.name in phases_of(bare, folders)
    if edit.word == "delete":
        return _delete(document, edit, inherited, below=below)
    if below:
        raise UsageError(f"`{edit.name}` comes from the scenario that this one extends; a copy of it can be changed")
    if not block_of(document.text, edit.name):
        raise _only_by_hand(document, edit.name)
    return {"move": _move, "rename": _rename, "kind": _kind}[edit.word](document, edit, inherited)


def _only_by_hand(document: Document, name: str) -> InvalidFileError:
    return InvalidFileError(
        [document.problem((*PHASES, name), f"`{name}` is written in a way that only an editor can change")]
    )


def _own(document: Document) -> dict[str, Any]:
    """Tables of the phases that the file states itself."""
    phases = document.data.get("application", {}).get("phases", {})
    return phases if isinstance(phases, dict) else {}


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """Name of a new phase; raise `UsageError` for one that is taken or not a name."""
    if name in RESERVED:
        raise UsageError(f"`{name}` is reserved; give the phase another name")
    if not re.match(KEY_PATTERN, name):
        raise UsageError(f"`{name}`: a name {KEY_RULE}")
    if name in taken:
        raise UsageError(f"there is a phase `{name}` already")
    return name


def free_phase_name(name: str, taken: Iterable[str]) -> str:
    """Name, numbered if it is taken or begins one that is."""
    known = set(taken)
    names = chain((name,), (f"{name}_{number}" for number in count(2)))
    return next(item for item in names if not any(other == item or other.startswith(f"{item}_") for other in known))


def added_names(name: str, motif: Motif) -> dict[str, str]:
    """Names of the phases of a motif (its own name: new name): NAME, or NAME_PHASE if there are several."""
    return {phase: name if len(motif.phases) == 1 else f"{name}_{phase}" for phase in motif.phases}


def _add(document: Document, edit: PhaseEdit, application: Mapping[str, Any], folders: tuple[Path, ...]) -> _Edited:
    taken = phases_of(document, folders)
    source, _, after = (part.strip() for part in edit.text.partition(" after "))
    if after and after not in taken:
        raise UsageError(f"there is no phase `{after}`{did_you_mean(after, taken)}")
    motif = motif_named(source, folders, document)
    names = added_names(edit.name, motif)
    own = list(_own(document).items())
    grid = "" if "grid" in application else grid_block(motif.document.text)
    text = with_grid(document.text, grid) if grid else document.text
    for old, new in names.items():
        block = _block_like(motif.block(old), old, _free(new, {**_own(document), **taken}), names, application)
        text = with_block(text, block, after)
        at = next((at + 1 for at, (name, _) in enumerate(own) if name == after), len(own))
        own.insert(at, (new, _own(parse_document(block, source))[new]))
        after = new
    overlaps = _overlaps(motif, names, folders)
    notes = ["`[application.grid]` is added too"] * bool(grid)
    notes += [f"`{dotted(path[:-1])}` is added too" for path in overlaps if path[-1] == "phases"]
    return _Edited(_with(document, edit.name, text, overlaps), dict(own), tuple(notes))


def _overlaps(motif: Motif, names: Mapping[str, str], folders: tuple[Path, ...]) -> dict[KeyPath, str | None]:
    """Values of the overlaps of a motif whose phases are both added, by their new names."""
    values: dict[KeyPath, str | None] = {}
    for table in application_of(motif.document, folders).get("overlaps", {}).values():
        phases = [names[name] for name in table["phases"] if name in names]
        if len(phases) == len(table["phases"]):
            at = ("application", "overlaps", "_".join(phases))
            values |= {(*at, "phases"): toml_value(phases), (*at, "fraction"): toml_value(table["fraction"])}
    return values


def _block_like(block: str, old: str, new: str, names: Mapping[str, str], application: Mapping[str, Any]) -> str:
    """Block of a new phase with its name, its messages as those of the phases that the scenario has."""
    block = renamed(block, old, new)
    for other, name in names.items():
        block = renamed(block, other, name)
    table = _own(parse_document(block, "a motif"))[new]
    if "kind" not in table:
        raise UsageError(f"`{old}` states no kind: its scenario extends another one; add the phase from that one")
    others = (item for item in application.get("phases", {}).values() if isinstance(item, dict))
    alike: dict[str, Any] = next((item for item in others if item.get("kind") == table.get("kind")), {})
    wanted = {key: alike[key] for key in _LIKE_OTHERS.get(table["kind"], ()) if key in alike}
    if table["kind"] == "halo" and application.get("grid", {}).get("decomposition") == "bisection":
        wanted["neighbours"] = "all"
    if table.get("halo") in names:
        wanted["halo"] = names[table["halo"]]
    return with_values(
        block, {(*PHASES, new, key): toml_value(value) for key, value in wanted.items() if table.get(key) != value}
    )


def _copy(document: Document, edit: PhaseEdit, taken: Mapping[str, Any]) -> _Edited:
    new = _free(edit.text, taken)
    whole = toml_text({PHASES[0]: {PHASES[1]: {edit.name: taken[edit.name]}}})
    # A phase that is partly inherited is written in full.
    block = block_of(document.text, edit.name) if _own(document).get(edit.name) == taken[edit.name] else whole
    phases: dict[str, Any] = {}
    table = _own(parse_document(renamed(block or whole, edit.name, new), document.name))[new]
    for name, item in _own(document).items():
        phases |= {name: item, new: table} if name == edit.name else {name: item}
    return _Edited(
        with_block(document.text, renamed(block or whole, edit.name, new), edit.name), {**phases, new: table}
    )


def _delete(document: Document, edit: PhaseEdit, taken: Mapping[str, Any], *, below: bool) -> _Edited:
    """Text without a phase; one that is stated below, by the scenario that this one extends, is removed with `none`."""
    name = edit.name
    needed = [
        document.problem(path, f"is computed from `{name}`: change it first") for path in uses(document.data, name)
    ]
    if needed:
        raise InvalidFileError(needed)
    if len(taken) == 1:
        raise UsageError(f"`{name}` is the only phase; add another one first")
    text, own = without_block(document.text, name), dict(_own(document))
    if name in own and text == document.text:
        raise _only_by_hand(document, name)
    own.pop(name, None)
    gone = [path for path in descriptions(document.data, name) if path[:2] != ("application", "repeats")]
    values: dict[KeyPath, str | None] = dict.fromkeys(gone)
    if below:
        values[*PHASES, name], own = toml_value("none"), {name: "none", **own}
    notes = (f"also deleted: {', '.join(map(dotted, gone))}",) if gone else ()
    return _Edited(_with(document, name, text, values), own, notes)


def _with(document: Document, name: str, text: str, values: Mapping[KeyPath, str | None]) -> str:
    try:
        return with_values(text, values)
    except (ValueError, KeyError):
        raise _only_by_hand(document, name) from None


def _move(document: Document, edit: PhaseEdit, _: Mapping[str, Any]) -> _Edited:
    order = list(_own(document))
    at = order.index(edit.name)
    try:
        to = at + int(edit.text)
    except ValueError:
        raise UsageError(f"phase move {edit.name} = {edit.text}: expected whole steps, such as -1") from None
    if not 0 <= to < len(order) or to == at:
        raise UsageError(f"`{edit.name}` is phase {at + 1} of {len(order)}; it cannot move by {edit.text}")
    order.insert(to, order.pop(at))
    if not all(block_of(document.text, name) for name in order):
        raise _only_by_hand(document, next(name for name in order if not block_of(document.text, name)))
    return _Edited(moved_block(document.text, edit.name, order), {name: _own(document)[name] for name in order})


def _rename(document: Document, edit: PhaseEdit, taken: Mapping[str, Any]) -> _Edited:
    old, new = edit.name, _free(edit.text, taken)
    data = renamed_data(document.data, old, new)
    text = _with(document, old, document.text, renamed_values(document.data, old, new))
    text = renamed(text, old, new)
    if parse_document(text, document.name).data != data:
        raise _only_by_hand(document, old)
    return _Edited(text, data["application"]["phases"])


def _kind(document: Document, edit: PhaseEdit, _: Mapping[str, Any]) -> _Edited:
    table = _own(document)[edit.name]
    change = changed_kind(table, edit.text)
    stated = {"kind": edit.text, **change.added}
    values: dict[KeyPath, str | None] = {(*PHASES, edit.name, key): None for key in change.dropped}
    values |= {(*PHASES, edit.name, key): toml_value(value) for key, value in stated.items()}
    phases = {**_own(document), edit.name: {**{key: table[key] for key in change.kept}, **stated}}
    told = (("dropped", change.dropped), ("with first values", change.added))
    notes = tuple(f"{word}: {', '.join(keys)}" for word, keys in told if keys)
    return _Edited(_with(document, edit.name, document.text, values), phases, notes)
