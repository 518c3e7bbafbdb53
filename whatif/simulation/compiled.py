"""Plain functions compiled by numba, on demand; machine code is kept on disk for the next run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType, ModuleType
from typing import Any
from zlib import crc32


@cache
def compiled(modules: tuple[ModuleType, ...], entries: tuple[str, ...]) -> tuple[Callable[..., Any], ...]:
    """Some functions of modules that call one another, compiled.

    Their machine code lies in numba's cache: beside the module, in the user's cache folder where that is read-only,
    or nowhere if neither can be written to.
    """
    names: dict[str, Any] = {name: value for module in modules for name, value in vars(module).items()}
    owners = {module.__name__ for module in modules}
    functions = {n: f for n, f in names.items() if isinstance(f, FunctionType) and f.__module__ in owners}
    # Numba looks only at the file of an entry to see if its code on disk is that of today: the name says the rest.
    stamp = 0
    for name in sorted(functions):
        code = functions[name].__code__
        stamp = crc32(repr((code.co_code, code.co_consts, code.co_names)).encode(), stamp)
    for name, function in functions.items():
        copy = FunctionType(function.__code__, names, name)
        copy.__qualname__ = f"{name}_{stamp:08x}"
        names[name] = _compiled(copy, name in entries)
    return tuple(names[entry] for entry in entries)


def _compiled(function: FunctionType, keep: bool) -> Callable[..., Any]:
    from numba import njit

    try:
        jitted: Callable[..., Any] = njit(cache=keep)(function)
    except RuntimeError:  # There is no folder for the cache.
        return _compiled(function, False)
    return jitted
