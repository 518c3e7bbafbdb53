"""Errors of measured rows by kind: numbers, means and biases in words, and those beyond their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from whatif.models.quantities import FloatArray

Row = Mapping[str, str]
Rows = list[dict[str, str]]
Masks = Mapping[str, Any]


def summaries(masks: Masks, errors: FloatArray, rows: str) -> str:
    """Number of the rows, mean absolute error and bias of each kind, in words."""
    return "; ".join(
        f"{kind}: {mask.sum()} {rows}, mean error {np.abs(errors[mask]).mean():.1%}, bias {errors[mask].mean():+.1%}"
        for kind, mask in masks.items()
    )


def beyond(masks: Masks, errors: FloatArray, bounds: Mapping[str, float]) -> dict[str, str]:
    """Note of the kinds whose mean error is beyond its bound or unknown; empty if none is."""
    means = {kind: np.abs(errors[mask]).mean() for kind, mask in masks.items()}
    words = [f"{kind}: mean error {mean:.1%}, bound {bounds[kind]:.0%}" for kind, mean in means.items()
             if not mean <= bounds[kind]]  # fmt: skip
    return {"beyond": "; ".join(words)} if words else {}
