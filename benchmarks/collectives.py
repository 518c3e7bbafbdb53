"""Collectives of groups: points per second over link and port parameters, and placement of a million ranks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from benchmarks.measure import Row, median_seconds
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.schema.toml import parse_document

HEAD = """
[platform]
extends = "dgx_h100"
node_count = 200_000

[application]
name = "Layer"
rank_count = 512
iteration_count = 1

[application.groups]
tensor = { size = 8 }
pipeline = { size = 4 }
data = { size = 16 }
"""
PHASE = """
[application.phases.{name}]
kind = "collective"
algorithm = "{algorithm}"
model = "{model}"
message_size = "64 MiB"
group = "{group}"
"""
PHASES = (
    ("activations", "ring", "max_rate", "tensor"),
    ("gradients", "best", "nccl", "data"),
    ("stages", "recursive_doubling", "max_rate", "pipeline"),
    ("weights", "ring_allgather", "max_rate", "data"),
    ("tokens", "pairwise", "nccl", "tensor"),
)
PORTS, LINKS = "platform.network.port_count", "platform.node.peer_link.link_count"
RATE = "platform.network.inter_node.max_rate.rendezvous.base_bandwidth"
AXES = (f"{PORTS} = 1 .. 8 step 1", f"{LINKS} = 1 .. 100 step 1", f"{RATE} = 1 GB/s .. 125 GB/s step 1 GB/s")


def grouped_collectives() -> Iterator[Row]:
    """Rate of a sweep of 10^5 points, against evaluation of each point; time of the placement of 2^20 ranks."""
    keys = ("name", "algorithm", "model", "group")
    text = HEAD + "".join(PHASE.format(**dict(zip(keys, phase, strict=True))) for phase in PHASES)
    scenario = Scenario(parse_document(text, "layer.toml"))
    grid = grid_of([parse_option(axis, scenario.program, 10**6) for axis in AXES], 10**6)
    seconds = median_seconds(partial(run_whole, scenario, grid), 7)
    each = median_seconds(partial(evaluate, scenario.program), 15)
    rate = grid.size / seconds
    what = f"5 collectives in 3 groups, {grid.size:,} points"
    yield Row(what, f"{rate / 1e6:.1f} M/s", f"{1 / each:.0f} /s", rate * each, "point by point")
    sizes = {"application.rank_count": str(2**20), "application.groups.data.size": str(2**15)}
    begun = time.perf_counter()  # Once only: the placement is kept.
    evaluate(scenario.changed(sizes).program)
    yield Row("the same on 2^20 ranks, placed", f"{time.perf_counter() - begun:.1f} s", "", 0.0, "")
