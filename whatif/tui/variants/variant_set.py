"""Variants of a scenario: named sets of values; the first one, A, is the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from whatif.axes import Grid
from whatif.core.result import Result
from whatif.core.scenario import Scenario
from whatif.core.session import Session, SessionInputs, still_there
from whatif.errors import UsageError, WhatifError, did_you_mean
from whatif.schema.toml import Document

BASELINE: Final = "A"
LETTERS: Final = "ABCDEFGH"
"""Most variants, including the baseline: more curves in one plot could not be distinguished."""
LONGEST_NAME: Final = 24
_MOST_POINTS: Final = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """Values under a letter and, where one was given, a name; `session` has no sweep."""

    letter: str
    name: str
    session: Session
    written: Scenario | None = None
    """Values last written to the variant's own file."""

    @property
    def label(self) -> str:
        """Letter and name."""
        return f"{self.letter} {self.name}".rstrip()

    @property
    def scenario(self) -> Scenario:
        """The file with the changes of this variant."""
        return self.session.scenario

    @property
    def is_unwritten(self) -> bool:
        """Whether there are changes that no file of the variant's own has."""
        changed = bool(self.scenario.overrides) or self.scenario.platform is not None
        return changed and (self.written is None or scenario_key(self.written) != scenario_key(self.scenario))


@dataclass(frozen=True, slots=True, eq=False)
class VariantCurve:
    """A variant over a sweep, with a result if it has one there."""

    scenario: Scenario
    grid: Grid
    result: Result | None

    def answers(self, scenario: Scenario, grid: Grid) -> bool:
        """Whether this is the curve of a scenario over a grid; copies from another process count as the same."""
        same = self.scenario is scenario or scenario_key(self.scenario) == scenario_key(scenario)
        return same and (self.grid is grid or grid_key(self.grid) == grid_key(grid))


@dataclass(frozen=True, slots=True, eq=False)
class Variants:
    """All variants, the baseline first. `current` is the letter of the one that is edited.

    The entry of the current one may be out of date, as the session has its values; without an entry it is a draft,
    which counts once its values differ from the baseline.
    """

    items: tuple[Variant, ...]
    current: str = LETTERS[1]

    @classmethod
    def start(cls, session: Session) -> Variants:
        """The baseline, and a draft with the same values."""
        return cls((Variant(BASELINE, "", session.at_rest()),))

    @property
    def baseline(self) -> Variant:
        """The variant that others are compared with."""
        return self.items[0]

    @property
    def key(self) -> tuple[object, ...]:
        """Values that are equal for equal sets of variants."""
        return self.current, *((item.letter, item.name, scenario_key(item.scenario)) for item in self.items)

    def at(self, letter: str) -> Variant | None:
        """The variant with a letter."""
        return next((item for item in self.items if item.letter == letter), None)

    def named(self, text: str) -> Variant:
        """The variant with a letter or name; raise `UsageError` for an unknown one."""
        found = self.at(text.upper()) or next((item for item in self.items if item.name == text), None)
        if found is None:
            known = ", ".join(item.label for item in self.items)
            near = did_you_mean(text, [item.name for item in self.items if item.name])
            raise UsageError(f"there is no variant `{text}`{near}; known: {known}")
        return found

    def with_present(self, session: Session, *, draft: bool = True) -> Variants:
        """The variants with the values of a session in the entry of the current one; a new entry only for a `draft`."""
        entry = self.at(self.current)
        if entry is None and not draft:
            return self
        present = replace(entry or Variant(self.current, "", session), session=session.at_rest())
        others = (item for item in self.items if item.letter != self.current)
        return replace(self, items=tuple(sorted((*others, present), key=lambda item: item.letter)))

    def free_letter(self) -> str:
        """The first letter that is not taken; raise `UsageError` if all are."""
        taken = {item.letter for item in self.items}
        free = next((letter for letter in LETTERS if letter not in taken), None)
        if free is None:
            raise UsageError(f"there are {len(LETTERS)} variants, as many as one plot can show; delete one first")
        return free

    def without(self, letter: str) -> Variants:
        """The variants without one; raise `UsageError` for the baseline."""
        if letter == BASELINE:
            raise UsageError(
                f"{BASELINE} is the baseline and cannot be deleted; b makes the present values the baseline"
            )
        return replace(self, items=tuple(item for item in self.items if item.letter != letter))

    def renamed(self, letter: str, name: str) -> Variants:
        """The variants, one with another name; raise `UsageError` for a name that another one has."""
        name = checked_name(name)
        if any(item.name == name and item.letter != letter for item in self.items if name):
            raise UsageError(f"there is a variant `{name}` already")
        return replace(
            self, items=tuple(replace(item, name=name) if item.letter == letter else item for item in self.items)
        )

    def rebased(self, old: Scenario, document: Document, before: Mapping[str, str], *, saved: bool = False) -> Variants:
        """The variants on another text of the file of `old`, with the same values (see `on_text`).

        Those that ask what `old` asks are what the text says now if it was `saved`.
        """
        return replace(self, items=tuple(_rebased(item, old, document, before, saved) for item in self.items))

    def reread(self, scenario: Scenario) -> Variants:
        """The variants but the baseline on a changed text of their file, with the edits of each."""
        return replace(self, items=(self.items[0], *(_reread(item, scenario.document) for item in self.items[1:])))


