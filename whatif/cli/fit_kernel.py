"""`whatif fit kernel`: calibrations of the kernels and messages of HPL to what a platform file says of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif import vocabulary
from whatif.cli.fit import DISTANCES, FitOutput, command, fit_options, tell
from whatif.errors import UsageError

if TYPE_CHECKING:
    from whatif.files.platform_file import PlatformChange
    from whatif.fitting.blas_costs import KernelFit
    from whatif.fitting.fit_result import Fit
    from whatif.fitting.pieces import PiecesFit
    from whatif.fitting.processors import Processors
    from whatif.schema.platform_spec import PlatformSpec
    from whatif.table import Table

_PROCESSORS = "kernels.processors"


@dataclass(frozen=True)
class _Machine:
    """The processors that are written, in the place of those calibrated."""

    without: tuple[str, ...]
    average: tuple[str, ...]
    node_count: int | None
    """Nodes of a synthetic machine."""
    seed: int

    @property
    def asked(self) -> str:
        """The option that needs calibrated processors."""
        given = {"--without": self.without, "--average": self.average, "--synthetic": self.node_count is not None}
        return next((name for name, value in given.items() if value), "")


@command.command("kernel", short_help="Kernels and messages of HPL: calibrations as CSV.")
@fit_options
@click.option("--kernel", "name", metavar="NAME", help="The kernel that a file has calls of; else its name tells it.")
@click.option("--model", metavar="MODEL", help="M-0, M-1, M-2 or M', or M_H-.. for each processor; without: by BIC.")
@click.option("--noise", metavar="NOISE", help="N-0, N-1 or N-2 of a kernel, N-0 or N' of messages; without: by BIC.")
@click.option("--distance", type=click.Choice(DISTANCES), default="inter-node", show_default=True)
@click.option("--columns", metavar="NAME=HEADING,..", help="What the columns of the files are, as time=elapsed,m=rows.")
@click.option("--where", "where", multiple=True, metavar="HEADING=VALUE", help="Only rows with this.")
@click.option("--without", multiple=True, metavar="NODE", help="Leave this node out.")
@click.option("--average", multiple=True, metavar="NODE", help="Put the mean of the others in the place of this node.")
@click.option("--synthetic", type=int, metavar="NODES", help="A machine of so many nodes, drawn from those calibrated.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draw.")
def kernel(
    files: tuple[Path, ...], target: FitOutput, name: str | None, model: str | None, noise: str | None, distance: str,
    columns: str | None, where: tuple[str, ...], without: tuple[str, ...], average: tuple[str, ...],
    synthetic: int | None, seed: int,
) -> None:  # fmt: skip
    """Fit what the kernels of HPL cost, or what messages cost in pieces, to calibrations.

    FILES are CSV: calls of one kernel (`time`, `m`, `n`, `k` or `size`, perhaps `node`, `cpu`, `run`), coefficients of
    dgemm for each processor (`constant`, `mnk`), or messages (`test`, `message_size`, `time`).
    """
    from whatif.cli.measurement_files import in_folders
    from whatif.files.platform_file import change_of

    platform = target.platform()
    tables = list(_read(in_folders(files), name, columns, where))
    fits = list(_fitted(tables, model, noise, distance.replace("-", "_")))
    for each in fits:
        _narrate(each)
    if target.points and len(fits) > 1:
        raise UsageError("--points prints the points of one fit; give one kernel, or the messages, at a time")
    found = [fit for each in fits for fit in each.fits]
    change = change_of(found, target.source_of(files, *(table for _, table in tables)))
    machine = _Machine(without, average, synthetic, seed)
    shown, change = _with_processors(fits, machine, change)
    if target.output is not None and platform is not None:
        _refuse_others(target.output, platform, change)
    target.finish([*found, *shown], change, lambda: fits[0].points, {})


def _read(
    paths: Sequence[Path], name: str | None, columns: str | None, where: Sequence[str]
) -> Iterator[tuple[str, Table]]:
    """What each kernel's rows are, of all files together; messages have no kernel."""
    from whatif.importers.calibration import read_calibration
    from whatif.importers.mapping import parse_mapping
    from whatif.importers.rows import joined

    mapping = parse_mapping(columns) if columns is not None else None
    chosen = {key: value for text in where for key, value in parse_mapping(text).items()}
    parts: dict[str, list[Table]] = {}
    for path in paths:
        table = read_calibration(path, mapping, chosen)
        tell(table.notes.get("warnings", "").splitlines(), "warning: ")
        for kernel_name, part in _by_kernel(table, name, path):
            parts.setdefault(kernel_name, []).append(part)
    for kernel_name, tables in parts.items():
        kinds = {table.notes["kind"] for table in tables}
        if len(kinds) > 1:
            raise UsageError(f"{kernel_name}: the files hold {' and '.join(sorted(kinds))}; give one kind at a time")
        yield kernel_name, tables[0] if len(tables) == 1 else joined(tables)


