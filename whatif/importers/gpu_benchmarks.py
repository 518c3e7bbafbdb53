"""Files about GPUs by their content: measured rates and bandwidths, and profiled kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from whatif.errors import WhatifError
from whatif.importers.babelstream import parse_babelstream
from whatif.importers.gpuroofperf import parse_gpu_rates, parse_kernel_profile
from whatif.importers.mixbench import parse_mixbench
from whatif.importers.nsight_compute import parse_nsight_compute
from whatif.importers.nsight_kernels import kernel_metrics
from whatif.importers.text import read_text, reading, refuse
from whatif.schema.toml import shown_path
from whatif.table import Table


def _parse_kernels(text: str, file: str) -> Table:
    return kernel_metrics(parse_nsight_compute(text, file))


HEAD_SIZE: Final = 2**20
"""Letters at the beginning of a file that show its format."""
Parser = Callable[[str, str], Table]
GPU_FORMATS: Final[Mapping[str, tuple[re.Pattern[str], Parser]]] = {
    "gpuroofperf GPU parameters": (re.compile(r'\A\s*"?GPU"?\s*,'), parse_gpu_rates),
    "mixbench": (re.compile(r"^(mixbench|Experiment ID,|Operations ratio,)", re.M), parse_mixbench),
    "BabelStream or STREAM": (
        re.compile(r"^(BabelStream|GPU-STREAM|STREAM version|Function\s|function,num_times)", re.M),
        parse_babelstream,
    ),
}
"""Formats of measured rates: pattern of their beginning, and parser."""
KERNEL_FORMATS: Final[Mapping[str, tuple[re.Pattern[str], Parser]]] = {
    "gpuroofperf kernel parameters": (re.compile(r"\A\s*\{"), parse_kernel_profile),
    "Nsight Compute": (re.compile(r'^==(PROF|ERROR)==|^"[^\n]*"Kernel Name"', re.M), _parse_kernels),
}
"""Formats of kernel metrics."""


def read_gpu(path: Path) -> Table:
    """Measurements of a GPU in a file; the note `format` names the format.

    Columns are those of the format's own reader. Raise `InvalidFileError` for an unknown format, with the known ones.
    """
    return _read(path, GPU_FORMATS)


def read_kernels(path: Path) -> Table:
    """Profiled kernels of a file, with `KERNEL_COLUMNS`; the note `format` names the format.

    Raise `InvalidFileError` for an unknown format, with the known ones.
    """
    return _read(path, KERNEL_FORMATS)


def is_gpu(path: Path) -> bool:
    """Whether a file holds measured rates of a known format."""
    return path.is_file() and _recognised(read_text(path), GPU_FORMATS) is not None


def is_kernels(path: Path) -> bool:
    """Whether a file holds profiled kernels of a known format."""
    if not path.is_file():
        return False
    try:
        return len(read_kernels(path)) > 0
    except WhatifError:
        return False


Formats = Mapping[str, tuple[re.Pattern[str], Parser]]


def _read(path: Path, formats: Formats) -> Table:
    text, file = read_text(path), shown_path(path)
    name = _recognised(text, formats)
    if name is None:
        raise refuse(file, f"neither {' nor '.join(formats)}" if text.strip() else "the file is empty")
    with reading(path, name):
        table = formats[name][1](text, file)
    return replace(table, notes={"format": name, **table.notes})


def _recognised(text: str, formats: Formats) -> str | None:
    return next((name for name, (pattern, _) in formats.items() if pattern.search(text, 0, HEAD_SIZE)), None)
