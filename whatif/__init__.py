"""Declarative what-if explorer for HPC machines and applications.

The verbs of the command line are functions of this package; `dir(whatif)` lists them.

>>> import whatif
>>> answer = whatif.run("jacobi2d", platform="frontier", overrides={"application.rank_count": 64})
>>> round(float(answer["iteration_time"]) * 1e3, 2) > 0
True
>>> swept = whatif.sweep("jacobi2d", {"platform.node.gpu_count": [2, 4, 6]})
>>> swept.to_pandas()["platform.node.gpu_count"].tolist()
[2.0, 4.0, 6.0]
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # Twice, here for type checkers and in `EXPORTS` for Python: tests/api compares the two.
    from whatif.api.building import new as new
    from whatif.api.causes import diff as diff
    from whatif.api.causes import differences as differences
    from whatif.api.causes import sensitivity as sensitivity
    from whatif.api.common import load as load
    from whatif.api.common import resumable as resumable
    from whatif.api.decisions import budget as budget
    from whatif.api.decisions import compare as compare
    from whatif.api.decisions import scale as scale
    from whatif.api.decisions import tune_grid as tune_grid
    from whatif.api.evaluation import explain as explain
    from whatif.api.evaluation import report as report
    from whatif.api.evaluation import run as run
    from whatif.api.evaluation import sweep as sweep
    from whatif.api.evaluation import sweep_parts as sweep_parts
    from whatif.api.fits import fit_collectives as fit_collectives
    from whatif.api.fits import fit_gpu as fit_gpu
    from whatif.api.fits import fit_host as fit_host
    from whatif.api.fits import fit_kernel as fit_kernel
    from whatif.api.fits import fit_network as fit_network
    from whatif.api.fits import fit_transfer as fit_transfer
    from whatif.api.linpack import hpl as hpl
    from whatif.api.linpack import tune_hpl as tune_hpl
    from whatif.api.measurements import import_gpu as import_gpu
    from whatif.api.measurements import import_kernels as import_kernels
    from whatif.api.measurements import import_logs as import_logs
    from whatif.api.measurements import import_model as import_model
    from whatif.api.measurements import import_network as import_network
    from whatif.api.measurements import import_runs as import_runs
    from whatif.api.measurements import import_transfer as import_transfer
    from whatif.api.measuring import measure as measure
    from whatif.api.pictures import domains as domains
    from whatif.api.pictures import messages as messages
    from whatif.api.pictures import placement as placement
    from whatif.api.pictures import roofline as roofline
    from whatif.api.pictures import timeline as timeline
    from whatif.api.procurement import new_study as new_study
    from whatif.api.procurement import study as study
    from whatif.api.procurement import study_page as study_page
    from whatif.api.profiles import import_profile as import_profile
    from whatif.api.profiles import project as project
    from whatif.api.run_fits import fit_grid as fit_grid
    from whatif.api.run_fits import fit_regression as fit_regression
    from whatif.api.run_fits import fit_scaling as fit_scaling
    from whatif.api.scenarios import calibrate as calibrate
    from whatif.api.scenarios import check as check
    from whatif.api.scenarios import comparisons as comparisons
    from whatif.api.scenarios import json_schema as json_schema
    from whatif.api.scenarios import list_ as list_
    from whatif.api.scenarios import resolve as resolve
    from whatif.api.scenarios import validate as validate
    from whatif.api.searches import break_even as break_even
    from whatif.api.searches import pareto_front as pareto_front
    from whatif.api.searches import seek as seek
    from whatif.api.searches import tune_transformer as tune_transformer
    from whatif.api.simulations import import_trace as import_trace
    from whatif.api.simulations import simulate as simulate
    from whatif.core.platform import Platform as Platform
    from whatif.core.result import Result as Result
    from whatif.core.scenario import Scenario as Scenario
    from whatif.core.uncertainty import Sampling as Sampling
    from whatif.errors import WhatifError as WhatifError

__version__ = "0.1.0"
EXPORTS: Final[dict[str, tuple[str, ...]]] = {
    "whatif.api.building": ("new",),
    "whatif.api.causes": ("diff", "differences", "sensitivity"),
    "whatif.api.common": ("load", "resumable"),
    "whatif.api.decisions": ("budget", "compare", "scale", "tune_grid"),
    "whatif.api.evaluation": ("explain", "report", "run", "sweep", "sweep_parts"),
    "whatif.api.fits": (
        "fit_collectives",
        "fit_gpu",
        "fit_host",
        "fit_kernel",
        "fit_network",
        "fit_transfer",
    ),
    "whatif.api.linpack": ("hpl", "tune_hpl"),
    "whatif.api.measurements": (
        "import_gpu",
        "import_kernels",
        "import_logs",
        "import_model",
        "import_network",
        "import_runs",
        "import_transfer",
    ),
    "whatif.api.measuring": ("measure",),
    "whatif.api.pictures": ("domains", "messages", "placement", "roofline", "timeline"),
    "whatif.api.procurement": ("new_study", "study", "study_page"),
    "whatif.api.profiles": ("import_profile", "project"),
    "whatif.api.run_fits": ("fit_grid", "fit_regression", "fit_scaling"),
    "whatif.api.scenarios": ("calibrate", "check", "comparisons", "json_schema", "list_", "resolve", "validate"),
    "whatif.api.searches": ("break_even", "pareto_front", "seek", "tune_transformer"),
    "whatif.api.simulations": ("import_trace", "simulate"),
    "whatif.core.platform": ("Platform",),
    "whatif.core.result": ("Result",),
    "whatif.core.scenario": ("Scenario",),
    "whatif.core.uncertainty": ("Sampling",),
    "whatif.errors": ("WhatifError",),
}
"""Modules of the public names, each imported when one of its names is first used."""
_MODULES = {name: module for module, names in EXPORTS.items() for name in names}
__all__ = ["__version__", *_MODULES]  # noqa: PLE0604 - `EXPORTS` is the one list of public names


def __getattr__(name: str) -> Any:
    """Public function or type, imported when it is first used: the command line starts without it."""
    if name not in _MODULES:
        # With its object, so that Python suggests the nearest public name.
        raise AttributeError(f"module `whatif` has no attribute `{name}`", name=name, obj=sys.modules[__name__])
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Public names, for tab completion."""
    return sorted(__all__)
