"""Applications of transformers, a model and a plan on GPUs with one rank each: training and serving.

An iteration of training is one step of the optimiser, one of serving is one request, as all replicas share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from whatif.schema.application import Application, Overlap, Phase
from whatif.schema.fields import Count, Key
from whatif.schema.transformer import ServingPlan, TrainingPlan, Transformer


class TransformerApplication(Application):
    """Application whose phases follow from a model and a plan."""

    kernels_follow_rates: ClassVar[bool] = True
    states_whole: ClassVar[bool] = True
    work: ClassVar[str]
    """Kind of work, as accuracy cards name it."""
    refused_studies: ClassVar[Mapping[str, str]] = {
        "layout": "ranks of a transformer have no grid: sweep the sizes of `application.plan`"
    }

    transformer: Transformer
    phases: dict[Key, Phase] = Field(default={}, max_length=0)
    """Must be empty: the phases follow from the plan."""
    overlaps: dict[Key, Overlap] = Field(default={}, max_length=0)
    """Must be empty: the plan states what overlaps."""

    @property
    def accuracy_model(self) -> str:
        """Model of all phases, whose accuracy depends on the kind of work and of the blocks."""
        return f"{self.work}_{self.transformer.blocks}"


class TrainingApplication(TransformerApplication):
    """Training of a transformer on GPUs, one rank on each."""

    work: ClassVar[str] = "training"

    kind: Literal["training"]
    """Training of a transformer."""
    name: str = "Training"
    """The program, as people call it."""
    plan: TrainingPlan
    iteration_count: Count = 1.0
    """Steps."""

    def takes_model_error(self, phase: str) -> bool:
        """Whether a phase has the error of the model; the bubble has that of the stage."""
        return phase != "pipeline_bubble"


class ServingApplication(TransformerApplication):
    """Serving of a transformer on GPUs, one rank on each."""

    work: ClassVar[str] = "serving"

    kind: Literal["serving"]
    """Serving of a transformer."""
    name: str = "Serving"
    """The program, as people call it."""
    plan: ServingPlan
    iteration_count: Count = 1.0
    """Requests."""

    def takes_model_error(self, phase: str) -> bool:
        """Whether a phase has the error of the model; not with a rate, to which the requests in flight adapt."""
        return self.plan.request_rate is None and phase != "prefill_wait"
