"""Comparison of phases of matrix products with measured rates by shape and device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.models.quantities import FloatArray
from whatif.schema.toml import parse_document
from whatif.units import ONE, Dimension
from whatif.validation.measured_kinds import ErrorTable, Rows, error_table, joined_by, numbers

_PLATFORM: Final = "dgx_a100"
"""Machine whose GPU is replaced by the measured one."""
BEST: Final = "best of many shapes"
"""Use of a measurement that is the maximum over shapes."""
_PHASE: Final = "application.phases.product"
_PRODUCT: Final = """
[application]
name = "product of matrices"
rank_count = 1
iteration_count = 1
[application.phases.product]
kind = "gemm"
m = 1
n = 1
k = 1
precision = "{precision}"
"""


def matrix_products(rows: Rows) -> ErrorTable:
    """Errors of the time of products of matrices, by device and use of the measurement.

    The efficiency of NVIDIA's devices was fitted to the A100, that of AMD's to the MI300X. The best of many shapes is
    faster than a product of its size on average.
    """
    groups: dict[tuple[str, str, str], Rows] = {}
    for row in rows:
        groups.setdefault((row["use"], row["gpu"], row["precision"]), []).append(row)
    columns: dict[str, Dimension | None] = dict.fromkeys(("use", "gpu", "precision"))
    columns |= dict.fromkeys(("shapes", "mean absolute error", "bias"), ONE)
    table = []
    for group, measured in groups.items():
        errors = predicted_times(group[1], group[2], _shapes(measured)) / _times(measured) - 1
        table.append((*group, len(errors), np.abs(errors).mean(), errors.mean()))
    means = joined_by([row[0] for row in table], [row[3:] for row in table])
    return error_table(columns, table, "times of products of matrices, predicted and measured", means)


def predicted_times(gpu: str, precision: str, shapes: Mapping[str, FloatArray]) -> FloatArray:
    """Times of products of some shapes on a device."""
    document = parse_document(_PRODUCT.format(precision=precision), f"product on {gpu}")
    program = Scenario(document, _PLATFORM, {"platform.node.gpu.extends": gpu}).program
    return evaluate(program, {f"{_PHASE}.{key}": values for key, values in shapes.items()}).values["product"]


def measured_ratios(rows: Rows) -> dict[str, FloatArray]:
    """Measured times of products over predicted ones by device; without those that are the best of many shapes."""
    found: dict[str, list[FloatArray]] = {}
    for gpu, precision in dict.fromkeys((row["gpu"], row["precision"]) for row in rows if row["use"] != BEST):
        chosen = [row for row in rows if (row["gpu"], row["precision"]) == (gpu, precision) and row["use"] != BEST]
        ratios = _times(chosen) / predicted_times(gpu, precision, _shapes(chosen))
        found.setdefault(gpu, []).append(ratios)
    return {gpu: np.concatenate(parts) for gpu, parts in found.items()}


def _shapes(rows: Rows) -> dict[str, FloatArray]:
    return {key: numbers(rows, key) for key in ("m", "n", "k")}


def _times(rows: Rows) -> FloatArray:
    """Measured times, from the rates."""
    shapes = _shapes(rows)
    times: FloatArray = 2 * shapes["m"] * shapes["n"] * shapes["k"] / (numbers(rows, "rate_Tflop_s") * 1e12)
    return times
