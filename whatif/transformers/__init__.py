"""Training of transformers: the model and its plan as an application, and its terms."""

from __future__ import annotations

from typing import Final

from whatif.plugins import ApplicationKind, Plugin, Verb

PLUGIN: Final = Plugin(
    applications={
        "training": ApplicationKind(
            "whatif.transformers.training.application:TrainingApplication",
            "whatif.transformers.training.terms:wire_training",
            "whatif.transformers.training.results:training_remarks",
            "whatif.transformers.training.results:training_results",
        )
    },
    verbs={"tune transformer": Verb("whatif.cli.tune_transformer", "Parallelism plan of a training scenario.")},
)
