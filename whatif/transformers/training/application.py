"""Training of a transformer as an application: one iteration is one step of the optimiser."""

from __future__ import annotations

from typing import ClassVar, Literal

from whatif.schema.fields import Count
from whatif.schema.transformer import TrainingPlan
from whatif.transformers.transformer_application import TransformerApplication


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
