"""Base of the applications of transformers: a model and a plan, on GPUs with one rank each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from whatif.schema.application import Application, Overlap, Phase
from whatif.schema.fields import Key
from whatif.schema.transformer import Transformer


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
