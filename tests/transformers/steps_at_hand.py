"""Training steps and serving for tests, and their terms."""

from __future__ import annotations

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.schema.toml import parse_document
from whatif.schema.toml_text import toml_value


def step(model="llama-3-8b", ranks=8, platform="dgx_h100", shape="", **plan):
    """Scenario of a training step; other settings are those of a small one."""
    return _scenario("training", model, ranks, platform, shape, {"sequence_length": 4096, "global_batch": 8, **plan})


def served(model="llama-3-8b", ranks=1, platform="dgx_h100", shape="", **plan):
    """Scenario of serving; other settings are those of short requests."""
    return _scenario("serving", model, ranks, platform, shape, {"input_length": 1000, "output_length": 1000, **plan})


def _scenario(kind, model, ranks, platform, shape, settings):
    lines = "\n".join(f"{key} = {toml_value(value)}" for key, value in settings.items())
    text = f"""
[application]
kind = "{kind}"
rank_count = {ranks}
[application.transformer]
extends = "{model}"
{shape}
[application.plan]
{lines}
"""
    return Scenario(parse_document(text, kind), platform)


def terms(*arguments, **options):
    """Values of all terms of a step, feasible or not."""
    return evaluate(step(*arguments, **options).program).values


def served_terms(*arguments, **options):
    """Values of all terms of serving, feasible or not."""
    return evaluate(served(*arguments, **options).program).values
