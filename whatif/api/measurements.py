"""Measurements of other programs as tables in base units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whatif.atomic import write_text
from whatif.importers.kernel_anchors import COMPARED, with_anchors
from whatif.importers.measurement_files import (
    ColumnNames,
    Files,
    RowFilter,
    listed_paths,
    read_gpu_files,
    read_kernel_files,
    read_log_files,
    read_network_files,
    read_run_files,
)
from whatif.plotting.presentable import Presentable, PresentableTable
from whatif.profiles.copy_files import read_transfer_files
from whatif.table import Table


@dataclass(frozen=True, eq=False, repr=False)
class ImportedTable(PresentableTable):
    """Measurements, one per row, with the notes of their files."""

    files: tuple[Path, ...] = ()
    """The files and folders that were read."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the importer, a sentence each."""
        return self.values.warnings

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings of the importer, and what the files state about themselves."""
        lines = ("warnings", COMPARED)
        stated = "; ".join(f"{name} {text}" for name, text in self.values.notes.items() if name not in lines)
        compared = self.values.notes.get(COMPARED, "").splitlines()
        return (*(f"warning: {line}" for line in self.warnings), *compared, stated)


class ImportedKernels(ImportedTable):
    """Profiled kernels."""

    def to_toml(self) -> str:
        """The kernels as `[application.phases.NAME]` tables of a scenario."""
        from whatif.importers.kernel_phases import kernels_toml

        return kernels_toml(self.values)

    def write(self, path: str | Path) -> None:
        """Write the tables to a file, whole or not at all."""
        write_text(path, self.to_toml())


@dataclass(frozen=True, eq=False, repr=False)
class ImportedModel(Presentable):
    """A transformer of a configuration file."""

    values: Mapping[str, Any]
    path: Path
    warnings: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Warning about a model that is no decoder."""
        return self.warnings

    def table(self) -> Table:
        """One row per key of the transformer."""
        return Table.of_rows({"key": None, "value": None}, [(key, str(value)) for key, value in self.values.items()])

    @property
    def inputs(self) -> tuple[Path, ...]:
        """Configuration file, which is not overwritten."""
        return (self.path,)

    def to_toml(self) -> str:
        """The transformer as a part."""
        from whatif.importers.model_config import model_part

        return model_part(self.values, self.path)

    def write(self, path: str | Path) -> None:
        """Write the part to a file, whole or not at all."""
        write_text(path, self.to_toml())


def import_model(file: str | Path) -> ImportedModel:
    """Transformer of a configuration file of a model hub, `config.json`, as a part that scenarios extend.

    Raise `InvalidFileError` for a file that is no configuration of a transformer.

    >>> import whatif
    >>> model = whatif.import_model("tests/data/importers/models/deepseek_v3.json")
    >>> model.values["attention"], model.values["expert_count"]
    ('latent', 256)
    """
    from whatif.importers.model_config import encoder_warnings, read_model_config

    return ImportedModel(read_model_config(Path(file)), Path(file), encoder_warnings(Path(file)))


def import_network(files: Files, *, columns: ColumnNames | None = None, where: RowFilter = ()) -> ImportedTable:
    """Message times of OSU, IMB, Netgauge, nccl-tests, SimGrid and CSV files, or the parameters of a SimGrid platform.

    A folder means all its files. `columns` names the headings of CSV files (`message_size=size [B],time=time [us]`);
    `where` keeps the rows of CSV files with given values (`["nodes=2"]`). Sizes are in B, times in s. Raise
    `InvalidFileError` for unreadable files, `UsageError` for columns that do not fit.

    >>> import whatif
    >>> folder = "tests/data/importers/network/fugaku"
    >>> columns = "message_size=size (bytes),time=time (seconds)"
    >>> times = whatif.import_network(f"{folder}/riken_imb_pingpong.csv", columns=columns)
    >>> float(times.to_pandas()["time"].min())
    1.04e-06
    """
    return ImportedTable(read_network_files(files, columns, where), tuple(listed_paths(files)))


