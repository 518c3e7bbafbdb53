"""A simulated machine in place of the workers, the clock and MPI of `whatif measure`."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import date

import numpy as np

from whatif.measuring.blas_calls import KERNELS
from whatif.measuring.hardware import Machine, PhysicalCore
from whatif.measuring.kernels import CHAIN
from whatif.measuring.mpi_ranks import SIZES
from whatif.measuring.ping_pongs import Messages
from whatif.measuring.whole_machine import Instruments

CORE, SOCKET, CACHE = 20e9, 60e9, 400e9
"""Bandwidths of one core, of a socket, and of the cache of a socket, in B/s."""
DOUBLE, PRODUCT = 100e9, 80e9
"""Operations per second of one core: of multiply-adds, and of matrix products."""
REUSE = {"memory": 100e9, "cache": 500e9}
"""Bandwidths of loads from the first cache: of a core, and of all cores of a socket."""
MACHINE = Machine(
    "testhost", "Test CPU", tuple(PhysicalCore((at,), at // 4, at // 4, at // 4) for at in range(8)),
    (32768.0, 2.0**20, 2.0**25), "hwloc 2.9.0", 3e9, 64e9, ("disk0, 500 GB",),
)  # fmt: skip


class SimulatedTeam:
    """Times of loops from the rates above, with a scatter of a thousandth, and a clock that they move."""

    def __init__(self):
        self.now = 0.0
        self.random = np.random.default_rng(0)
        self.interrupt_at = np.inf

    def clock(self):
        return self.now

    def rounds(self, workers, count, **command):
        loops = {"triad": self.stream, "convolution": self.stream, "multiply_add": self.operate, "gemm": self.multiply}
        if self.now >= self.interrupt_at:
            raise KeyboardInterrupt
        if command["do"] == "hpl":
            seconds = np.array([call_time(KERNELS[kernel], m, n, k) for kernel, m, n, k, _ in command["plan"]])
        else:
            seconds = np.full(count, loops[command["do"]](workers, **command))
        taken = seconds[:, None] * self.random.normal(1.0, 1e-3, (count, workers))
        starts = self.now + np.cumsum(seconds)[:, None] - seconds[:, None] + np.zeros((1, workers))
        self.now += float(seconds.sum())
        return np.stack([starts, starts + taken], axis=2)

    @staticmethod
    def stream(workers, *, do, length, sweeps, **_):
        """Bytes over the bandwidth; loads from the first cache take time of their own."""
        in_memory = 3 * 8 * length * workers > MACHINE.last_level * MACHINE.cache_count
        bandwidth = min(CORE * workers, 2 * SOCKET) if in_memory else 2 * CACHE
        reuse = REUSE["memory"] * workers if in_memory else 2 * REUSE["cache"]
        moved, again = (24, 0) if do == "triad" else (16, 64)
        return workers * length * sweeps * (moved / bandwidth + again / reuse)

    @staticmethod
    def operate(workers, *, length, sweeps, precision, **_):
        return 2 * CHAIN * length * sweeps / (DOUBLE * (2 if precision == "float32" else 1))

    @staticmethod
    def multiply(workers, *, shape, sweeps, precision, **_):
        m, n, k = shape
        return 2 * m * n * k * sweeps / (PRODUCT * (2 if precision == "float32" else 1))


def call_time(kernel, m, n, k):
    """Time of a call: a constant, and what its operations or elements take."""
    if kernel == "dgemm":
        return 1e-7 + 2 * m * n * k / PRODUCT
    size = {"dtrsm": m * m * n, "dtrsv": n, "daxpy": n, "dscal": n, "idamax": n}.get(kernel, m * n)
    return 1e-7 + 1e-9 * size


def simulated_messages(launcher, seconds):
    """A latency of 200 ns and 10 GB/s below 4 KiB, of 1 us and 20 GB/s above; an allreduce at 1 GB/s."""
    random = np.random.default_rng(1)

    def taken(size):
        latency, bandwidth = (200e-9, 10e9) if size <= 4096 else (1e-6, 20e9)
        return (latency + size / bandwidth) * float(random.normal(1.0, 1e-3))

    rows = [(size, taken(size)) for size in SIZES for _ in range(5)]
    collectives = [("allreduce", size, 1e-6 + size / 1e9) for size in (8, 4096) for _ in range(3)]
    return Messages("Test MPI 1.0", 2, {"intra_socket": rows}, collectives, 2), ""


def no_messages(launcher, seconds):
    """What a machine without mpi4py answers."""
    return None, "mpi4py is not installed"


class SimulatedArrays:
    """A GPU with a bandwidth of its memory, of copies, and rates of products; it moves the clock of a team."""

    device_count, precisions = 2, ("fp64", "fp32", "bf16")
    bandwidth, copies = 3e12, 50e9

    def __init__(self, team):
        self.team, self.rates = team, {"fp64": 60e12, "fp32": 40e12, "bf16": 700e12}

    def ones(self, shape, precision, device):
        return np.broadcast_to(np.float64(1), shape), precision

    def random(self, shape, precision):
        return self.ones(shape, precision, 0)

    def triad(self, a, b, c):
        self.team.now += 24 * a[0].size / self.bandwidth

    def copy(self, target, source):
        self.team.now += 8 * source[0].size / self.copies

    def product(self, a, b, c):
        self.team.now += 2 * a[0].shape[0] ** 3 / self.rates[a[1]]

    def wait(self):
        self.team.now += 1e-5


def simulated(team=None, messages=simulated_messages, machine=MACHINE, arrays=SimulatedArrays):
    """Instruments of a simulated machine."""
    team = SimulatedTeam() if team is None else team

    @contextmanager
    def workers(found, library):
        yield team

    return Instruments(lambda: machine, workers, messages, lambda: arrays(team), team.clock, lambda: date(2026, 11, 23))