def scenario_key(scenario: Scenario) -> tuple[object, ...]:
    """Values that are equal for equal scenarios."""
    return scenario.document.text, dict(scenario.overrides), scenario.platform


def on_text(scenario: Scenario, document: Document, before: Mapping[str, str]) -> Scenario:
    """The same values on another text of the file; `before` are those that it had where it took in edits."""
    platform = scenario.platform or before.get("platform")
    sets = {path: text for path, text in before.items() if path != "platform"} | dict(scenario.overrides)
    return Scenario(document, platform, sets, scenario.folders)


def checked_name(name: str) -> str:
    """A name without spaces around it; raise `UsageError` for one that a title has no room for."""
    name = " ".join(name.split())
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"`{name[:LONGEST_NAME]}..`: a name has at most {LONGEST_NAME} characters")
    if len(name) == 1 and name.upper() in LETTERS:
        raise UsageError(f"`{name}` is a letter of the variants; a name has two characters or more")
    return name


def curve_of(session: Session) -> VariantCurve:
    """A session's own curve."""
    return VariantCurve(session.scenario, session.grid, session.result)


def compares(grid: Grid) -> bool:
    """Whether the other variants are drawn over a sweep too: over one axis, or two with not too many points."""
    return len(grid.axes) == 1 or (len(grid.axes) == 2 and grid.size <= _MOST_POINTS)


def computed_curve(variant: Variant, session: Session) -> VariantCurve:
    """A variant over the sweep of a session; without a result where it lacks the swept parameter."""
    grid, found = session.grid, None
    if scenario_key(variant.scenario) == scenario_key(session.scenario):
        found = session.result
    else:
        try:
            if still_there(grid, variant.session.program) is grid:
                found = Session.of(replace(variant.session.inputs, grid=grid)).result
        except WhatifError:
            found = None
    return VariantCurve(variant.scenario, grid, found)


def _rebased(item: Variant, old: Scenario, document: Document, before: Mapping[str, str], saved: bool) -> Variant:
    scenario, session = item.scenario, item.session
    if scenario.document.text != old.document.text:
        return item
    fresh = saved and scenario_key(scenario) == scenario_key(old)
    now = Scenario(document, None, {}, scenario.folders) if fresh else on_text(scenario, document, before)
    return replace(item, session=replace(session, inputs=SessionInputs(now, session.grid, session.program)))


def _reread(item: Variant, document: Document) -> Variant:
    scenario = item.scenario.reread(document)
    try:
        return replace(item, session=Session.unswept(SessionInputs(scenario, Grid())))
    except WhatifError:
        return item


def grid_key(grid: Grid) -> list[tuple[str, dict[str, str]]]:
    """Values that are equal for equal sweeps."""
    return [(axis.name, dict(axis.texts)) for axis in grid.axes]
