"""A study of three bids that can be worked out by hand, in a folder of its own.

Application `a` takes 1 s for each GPU of a node, `b` 60 s over that number; both have 12 ranks and no kernels. The
nodes of Summit have 6 GPUs, those of Lassen 4. A bid with 3 GPUs a node extends Summit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.one_phase import one_phase

BIDS: Final = """
[bids.six]
platform = "summit"
node_price = "50 kUSD"
[bids.four]
platform = "lassen"
node_price = "40 kUSD"
[bids.three]
platform = "three.toml"
node_count = 90
price = "2.7 MUSD"
"""
STUDY: Final = """
question = "Which one?"
[present]
platform = "lassen"
node_count = 100
node_price = "40 kUSD"
{bids}
[mix.a]
scenario = "a.toml"
weight = 3
[mix.b]
scenario = "b.toml"
[limits]
{limits}
[site]
energy_price = "0.36 USD/kWh"
carbon_intensity = "400 gCO2e/kWh"
{more}
"""
LIMITS: Final = 'capital = "5 MUSD"\nlifetime = "1000 days"'
SUMMIT: Final = (543 + 6 * 37.5, 6 * 262.5)
LASSEN: Final = (406.08 + 4 * 37.5, 4 * 262.5)
"""Power of a node in W: idle, and what its GPUs add under load."""


def study_file(folder: Path, *, bids: str = BIDS, limits: str = LIMITS, more: str = "") -> Path:
    """Path of the study, with its applications and a platform next to it."""
    for name, formula in (("a", "platform.node.gpu_count"), ("b", "60 / platform.node.gpu_count")):
        (folder / f"{name}.toml").write_text(one_phase(f"= 1 s * {formula}", ranks=12))
    (folder / "three.toml").write_text('extends = "summit"\nname = "Three"\n[node]\ngpu_count = 3\n')
    path = folder / "study.toml"
    path.write_text(STUDY.format(bids=bids, limits=limits, more=more))
    return path
