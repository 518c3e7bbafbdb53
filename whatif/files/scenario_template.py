"""Texts of new scenarios: a small one to start from, or one with chosen phases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from whatif.errors import UsageError, WhatifError
from whatif.paths import user_path
from whatif.schema.load import load_platform
from whatif.schema.motifs import application_of, motif_named, phase_file
from whatif.schema.phase_edits import PhaseEdit, edited
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.toml import FORMAT_LINE, Document, KeyPath, parse_document
from whatif.schema.toml_sections import with_values
from whatif.schema.toml_text import toml_value

_TOLD: Final = ("rank_count", "ranks_per_node", "iteration_count")
"""Values of a scenario that a profile or trace gives."""
_MOST_RANKS: Final = 16

_HEAD: Final = """\
# Where does an iteration of this application spend its time?
#
# `whatif open FILE` explores it, `whatif check FILE` reports mistakes; a quantity is text with a unit.

{format}
platform = {platform}

[application]
name = {name}
rank_count = {count:<18} # processes{ranks}
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
model = "node_aware"
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


def template(
    name: str,
    platform: str,
    folders: Sequence[Path] = (),
    phases: Sequence[tuple[str, str]] = (),
    folder: Path | None = None,
) -> str:
    """Text of a new scenario on a platform, for a file in a folder.

    Its phases are those of `phases` (name of a phase, source), by default a halo and its work. The first profile or
    trace among the sources gives the numbers of ranks and iterations. Raise `UsageError` for unknown sources, with the
    error of the platform if that is wrong, too.
    """
    machine = _machine(platform, tuple(folders), [source for _, source in phases])
    node = machine.node
    device = "GPU" if node.gpu is not None else "core" if node.cpu is not None else ""
    devices = _device_count(machine)
    count = min(_MOST_RANKS, devices)
    each = f", one for each {device}" if count == devices else f", each on one of {devices:,} {device}s"
    ranks = each if device else "\nranks_per_node = 16"
    stated = {"name": toml_value(name), "platform": toml_value(platform), "count": count}
    head = _HEAD.format(**stated, format=FORMAT_LINE, ranks=ranks)
    if not phases:
        return f"{head}\n{_GRID_AND_HALO}\n{_KERNEL if device else _MEASURED}"
    document = _as_told(parse_document(head, f"{name}.toml", folder), phases, tuple(folders))
    for phase, source in phases:
        document = edited(document, PhaseEdit("add", phase, source), tuple(folders))
    return document.text


def _machine(platform: str, folders: tuple[Path, ...], sources: Sequence[str]) -> PlatformSpec:
    """Platform of a name; raise the errors of platform and sources together."""
    by_name = [source for source in sources if phase_file(user_path(source)) is None]
    checks: list[Callable[[], object]] = [partial(load_platform, platform, folders)]
    checks += [partial(motif_named, source, folders) for source in by_name]
    errors = []
    for check in checks:
        try:
            check()
        except WhatifError as error:
            errors.append(error)
    if len(errors) > 1:
        raise UsageError("\n".join(map(str, errors)))
    if errors:
        raise errors[0]
    return load_platform(platform, folders)[0]


def _as_told(document: Document, phases: Sequence[tuple[str, str]], folders: tuple[Path, ...]) -> Document:
    """Head of a scenario with the numbers that the first profile or trace among its sources gives."""
    files = (source for _, source in phases if phase_file(user_path(source)) is not None)
    told = (application_of(motif_named(source, folders, document).document, folders) for source in files)
    application = next((table for table in told if "rank_count" in table), {})
    values: dict[KeyPath, str | None] = {
        ("application", key): toml_value(application[key]) for key in _TOLD if key in application
    }
    return parse_document(with_values(document.text, values), document.name, document.folder)


def _device_count(machine: PlatformSpec) -> int:
    """GPUs of a machine, else its cores."""
    node = machine.node
    cores = node.cpu.core_count if node.cpu is not None else _MOST_RANKS
    per_node = (node.gpu_count,) if node.gpu is not None else (node.socket_count, cores)
    counts = [count for count in (machine.node_count, *per_node) if isinstance(count, float | int)]
    return int(math.prod(counts))
