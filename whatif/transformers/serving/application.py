"""Serving of a transformer as an application: one iteration is one request, as all replicas share it."""

from __future__ import annotations

from typing import ClassVar, Literal

from whatif.schema.fields import Count
from whatif.schema.transformer import ServingPlan
from whatif.transformers.transformer_application import TransformerApplication


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
