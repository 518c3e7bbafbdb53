"""whatif: a declarative what-if explorer for HPC machines and applications.

`whatif.run`, `sweep`, `compare`, `seek`, .. are the verbs of the command line as functions: see `whatif.api`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whatif.api import Result, Sampling, Scenario, WhatifError, compare, diff, load, run, seek, sensitivity, sweep

__version__ = "0.1.0"
__all__ = [
    "Result",
    "Sampling",
    "Scenario",
    "WhatifError",
    "__version__",
    "compare",
    "diff",
    "load",
    "run",
    "seek",
    "sensitivity",
    "sweep",
]


def __getattr__(name: str) -> Any:
    """A function of the library, loaded when it is first used: the command line starts without it."""
    if name not in __all__:
        raise AttributeError(f"module `whatif` has no attribute `{name}`")
    return getattr(import_module("whatif.api"), name)
