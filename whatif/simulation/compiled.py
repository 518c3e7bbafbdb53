"""Plain functions compiled by numba, on demand; machine code is kept on disk for the next run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
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
    names["in_memory"] = _in_memory()
    for name, function in functions.items():
        if name == "in_memory":
            continue
        copy = FunctionType(function.__code__, names, name)
        copy.__qualname__ = f"{name}_{stamp:08x}"
        names[name] = _compiled(copy, name in entries)
    return tuple(names[entry] for entry in entries)


def _compiled(function: FunctionType, keep: bool) -> Callable[..., Any]:
    """All but what is called from outside is made part of its callers: a call would copy all columns' addresses."""
    from numba import njit

    try:
        jitted: Callable[..., Any] = njit(cache=keep, forceinline=not keep, error_model="numpy")(function)
    except RuntimeError:  # There is no folder for the cache.
        jitted = njit(error_model="numpy")(function)
    return jitted


def _in_memory() -> Callable[..., Any]:
    """A named tuple of arrays as one of plain addresses; numba would count the references to every array."""
    types, cgutils, arrays, extending = (
        import_module(f"numba.{name}") for name in ("core.types", "core.cgutils", "np.arrayobj", "extending")
    )

    def in_memory(context: Any, columns: Any) -> Any:
        kinds = [types.CPointer(kind.dtype) if isinstance(kind, types.Array) else kind for kind in columns.types]
        result = types.NamedTuple(kinds, columns.instance_class)

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            fields = zip(columns.types, cgutils.unpack_tuple(builder, values[0]), strict=True)
            parts = [
                arrays.make_array(kind)(context, builder, part).data if isinstance(kind, types.Array) else part
                for kind, part in fields
            ]
            return context.make_tuple(builder, result, parts)

        return result(columns), code

    made: Callable[..., Any] = extending.intrinsic(in_memory)
    return made
