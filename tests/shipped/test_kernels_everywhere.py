"""Every shipped scenario with kernels runs on every shipped machine, on its GPUs or on its sockets."""

from __future__ import annotations

import numpy as np
import pytest

from whatif.core.evaluate import evaluate
from whatif.core.kernel_notes import kernel_notes
from whatif.core.scenario import Scenario
from whatif.schema.load import load_platform
from whatif.schema.shipped import shipped_names

PLATFORMS = shipped_names("platforms")
KERNELS = ("kernel", "measured_kernel")


def runs_kernels(name):
    phases = Scenario.open(name).program.loaded.scenario.application.phases.values()
    return any(phase.kind in KERNELS for phase in phases)


# `minife_devices` asks for other GPUs than those of the platform, so it needs one that has some.
SCENARIOS = [name for name in shipped_names("scenarios") if runs_kernels(name) and name != "minife_devices"]


def room(name, scenario):
    """Overrides where a machine has too little room for the ranks of a scenario."""
    machine = load_platform(name)[0]
    node = machine.node
    per_node = node.socket_count * node.cpu.core_count if node.gpu is None else node.gpu_count
    places = per_node * machine.node_count
    stated = Scenario.open(scenario).program.loaded.scenario.application.rank_count
    ranks = {"application.rank_count": f"{places:.0f}"} if isinstance(stated, float) and stated > places else {}
    # A rank of HPCG takes 12 GB, more than a core or a K20X has, one of Jacobi2D 2 GiB, more than a core of Fugaku.
    small = node.gpu is None or (node.gpu.memory_size or np.inf) < 12e9
    smaller = {"hpcg": {"parameters.n": "64"}, "jacobi2d": {"application.grid.cells.x": "2048"}}
    return ranks | (smaller.get(scenario, {}) if small else {})


def test_at_least_three_applications_run_kernels():
    assert {"jacobi2d", "minife", "minimd"} <= set(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_kernels_run_on_every_machine(platform, scenario):
    program = Scenario.open(scenario, platform=platform, overrides=room(platform, scenario)).program
    evaluation = evaluate(program)
    assert evaluation.reasons() == ()
    for column in ("total_time", "iteration_time", "kernel_time"):
        values = evaluation.column(column)
        assert np.isfinite(values).all()
        assert (values > 0).all()
    without_gpu = program.loaded.scenario.platform.node.gpu is None
    assert bool(list(kernel_notes(program))) == without_gpu


@pytest.mark.parametrize("platform", [name for name in PLATFORMS if load_platform(name)[0].node.cpu is not None])
def test_kernels_run_on_the_sockets_of_every_machine_that_describes_them(platform):
    overrides = {"application.runs_on": "cpu", "application.rank_count": "16"}
    evaluation = evaluate(Scenario.open("minife", platform=platform, overrides=overrides).program)
    assert evaluation.reasons() == ()
    assert 0 < float(evaluation.column("iteration_time")) < 60
