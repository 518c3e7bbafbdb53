"""Collectives of GPU libraries predicted from data sheets and from fits, against measured ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from whatif.fitting.collective_steps import fit_library, held_out_errors, relative_errors
from whatif.fitting.collective_tables import LARGE, mean_and_bias
from whatif.fitting.library_points import CollectivePoints, LibrarySheet
from whatif.models.transfer import nvlink_write_size
from whatif.studies.run_accuracy import RunGroup
from whatif.units import MICROSECOND, ONE, Dimension
from whatif.validation.measured_kinds import ErrorTable, Rows, error_table, joined, numbers

_OPERATIONS: Final = {"all_reduce": "allreduce", "all_gather": "allgather", "alltoall": "alltoall"}
_GB: Final = 1e9
_PAYLOAD: Final = 256.0 / float(nvlink_write_size(np.array(256.0), np.array(256.0), np.array(16.0)))


class _Machine(NamedTuple):
    """Data sheet of a machine: GPUs of a link domain and their links, and the ports of a domain, in GB/s;
    `library_transport` of its network."""

    domain: float
    link: float
    ports: float
    topology: Literal["mesh", "switch"] = "switch"
    reduces: bool = False
    transport: str = "verbs"


_MACHINES: Final[Mapping[str, _Machine]] = {
    "Polaris": _Machine(4, 100, 2 * 25, "mesh", transport="libfabric"),
    "Sophia (DGX A100)": _Machine(8, 300, 8 * 25),
    "AWS p4de": _Machine(8, 300, 4 * 12.5, transport="libfabric"),
    "AWS p5": _Machine(8, 450, 32 * 12.5, reduces=True, transport="libfabric"),
    "Lambda (HGX B200)": _Machine(8, 900, 8 * 50, reduces=True),
    "GCP a4 (B200)": _Machine(8, 900, 8 * 50, reduces=True),
    "Alps": _Machine(4, 150, 4 * 25, "mesh", transport="libfabric"),
    "CoreWeave (HGX H100)": _Machine(8, 450, 8 * 50, reduces=True),
    "CoreWeave (GB200 NVL72)": _Machine(72, 900, 18 * 4 * 50, reduces=True),
    "OCI (GB200 NVL72)": _Machine(64, 900, 16 * 4 * 50, reduces=True),
    "OCI (GB300 NVL72)": _Machine(64, 900, 16 * 8 * 50, reduces=True),
    "OCI (B300)": _Machine(8, 900, 8 * 2 * 50, reduces=True),
    "OCI (MI355X)": _Machine(8, 76.8, 8 * 50, "mesh"),
    "MI355X, AINIC": _Machine(8, 76.8, 8 * 50, "mesh"),
    "AMD (MI300X)": _Machine(8, 64, 8 * 50, "mesh"),
    "AMD (MI325X)": _Machine(8, 64, 8 * 50, "mesh"),
    "Azure ND A100 v4": _Machine(8, 300, 8 * 25),
    "Azure ND H200 v5": _Machine(8, 450, 8 * 50, reduces=True),
    "Azure ND GB200 v6": _Machine(4, 900, 4 * 50),
    "H200, NVLS off": _Machine(8, 450, 8 * 50),
    "H200": _Machine(8, 450, 8 * 50, reduces=True),
}


def library_collectives(rows: Rows) -> ErrorTable:
    """Errors of collectives by machine, from 1 MiB on and below: from data sheets, fitted, and held out.

    The fit is to all numbers of ranks of a machine; held out are the largest one of each operation that has several.
    """
    columns: dict[str, Dimension | None] = {"machine": None, "collective": None, "ranks": ONE}
    for part in ("", " below"):
        names = [f"{what}{part}" for what in ("error", "bias", "fitted", "fitted bias", "held out", "held out bias")]
        columns |= dict.fromkeys(["below" if part else "from 1 MiB", *names], ONE)
    cells = [cell for machine, points in points_by_machine(rows).items() for cell in _errors(machine, points)]
    means = [
        joined(f"{source}, {size}", *np.array([(row[at], row[at + first], row[at + first + 1]) for row in cells]).T)
        for at, size in ((3, "from 1 MiB"), (10, "below"))
        for first, source in ((1, "from data sheets"), (5, "held out"))
    ]
    return error_table(columns, cells, "collectives of GPU libraries: from data sheets, fitted, held out", means)


def sheet_of(machine: str) -> LibrarySheet:
    """Data sheet of a machine in B/s; links carry the headers of their packets too."""
    known = _MACHINES[machine]
    return LibrarySheet(known.domain, known.link * _PAYLOAD * _GB, known.ports * _GB, known.topology, known.reduces)


def points_by_machine(rows: Rows) -> dict[str, CollectivePoints]:
    """Measured times of each machine."""
    return {machine: _points(rows, machine) for machine in dict.fromkeys(row["machine"] for row in rows)}


def transport_of(machine: str) -> str:
    """`library_transport` of the network of a machine."""
    return _MACHINES[machine].transport


def datasheet_groups(rows: Rows, *, in_domain: bool = False, transport: str | None = None) -> Iterator[RunGroup]:
    """Measured over predicted times of each operation of each machine, from data sheets, in one link domain or across
    several, by default over any network."""
    for machine, points in points_by_machine(rows).items():
        if transport not in (None, transport_of(machine)):
            continue
        sheet = sheet_of(machine)
        ratios = points.times / sheet.time(points)
        chosen = (points.ranks <= sheet.domain_rank_count) == in_domain
        for operation in dict.fromkeys(points.operations[chosen].tolist()):
            yield RunGroup(operation, machine, ratios[chosen & (points.operations == operation)])


def _points(rows: Rows, machine: str) -> CollectivePoints:
    own = [row for row in rows if row["machine"] == machine]
    names = np.array([_OPERATIONS[row["collective"]] for row in own], dtype=object)
    sizes, ranks, times = (numbers(own, key) for key in ("size_B", "ranks", "time_us"))
    return CollectivePoints(names, sizes, ranks, times * MICROSECOND)


def _errors(machine: str, points: CollectivePoints) -> Iterator[tuple[Any, ...]]:
    """Numbers, mean absolute errors and biases of the operations of a machine, by number of ranks."""
    sheet = sheet_of(machine)
    errors = (
        relative_errors(sheet, points),
        relative_errors(fit_library(points, sheet), points),
        held_out_errors(points, sheet),
    )
    for operation, ranks in dict.fromkeys(zip(points.operations, points.ranks, strict=True)):
        own = (points.operations == operation) & (points.ranks == ranks)
        parts = own & (points.sizes >= LARGE), own & (points.sizes < LARGE)
        numbers = [
            (float(part.sum()), *(each for error in errors for each in mean_and_bias(error[part]))) for part in parts
        ]
        yield machine, operation, ranks, *numbers[0], *numbers[1]