def import_gpu(files: Files) -> ImportedTable:
    """Measured rates (flop/s) and bandwidths (B/s) of GPUs, from mixbench, BabelStream or gpuroofperf.

    Raise `InvalidFileError` for an unknown format, `UsageError` for files of several tools.

    >>> import whatif
    >>> rates = whatif.import_gpu("tests/data/importers/gpu/babelstream/v3.3-titanxp-cuda.txt")
    >>> float(rates.to_pandas()["bandwidth"].max()) > 4e11
    True
    """
    return ImportedTable(read_gpu_files(files), tuple(listed_paths(files)))


def import_transfer(files: Files) -> ImportedTable:
    """Copies between host and device, from nvprof profiles or summaries as CSV; sizes in B, times in s.

    Raise `InvalidFileError` for unreadable files, `UsageError` for files of both kinds.

    >>> import whatif
    >>> copies = whatif.import_transfer("tests/data/ahead/memcpy_sweep.csv")
    >>> sorted(set(copies.to_pandas()["memory"]))
    ['device', 'pageable', 'pinned']
    """
    return ImportedTable(read_transfer_files(files), tuple(listed_paths(files)))


def import_kernels(files: Files, *, gpu: str | None = None) -> ImportedKernels:
    """Profiled kernels of Nsight Compute or gpuroofperf; `to_toml()` gives them as phases of a scenario.

    Measured kernels are compared with the roofs of the GPU that they ran on, found by the name of the device or stated
    as the part `gpu`: their phases state the factor that is left, `measured_factor`, or the time of a launch. Raise
    `InvalidFileError` for an unknown format, `UsageError` for files of several tools and a part that is no GPU.

    >>> import whatif
    >>> kernels = whatif.import_kernels("tests/data/gpuroofperf/kernel_params/jacobi2d/jacobi2d.json")
    >>> "[application.phases." in kernels.to_toml()
    True
    >>> kernels.to_pandas()["binding"].tolist()
    ['dram', 'latency or occupancy', 'latency or occupancy', 'dram']
    """
    table = with_anchors(read_kernel_files(files), gpu or "")
    return ImportedKernels(table, tuple(listed_paths(files)))


def import_runs(
    files: Files, *, columns: ColumnNames | None = None, where: RowFilter = (), long: str | None = None
) -> ImportedTable:
    """Measured runs, one per row, from CSV, Extra-P, Caliper, Thicket or nvidia-smi files.

    `columns` chooses and names columns (`time=Wall time [ms],ranks=Ranks`), `where` keeps rows with given values
    (`["gpu=V100"]`); `long` is METRIC=VALUE, the headings of CSV files with a row for each metric. Values are in base
    units. Raise `InvalidFileError` for unreadable files, `UsageError` for columns that do not fit.

    >>> import whatif
    >>> runs = whatif.import_runs("tests/data/runs/caliper/lulesh_grid_runs.csv")
    >>> runs.to_pandas()["processes"].tolist()
    [27.0, 64.0, 125.0, 216.0, 343.0]
    """
    return ImportedTable(read_run_files(files, columns, where, long), tuple(listed_paths(files)))


def import_logs(
    files: Files, *, pattern: str | None = None, columns: ColumnNames | None = None, where: RowFilter = ()
) -> ImportedTable:
    """Measured runs, one per row, from the output of an application in files and folders.

    `pattern` names a pattern that is shipped (`lammps`, `gromacs`, ..) or a file `NAME.toml` with regular expressions;
    without it the application is recognised by content. `columns` and `where` are those of `import_runs`. Raise
    `UsageError` for files of several applications or of none that is known, `InvalidFileError` for a pattern that is
    not valid.

    >>> import whatif
    >>> logs = whatif.import_logs("tests/data/runs/logs/mlperf")
    >>> logs.to_pandas()["total_time"].tolist()
    [2125.525]
    """
    return ImportedTable(read_log_files(files, pattern, columns, where), tuple(listed_paths(files)))
