"""Phases of a file of profiled kernels."""

from __future__ import annotations

from pathlib import Path

from whatif.importers.gpu_benchmarks import read_kernels
from whatif.importers.kernel_anchors import with_anchors
from whatif.importers.kernel_phases import kernels_toml
from whatif.schema.platform_spec import PlatformSpec


def kernel_phases(path: Path, _: PlatformSpec, __: Path | None) -> str:
    """`[application.phases]` tables of the kernels, anchored at their measured times where a part is their GPU."""
    return kernels_toml(with_anchors(read_kernels(path)))
