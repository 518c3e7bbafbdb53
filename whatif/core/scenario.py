"""Scenario: a file, or tables built in Python, with overrides; compiled once for each structural choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from whatif.axes import Axis, Grid
from whatif.core.compile import compile_scenario
from whatif.core.platform import BUILT, Platform, built_document, write_text
from whatif.core.sweep import PLATFORM_PARAMETER, structural_points
from whatif.core.term import Program
from whatif.core.uncertainty import Sampling
from whatif.errors import InvalidFileError, WhatifError
from whatif.schema.load import load_document, open_document
from whatif.schema.parameters import worst
from whatif.schema.rewriting import rewritten
from whatif.schema.toml import Document

_SHOWN: Final = 5
"""Overrides shown in `repr`."""
Choices = tuple[tuple[str, str], ...]
"""Structural values by path, sorted: what a program is compiled for."""


@dataclass(frozen=True, repr=False)
class Scenario:
    """An application on a platform: a scenario file, or the same tables built in Python, with overrides."""

    document: Document
    platform: str | None = None
    """Name of the platform that replaces the one of the file."""
    sets: Mapping[str, Any] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    built: Mapping[str, Document] = field(default_factory=dict, compare=False)
    """Platforms built in Python, by name."""
    _programs: dict[Choices, Program | InvalidFileError] = field(default_factory=dict, compare=False, repr=False)
    _original: list[Program | None] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        tables: Mapping[str, Any] | None = None,
        /,
        *,
        name: str = BUILT,
        platform: str | Path | Platform | Mapping[str, Any] | None = None,
        platform_dirs: Sequence[str | Path] = (),
        **keywords: Any,
    ) -> Scenario:
        """Scenario of nested tables with the keys and values of a scenario file, from a mapping, keywords or both.

        `platform` is a name, the path of a file, a `Platform`, or a table as in a file; `name` stands for the file in
        tables and messages. The values are checked when the scenario is first used: `InvalidFileError`.

        >>> import whatif
        >>> sleep = {"kind": "overhead", "overhead_time": "2 ms"}
        >>> application = {"name": "nap", "rank_count": 6, "iteration_count": 10, "phases": {"sleep": sleep}}
        >>> nap = whatif.Scenario.of(application=application, platform="summit", name="nap")
        >>> float(whatif.run(nap)["total_time"])
        0.02
        """
        data = {**(tables or {}), **keywords}
        if isinstance(platform, Mapping):
            data = {"platform": platform, **data}
            platform = None
        # A table of the platform must stand behind the plain values.
        bare = cls(built_document(data, name), folders=tuple(map(Path, platform_dirs)))
        if platform is None:
            return bare
        placed = bare.on(platform)
        if "platform" in data:
            return placed
        stated = built_document({"platform": placed.platform, **data}, name)
        return replace(placed, document=stated, platform=None)

    @classmethod
    def open(
        cls,
        source: str | Path,
        *,
        platform: str | Path | Platform | None = None,
        sets: Mapping[str, Any] | None = None,
        folders: Sequence[Path] = (),
    ) -> Scenario:
        """Scenario of a file, given by its path or the name of a shipped one."""
        opened = cls(open_document(source, "scenarios"), None, dict(sets or {}), tuple(folders))
        return opened if platform is None else opened.on(platform)

    def on(self, platform: str | Path | Platform) -> Scenario:
        """The same scenario, with its overrides, on a platform by name, by the path of its file, or built in Python."""
        if isinstance(platform, Platform):
            built = {**self.built, platform.name: platform.document}
            folders = (*platform.folders, *self.folders)
            return replace(self, platform=platform.name, built=built, folders=folders, _programs={}, _original=[])
        name, folders = named_platform(str(platform), self.folders)
        return replace(self, platform=name, folders=folders, _programs={}, _original=[])

    def to_toml(self) -> str:
        """Text of the scenario file, with overrides and platform written into it and all else as it was."""
        if not self.sets and self.platform is None:
            return self.document.text
        return rewritten(self.document, self.sets, self.platform, self.folders, self.built)

    def write(self, path: str | Path) -> None:
        """Write the scenario file, whole or not at all. A platform built in Python is written on its own."""
        write_text(path, self.to_toml())

    def __repr__(self) -> str:
        platform = f" on {self.platform}" if self.platform is not None else ""
        overrides = "".join(f"\n  {path} = {value}" for path, value in list(self.sets.items())[:_SHOWN])
        more = "\n  .." if len(self.sets) > _SHOWN else ""
        return f"<Scenario {Path(self.document.name).stem}{platform}>{overrides}{more}"

    @property
    def program(self) -> Program:
        """The compiled scenario as it stands."""
        return self.program_at({})

    @property
    def original(self) -> Program | None:
        """The file as it is, without changes from outside; None where it does not stand by itself."""
        if not self._original:
            try:
                self._original.append(Scenario(self.document, None, {}, self.folders, self.built).program)
            except WhatifError:
                self._original.append(None)
        return self._original[0]

    def changed(self, overrides: Mapping[str, Any], platform: str | None = None) -> Scenario:
        """The same file with other changes from outside."""
        return replace(self, sets=dict(overrides), platform=platform, _programs={})

    def on_platform(self, name: str | None) -> Scenario:
        """The question on a platform (None: the scenario's own), without edits of the present machine: they say
        nothing of another one."""
        overrides = {path: value for path, value in self.sets.items() if not path.startswith(f"{PLATFORM_PARAMETER}.")}
        return self.changed(overrides, name)

    def reread(self, document: Document) -> Scenario:
        """The same changes on another text of the file."""
        return Scenario(document, self.platform, self.sets, self.folders, self.built)

    def program_at(self, structural: Mapping[str, str]) -> Program:
        """The compiled scenario with other structural values."""
        key = _key(structural)
        if key not in self._programs:
            try:
                self._programs[key] = self._compile(structural)
            except InvalidFileError as problem:
                self._programs[key] = problem
        program = self._programs[key]
        if isinstance(program, InvalidFileError):
            raise program.with_traceback(None)
        return program

    def _compile(self, structural: Mapping[str, str]) -> Program:
        overrides = {path: value for path, value in structural.items() if path != PLATFORM_PARAMETER}
        platform = structural.get(PLATFORM_PARAMETER, self.platform)
        return compile_scenario(
            load_document(
                self.document,
                platform=platform,
                sets={**self.sets, **overrides},
                folders=self.folders,
                built=self.built,
            )
        )

    def compiled(self, grid: Grid) -> Scenario:
        """The question compiled for every structural choice of a grid, which then needs no file any more; choices
        that no file could state are kept as the errors that they are."""
        for structural in _structural_choices(grid):
            with suppress(InvalidFileError):
                self.program_at(structural)
        keys = map(_key, _structural_choices(grid))
        return replace(self, _programs={key: self._programs[key] for key in keys})

    @property
    def programs(self) -> tuple[Program, ...]:
        """What is compiled so far."""
        return tuple(item for item in self._programs.values() if isinstance(item, Program))

    @property
    def choices(self) -> tuple[Choices, ...]:
        """The structural choices that it is compiled for."""
        return tuple(self._programs)

    def of_part(self, part: Grid) -> Scenario:
        """A compiled question for a part of its grid; of the other programs, those that add results or lower the
        grade: a part tells of the whole."""
        seen: list[Program] = []
        wanted = set(map(_key, _structural_choices(part)))
        kept: dict[Choices, Program | InvalidFileError] = {}
        for key, item in self._programs.items():
            if isinstance(item, Program) and _adds(item, seen):
                seen.append(item)
                kept[key] = item
            elif key in wanted:
                kept[key] = item
        return replace(self, _programs=kept)


def named_platform(platform: str, folders: Sequence[Path] = ()) -> tuple[str, tuple[Path, ...]]:
    """Name of a platform, and the folders to search for it: the path of a file becomes the name of the file."""
    if not platform.endswith(".toml") or not Path(platform).is_file():
        return platform, tuple(folders)
    return Path(platform).stem, (Path(platform).parent, *folders)


@dataclass(frozen=True, eq=False)
class EvaluationRequest:
    """A question with the grid that it is asked over, and how what is uncertain is drawn, if at all."""

    question: Scenario
    grid: Grid
    sampling: Sampling | None = None

    def compiled(self) -> EvaluationRequest:
        """The request with its question compiled for all of its grid: it needs no files any more."""
        return replace(self, question=self.question.compiled(self.grid))


def _adds(program: Program, seen: Sequence[Program]) -> bool:
    """Whether a program has results that others have not, or a worse grade."""
    known = {name for item in seen for name in item.results}
    return not known.issuperset(program.results) or worst_grades([*seen, program]) != worst_grades(seen)


def worst_grades(programs: Sequence[Program]) -> dict[str, str]:
    """The worst grade of the times of some programs, under an empty name, and of each other result."""
    grades = [{"": item.grade, **item.other_grades} for item in programs]
    return {name: worst(its[name] for its in grades if name in its) for its in grades for name in its}


def _structural_choices(grid: Grid) -> Iterator[dict[str, str]]:
    """The structural values that a grid combines; one empty choice where it has none."""
    for places in product(*(structural_places(axis) for axis in grid.axes)):
        yield {path: value for _, values in places for path, value in values.items()}


def _key(structural: Mapping[str, str]) -> Choices:
    return tuple(sorted(structural.items()))


def structural_places(axis: Axis) -> list[tuple[slice, dict[str, str]]]:
    """The parts of an axis that one compilation can serve: all of a numeric one, each place of a structural one."""
    if not axis.structural:
        return [(slice(None), {})]
    return [(slice(index, index + 1), values) for index, values in enumerate(structural_points(axis))]
