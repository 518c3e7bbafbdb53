"""Paths of the tables, parameters and terms that several modules refer to."""

from typing import Final

NODE: Final = "platform.node"
CPU: Final = f"{NODE}.cpu"
GPU: Final = f"{NODE}.gpu"
NODE_COUNT: Final = "platform.node_count"
RANK_COUNT: Final = "application.rank_count"
NODES_NEEDED: Final = "placement.nodes_needed"
