"""Texts of new scenarios: a small one to start from, or one with chosen phases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from whatif.schema.load import load_platform
from whatif.schema.phase_edits import PhaseEdit, edited
from whatif.schema.toml import Document, parse_document
from whatif.schema.toml_text import toml_value

_HEAD: Final = """\
# Where does an iteration of this application spend its time?
#
# `whatif open FILE` explores it, `whatif check FILE` reports mistakes; a quantity is text with a unit.

platform = {platform}

[application]
name = {name}
rank_count = 16                 # processes{ranks}
iteration_count = 100
"""
_GRID_AND_HALO: Final = """\
# The cells of one rank. With scaling = "strong" they are those of all ranks together.
[application.grid]
scaling = "weak"
cells = { x = 4096, y = 4096 }

# The phases of one iteration, in order. First the ranks exchange the borders of their cells ..
[application.phases.halo]
kind = "halo"
model = "k_model"
neighbours = "faces"            # "all": across the corners as well
element_size = "8 B"
halo_width = 1
"""
_KERNEL: Final = """\
# .. then the GPU, or the cores of the rank, compute every cell; these numbers come from a profile of the kernel.
[application.phases.update]
kind = "kernel"
model = "roofline"
dominant_operation = "fp_64"
metrics_per = "cell"
operations = "6 flop"
dram_size = "17 B"
compute_fraction = 0.14         # shares of all instructions
load_store_fraction = 0.17
"""
_MEASURED: Final = """\
# .. then the processor computes every cell; its time is measured, as the platform does not state its rates.
[application.phases.update]
kind = "overhead"
overhead_time = "10 ms"
"""


def template(name: str, platform: str, folders: Sequence[Path] = (), phases: Sequence[tuple[str, str]] = ()) -> str:
    """Text of a new scenario on a platform.

    Its phases are those of `phases` (name of a phase, motif), by default a halo and its work. Raise `UsageError` for an
    unknown motif.
    """
    node = load_platform(platform, folders)[0].node
    device = "GPU" if node.gpu is not None else "core" if node.cpu is not None else ""
    ranks = f", one for each {device}" if device else "\nranks_per_node = 16"
    head = _HEAD.format(name=toml_value(name), platform=toml_value(platform), ranks=ranks)
    if not phases:
        return f"{head}\n{_GRID_AND_HALO}\n{_KERNEL if device else _MEASURED}"
    document: Document = parse_document(head, f"{name}.toml")
    for phase, motif in phases:
        document = edited(document, PhaseEdit("add", phase, motif), tuple(folders))
    return document.text
