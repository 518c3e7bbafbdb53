"""Accuracy cards: how far predictions were from measured runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from whatif.schema.fields import StrictTable

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class AccuracyCard(StrictTable):
    """Accuracy of the time of a category of phases, or of the iteration, over measured runs."""

    ratio: Positive = 1.0
    """Geometric mean of measured / predicted: above 1 where predictions are too fast."""
    scatter: Annotated[float, Field(ge=1, allow_inf_nan=False)]
    """Geometric standard deviation of measured / predicted, as a factor."""
    shared_fraction: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of the variance that the predictions of one application have in common on all platforms."""
    mean_absolute_error: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Mean of |predicted / measured - 1|."""
    bias: Annotated[float, Field(gt=-1, allow_inf_nan=False)] | None = None
    """Mean of predicted / measured - 1: negative where predictions are too fast."""
    run_count: Annotated[int, Field(ge=1)]
    """Number of measured runs."""
    applications: list[str] = []
    """Applications that were run."""
    platforms: list[str]
    """Names of the files of the platforms that they ran on."""
    devices: list[str] = []
    """Names of the GPUs that kernels ran on."""
    source: str = ""
    """Kind of the runs, such as `held-out`, or their origin."""
