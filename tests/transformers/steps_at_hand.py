"""Training steps for tests, and their terms."""

from __future__ import annotations

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.schema.toml import parse_document
from whatif.schema.toml_text import toml_value


def step(model="llama-3-8b", ranks=8, platform="dgx_h100", shape="", **plan):
    """Scenario of a training step; other settings are those of a small one."""
    settings = {"sequence_length": 4096, "global_batch": 8, **plan}
    lines = "\n".join(f"{key} = {toml_value(value)}" for key, value in settings.items())
    text = f"""
[application]
kind = "training"
rank_count = {ranks}
[application.transformer]
extends = "{model}"
{shape}
[application.plan]
{lines}
"""
    return Scenario(parse_document(text, "step"), platform)


def terms(*arguments, **options):
    """Values of all terms of a step, feasible or not."""
    return evaluate(step(*arguments, **options).program).values
