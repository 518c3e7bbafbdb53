"""Fits of measurements: the parameters of a platform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from whatif.api.common import AnyPlatform
from whatif.api.measurements import ImportedTable
from whatif.core.platform import Platform
from whatif.errors import UsageError, require_choice, require_least
from whatif.files.fitted_collectives import FittedCollectives, fit_points, fitted_collectives
from whatif.files.fitted_kernels import CalibrationFit, CalibrationModels, ProcessorChoice, fit_calibrations
from whatif.files.fitted_platform import FittedPlatform
from whatif.files.library_sheet import library_sheet, other_placement
from whatif.files.platform_file import change_of, network_change, present, source_text
from whatif.fitting import gpu_rates, host_bandwidths, message_parameters
from whatif.fitting.collective_tables import collective_points
from whatif.fitting.fit_tables import gpu_points, host_points, limit_notes, limits_in_words, point_table
from whatif.fitting.gpu_rates import GpuFit
from whatif.fitting.host_bandwidths import HostFit
from whatif.fitting.message_parameters import NetworkFit
from whatif.fitting.protocols import parse_limits
from whatif.importers.gpu_benchmarks import read_gpu
from whatif.importers.host_benchmarks import read_host
from whatif.importers.measurement_files import (
    ColumnNames,
    Files,
    RowFilter,
    listed_paths,
    paths_in_folders,
    read_calibration_files,
    read_message_files,
)
from whatif.profiles import link_fit
from whatif.profiles.copy_files import read_transfer_files
from whatif.profiles.link_fit import TransferFit
from whatif.schema.load import load_platform, load_platform_document
from whatif.schema.platform_spec import PlatformSpec
from whatif.table import warned
from whatif.table_writers import column_lines
from whatif.vocabulary import CORE_BINDINGS, DISTANCES, LIBRARIES, CoreBinding, PointWeighting


def fit_network(
    files: Files | ImportedTable,
    *,
    distance: str = "inter-node",
    limits: str | tuple[float, float] | None = None,
    weighting: PointWeighting = "relative",
    test: str | None = None,
    buffers: str | None = None,
    columns: ColumnNames | None = None,
    where: RowFilter = (),
) -> FittedPlatform[NetworkFit]:
    """Protocol limits and message parameters (postal, max-rate, injection) of one distance.

    `files` are read as by `import_network`, or were read by it. `distance` is intra-socket, inter-socket or
    inter-node; `limits` are the short and the eager limit, as "128 B, 64 KiB" or in B (default: found); `weighting` is
    relative, uniform or sqrt_size; `test` and `buffers` choose rows, such as ping_pong and device. Raise `UsageError`
    where the rows allow no fit, `InvalidFileError` for unreadable files.

    >>> import whatif
    >>> file = "tests/data/importers/network/fugaku/riken_imb_pingpong.csv"
    >>> fit = whatif.fit_network(file, columns="message_size=size (bytes),time=time (seconds)", limits="16 B, 8 KiB")
    >>> fit.detail.eager_limit
    8192.0
    >>> fit.to_pandas()["parameter"][0]
    'network.inter_node.postal.short.latency'
    """
    times = _message_times(files, columns, where)
    at = parse_limits(limits) if isinstance(limits, str) else limits
    fit = message_parameters.fit_network(
        times.values, distance=_distance(distance), limits=at, weighting=weighting, test=test, buffers=buffers
    )
    return FittedPlatform(
        fit,
        fit.fits,
        (point_table(fit),),
        source_text(times.files, [times.values]),
        partial(network_change, fit),
        limit_notes(fit) | {"recommendation": fit.recommendation},
        (*warned([*times.warnings, *fit.warnings]), *limits_in_words(fit)),
    )


def with_limits(found: FittedPlatform[NetworkFit], limits: tuple[float, float]) -> FittedPlatform[NetworkFit]:
    """The same measurements fitted with other protocol limits (B), much faster than `fit_network`.

    The recommended model stays that of the first limits: it is not checked again on points that are left out.
    """
    fit = found.detail.with_limits(*limits)
    replaced = {*warned(found.detail.warnings), *limits_in_words(found.detail)}
    return replace(
        found,
        detail=fit,
        fits=fit.fits,
        point_tables=(point_table(fit),),
        change=partial(network_change, fit),
        table_notes={**found.table_notes, **limit_notes(fit)},
        notes=(*(note for note in found.notes if note not in replaced), *warned(fit.warnings)),
    )


_ASSUMED_MPI: Final = "the library is not stated: times as those of MPI; --library nccl for NCCL and RCCL"


def fit_collectives(
    files: Files | ImportedTable,
    *,
    platform: str | None = None,
    operation: str | None = None,
    ranks: int | None = None,
    ranks_per_node: int | None = None,
    library: str | None = None,
    tables: bool = False,
    columns: ColumnNames | None = None,
    where: RowFilter = (),
) -> FittedCollectives:
    """Messages of collectives of a library of GPUs, or tables of the times of collectives.

    `files` are outputs of nccl-tests, rccl-tests, OSU or IMB, or CSV, read as by `import_network`. `platform` (a name
    or a file) has the link domains and bandwidths of the machine. `operation` and `ranks` are those of outputs that do
    not state them, `ranks_per_node` those of a node. `library` is nccl or mpi (default: nccl for nccl-tests and
    rccl-tests). Times of nccl become starts and gaps of messages, unless `tables` is true, those of mpi tables. Raise
    `UsageError` where the rows allow no fit.

    >>> import whatif
    >>> file = "tests/data/importers/network/nccl/alps_all_reduce_2_nodes.txt"
    >>> fit = whatif.fit_collectives(file, platform="alps")
    >>> fit.to_pandas()["parameter"].iloc[-1]
    'network.collectives.between_domains.tree.bandwidth'
    """
    times = _message_times(files, columns, where)
    points = collective_points(times.values, operation, ranks)
    tool = times.values.notes.get("tool", "")
    used = library or ("nccl" if tool == "nccl-tests" else "mpi")
    require_choice("library", used, LIBRARIES)
    sheet, unlike = None, list[str]()
    if used == "nccl" and not tables:
        if platform is None:
            remedy = "name a platform with GPUs by --platform, or write times as they are with --tables"
            raise UsageError(f"the links and ports of the machine are not known; {remedy}")
        sheet = library_sheet(platform)
        on_node = ranks_per_node or int(times.values.notes.get("ranks_per_node", 0))
        unlike = other_placement(platform, on_node) if on_node else []
    fit = fit_points(points, sheet, used, ranks_per_node)
    unsure = not library and not tool and "device" in times.values.columns["buffers"].values
    assumed = (_ASSUMED_MPI,) if unsure else ()
    return fitted_collectives(fit, times.files, times.values, (*times.warnings, *unlike, *assumed))


def fit_gpu(files: Files, *, platform: AnyPlatform | PlatformSpec | None = None) -> FittedPlatform[GpuFit]:
    """Peak rates and bandwidths of a GPU, from outputs of mixbench, BabelStream or gpuroofperf.

    `platform` is a name or a file; values above the data sheet of its GPU are reported in `notes`. Raise `UsageError`
    for measurements of several GPUs, and where none is found.

    >>> import whatif
    >>> fit = whatif.fit_gpu("tests/data/importers/gpu/babelstream/v3.3-titanxp-cuda.txt")
    >>> fit.detail.device, list(fit.detail.values)
    ('TITAN Xp', ['dram_bandwidth'])
    """
    spec = _platform(platform)
    device = None if spec is None else spec.node.gpu
    stated = {} if device is None else {name: getattr(device, name) for name in gpu_rates.DIMENSIONS}
    datasheet = {name: value for name, value in stated.items() if isinstance(value, float)}
    tables = [read_gpu(path) for path in paths_in_folders(files)]
    fit = gpu_rates.fit_gpu(tables, datasheet=datasheet, device="" if device is None else device.name)
    return FittedPlatform(
        fit,
        fit.fits,
        (gpu_points(fit),),
        source_text(listed_paths(files), tables),
        partial(change_of, fit.fits),
        {"device": fit.device},
        warned(fit.warnings),
    )


def fit_host(
    files: Files,
    *,
    platform: AnyPlatform | PlatformSpec | None = None,
    sockets: int | None = None,
    binding: CoreBinding = "spread",
) -> FittedPlatform[HostFit]:
    """Sustained memory bandwidths of a socket and of one core, from triads by number of active cores.

    `files` are outputs of STREAM or likwid-bench, or CSV with columns cores and bandwidth. `platform` (a name or a
    file) has the processor, and must be stated; `sockets` is the number that was measured (default: all of a node).
    `binding` is spread, if active cores were divided among all NUMA domains, sockets, if among those of one socket
    after another, or compact, if they filled one domain after another. Raise `UsageError` for a platform without
    `[node.cpu]` and for measurements that allow no fit.

    >>> import whatif
    >>> fit = whatif.fit_host("tests/data/importers/host/likwid_bench.txt", platform="fugaku", binding="compact")
    >>> [f"{value / 1e9:.1f}" for value in fit.to_pandas()["value"]]
    ['800.0', '56.0']
    """
    require_choice("binding", binding, CORE_BINDINGS)
    tables = [read_host(path) for path in paths_in_folders(files)]
    measured = host_bandwidths.measured_sockets(_platform(platform), sockets, binding)
    fit = host_bandwidths.fit_host(tables, measured)
    return FittedPlatform(
        fit,
        fit.fits,
        (host_points(fit),),
        source_text(listed_paths(files), tables),
        partial(change_of, fit.fits),
        {"processor": measured.processor},
        warned(fit.warnings),
    )


def fit_transfer(
    files: Files, *, platform: AnyPlatform | PlatformSpec | None = None, machine: str | None = None
) -> FittedPlatform[TransferFit]:
    """Latencies and staging bandwidths of a host-device link, from measured copies and the link's data sheet.

    `platform` (a name or a file) has the link, and must be stated; `machine` chooses rows where the files hold
    several machines. Raise `UsageError` for a platform without `[node.host_link]` and for copies that allow no fit.

    >>> import whatif
    >>> fit = whatif.fit_transfer("tests/data/ahead/memcpy_sweep.csv", platform="titan", machine="Titan")
    >>> round(float(fit.to_pandas().set_index("parameter")["value"]["node.host_link.staging.read_bandwidth"]) / 1e9, 2)
    2.59
    """
    table, spec = read_transfer_files(files), _platform(platform)
    link = None if spec is None else spec.node.host_link
    if spec is None or link is None:
        remedy = "name a platform with `[node.host_link]` by --platform"
        raise UsageError(f"the link that was measured is not known; {remedy}")
    memory = spec.node.host.memory_bandwidth
    known = memory if isinstance(memory, float) else None
    fit = link_fit.fit_transfer(table, link, machine=machine, memory_bandwidth=known)
    return FittedPlatform(
        fit,
        fit.fits,
        (fit.points,),
        source_text(listed_paths(files), [table]),
        partial(change_of, fit.fits),
        notes=(*warned([*table.warnings, *fit.warnings]), *column_lines(fit.comparison)),
    )


def fit_kernel(
    files: Files,
    *,
    kernel: str | None = None,
    model: str | None = None,
    noise: str | None = None,
    distance: str | None = None,
    without: Sequence[str] = (),
    average: Sequence[str] = (),
    synthetic: int | None = None,
    seed: int | None = None,
    columns: ColumnNames | None = None,
    where: RowFilter = (),
) -> FittedPlatform[tuple[CalibrationFit, ...]]:
    """Costs of the kernels and messages of HPL, with their variability, from calibrations as CSV.

    `kernel` names the kernel of files that do not; `model` is M-0, M-1, M-2, M' or M_H-.. with a factor for each
    processor, `noise` N-0, N-1, N-2 or N' (default: by BIC); `distance` is that of messages (default: inter-node).
    `without` and `average` leave nodes out, or replace them by the mean of the others; `synthetic` draws a machine of
    that many nodes with `seed`. Raise `UsageError` for calibrations and options that do not fit together.

    >>> import whatif
    >>> fit = whatif.fit_kernel("tests/data/kernels/dahu_dgemm_calibration.csv")
    >>> fit.detail[0].kernel, fit.detail[0].model
    ('dgemm', 'M_H-1')
    """
    require_least("seed", seed, 0)
    if seed is not None and synthetic is None:
        raise UsageError("--seed: no effect without --synthetic NODES")
    tables = read_calibration_files(files, columns, where)
    if distance is not None and all(table.notes["kind"] != "messages" for table in tables.values()):
        raise UsageError(f"--distance {distance}: no effect on calibrations without messages")
    models = CalibrationModels(kernel, model, noise, _distance(distance or "inter_node"))
    return fit_calibrations(tables, models, ProcessorChoice(without, average, synthetic, seed or 0))


def output_platform(output: str | Path | None, extends: str | None = None) -> PlatformSpec | None:
    """The platform that a file holds or that a new file would extend; None if neither is named.

    Raise `UsageError` for a file that `FittedPlatform.write` would refuse, so that it is reported before a fit.
    """
    if output is not None:
        return load_platform_document(present(Path(output), extends))[0]
    return load_platform(extends)[0] if extends is not None else None


def _message_times(files: Files | ImportedTable, columns: ColumnNames | None, where: RowFilter) -> ImportedTable:
    """Message times of files, or those that were read before; the parameters of a SimGrid platform are refused."""
    if isinstance(files, ImportedTable):
        if "time" in files.values.columns:
            return files
        files = files.files
    return ImportedTable(read_message_files(files, columns, where), tuple(listed_paths(files)))


def _distance(distance: str) -> str:
    found = distance.replace("-", "_")
    if found not in DISTANCES:
        raise UsageError(f"distance `{distance}`: expected one of {', '.join(DISTANCES)}")
    return found


def _platform(platform: AnyPlatform | PlatformSpec | None) -> PlatformSpec | None:
    if isinstance(platform, Platform):
        return platform.spec
    return load_platform(platform)[0] if isinstance(platform, str | Path) else platform
