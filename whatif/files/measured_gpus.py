"""GPUs of a measured machine as changes of a platform file: data sheets by name, links, and measured rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from whatif.files.measured_source import source_of, value_change
from whatif.files.platform_file import PlatformChange
from whatif.measuring.gpu_arrays import PRODUCT, TRIAD
from whatif.measuring.gpus import GPUs
from whatif.measuring.repetition import Sample
from whatif.measuring.whole_machine import Measurements
from whatif.schema.gpu_parts import gpu_part, shipped_parts
from whatif.schema.toml_text import toml_value
from whatif.units import BYTE, BYTE_PER_SECOND, FLOP_PER_SECOND, Dimension, format_quantity, parse_quantity

_GPU: Final = "node.gpu"
_EXTENDS: Final = ".extends"
_RATE: Final = 0.9, 1.1
"""Least and largest ratio of reported to stated link rate: some programs include the line coding."""


def part_of(gpus: GPUs) -> str | None:
    """Shipped part of a GPU: the same model, form and memory."""
    return gpu_part(gpus.name, gpus.memory_size)


def gpu_changes(found: Measurements) -> Iterator[PlatformChange]:
    """Number, data sheet, links and measured rates; empty without a data sheet and measured rates."""
    gpus = found.machine.gpus
    if gpus is None or not describable(found):
        return
    said = f"reported by {gpus.source} on {found.machine.host}, {found.date}"
    values = {path: text for path, text in _stated(gpus).items() if not path.endswith(_EXTENDS)}
    yield PlatformChange(values, said, grade="datasheet")
    yield from _rates(found, part_of(gpus))


def gpu_tables(found: Measurements) -> Iterator[str]:
    """Tables of the file that extend shipped parts."""
    if (gpus := found.machine.gpus) is not None and describable(found):
        for path, part in _stated(gpus).items():
            if path.endswith(_EXTENDS):
                yield f"[{path.removesuffix(_EXTENDS)}]\nextends = {toml_value(part)}"


def describable(found: Measurements) -> bool:
    """Whether a GPU has the values that a platform needs: from a shipped part, or measured."""
    gpus, rates = found.machine.gpus, found.gpu_rates
    return gpus is not None and (part_of(gpus) is not None or {TRIAD, f"{PRODUCT}fp64", f"{PRODUCT}fp32"} <= set(rates))


def gpu_warnings(found: Measurements) -> Iterator[str]:
    """Values of the GPUs that the file lacks."""
    if (gpus := found.machine.gpus) is None:
        return
    yield from gpus.warnings
    named = f"{gpus.count} x {gpus.name}"
    if not describable(found):
        yield f"{named}: no shipped part has this name and memory, and neither torch nor cupy measures it: left out"
    elif gpus.count > 1 and "node.peer_link.extends" not in _links(gpus, part_of(gpus)):
        yield f"{named}: the links between them are not known well enough: state [node.peer_link]"


def _stated(gpus: GPUs) -> dict[str, str]:
    """Values of a node, and the parts that its tables extend."""
    part = part_of(gpus)
    values = {"node.gpu_count": str(gpus.count)} | _links(gpus, part)
    if part is not None:
        return {f"{_GPU}{_EXTENDS}": part} | values
    memory = {f"{_GPU}.memory_size": format_quantity(gpus.memory_size, BYTE, 6)} if gpus.memory_size else {}
    return {f"{_GPU}.name": gpus.name} | memory | values


def _links(gpus: GPUs, part: str | None) -> dict[str, str]:
    """Tables of the link to the host and of those to the other GPUs, of shipped parts with the reported numbers."""
    host = _pcie("node.host_link", gpus)
    if gpus.count < 2:
        return host
    domain = {"node.domain_gpu_count": str(gpus.domain)} if gpus.domain else {}
    return host | domain | _peer_links(gpus, part)


def _peer_links(gpus: GPUs, part: str | None) -> dict[str, str]:
    fabric = f"infinity-fabric-{part}"
    if gpus.link == "pcie":
        return _pcie("node.peer_link", gpus)
    if gpus.link == "xgmi" and fabric in shipped_parts("link"):
        return {"node.peer_link.extends": fabric}
    return _nvlink(gpus) if gpus.link == "nvlink" and gpus.link_rate else {}


def _pcie(table: str, gpus: GPUs) -> dict[str, str]:
    generation, lanes = gpus.pcie
    if not generation or not lanes:
        return {}
    known = {
        int(str(part["generation"])): name for name, part in shipped_parts("link").items() if part["kind"] == "pcie"
    }
    nearest = min(known, key=lambda each: abs(each - generation))
    values = {f"{table}.extends": known[nearest]}
    values |= {f"{table}.generation": str(generation)} if generation != nearest else {}
    return values | ({f"{table}.lane_count": str(lanes)} if lanes != 16 else {})


def _nvlink(gpus: GPUs) -> dict[str, str]:
    """The shipped NVLink with the nearest rate and number; the reported rate is stated where that of none is near."""
    known = {name: part for name, part in shipped_parts("link").items() if name.startswith("nvlink")}
    rates = {name: _link_rate(part) for name, part in known.items()}

    def distance(name: str) -> tuple[float, int, str]:
        return (
            abs(float(np.log(gpus.link_rate / rates[name]))),
            abs(int(known[name]["link_count"]) - gpus.link_count),
            name,
        )

    name = min(rates, key=distance)
    values = {"node.peer_link.extends": name, "node.peer_link.link_count": str(gpus.link_count)}
    values["node.domain_topology"] = "switch" if gpus.switched else "mesh"
    if not _RATE[0] <= gpus.link_rate / rates[name] <= _RATE[1]:
        values["node.peer_link.lane_count"] = "1"
        values["node.peer_link.lane_bandwidth"] = format_quantity(gpus.link_rate, BYTE_PER_SECOND, 6)
    return values


def _link_rate(part: Mapping[str, Any]) -> float:
    return float(part.get("lane_count", 8)) * parse_quantity(str(part["lane_bandwidth"])).value


def _rates(found: Measurements, part: str | None) -> Iterator[PlatformChange]:
    """Bandwidth of the memory; products are the peaks of a GPU without a data sheet, else a share of its peaks."""
    rates = found.gpu_rates
    if TRIAD in rates:
        yield _change(found, "dram_bandwidth", BYTE_PER_SECOND, rates[TRIAD])
    products = {name.removeprefix(PRODUCT): rate for name, rate in rates.items() if name.startswith(PRODUCT)}
    if part is not None:
        yield from _efficiency(found, products, shipped_parts("gpu")[part].get("matrix_rates", {}))
        return
    for precision, sample in products.items():
        key = {"fp64": "peak_double_rate", "fp32": "peak_single_rate"}.get(precision, f"matrix_rates.{precision}")
        yield _change(found, key, FLOP_PER_SECOND, sample)


def _efficiency(
    found: Measurements, products: Mapping[str, Sample], peaks: Mapping[str, str]
) -> Iterator[PlatformChange]:
    """Median share of the peaks of the matrix units."""
    shares = [sample.median / parse_quantity(peaks[name]).value
              for name, sample in products.items() if name in peaks]  # fmt: skip
    if shares:
        names = ", ".join(name for name in products if name in peaks)
        said = source_of(found, f"median share of the peaks in products of {names}", len(shares))
        yield PlatformChange({f"{_GPU}.matrix_efficiency": f"{min(float(np.median(shares)), 1.0):.4g}"}, said)


def _change(found: Measurements, key: str, dimension: Dimension, sample: Sample) -> PlatformChange:
    said = (sample.name, len(sample.values), sample.scatter)
    return value_change(found, f"{_GPU}.{key}", dimension, sample.median, sample.standard_error, said)
