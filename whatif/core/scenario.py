"""Scenario: a file, or tables built in Python, with overrides; compiled once for each structural choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

from whatif.atomic import write_text
from whatif.axes import Axis, Grid
from whatif.core.compile import compile_scenario
from whatif.core.platform import BUILT, Platform, built_document
from whatif.core.sweep import PLATFORM_PARAMETER, is_machine, machine_name, structural_points
from whatif.core.term import Program
from whatif.core.uncertainty import Sampling
from whatif.errors import InvalidFileError, WhatifError
from whatif.schema.known_names import known_platforms
from whatif.schema.load import Loaded, load_document, load_platform, open_document, stated_platform
from whatif.schema.parameters import fits_of_parts, sources_of, worst
from whatif.schema.phase_edits import PhaseEdit, edited, on_disk, rebased
from whatif.schema.relative import absolute_overrides, is_relative
from whatif.schema.removal import removes
from whatif.schema.rewriting import rewritten
from whatif.schema.scenario_spec import ScenarioSpec
from whatif.schema.stated_tables import REMOVED
from whatif.schema.toml import Document, key_path
from whatif.units import Dimension

_SHOWN: Final = 5
"""Overrides shown in `repr`."""
Choices = tuple[tuple[str, str], ...]
"""Structural values by path, sorted: the key of a compiled program."""


@dataclass(frozen=True, repr=False)
class Scenario:
    """An application on a platform: a scenario file, or the same tables built in Python, with overrides."""

    document: Document
    platform: str | None = None
    """Name of the platform that replaces the one of the file."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
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

        `platform` is a name, the path of a file, a `Platform`, or a table as in a file; `name` is the file name in
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
            data["platform"] = platform
            platform = None
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
        overrides: Mapping[str, Any] | None = None,
        folders: Sequence[Path] = (),
    ) -> Scenario:
        """Scenario of a file, given by its path or the name of a shipped one."""
        opened = cls(open_document(source, "scenarios"), None, dict(overrides or {}), tuple(folders))
        return opened if platform is None else opened.on(platform)

    def on(self, platform: str | Path | Platform) -> Scenario:
        """Same scenario, with its overrides, on a platform given by name or path, or built in Python."""
        if isinstance(platform, Platform):
            built = {**self.built, platform.name: platform.document}
            folders = (*platform.folders, *self.folders)
            return replace(self, platform=platform.name, built=built, folders=folders, _programs={}, _original=[])
        name, folders = named_platform(str(platform), self.folders)
        return replace(self, platform=name, folders=folders, _programs={}, _original=[])

    def to_toml(self) -> str:
        """Text of the scenario file, with overrides and platform written into it and all else as it was."""
        if not self.overrides and self.platform is None:
            return self.document.text
        return rewritten(self.document, self.absolute().overrides, self.platform, self.folders, self.built)

    def write(self, path: str | Path) -> None:
        """Write the scenario file, whole or not at all. A platform built in Python is written on its own."""
        write_text(path, self.to_toml())

    def __repr__(self) -> str:
        platform = f" on {self.platform}" if self.platform is not None else ""
        overrides = "".join(f"\n  {path} = {value}" for path, value in list(self.overrides.items())[:_SHOWN])
        more = "\n  .." if len(self.overrides) > _SHOWN else ""
        return f"<Scenario {Path(self.document.name).stem}{platform}>{overrides}{more}"

    @property
    def platform_name(self) -> str | None:
        """Name of the platform, or the path of its file; None if the scenario describes its machine itself."""
        return self.platform or stated_platform(self.document, self.folders)

    @property
    def search_folders(self) -> tuple[Path, ...]:
        """Folders to search for platforms and parts, without the shipped ones: that of the file is the first."""
        return self.document.search(self.folders)

    @property
    def known_platforms(self) -> tuple[str, ...]:
        """Names of the platforms next to the file, in the folders, and of the shipped ones."""
        return known_platforms(self.search_folders)

    @property
    def program(self) -> Program:
        """Compiled scenario."""
        return self.program_at({})

    @property
    def original(self) -> Program | None:
        """Compiled file without overrides and platform; None if it is not valid by itself."""
        if not self._original:
            try:
                self._original.append(Scenario(self.document, None, {}, self.folders, self.built).program)
            except WhatifError:
                self._original.append(None)
        return self._original[0]

    def changed(self, overrides: Mapping[str, Any]) -> Scenario:
        """Same scenario with other overrides in place of its own."""
        return replace(self, overrides=dict(overrides), _programs={})

    def moved(self, platform: str | None) -> Scenario:
        """Same scenario, with all of its overrides, on another platform; None for the file's own."""
        return replace(self, platform=platform, _programs={})

    def with_overrides(self, texts: Mapping[str, Any]) -> Scenario:
        """Scenario with more overrides.

        A text relative to an overridden value, such as `x2`, becomes what it gives; `none` for a value that no file
        states drops its override.
        """
        again = {path: text for path, text in texts.items() if path in self.overrides and is_relative(text)}
        gone = {path for path, text in texts.items() if str(text).strip() == REMOVED and self._drops(path)}
        stated = {**self.overrides, **texts, **{path: self.overrides[path] for path in again}}
        kept = {path: text for path, text in stated.items() if path not in gone}
        return self.changed(kept | absolute_overrides(again, lambda _: self._loaded(kept, self.platform)))

    def _drops(self, path: str) -> bool:
        """Whether only an override states the key that `none` removes."""
        key, others = key_path(path), {name: text for name, text in self.overrides.items() if name != path}
        try:
            layers = self._loaded(others, self.platform).layers
        except InvalidFileError:
            return False
        return removes(ScenarioSpec, layers, key) and layers.origin(key) is None

    def on_platform(self, name: str | None) -> Scenario:
        """Scenario on a platform (None: the file's own), without overrides of values of the
        present platform."""
        overrides = {
            path: value for path, value in self.overrides.items() if not path.startswith(f"{PLATFORM_PARAMETER}.")
        }
        return self.changed(overrides).moved(name)

    def uncompiled(self) -> Scenario:
        """Same scenario without its compiled programs, which take some 1 MB each."""
        return replace(self, _programs={}, _original=[])

    def reread(self, document: Document) -> Scenario:
        """Same overrides, platform and edits of phases on another text of the file."""
        document = rebased(self.document, document, self.folders)
        return Scenario(document, self.platform, self.overrides, self.folders, self.built)

    def with_phase(self, edit: PhaseEdit) -> Scenario:
        """Scenario after an edit of its phases; overrides follow a renamed phase and go with a deleted one.

        Raise `UsageError` or `InvalidFileError` for an impossible edit.
        """
        document = edited(self.document, edit, self.folders)
        return Scenario(document, self.platform, edit.overrides(self.overrides), self.folders, self.built)

    def unedited(self) -> Scenario:
        """Scenario as its file has it, without overrides, another platform and edits of phases."""
        return Scenario(on_disk(self.document), None, {}, self.folders, self.built)

    def program_at(self, structural: Mapping[str, str]) -> Program:
        """Compiled scenario with other structural values."""
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
        return compile_scenario(self._loaded({**self.overrides, **overrides}, platform))

    def _loaded(self, overrides: Mapping[str, Any], platform: str | None) -> Loaded:
        """Loaded file with overrides, some relative to the values without them."""
        load = partial(load_document, self.document, platform=platform, folders=self.folders, built=self.built)
        return load(overrides=absolute_overrides(overrides, lambda others: load(overrides=others)))

    def check_platform(self, name: str | None) -> None:
        """Raise `InvalidFileError` for a platform that does not exist or is invalid, whatever the scenario."""
        if name is not None and name not in self.built:
            load_platform(name, self.search_folders)

    def absolute(self) -> Scenario:
        """Same scenario without overrides that are relative to present values, such as `x2`."""
        if not any(map(is_relative, self.overrides.values())):
            return self
        known = self.program.parameters
        texts = {path: known[path].text(17) for path, text in self.overrides.items() if is_relative(text)}
        return self.changed({**self.overrides, **texts})

    def compiled(self, grid: Grid) -> Scenario:
        """Scenario compiled for every structural choice of a grid; it needs no files any more. Invalid choices are kept
        as errors."""
        for _, structural in structural_parts(grid):
            with suppress(InvalidFileError):
                self.program_at(structural)
        keys = (_key(structural) for _, structural in structural_parts(grid))
        return replace(self, _programs={key: self._programs[key] for key in keys})

    def machines(self, grid: Grid) -> dict[str, Program]:
        """A program for each machine of a grid, by name; its name is empty if no machine is swept.

        Other choices are as stated, or where these do not fit the first swept ones. Machines that the scenario does
        not fit are left out.
        """
        found: dict[str, Program] = {}
        for _, structural in structural_parts(grid):
            machine = {path: value for path, value in structural.items() if is_machine(path)}
            for choices in (machine, structural) if machine_name(structural) not in found else ():
                with suppress(InvalidFileError):
                    found.setdefault(machine_name(structural), self.program_at(choices))
        return found

    @property
    def programs(self) -> tuple[Program, ...]:
        """Programs compiled so far."""
        return tuple(item for item in self._programs.values() if isinstance(item, Program))

    @property
    def parts(self) -> tuple[object, ...]:
        """Immutable objects that scenarios with other values have in common: the document, parts of programs."""
        programs = (*self.programs, *filter(None, self._original))
        return (self.document, *(part for program in programs for part in program.parts))

    @property
    def choices(self) -> tuple[Choices, ...]:
        """Structural choices that are compiled."""
        return tuple(self._programs)

    def of_part(self, part: Grid) -> Scenario:
        """Compiled scenario for a part of its grid, with other programs that add results or lower the
        grade: a part reports these for the whole grid."""
        seen: list[Program] = []
        wanted = {_key(structural) for _, structural in structural_parts(part)}
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
    """Scenario with the grid that it is evaluated over, and the sampling of uncertain values, if any."""

    scenario: Scenario
    grid: Grid
    sampling: Sampling | None = None

    def compiled(self) -> EvaluationRequest:
        """Request with its scenario compiled for the whole grid: it needs no files any more."""
        return replace(self, scenario=self.scenario.compiled(self.grid))


