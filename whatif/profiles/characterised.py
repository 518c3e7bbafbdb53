"""Characterised profile: its tables, and the profile as a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from whatif.atomic import write_text
from whatif.core.platform import Platform
from whatif.core.scenario import named_platform
from whatif.errors import UsageError
from whatif.plotting.presentable import Presentable
from whatif.profiles.characterisation import characterise
from whatif.profiles.copy_times import other_device
from whatif.profiles.profile_data import Profile
from whatif.profiles.scenario_text import scenario_toml
from whatif.schema.platform_spec import PlatformSpec
from whatif.table import Table

TableName = Literal["totals", "classes", "sizes", "symbols", "streams", "kernels"]
_DEFAULT: Final[TableName] = "classes"


@dataclass(frozen=True, eq=False, repr=False)
class CharacterisedProfile(Presentable):
    """Tables of a GPU profile by name, and the profile as a scenario."""

    profile: Profile
    name: str
    """Name of the application in the scenario."""
    platform: str | Path | Platform | None
    platform_dirs: tuple[Path, ...]
    tables: Mapping[str, Table]
    """Tables with rows: see `characterise`."""
    chosen: TableName | None

    def table(self) -> Table:
        """Chosen table, or `classes`. Raise `UsageError` if it has no rows."""
        return _with_rows(self.tables, self.chosen or _DEFAULT)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings of the reader, and of a profile of another device than that of the platform."""
        warnings = self.profile.operations.warnings
        others = () if self.platform is None else other_device(self.profile, self._named[1])
        return tuple(f"warning: {line}" for line in (*warnings, *others))

    def to_toml(self) -> str:
        """Scenario file that repeats the profile on its platform; see `scenario_toml`.

        Raise `UsageError` without a platform, and for one without GPUs.
        """
        if self.platform is None:
            raise UsageError("a scenario needs its machine: name the platform by --platform NAME")
        name, spec = self._named
        return scenario_toml(self.profile, name, self.name, spec)

    @property
    def _named(self) -> tuple[str, PlatformSpec]:
        """Name and tables of the platform."""
        if isinstance(self.platform, Platform):
            return self.platform.name, self.platform.spec
        name, folders = named_platform(str(self.platform), self.platform_dirs)
        return name, Platform.open(name, platform_dirs=folders).spec

    def write(self, path: str | Path) -> None:
        """Write the scenario file, whole or not at all."""
        write_text(path, self.to_toml())


def characterised(
    profile: Profile,
    name: str,
    platform: str | Path | Platform | None,
    platform_dirs: tuple[Path, ...],
    table: TableName | None,
) -> CharacterisedProfile:
    """Characterised profile. Raise `UsageError` for a chosen table without rows."""
    tables = characterise(profile)
    if table is not None:
        _with_rows(tables, table)
    return CharacterisedProfile(profile, name, platform, platform_dirs, tables, table)


def _with_rows(tables: Mapping[str, Table], name: TableName) -> Table:
    if name not in tables:
        raise UsageError(f"--table {name}: the profile has no rows for it; it has {', '.join(tables)}")
    return tables[name]
