"""Verbs of `whatif import` by the content of a file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from whatif.errors import UsageError, WhatifError
from whatif.plugins import resolve
from whatif.schema.toml import shown_path

_VERBS: Final[Mapping[str, str]] = {
    "trace": "whatif.importers.trace_formats:is_trace",
    "profile": "whatif.profiles.formats:is_profile",
    "kernels": "whatif.importers.gpu_benchmarks:is_kernels",
    # Before those of benchmarks: an output of HPCC has a part of STREAM.
    "logs": "whatif.importers.logs:is_log",
    "gpu": "whatif.importers.gpu_benchmarks:is_gpu",
    "network": "whatif.importers.message_files:is_network",
    "model": "whatif.importers.model_config:is_model_config",
    "runs": "whatif.importers.run_files:is_run_profile",
}
"""Verbs, each with the function that recognises its files; the first that does is taken."""

_ALSO: Final = {"transfer": "profile"}
"""Verbs that read the files of another."""


def import_verb(path: str | Path) -> str:
    """Verb after `whatif import` that reads a file or folder, by its content; empty for one of no known format.

    A CSV file has no known format: its columns may be those of runs, messages or copies.

    >>> import_verb("tests/data/gpuroofperf/kernel_params/jacobi2d/jacobi2d.json")
    'kernels'
    """
    return next((verb for verb, function in _VERBS.items() if _recognises(function, Path(path))), "")


def with_reader(error: WhatifError, paths: Sequence[str | Path], verb: str) -> WhatifError:
    """Error of a verb, with the one of `whatif import` that reads the first of its files of a known format.

    The error itself if no other verb does, or if it names that verb.
    """
    other = next(filter(None, map(import_verb, paths)), "")
    if other in ("", verb, _ALSO.get(verb)) or f"`whatif import {other}`" in str(error):
        return error
    return UsageError(f"{error}; `whatif import {other} {shlex.join(map(str, paths))}` reads it")


def refusal(path: str | Path) -> str:
    """Reason why no verb reads a file: it is a TOML file or an HPL.dat; empty for any other.

    Raise `InvalidFileError` for an empty or binary file, and for damaged JSON.
    """
    from whatif.importers.json_text import parse_json
    from whatif.importers.text import chunks, read_text, refuse

    beginning = next(chunks(Path(path)), "")
    if not beginning:
        raise refuse(shown_path(Path(path)), "the file is empty")
    if Path(path).suffix == ".toml":
        return f"{path}: not a file of another program; `whatif check {path}` reads it"
    if "HPLinpack benchmark input file" in beginning[:1000]:
        return f"{path}: an input of HPL; `whatif hpl {path} --platform PLATFORM` simulates its runs"
    if beginning.lstrip()[:1] in ("{", "["):
        parse_json(read_text(Path(path)), shown_path(Path(path)))
    return ""


def _recognises(function: str, path: Path) -> bool:
    try:
        return bool(resolve(function)(path))
    except (WhatifError, OSError):
        return False
