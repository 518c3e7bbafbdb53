"""Plain functions over many columns, compiled by numba on demand; machine code is kept on disk for the next run.

Numba would pass every column of a named tuple on at every call, and count the references to each. What is compiled
gets one table instead: the address of every column, and every scalar, in the order of the fields.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Functions = tuple[Callable[..., Any], ...]
Fields = tuple[tuple[str, str, bool], ...]
"""Name and type of each field, and whether it is a column."""


def fields_of(state: Any) -> Fields:
    """The fields of a named tuple of one-dimensional arrays and of scalars."""
    return tuple((name, np.asarray(v).dtype.str, isinstance(v, np.ndarray)) for name, v in state._asdict().items())


def table_of(state: NamedTuple) -> NDArray[np.int64]:
    """Where the columns of a state lie; it must live for as long as the table is used."""
    entries = (v.ctypes.data if isinstance(v, np.ndarray) else np.asarray(v).view(np.int64) for v in state)
    return np.array([int(entry) for entry in entries], dtype=np.int64)


@cache
def compiled(modules: tuple[ModuleType, ...], entries: tuple[str, ...], fields: Fields) -> Functions:
    """Some functions of modules that call one another, compiled; `in_memory(table)` is there the state with its fields.

    Their machine code lies in numba's cache: beside the module, in the user's cache folder where that is read-only,
    or nowhere if neither can be written to.
    """
    names: dict[str, Any] = {name: value for module in modules for name, value in vars(module).items()}
    owners = {module.__name__ for module in modules}
    functions = {n: f for n, f in names.items() if isinstance(f, FunctionType) and f.__module__ in owners}
    stamp = _stamp(functions, fields)
    for name, function in functions.items():
        copy = FunctionType(function.__code__, names, name)
        copy.__qualname__ = f"{name}_{stamp}"
        names[name] = _jitted(copy, name in entries)
    names["in_memory"] = _in_memory(fields, stamp)
    return tuple(names[entry] for entry in entries)


def _stamp(functions: dict[str, FunctionType], fields: Fields) -> str:
    """What the machine code depends on: numba looks only at the file of the function that is called from outside."""
    stamp = crc32(repr(fields).encode())
    for name in sorted(functions):
        code = functions[name].__code__
        stamp = crc32(repr((name, code.co_code, code.co_consts, code.co_names)).encode(), stamp)
    return f"{stamp:08x}"


def _jitted(function: FunctionType, keep: bool) -> Callable[..., Any]:
    from numba import njit

    try:
        jitted: Callable[..., Any] = njit(cache=keep, error_model="numpy")(function)
    except RuntimeError:  # There is no folder for the cache.
        jitted = njit(error_model="numpy")(function)
    return jitted


def _in_memory(fields: Fields, stamp: str) -> Callable[..., Any]:
    """The function that turns a table into a value with fields, for numba."""
    types, extending, arrays, numpy_support = (
        import_module(f"numba.{name}") for name in ("core.types", "extending", "np.arrayobj", "np.numpy_support")
    )
    templates = import_module("numba.core.typing.templates")
    word = import_module("llvmlite.ir").IntType(64)
    places = {name: place for place, (name, _, _) in enumerate(fields)}
    scalars = {name: numpy_support.from_dtype(np.dtype(dtype)) for name, dtype, _ in fields}
    kinds = {name: types.CPointer(scalars[name]) if column else scalars[name] for name, _, column in fields}

    def resolve(_: Any, __: Any, name: str) -> Any:
        return kinds.get(name)

    # The address of a table, and what it says about its attributes.
    opaque = type("State", (types.Opaque,), {})
    attributes = type("Attributes", (templates.AttributeTemplate,), {"key": opaque, "generic_resolve": resolve})

    def load(context: Any, builder: Any, _: Any, table: Any, name: str) -> Any:
        at = builder.gep(builder.bitcast(table, word.as_pointer()), [word(places[name])])
        entry = builder.load(at)
        # The table never changes: without this it would be read again after everything written to a column.
        entry.set_metadata("invariant.load", builder.module.add_metadata([]))
        kind = context.get_value_type(kinds[name])
        return builder.inttoptr(entry, kind) if kind.is_pointer else builder.bitcast(entry, kind)

    def in_memory(context: Any, table: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            start = arrays.make_array(table)(context, builder, values[0]).data
            return builder.bitcast(start, context.get_value_type(signature.return_type))

        return opaque(f"State_{stamp}")(table), code

    extending.register_model(opaque)(extending.models.OpaqueModel)
    extending.infer_getattr(attributes)
    extending.lower_getattr_generic(opaque)(load)
    made: Callable[..., Any] = extending.intrinsic(in_memory)
    return made
