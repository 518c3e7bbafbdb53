"""Plain functions of modules, compiled by numba on demand; machine code is kept on disk for the next run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any
from zlib import crc32


@cache
def jitted(
    modules: tuple[ModuleType, ...], entries: tuple[str, ...], inline: tuple[str, ...] = ()
) -> tuple[Callable[..., Any], ...]:
    """Some functions of modules that call one another, compiled when first called.

    Functions named in `inline` are made part of their callers: a call with many arrays may cost more than what it does.
    Their machine code lies in numba's cache: beside the module, in the user's cache folder where that is read-only,
    or nowhere if neither can be written to.
    """
    names: dict[str, Any] = {name: value for module in modules for name, value in vars(module).items()}
    owners = {module.__name__ for module in modules}
    functions = {n: f for n, f in names.items() if isinstance(f, FunctionType) and f.__module__ in owners}
    # Numba looks only at the file of an entry to see if its code on disk is that of today: the name says the rest.
    stamp = crc32(repr([_said(functions[name].__code__) for name in sorted(functions)]).encode())
    if functions.pop("bare", None):
        names["bare"] = _bare()
    for name, function in functions.items():
        copy = FunctionType(function.__code__, names, name)
        copy.__qualname__ = f"{name}_{stamp:08x}"
        names[name] = _jitted(copy, name in entries, name in inline)
    return tuple(names[entry] for entry in entries)


def _bare() -> Callable[..., Any]:
    """The same array without its owner: users of it are not counted, atomically, at every use. Its caller keeps it."""
    from numba.core import cgutils
    from numba.extending import intrinsic

    def bare(_: Any, array: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            made = cgutils.create_struct_proxy(array)(context, builder, value=arguments[0])
            made.meminfo = cgutils.get_null_value(made.meminfo.type)
            made.parent = cgutils.get_null_value(made.parent.type)
            return made._getvalue()

        return array(array), generate

    made: Callable[..., Any] = intrinsic(bare)
    return made


def _said(code: CodeType) -> tuple[Any, ...]:
    """What a function does; nested code without its address, which no two runs share."""
    constants = [_said(item) if isinstance(item, CodeType) else item for item in code.co_consts]
    return code.co_code, constants, code.co_names


def _jitted(function: FunctionType, entry: bool, inline: bool) -> Callable[..., Any]:
    from numba import njit

    # Only entries are called from Python; ways in for the others would take most of the compiler's time.
    options: dict[str, Any] = {} if entry else {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if inline:
        options["forceinline"] = True
    try:
        made: Callable[..., Any] = njit(cache=entry, error_model="numpy", **options)(function)
    except RuntimeError:  # There is no folder for the cache.
        made = njit(error_model="numpy")(function)
    return made
