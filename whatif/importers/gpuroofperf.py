"""gpuroofperf: its file of a GPU's measured rates (CSV) and its file of profiled kernels (JSON).

A GPU file has a heading and a row a device, in 1e9 operations or bytes a second:
`"GPU", "GFLOPS - SP", "GFLOPS - DP", "GIOPS - MAD", "GBSEC - DRAM", "GBSEC - L2", "GOPS - SHMEM", "GIOPS - ADD"`.
A kernel file has `app`, `invocation`, `datetime`, `device`, `driver`, `platform`, `version` and `data`: by kernel,
`dominant_op`, `compute_ops`, `dram_bytes`, `l2_bytes`, `opmix_efficiency`, `mix_compute`, `mix_ldst`,
`reference_time` in ms and `count`; operations, bytes and time are those of all `count` launches together.
Source: gpuroofperf-toolkit; E. Konstantinidis, Y. Cotronis, JPDC 107, 2017.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from whatif.errors import InvalidFileError, Problem, did_you_mean
from whatif.importers.json_text import parse_json
from whatif.importers.kernel_phases import DOMINANT_OPERATIONS, KERNEL_COLUMNS
from whatif.importers.rows import csv_cells, row_table
from whatif.importers.text import refuse
from whatif.schema.fields import quantity_field
from whatif.schema.gpu import GPU
from whatif.table import Table
from whatif.units import Dimension, parse_quantity

GPU_RATES: Final[Mapping[str, tuple[str, str]]] = {
    "GFLOPS - SP": ("peak_single_rate", "Gflop/s"),
    "GFLOPS - DP": ("peak_double_rate", "Gflop/s"),
    "GIOPS - MAD": ("peak_integer_rate", "Gop/s"),
    "GIOPS - ADD": ("peak_add_rate", "Gop/s"),
    "GOPS - SHMEM": ("peak_shared_rate", "Gop/s"),
    "GBSEC - DRAM": ("dram_bandwidth", "GB/s"),
    "GBSEC - L2": ("l2_bandwidth", "GB/s"),
}
"""Headings of a GPU file: the parameter of `node.gpu`, and the unit."""
_DIMENSIONS: Final[Mapping[str, Dimension]] = {
    parameter: field.dimension
    for parameter, _ in GPU_RATES.values()
    if (field := quantity_field(GPU.model_fields[parameter])) is not None and field.dimension is not None
}
_KERNEL_KEYS: Final[Mapping[str, str]] = {
    "compute_ops": "operations",
    "dram_bytes": "dram_size",
    "l2_bytes": "l2_size",
    "opmix_efficiency": "operation_efficiency",
    "mix_compute": "compute_fraction",
    "mix_ldst": "load_store_fraction",
    "reference_time": "reference_time",
    "count": "profiled_launch_count",
}


def parse_gpu_rates(text: str, file: str = "<text>") -> Table:
    """One row per GPU: `name` and the rates as the parameters of `node.gpu`, in flop/s and B/s.

    Raise `InvalidFileError` for a missing or unknown heading, a row of another length, or a rate that is not a
    positive number.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    rows = [(number, [cell.strip() for cell in csv_cells(line, file, number)]) for number, line in lines]
    if not rows:
        raise refuse(file, "the file is empty")
    headings = _headings(file, rows[0])
    if len(rows) == 1:
        raise refuse(file, "a heading without a row: no GPU", rows[0][0])
    gpus = [_gpu(file, number, headings, row) for number, row in rows[1:]]
    device = gpus[0]["name"] if len(gpus) == 1 else ""
    return row_table(gpus, {"name": None, **_DIMENSIONS}, {"tool": "gpuroofperf", "file": file, "device": device})


def _headings(file: str, row: tuple[int, list[str]]) -> list[str]:
    number, headings = row
    unknown = [heading for heading in headings if heading != "GPU" and heading not in GPU_RATES]
    if unknown:
        raise refuse(file, f"unknown heading `{unknown[0]}`{did_you_mean(unknown[0], GPU_RATES)}", number)
    missing = [heading for heading in ("GPU", *GPU_RATES) if heading not in headings]
    if missing:
        raise refuse(file, f"no column `{missing[0]}`", number)
    return headings


