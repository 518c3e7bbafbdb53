"""Plain functions of modules, compiled by numba on demand; machine code is kept on disk for the next run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any
from zlib import crc32


@cache
def jitted(
    modules: tuple[ModuleType, ...],
    entries: tuple[str, ...],
    *,
    borrowing: bool = False,
    inlined: frozenset[str] = frozenset(),
) -> tuple[Callable[..., Any], ...]:
    """Some functions of modules that call one another, compiled when first called.

    `borrowing`: all but the entries make no arrays and keep none, so that nobody counts the users of arrays, which
    would take most of the time. Entries run beside other threads, and are given arrays that no other thread uses.
    `inlined`: become part of their callers, for those that do little and are given much.
    Their machine code lies in numba's cache: beside the module, in the user's cache folder where that is read-only,
    or nowhere if neither can be written to.
    """
    names = _names(modules)
    owners = {module.__name__ for module in modules}
    functions = {n: f for n, f in names.items() if isinstance(f, FunctionType) and f.__module__ in owners}
    # Numba looks only at the file of an entry to see if its code on disk is that of today: the name says the rest.
    numbers = sorted((name, value) for name, value in names.items() if isinstance(value, int | float))
    said = [_said(functions[name].__code__) for name in sorted(functions)]
    stamp = crc32(repr((numbers, said, sorted(inlined))).encode())
    for name, function in functions.items():
        copy = FunctionType(function.__code__, names, name)
        copy.__qualname__ = f"{name}_{stamp:08x}"
        names[name] = _jitted(copy, name in entries, borrowing, name in inlined)
    return tuple(names[entry] for entry in entries)


def _names(modules: tuple[ModuleType, ...]) -> dict[str, Any]:
    """What is known in any of the modules, for their functions are compiled as if they stood in one."""
    names: dict[str, Any] = {}
    for module in modules:
        for name, value in vars(module).items():
            if names.setdefault(name, value) != value and not name.startswith("__"):
                raise ValueError(f"{name} of {module.__name__} means something else in a module compiled with it")
    return names


def _said(code: CodeType) -> tuple[Any, ...]:
    """What a function does; nested code without its address, which no two runs share."""
    constants = [_said(item) if isinstance(item, CodeType) else item for item in code.co_consts]
    return code.co_code, constants, code.co_names


def _jitted(function: FunctionType, entry: bool, borrowing: bool, inlined: bool) -> Callable[..., Any]:
    from numba import njit

    # Only entries are called from Python; ways in for the others would take most of the compiler's time.
    options: dict[str, Any] = {"nogil": True} if entry else {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if borrowing and not entry:
        options["_nrt"] = False
    if inlined:
        options["forceinline"] = True
    try:
        made: Callable[..., Any] = njit(cache=entry, error_model="numpy", **options)(function)
    except RuntimeError:  # There is no folder for the cache.
        made = njit(error_model="numpy", **options)(function)
    return made if entry else _alike(made)


def _alike(made: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled once for all constants that it is called with, and not for each of them."""
    from numba.core.types import unliteral

    template: Callable[..., Any] = made.get_call_template  # type: ignore[attr-defined]
    made.get_call_template = lambda args, kws: template(tuple(map(unliteral, args)), kws)  # type: ignore[attr-defined]
    return made
