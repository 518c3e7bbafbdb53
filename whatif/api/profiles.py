"""GPU profiles: their characterisation, and their projection to other machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from whatif.api.common import AnyPlatform
from whatif.core.platform import Platform
from whatif.errors import UsageError
from whatif.paths import exists
from whatif.profiles.characterised import CharacterisedProfile, TableName, characterised
from whatif.profiles.formats import read_profile
from whatif.profiles.profile_data import Profile
from whatif.profiles.projection import Projection
from whatif.profiles.projection import project as projected
from whatif.schema.platform_spec import PlatformSpec

__all__ = ["CharacterisedProfile", "Projection", "TableName", "import_profile", "project"]


def import_profile(
    file: str | Path,
    *,
    table: TableName | None = None,
    name: str | None = None,
    platform: AnyPlatform | None = None,
    platform_dirs: Sequence[str | Path] = (),
) -> CharacterisedProfile:
    """Tables of a GPU profile of nvprof, Nsight Systems, rocprof or Kineto, with sizes in B and times in s.

    `table` chooses the one that is shown. `to_toml()` and `write()` of the result make a scenario of the profile:
    `platform` is where it was taken, `name` the application's name, by default that of the file.

    Raise `InvalidFileError` for a file that is not such a profile, `UsageError` for a table without rows.

    >>> import whatif
    >>> lammps = whatif.import_profile("tests/data/profiles/ahead/lammps_summit.nvvp", table="sizes")
    >>> list(lammps.tables), len(lammps.table())
    (['totals', 'classes', 'sizes', 'streams', 'kernels'], 15)
    """
    path = Path(file)
    called = name or path.name.split(".")[0]
    return characterised(read_profile(path), called, platform, tuple(map(Path, platform_dirs)), table)


def project(
    profile: str | Path,
    source: AnyPlatform,
    target: AnyPlatform,
    *,
    target_profile: str | Path | None = None,
    operations: bool = False,
    sizes: bool = False,
    platform_dirs: Sequence[str | Path] = (),
) -> Projection:
    """Times (s) of the copies and fills of a GPU profile on another platform, by three approaches.

    Latencies are those of `source`, all else is from the data sheet of `target`. `target_profile` is the same
    application on the target, for the errors, and may be `profile` itself. A row is a class of operations, with `sizes`
    a decade of their sizes, with `operations` a single one.

    Raise `InvalidFileError` for a file that is not a profile, `UsageError` for a parameter that a platform lacks, and
    for `operations` with `sizes`.

    >>> import whatif
    >>> found = whatif.project("tests/data/profiles/ahead/lammps_summit.nvvp", "summit", "frontier")
    >>> found.to_pandas()["operation"].tolist()
    ['copy', 'copy', 'copy', 'all']
    """
    if operations and sizes:
        raise UsageError("--operations and --sizes exclude each other")
    path = Path(profile)
    before, after = (_spec(platform, platform_dirs) for platform in (source, target))
    read = read_profile(path)
    found = projected(read, before, after, _target_profile(target_profile, path, read))
    return replace(found, rows="operations" if operations else "sizes" if sizes else "classes")


def _spec(platform: AnyPlatform, platform_dirs: Sequence[str | Path]) -> PlatformSpec:
    found = platform if isinstance(platform, Platform) else Platform.open(platform, platform_dirs=platform_dirs)
    return found.spec


def _target_profile(file: str | Path | None, path: Path, read: Profile) -> Profile | None:
    if file is None:
        return None
    return read if exists(file) and Path(file).samefile(path) else read_profile(Path(file))