def _by_kernel(table: Table, name: str | None, path: Path) -> Iterator[tuple[str, Table]]:
    from whatif.fitting.blas_costs import KERNELS, kernel_name
    from whatif.table import Column, Table

    if table.notes["kind"] == "messages":
        yield "", table
    elif name is not None or "kernel" not in table.columns:
        said = name or next((known for known in sorted(KERNELS, key=len) if known in path.stem.lower()), None)
        if said is None:
            raise UsageError(f"{path}: calls of which kernel? `--kernel NAME` says it: {', '.join(KERNELS)}")
        yield kernel_name(said), table
    else:
        names = table.columns["kernel"].values
        for said in dict.fromkeys(names.tolist()):
            rows = {
                key: Column(column.values[names == said], column.dimension) for key, column in table.columns.items()
            }
            yield kernel_name(said), Table(rows, table.notes)


def _fitted(
    tables: Sequence[tuple[str, Table]], model: str | None, noise: str | None, distance: str
) -> Iterator[KernelFit | PiecesFit]:
    from whatif.fitting.blas_costs import fit_kernel
    from whatif.fitting.coefficients import fit_coefficients
    from whatif.fitting.pieces import fit_pieces

    for name, table in tables:
        if table.notes["kind"] == "messages":
            if model not in (None, "M'"):
                raise UsageError(f"--model {model}: messages are fitted in pieces (M')")
            yield fit_pieces(table, distance, noise)
        else:
            fit: Callable[..., KernelFit] = fit_coefficients if table.notes["kind"] == "coefficients" else fit_kernel
            yield fit(table, name, model, noise)


def _narrate(fit: KernelFit | PiecesFit) -> None:
    """The models compared, what was chosen, and what a reader has to know of it."""
    from whatif.fitting.blas_costs import KernelFit
    from whatif.fitting.processors import in_words, slow_in_words
    from whatif.table_writers import column_rows

    column_rows(fit.comparison, sys.stderr)
    if isinstance(fit, KernelFit):
        tell([f"{fit.kernel}: {fit.model} {fit.noise}"])
        tell(in_words(fit.processors) if fit.processors is not None else [])
        tell([*fit.warnings, *(slow_in_words(fit.processors) if fit.processors is not None else [])], "warning: ")
    else:
        tell(fit.told)
        tell(fit.warnings, "warning: ")


def _with_processors(
    fits: Sequence[KernelFit | PiecesFit], machine: _Machine, change: PlatformChange
) -> tuple[list[Fit], PlatformChange]:
    """The factors of the processors as a fit to show, and the change with them; nothing where none were calibrated."""
    from whatif.fitting.processors import synthetic_processors

    found = next((each.processors for each in fits if getattr(each, "kernel", "") == "dgemm"), None)  # type: ignore[union-attr]
    if found is None:
        if machine.asked:
            raise UsageError(f"{machine.asked}: no processors were calibrated (M_H of dgemm)")
        return [], change
    chosen = found.without(machine.without).averaged(machine.average)
    assumed: dict[str, str] = {}
    values = chosen.table
    if machine.node_count is not None:
        values = synthetic_processors(chosen, machine.node_count, machine.seed)
        said = f"{machine.node_count} synthetic nodes drawn with seed {machine.seed}"
        tell([said])
        assumed = dict.fromkeys((_PROCESSORS, "node_count"), f"{said}; {change.source}")
    elif machine.average:
        same = dict(zip(found.keys, found.factors.tolist(), strict=True))
        averaged = (key for key, factor in values.items() if factor != same[key])
        assumed = {f"{_PROCESSORS}.{key}": f"the mean of the other nodes; {change.source}" for key in averaged}
    texts = _texts(values, machine.node_count)
    whole = replace(change, values={**change.values, **texts}, assumed={**change.assumed, **assumed})
    return [_factors(chosen, values, synthetic=machine.node_count is not None)], whole


def _texts(values: Mapping[str, float], node_count: int | None) -> dict[str, str]:
    texts = {f"{_PROCESSORS}.{key}": f"{value:.6g}" for key, value in values.items()}
    return texts if node_count is None else {**texts, "node_count": str(node_count)}


def _factors(found: Processors, values: Mapping[str, float], *, synthetic: bool) -> Fit:
    import numpy as np

    from whatif.fitting.fit_result import Fit
    from whatif.units import ONE

    errors = np.full(len(values), np.nan) if synthetic else found.standard_errors
    numbers = np.array(list(values.values()))
    count = int(found.run_counts.sum())
    return Fit(_PROCESSORS, dict.fromkeys(values, ONE), numbers, np.diag(errors**2), {}, count, found.drift)


def _refuse_others(path: Path, platform: PlatformSpec, change: PlatformChange) -> None:
    """Refuse to write processors or pieces beside others that the platform has, and that are not these."""
    tables: dict[str, Mapping[str, object]] = {}
    if platform.kernels is not None:
        tables[_PROCESSORS] = platform.kernels.processors
        if platform.kernels.dgemm.offloaded is not None:
            tables["kernels.dgemm"] = {"offloaded": None}
    for distance in vocabulary.DISTANCES:
        if (stated := getattr(platform.network, distance)) is not None:
            tables[f"network.{distance}.pieces"] = stated.pieces
    for table, stated in tables.items():
        new = {
            parameter[len(table) + 1 :].partition(".")[0]
            for parameter in change.values
            if parameter.startswith(f"{table}.")
        }
        others = [key for key in stated if key not in new]
        if new and others:
            said = f"{others[0]} and {len(others) - 1} more" if len(others) > 1 else others[0]
            raise UsageError(f"{path}: [{table}] has {said}, which would stay beside the new ones: take them out")
