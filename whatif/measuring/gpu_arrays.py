"""Arrays on GPUs by torch or cupy, which are imported only here, and the rates of loops over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from whatif.measuring.repetition import Clock, Task

TRIAD: Final = "GPU triad"
PRODUCT: Final = "GPU product, "
_TYPES: Final = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_LENGTH: Final = 2**25
"""Elements of 8 B of each array that is streamed: 256 MiB, more than second-level caches hold."""
_ORDER: Final = 8192
"""Rows and columns of the matrices."""
_LEAST_TIME: Final = 0.02
"""Seconds of a repetition: long against the start of a kernel."""


class Arrays(Protocol):
    """Arrays on GPUs; tests replace it."""

    device_count: int
    precisions: tuple[str, ...]
    """Precisions of the matrix products."""

    def ones(self, shape: tuple[int, ...], precision: str, device: int | None) -> Any:
        """Ones on a device; None: in page-locked memory of the host."""
        ...

    def random(self, shape: tuple[int, ...], precision: str) -> Any:
        """Standard normal values on the first device: products of equal values draw less power and run faster."""
        ...

    def triad(self, a: Any, b: Any, c: Any) -> None:
        """a = b + 3 c."""
        ...

    def copy(self, target: Any, source: Any) -> None:
        """A copy between two places."""
        ...

    def product(self, a: Any, b: Any, c: Any) -> None:
        """c = a b."""
        ...

    def wait(self) -> None:
        """Wait until all devices are done."""
        ...


class TorchArrays:
    """Arrays of torch, for CUDA and ROCm."""

    precisions: tuple[str, ...] = tuple(_TYPES)

    def __init__(self, torch: Any) -> None:
        self.torch, self.device_count = torch, int(torch.cuda.device_count())

    def ones(self, shape: tuple[int, ...], precision: str, device: int | None) -> Any:
        """See `Arrays`."""
        kind = getattr(self.torch, _TYPES[precision])
        if device is None:
            return self.torch.ones(shape, dtype=kind).pin_memory()
        return self.torch.ones(shape, dtype=kind, device=f"cuda:{device}")

    def random(self, shape: tuple[int, ...], precision: str) -> Any:
        """See `Arrays`."""
        return self.torch.randn(shape, dtype=getattr(self.torch, _TYPES[precision]), device="cuda:0")

    def triad(self, a: Any, b: Any, c: Any) -> None:
        """See `Arrays`."""
        self.torch.add(b, c, alpha=3.0, out=a)

    def copy(self, target: Any, source: Any) -> None:
        """See `Arrays`."""
        target.copy_(source, non_blocking=True)

    def product(self, a: Any, b: Any, c: Any) -> None:
        """See `Arrays`."""
        self.torch.matmul(a, b, out=c)

    def wait(self) -> None:
        """See `Arrays`."""
        for device in range(self.device_count):
            self.torch.cuda.synchronize(device)


class CupyArrays:
    """Arrays of cupy, which has no bf16."""

    precisions: tuple[str, ...] = ("fp64", "fp32", "fp16")

    def __init__(self, cupy: Any, pinned: Callable[..., Any]) -> None:
        self.cupy, self._pinned, self.device_count = cupy, pinned, int(cupy.cuda.runtime.getDeviceCount())
        self._triad = cupy.ElementwiseKernel("T b, T c", "T a", "a = b + 3 * c", "triad")

    def ones(self, shape: tuple[int, ...], precision: str, device: int | None) -> Any:
        """See `Arrays`."""
        if device is None:
            array = self._pinned(shape, dtype=_TYPES[precision])
            array[...] = 1
            return array
        with self.cupy.cuda.Device(device):
            return self.cupy.ones(shape, dtype=_TYPES[precision])

    def random(self, shape: tuple[int, ...], precision: str) -> Any:
        """See `Arrays`."""
        with self.cupy.cuda.Device(0):
            return self.cupy.random.standard_normal(shape, dtype="float32").astype(_TYPES[precision])

    def triad(self, a: Any, b: Any, c: Any) -> None:
        """See `Arrays`."""
        self._triad(b, c, a)

    def copy(self, target: Any, source: Any) -> None:
        """See `Arrays`."""
        if not isinstance(source, self.cupy.ndarray):
            target.set(source)
        elif not isinstance(target, self.cupy.ndarray):
            source.get(out=target)
        else:
            self.cupy.copyto(target, source)

    def product(self, a: Any, b: Any, c: Any) -> None:
        """See `Arrays`."""
        self.cupy.matmul(a, b, out=c)

    def wait(self) -> None:
        """See `Arrays`."""
        for device in range(self.device_count):
            self.cupy.cuda.Device(device).synchronize()


def gpu_arrays() -> Arrays | None:
    """Arrays of torch, else of cupy; None if neither is installed or finds a GPU."""
    for made in (_torch, _cupy):
        try:
            found: Arrays = made()
        except Exception:  # noqa: S112 - libraries of GPUs raise errors of their own if there is no driver.
            continue
        if found.device_count:
            return found
    return None


def _torch() -> Arrays:
    import torch

    return TorchArrays(torch)


def _cupy() -> Arrays:
    import cupy
    import cupyx

    return CupyArrays(cupy, cupyx.empty_pinned)


def gpu_tasks(arrays: Arrays, clock: Clock) -> Iterator[Task]:
    """Triad in B/s, copies between host and device and between devices in B/s, products in flop/s."""
    moved = 8 * _LENGTH
    a, b, c = (arrays.ones((_LENGTH,), "fp64", 0) for _ in range(3))
    yield _task(TRIAD, 3 * moved, arrays, clock, lambda: arrays.triad(a, b, c))
    host = arrays.ones((_LENGTH,), "fp64", None)
    yield _task("copy, host to GPU", moved, arrays, clock, lambda: arrays.copy(a, host))
    yield _task("copy, GPU to host", moved, arrays, clock, lambda: arrays.copy(host, a))
    if arrays.device_count > 1:
        other = arrays.ones((_LENGTH,), "fp64", 1)
        yield _task("copy, GPU to GPU", moved, arrays, clock, lambda: arrays.copy(other, a))
    for precision in arrays.precisions:
        yield _product(precision, arrays, clock)


def _product(precision: str, arrays: Arrays, clock: Clock) -> Task:
    a, b, c = (arrays.random((_ORDER, _ORDER), precision) for _ in range(3))
    return _task(f"{PRODUCT}{precision}", 2 * _ORDER**3, arrays, clock, lambda: arrays.product(a, b, c))


def _task(name: str, work: float, arrays: Arrays, clock: Clock, run: Callable[[], None]) -> Task:
    """Rate of `work` in one call of `run`, in as many calls as a repetition needs."""

    def taken(count: int) -> float:
        arrays.wait()
        begin = clock()
        for _ in range(count):
            run()
        arrays.wait()
        return clock() - begin

    def rate() -> float:
        count = 1
        while (seconds := taken(count)) < _LEAST_TIME:
            count *= 2
        return work * count / seconds

    return Task(name, rate)
