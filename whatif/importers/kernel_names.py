"""Short names of kernels: without namespaces and arguments; of launchers of a library the functor that they launch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_MANGLED: Final = re.compile(r"_ZN?[KVr]*(?=\d)")
_LAUNCHER: Final = re.compile(r"(?:cuda|hip|sycl)_parallel_launch|^forall_\w*kernel|^launch_global")
"""Kernels of Kokkos, RAJA and AMReX that run what their arguments name."""
_OF_LIBRARIES: Final = re.compile(
    r"Kokkos|Impl|Experimental|Parallel(?:For|Reduce|Scan)|\w*Policy|Cuda|HIP|SYCL|\w*Space|void|const|RAJA|policy|amrex|"
    r"cuda\w*|hip\w*|internal|detail|functors?|\w*_exec\w*|unsigned|int|long|double|float|bool"
)
_PART: Final = re.compile(r"S[0-9A-Z]*_|L[a-z]+\d*E|(?P<length>[1-9]\d{0,3})(?=[A-Za-z_])|.")


def phase_names(kernels: Iterable[str]) -> Iterator[str]:
    """Names of phases for kernels, numbered where they repeat."""
    used: set[str] = set()
    for kernel in kernels:
        base = phase_name(kernel)
        name, number = base, 1
        while name in used:
            number += 1
            name = f"{base}_{number}"
        used.add(name)
        yield name


def phase_name(kernel: str) -> str:
    """`matvec` for `void a::matvec<int>(double*)`, `stencil` for `_Z7stencilPdS_i`; `kernel` where nothing is left."""
    plain = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", kernel)
    mangled = _mangled_name(plain)
    found = mangled or re.split(r"[<(\[]", plain, maxsplit=1)[0].strip().split(" ")[-1].split("::")[-1]
    if _LAUNCHER.search(found):
        found = _functor(plain, found) or found
    return re.sub(r"^[^A-Za-z]+", "", re.sub(r"\W+", "_", found, flags=re.ASCII)) or "kernel"


def _mangled_name(kernel: str) -> str:
    """The last part of a mangled name: each part is its length and its letters."""
    match = _MANGLED.match(kernel)
    rest, name = (kernel[match.end() :], "") if match else ("", "")
    while length := re.match(r"\d{1,4}", rest):
        name, rest = rest[length.end() :][: int(length[0])], rest[length.end() + int(length[0]) :]
    return name


def _functor(kernel: str, launcher: str) -> str:
    """Functor that a launcher of a library runs, or its tag; empty if all names are those of the library."""
    arguments = kernel.partition(launcher)[2]
    names = _mangled_parts(arguments) if _MANGLED.match(kernel) else re.findall(r"[A-Za-z_]\w*", arguments)
    own = [name for name in names if len(name) > 1 and not _OF_LIBRARIES.fullmatch(name)]
    tag = next((name.removeprefix("Tag") for name in own if re.match(r"Tag[A-Z]", name)), "")
    return tag or next(iter(own), "")


def _mangled_parts(text: str) -> Iterator[str]:
    """Identifiers of a mangled text; substitutions and literal numbers are none."""
    at = 0
    while part := _PART.match(text, at):
        at = part.end()
        if part["length"]:
            yield text[at : at + int(part["length"])]
            at += int(part["length"])
