"""Serving of a transformer as an application: one iteration is one request, as all replicas share it."""

from __future__ import annotations

from typing import Literal

from whatif.schema.fields import Count
from whatif.schema.transformer import ServingPlan
from whatif.transformers.transformer_application import TransformerApplication


class ServingApplication(TransformerApplication):
    """Serving of a transformer on GPUs, one rank on each."""

    kind: Literal["serving"]
    """Serving of a transformer."""
    name: str = "Serving"
    """The program, as people call it."""
    plan: ServingPlan
    iteration_count: Count = 1.0
    """Requests."""
