"""Collectives of GPU libraries predicted from data sheets, against measured ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import numpy as np

from whatif.models.gpu_collectives import domain_link_bandwidth, library_time
from whatif.models.quantities import FloatArray
from whatif.models.transfer import nvlink_write_size
from whatif.table import Table
from whatif.units import ONE, Dimension

_ALGORITHMS: Final = {"all_reduce": "best", "all_gather": "ring_allgather", "alltoall": "pairwise"}
_LARGE: Final = 2**20
"""Bytes from which bandwidth decides, mostly."""
_GB: Final = 1e9
_PAYLOAD: Final = 256.0 / float(nvlink_write_size(np.array(256.0), np.array(256.0), np.array(16.0)))
Rows = list[dict[str, str]]


class _Machine(NamedTuple):
    """Data sheet of a machine: GPUs of a link domain and their links, and the ports of a domain, in GB/s."""

    domain: float
    link: float
    ports: float
    topology: Literal["mesh", "switch"] = "switch"
    reduces: bool = False


_MACHINES: Final[Mapping[str, _Machine]] = {
    "Polaris": _Machine(4, 100, 2 * 25, "mesh"),
    "Sophia (DGX A100)": _Machine(8, 300, 8 * 25),
    "AWS p4de": _Machine(8, 300, 4 * 12.5),
    "AWS p5": _Machine(8, 450, 32 * 12.5, reduces=True),
    "Lambda (HGX B200)": _Machine(8, 900, 8 * 50, reduces=True),
    "GCP a4 (B200)": _Machine(8, 900, 8 * 50, reduces=True),
    "Alps": _Machine(4, 150, 4 * 25, "mesh"),
    "CoreWeave (HGX H100)": _Machine(8, 450, 8 * 50, reduces=True),
    "CoreWeave (GB200 NVL72)": _Machine(72, 900, 18 * 4 * 50, reduces=True),
    "OCI (GB200 NVL72)": _Machine(64, 900, 16 * 4 * 50, reduces=True),
    "OCI (GB300 NVL72)": _Machine(64, 900, 16 * 8 * 50, reduces=True),
    "OCI (B300)": _Machine(8, 900, 8 * 2 * 50, reduces=True),
    "OCI (MI355X)": _Machine(8, 76.8, 8 * 50, "mesh"),
    "MI355X, AINIC": _Machine(8, 76.8, 8 * 50, "mesh"),
    "AMD (MI300X)": _Machine(8, 64, 8 * 50, "mesh"),
    "AMD (MI325X)": _Machine(8, 64, 8 * 50, "mesh"),
}


def library_collectives(rows: Rows) -> Table:
    """Errors of collectives by machine, from 1 MiB on and below; nothing is fitted."""
    series: dict[tuple[str, str, float], list[tuple[float, float]]] = {}
    for row in rows:
        key = (row["machine"], row["collective"], float(row["ranks"]))
        series.setdefault(key, []).append((float(row["size_B"]), float(row["time_us"]) * 1e-6))
    columns: dict[str, Dimension | None] = {"machine": None, "collective": None, "ranks": ONE}
    parts = ("from 1 MiB", "error", "bias", "below", "error below", "bias below")
    columns |= dict.fromkeys(parts, ONE)
    table = [(*key, *_errors(key, np.array(points))) for key, points in series.items()]
    return Table.of_rows(columns, table, {"title": "collectives of GPU libraries, from data sheets"})


def predicted(machine: str, collective: str, ranks: float, sizes: FloatArray) -> FloatArray:
    """Times in s of a collective at some sizes in B."""
    known = _MACHINES[machine]
    here = np.array(min(known.domain, ranks))
    link = domain_link_bandwidth(np.array(known.link * _PAYLOAD * _GB), here, topology=known.topology)
    return library_time(
        sizes,
        np.array(ranks),
        np.array(known.domain),
        link,
        np.array(known.ports * _GB),
        algorithm=_ALGORITHMS[collective],
        switch_reduction=known.reduces,
    )


def _errors(key: tuple[str, str, float], points: FloatArray) -> list[float]:
    """Number, mean absolute error and bias of the large messages, then of the small ones."""
    sizes, times = points.T
    errors = predicted(*key, sizes) / times - 1
    parts = errors[sizes >= _LARGE], errors[sizes < _LARGE]
    return [number for part in parts for number in (float(len(part)), _mean(np.abs(part)), _mean(part))]


def _mean(errors: FloatArray) -> float:
    return float(errors.mean()) if len(errors) else np.nan