def _gpu(file: str, number: int, headings: Sequence[str], row: Sequence[str]) -> dict[str, Any]:
    if len(row) != len(headings):
        raise refuse(file, f"{len(row)} values under {len(headings)} headings; is the file cut off?", number)
    cells = dict(zip(headings, row, strict=True))
    rates: dict[str, Any] = {"name": cells["GPU"]}
    for heading, (parameter, unit) in GPU_RATES.items():
        try:
            # Read with its unit, so that the float is the one that a platform file's text gives.
            rates[parameter] = parse_quantity(f"{cells[heading]} {unit}").value
        except ValueError:
            raise refuse(file, f"`{cells[heading]}` is not a number", number, heading) from None
        if rates[parameter] <= 0:
            raise refuse(file, f"must be greater than 0, not {cells[heading]}", number, heading)
    return rates


def parse_kernel_profile(text: str, file: str = "<text>") -> Table:
    """One row per kernel, with `KERNEL_COLUMNS`; `metrics_per` is `profile`.

    Kernels dominated by half-precision operations are left out with a warning: a platform states no such peak.
    A kernel without operations has `operation_efficiency` 1 (the file says 0). Raise `InvalidFileError` for what is
    no such JSON, a missing or impossible value, or no kernel.
    """
    document = _document(text, file)
    rows, warnings = [], []
    problems: list[Problem] = []
    for name, metrics in document["data"].items():
        if isinstance(metrics, dict) and metrics.get("dominant_op") == "fp_16":
            warnings.append(f"{file}: left out, half-precision operations dominate: {name}")
            continue
        try:
            rows.append(_kernel(file, name, metrics))
        except InvalidFileError as error:
            problems += error.problems
    if problems:
        raise InvalidFileError(problems)
    if not rows:
        raise refuse(file, "no kernel that could be used", key="data")
    keys = {"version": "version", "invocation": "command", "datetime": "date", "device": "device", "driver": "driver"}
    told = {note: str(document[key]) for key, note in keys.items() if document.get(key)}
    return row_table(rows, KERNEL_COLUMNS, {"tool": "gpuroofperf", "file": file} | told, warnings)


def _document(text: str, file: str) -> dict[str, Any]:
    document = parse_json(text, file)
    if not isinstance(document, dict) or not isinstance(document.get("data"), dict):
        raise refuse(file, "no table `data` of kernels, as gpuroofperf writes it")
    return document


def _kernel(file: str, name: str, metrics: Any) -> dict[str, Any]:
    if not isinstance(metrics, dict) or not set(metrics) > set(_KERNEL_KEYS):
        missing = sorted({*_KERNEL_KEYS, "dominant_op"} - set(metrics if isinstance(metrics, dict) else ()))
        raise refuse(file, f"no `{missing[0]}`" if missing else "not a kernel", key=name)
    values = {parameter: _number(file, name, key, metrics[key]) for key, parameter in _KERNEL_KEYS.items()}
    if metrics.get("dominant_op") not in DOMINANT_OPERATIONS:
        message = f"must be one of {', '.join(DOMINANT_OPERATIONS)}, not `{metrics.get('dominant_op')}`"
        raise refuse(file, message, key=f"{name}: dominant_op")
    values["reference_time"] = parse_quantity(f"{values['reference_time']!r} ms").value
    values["operation_efficiency"] = values["operation_efficiency"] or 1.0
    about = {"kernel": name, "metrics_per": "profile", "dominant_operation": metrics["dominant_op"]}
    return {**about, "block_count": None, "block_size": None, **values}


def _number(file: str, name: str, key: str, value: Any) -> float:
    most = 1.0 if key.startswith(("mix_", "opmix_")) else sys.float_info.max
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        limit = "between 0 and 1" if most == 1 else "of at least 0"
        raise refuse(file, f"must be a number {limit}, not {str(value)[:40]}", key=f"{name}: {key}")
    return float(value)
