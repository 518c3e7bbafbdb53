"""Serving of a transformer as an application: one iteration is one request, as all replicas share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from whatif.schema.application import Application, Key, Overlap, Phase
from whatif.schema.fields import Count
from whatif.schema.transformer import ServingPlan, Transformer


class ServingApplication(Application):
    """Serving of a transformer on GPUs, one rank on each."""

    kernels_follow_rates: ClassVar[bool] = True
    states_whole: ClassVar[bool] = True
    refused_studies: ClassVar[Mapping[str, str]] = {
        "layout": "ranks of a replica have no grid: sweep the sizes of `application.plan`",
    }

    kind: Literal["serving"]
    """Serving of a transformer."""
    name: str = "Serving"
    """The program, as people call it."""
    transformer: Transformer
    plan: ServingPlan
    iteration_count: Count = 1.0
    """Requests."""
    phases: dict[Key, Phase] = Field(default={}, max_length=0)
    """Must be empty: the phases are those of a step."""
    overlaps: dict[Key, Overlap] = Field(default={}, max_length=0)
    """Must be empty: steps do not overlap communication with computation."""
