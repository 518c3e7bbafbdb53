"""A scenario of one phase whose time is an expression, with the parameters that it is made of."""

from __future__ import annotations

TEXT = """
[platform]
extends = "{platform}"
[application]
name = "t"
rank_count = {ranks}
iteration_count = {iterations}
[parameters]
{parameters}
[application.phases.work]
kind = "overhead"
overhead_time = "{time}"
"""


def one_phase(time: str, *, platform: str = "summit", ranks: int = 6, iterations: int = 1, **parameters: float) -> str:
    """The text of the scenario."""
    lines = "\n".join(f"{name} = {value}" for name, value in parameters.items())
    return TEXT.format(time=time, platform=platform, ranks=ranks, iterations=iterations, parameters=lines)
