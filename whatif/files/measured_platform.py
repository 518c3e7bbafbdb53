"""A platform file of a measured machine, and the summary of its measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from whatif.atomic import require_writable, write_text
from whatif.errors import UsageError
from whatif.files.measured_fits import Fitted, fitted_parts
from whatif.files.measured_gpus import gpu_tables
from whatif.files.platform_file import PlatformChange, merged, on_platform, present, verified_text
from whatif.measuring.gpu_arrays import PRODUCT
from whatif.measuring.repetition import Sample
from whatif.measuring.whole_machine import Measurements
from whatif.paths import is_file
from whatif.plotting.presentable import Presentable
from whatif.schema.load import load_platform
from whatif.schema.platform_spec import Grade
from whatif.schema.shipped import require_name
from whatif.schema.toml import FORMAT_LINE, Document, parse_document
from whatif.schema.toml_text import toml_value
from whatif.table import Table, warned
from whatif.units import BYTE, BYTE_PER_SECOND, FLOP_PER_SECOND, ONE, Dimension, counted, format_quantity

BASE: Final = "generic_cpu"
"""Platform that states, as assumed, what is not measured."""
MARK: Final = "# Written by `whatif measure`: another measurement replaces this file. Extend it for changes."
_SUMMARY: Final[Mapping[str, Dimension | None]] = {
    "quantity": None, "value": None, "scatter": None, "standard_error": None, "repetitions": ONE, "grade": None,
}  # fmt: skip
_Row = tuple[str, str, str, str, float, Grade]


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredPlatform(Presentable):
    """Platform of the machine that was measured."""

    measurements: Measurements

    def table(self) -> Table:
        """One row for each quantity: value, scatter of one repetition, standard error and grade."""
        return Table.of_rows(_SUMMARY, list(_summary(self.measurements)))

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings of the measurements and their fits, and what was not measured."""
        found = self.measurements
        lines = [*found.warnings, *(line for part in self._parts for line in part.warnings)]
        missing = [f"messages were not measured: {found.no_messages}"] if found.messages is None else []
        return *warned(lines), *missing

    def to_toml(self) -> str:
        """Text of the platform file."""
        return self._text(Path("mine.toml"))

    def write(self, path: str | Path) -> tuple[str, ...]:
        """Write the platform file, whole or not at all. Raise `UsageError` as `check_target` does."""
        path = Path(path)
        check_target(path)
        write_text(path, self._text(path))
        return (f"written: {path}",)

    @cached_property
    def change(self) -> PlatformChange:
        """All values, with their sources and uncertainties."""
        return merged(part.change for part in self._parts)

    @cached_property
    def _parts(self) -> tuple[Fitted, ...]:
        return tuple(fitted_parts(self.measurements))

    def _text(self, path: Path) -> str:
        change = on_platform(self.change, *load_platform(BASE))
        return verified_text(path, _beginning(self.measurements, path), change)


def check_target(path: Path) -> None:
    """Raise `UsageError` for a path that no platform can be written to, or that holds something else."""
    if is_file(path) and not path.read_text(encoding="utf-8", errors="replace").startswith(MARK):
        raise UsageError(f"{path}: not written by `whatif measure`; choose another name, or remove it")
    require_name(path)
    require_writable(path)
    present(path, None if is_file(path) else BASE)


def _beginning(found: Measurements, path: Path) -> Document:
    machine = found.machine
    said = f"{machine.host}: {counted(machine.socket_count, 'socket')}, {machine.processor}; measured {found.date}."
    lines = [MARK, FORMAT_LINE, f"extends = {toml_value(BASE)}", f"name = {toml_value(path.stem)}"]
    lines += [f"description = {toml_value(said)}", *gpu_tables(found), ""]
    return parse_document("\n".join(lines), str(path), path.parent)


def _summary(found: Measurements) -> Iterator[_Row]:
    machine = found.machine
    yield _stated("cores", f"{len(machine.cores)} on {counted(machine.socket_count, 'socket')}")
    yield _stated("NUMA domains", str(machine.domain_count))
    if machine.clock:
        yield _stated("highest clock", f"{machine.clock / 1e9:.2f} GHz")
    for level, size in enumerate(machine.caches, start=1):
        yield _stated(f"cache L{level}", format_quantity(size, BYTE, 4))
    if machine.memory_size:
        yield _stated("memory", format_quantity(machine.memory_size, BYTE, 4))
    for disk in machine.disks:
        yield _stated("disk", disk)
    if (gpus := machine.gpus) is not None:
        yield _stated("GPUs", f"{gpus.count} x {gpus.name}, {format_quantity(gpus.memory_size, BYTE, 4)}")
    for sample in (*found.memory, *found.caches, *found.reuse.values()):
        yield _measured(sample, BYTE_PER_SECOND)
    for sample in found.operations.values():
        yield _measured(sample, FLOP_PER_SECOND)
    for name, sample in found.gpu_rates.items():
        yield _measured(sample, FLOP_PER_SECOND if name.startswith(PRODUCT) else BYTE_PER_SECOND)
    yield from _fitted(found)


def _stated(name: str, value: str) -> _Row:
    return name, value, "", "", np.nan, "datasheet"


def _measured(sample: Sample, dimension: Dimension) -> _Row:
    error = format_quantity(sample.standard_error, dimension, 2) if np.isfinite(sample.standard_error) else "unknown"
    scatter = f"{sample.scatter:.1%}" if np.isfinite(sample.scatter) else "unknown"
    value = format_quantity(sample.median, dimension, 4)
    return sample.name, value, scatter, error, float(len(sample.values)), "measured"


def _counted(name: str, value: str, count: int) -> _Row:
    return name, value, "", "", float(count), "measured"


def _fitted(found: Measurements) -> Iterator[_Row]:
    """Calls, messages and collectives by count, and what was not measured."""
    yield _counted("kernels of HPL", found.blas, len(found.kernels))
    if (messages := found.messages) is not None:
        for distance, rows in messages.rows.items():
            yield _counted(f"messages, {distance.replace('_', ' ')}", messages.library, len(rows))
        for operation, count in Counter(name for name, *_ in messages.collectives).items():
            yield _counted(f"{operation}, {counted(messages.rank_count, 'rank')}", messages.library, count)
    missing = {"peak memory bandwidth": "rule sustained share"} | dict.fromkeys(("power", "network"), f"that of {BASE}")
    if found.messages is None:
        missing["messages in a node"] = f"those of {BASE}"
    for name, value in missing.items():
        yield name, value, "", "", np.nan, "assumed"
