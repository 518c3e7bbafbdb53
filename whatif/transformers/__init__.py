"""Training and serving of transformers: a model and a plan as an application, and their terms."""

from __future__ import annotations

from typing import Final

from whatif.plugins import ApplicationKind, Plugin, PluginPage, Verb

PLUGIN: Final = Plugin(
    applications={
        "training": ApplicationKind(
            "whatif.transformers.applications:TrainingApplication",
            "whatif.transformers.training.terms:wire_training",
            "whatif.transformers.training.results:training_remarks",
            "whatif.transformers.training.results:training_results",
        ),
        "serving": ApplicationKind(
            "whatif.transformers.applications:ServingApplication",
            "whatif.transformers.serving.terms:wire_serving",
            "whatif.transformers.serving.results:serving_remarks",
            "whatif.transformers.serving.results:serving_results",
        ),
    },
    pages={
        "stages": PluginPage("whatif.tui.pages.stages:StagesPage", "ranks", "training"),
        "memory": PluginPage("whatif.tui.pages.stages:MemoryPage", "ranks", "serving"),
    },
    verbs={"tune transformer": Verb("whatif.cli.tune_transformer", "Plan of training or serving a transformer.")},
)
