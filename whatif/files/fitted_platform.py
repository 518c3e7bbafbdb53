"""Parameters of a platform fitted to measurements: a table of them, their points, and a platform file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from whatif.errors import UsageError, abridged
from whatif.files.platform_file import PlatformChange, on_platform, present, write_platform
from whatif.files.unused_values import unused_values
from whatif.fitting.fit_result import Fit
from whatif.fitting.fit_tables import parameter_table
from whatif.plotting.presentable import Presentable
from whatif.schema.load import load_platform_document
from whatif.schema.platform_spec import PlatformSpec
from whatif.table import Table, warned
from whatif.vocabulary import DISTANCES

PROCESSORS = "kernels.processors"
Detail = TypeVar("Detail")


@dataclass(frozen=True, eq=False, repr=False)
class FittedPlatform(Presentable, Generic[Detail]):
    """Fitted parameters with their standard errors."""

    detail: Detail
    """The fit itself, such as a `NetworkFit` with its curves."""
    fits: tuple[Fit, ...]
    point_tables: tuple[Table, ...]
    source: str
    """Default of `[sources]`: the files and tools of the measurements."""
    change: Callable[[str], PlatformChange]
    """Changes of a platform file, for a source."""
    table_notes: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def table(self, *, in_words: bool = False) -> Table:
        """One row per parameter: value, standard error, number of points, and their relative scatter.

        Values are in base units; `in_words` writes them as texts with units.
        """
        return parameter_table(self.fits, self.table_notes, in_words=in_words)

    def points(self) -> Table:
        """The measured points with their residuals. Raise `UsageError` for a fit of several kernels."""
        if len(self.point_tables) != 1:
            raise UsageError("--points prints the points of one fit; give one kernel, or the messages, at a time")
        return self.point_tables[0]

    def write(
        self,
        path: str | Path,
        extends: str | None = None,
        source: str | None = None,
        platform_dirs: Sequence[str | Path] = (),
    ) -> tuple[str, ...]:
        """Write the parameters into a platform file and return remarks; a new file extends the platform `extends`.

        `platform_dirs` are searched for that platform.
        Raise `UsageError` or `InvalidFileError` for a file that cannot be written; then nothing is changed.
        """
        path, change = Path(path), self.change(source if source is not None else self.source)
        folders = tuple(map(Path, platform_dirs))
        document = present(path, extends)
        platform, layers = load_platform_document(document, folders)
        _refuse_other_entries(path, platform, change)
        change = on_platform(change, platform, layers, document)
        write_platform(path, change, extends, folders)
        return f"written: {path}", *warned(unused_values(path, change, folders))


def _refuse_other_entries(path: Path, platform: PlatformSpec, change: PlatformChange) -> None:
    """Refuse to write processors or pieces next to others of the platform that the change does not replace."""
    for table, stated in _entries(platform).items():
        prefix = f"{table}."
        new = {
            parameter.removeprefix(prefix).partition(".")[0]
            for parameter in change.values
            if parameter.startswith(prefix)
        }
        others = [key for key in stated if key not in new]
        if new and others:
            names = abridged(others, 1)
            raise UsageError(f"{path}: [{table}] has {names}, which would stay next to the new ones: remove them")


def _entries(platform: PlatformSpec) -> dict[str, Mapping[str, object]]:
    """Tables of a platform whose keys are names: processors, and pieces by distance."""
    tables: dict[str, Mapping[str, object]] = {}
    if platform.kernels is not None:
        tables[PROCESSORS] = platform.kernels.processors
        dgemm = platform.kernels.dgemm
        if dgemm is not None and dgemm.offloaded is not None:
            tables["kernels.dgemm"] = {"offloaded": None}
    for distance in DISTANCES:
        if (stated := getattr(platform.network, distance)) is not None:
            tables[f"network.{distance}.pieces"] = stated.pieces
    return tables
