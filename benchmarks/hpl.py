"""Time to simulate HPL: runs of the paper against the time of the emulator, and compiled against plain loops.

The times of the emulator were published with its predictions (`simulation_time` of Dahu's model C1: 16,753 s; 62 h and
19 GB for Stampede, section 7.3; Cornebize et al. 2019). Kernels and messages here are similar to Dahu's, rounded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

from benchmarks.measure import Row, median_seconds, peak_memory
from whatif.linpack.simulation import loop_kernel, solve_kernel
from whatif.linpack.simulation import simulator as module
from whatif.linpack.simulation.configuration import Broadcast, Configuration, RowSwap
from whatif.linpack.simulation.costs import KERNELS
from whatif.linpack.simulation.simulator import HPLMachine, simulate

EMULATOR_DAHU, EMULATOR_STAMPEDE, EMULATOR_STAMPEDE_MEMORY = 16753.0, 62 * 3600.0, 19e9
REPLICATES = 32
_COMPILE_EVERY_FUNCTION = """
from numba.core.compiler import Compiler
from whatif.simulation import jit
jit._compiler_of_callees = lambda: Compiler
"""
_COMPILE = """
from benchmarks.hpl import _processor_seconds, small_run
print(_processor_seconds(small_run(1024)))
"""
SLOPES = {
    "dtrsm": 5.5e-11, "dgemv": 1.3e-9, "dscal": 3.8e-10, "idamax": 6.1e-10, "dlaswp01t": 7.5e-9, "dlaswp02n": 2.8e-8,
    "dlaswp03t": 3.8e-9, "dlaswp04t": 8.5e-9, "dlatcpy": 4.9e-9, "dlacpy": 3.9e-9,
}  # fmt: skip
"""Time of the kernels per element (dtrsm: per operation)."""


def high_performance_linpack() -> Iterator[Row]:
    """Time of Dahu with noise and shared adapters, its replicates, Stampede, and a run for the explorer."""
    seconds = median_seconds(small_run(38_400), 5)
    yield Row("HPL, 64 ranks, 300 steps", f"{1e3 * seconds:.0f} ms", "100 ms", 0.1 / seconds, "target of the explorer")
    yield _plain()
    yield _compiled()
    dahu, machine = (
        Configuration(500_000, 128, 32, 32, Broadcast.TWO_RING, 1, RowSwap.BINARY_EXCHANGE),
        _machine(1024, 32),
    )
    seconds = _processor_seconds(lambda: simulate(dahu, machine, noisy=True))
    yield _row("HPL on Dahu, N = 500,000, noise", seconds, EMULATOR_DAHU, "SimGrid's emulation, model C1")
    start = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda seed: simulate(dahu, machine, seed=seed, noisy=True), range(REPLICATES)))
    seconds = time.perf_counter() - start
    yield _row(
        f"{REPLICATES} of them, two threads", seconds, REPLICATES * EMULATOR_DAHU, "SimGrid's emulation, model C1"
    )
    yield from _stampede()


def small_run(matrix_size: int) -> Callable[[], object]:
    """Simulation on 64 ranks, 32 on a node."""
    small = Configuration(matrix_size, 128, 8, 8, Broadcast.RING_MODIFIED, 1, RowSwap.MIX)
    return lambda: simulate(small, _machine(64, 32))


def _stampede() -> Iterator[Row]:
    seconds = _processor_seconds(_simulate_stampede)
    yield _row("HPL on Stampede, N = 3,875,000", seconds, EMULATOR_STAMPEDE, "SimGrid's emulation, 62 h")
    memory = peak_memory(_simulate_stampede)
    ratio = EMULATOR_STAMPEDE_MEMORY / memory
    yield Row("peak memory of this run", f"{memory / 1e6:.0f} MB", "19 GB", ratio, "SimGrid's emulation")


def _simulate_stampede() -> None:
    run = Configuration(3_875_000, 1024, 77, 78, Broadcast.LONG_MODIFIED, 0, RowSwap.BINARY_EXCHANGE)
    simulate(run, _machine(run.rank_count, 1))


def _plain() -> Row:
    """Speed-up of the compiled loops."""
    run, machine = Configuration(1600, 64, 4, 4, Broadcast.RING_MODIFIED, 1, RowSwap.MIX), _machine(16, 4)
    compiled_time = median_seconds(lambda: simulate(run, machine, noisy=True), 5)
    plain = (loop_kernel.steps, solve_kernel.back_substitute)
    with patch.object(module, "jitted_or_plain", lambda *_, **__: plain):
        plain_time = median_seconds(lambda: simulate(run, machine, noisy=True), 3)
    return _row("HPL, 16 ranks, 25 steps", compiled_time, plain_time, "the same loops, not compiled")


def _compiled() -> Row:
    """Time to compile the loops, which the first run on a computer takes."""
    seconds, other = (_compilation(source) for source in (_COMPILE, _COMPILE_EVERY_FUNCTION + _COMPILE))
    return _row("HPL, compilation of its loops", seconds, other, "numba, machine code of every function")


def _compilation(source: str) -> float:
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        found = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, check=True)
    return float(found.stdout)


def _processor_seconds(action: Callable[[], object]) -> float:
    """Seconds of one run on one core."""
    start = time.process_time()
    action()
    return time.process_time() - start


def _row(what: str, seconds: float, other: float, alternative: str) -> Row:
    return Row(what, f"{seconds:.3g} s", f"{other:,.3g} s", other / seconds, alternative)


def _machine(rank_count: int, ranks_per_node: int) -> HPLMachine:
    """Kernels with 3 % of noise, 12.5 GB/s between nodes, and three protocols."""
    kernels = np.zeros((len(KERNELS), 5))
    kernels[0, 1], kernels[4] = 6.5e-11, np.inf
    for name, slope in SLOPES.items():
        kernels[KERNELS.index(name), 1] = slope
    kernels[1], kernels[5:, 3] = 0.03 * kernels[0], 0.03 * kernels[5:, 1]
    far = np.array([[0.0, 1e-6, 8e-11, 3e-7, 1e-10, 1e-6, 8e-11, 0.0]] * 3)
    far[:, 0], far[:, 7] = [0.0, 8192.0, 65536.0], [0, 1, 2]
    near = far.copy()
    near[:, 1] = 0.0
    gap = 8e-11 if ranks_per_node > 1 else 0.0
    nodes = np.arange(rank_count) // ranks_per_node
    return HPLMachine(kernels, np.array([near, far]), nodes, np.ones(rank_count), gap)