def _adds(program: Program, seen: Sequence[Program]) -> bool:
    """Whether a program has a result, or a unit of one, that the others lack, or a worse grade."""
    known = {its for item in seen for its in _units(item)}
    return not known.issuperset(_units(program)) or worst_grades([*seen, program]) != worst_grades(seen)


def _units(program: Program) -> set[tuple[str, Dimension]]:
    """Results of a program with their units."""
    return {(name, program.dimension_of(name)) for name in program.results}


def worst_grades(programs: Sequence[Program]) -> dict[str, str]:
    """Worst grades over some programs by result; that of times has an empty name."""
    grades = [{"": item.grade, **item.other_grades} for item in programs]
    return {name: worst(its[name] for its in grades if name in its) for its in grades for name in its}


def resolved(scenario: Scenario) -> Scenario:
    """Scenario as one document: the same results, with platform, parts, `extends` and overrides merged in."""
    program = scenario.program
    document = dict(program.loaded.layers.merged)
    # Each file states the sources of its values; the merged document must state those of the remaining values.
    document["platform"] = {key: value for key, value in document["platform"].items() if key != "sources"}
    document["sources"] = sources_of(program.parameters.values())
    if fits := document.get("fits", {}) | fits_of_parts(program.loaded.layers):
        document["fits"] = fits
    return Scenario(built_document(document, Path(scenario.document.name).stem))


def structural_parts(grid: Grid) -> Iterator[tuple[tuple[slice, ...], dict[str, str]]]:
    """Parts of a grid that share one compilation, each with its structural values; the whole grid without any."""
    for places in product(*(_structural_places(axis) for axis in grid.axes)):
        yield tuple(place for place, _ in places), {path: text for _, its in places for path, text in its.items()}


def _key(structural: Mapping[str, str]) -> Choices:
    return tuple(sorted(structural.items()))


def _structural_places(axis: Axis) -> list[tuple[slice, dict[str, str]]]:
    """Parts of an axis that share one compilation: all of a numeric axis, each place of a structural one."""
    if not axis.structural:
        return [(slice(None), {})]
    return [(slice(index, index + 1), values) for index, values in enumerate(structural_points(axis))]
