"""Plain functions over many columns, compiled by numba on demand; machine code is kept on disk for the next run.

Numba would pass every column of a named tuple on at every call, and count the references to each. What is compiled
gets one table instead: the address of every column, and every scalar, in the order of the fields.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Functions = tuple[Callable[..., Any], ...]
Fields = tuple[tuple[str, str, int], ...]
"""Name and type of each field, and how far apart the values of a column are, in values; 0 for a scalar."""


def fields_of(state: Any) -> Fields:
    """The fields of a named tuple of one-dimensional arrays and of scalars."""
    return tuple((name, np.asarray(v).dtype.str, _stride(v)) for name, v in state._asdict().items())


def _stride(value: Any) -> int:
    if not isinstance(value, np.ndarray):
        return 0
    return value.strides[0] // value.itemsize if value.size else 1


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
    numba, arrays = import_module("numba.core"), import_module("numba.np.arrayobj")
    extending, types = import_module("numba.extending"), numba.types
    from_dtype = import_module("numba.np.numpy_support").from_dtype
    word = import_module("llvmlite.ir").IntType(64)
    column = _column_type(types, extending, numba.typing.templates)
    kinds = {
        name: column(from_dtype(np.dtype(dtype)), stride) if stride else from_dtype(np.dtype(dtype))
        for name, dtype, stride in fields
    }

    def resolve(_: Any, __: Any, name: str) -> Any:
        return kinds.get(name)

    # The address of a table, and what it says about its attributes.
    opaque = type("State", (types.Opaque,), {})
    attributes = type("Attributes", (numba.typing.templates.AttributeTemplate,), {"key": opaque})
    attributes.generic_resolve = resolve  # type: ignore[attr-defined]

    def load(context: Any, builder: Any, _: Any, table: Any, name: str) -> Any:
        at = builder.gep(builder.bitcast(table, word.as_pointer()), [word(list(kinds).index(name))])
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


@cache
def _column_type(types: Any, extending: Any, templates: Any) -> Any:
    """Numba's type for values of one kind, a fixed number of values apart, whose references nobody counts."""

    def begin(self: Any, dtype: Any, stride: int) -> None:
        self.dtype, self.stride = dtype, stride
        types.Type.__init__(self, f"Column_{dtype}_{stride}")

    column: Any = type("Column", (types.Type,), {"__init__": begin})

    def read(_: Any, args: Any, __: Any) -> Any:
        return args[0].dtype(args[0], types.intp) if isinstance(args[0], column) else None

    def write(_: Any, args: Any, __: Any) -> Any:
        return types.none(args[0], types.intp, args[0].dtype) if isinstance(args[0], column) else None

    def address(context: Any, builder: Any, kind: Any, start: Any, at: Any) -> Any:
        first = builder.bitcast(start, context.get_value_type(kind.dtype).as_pointer())
        return builder.gep(first, [builder.mul(at, at.type(kind.stride))])

    def load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(address(context, builder, signature.args[0], *values))

    def store(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], address(context, builder, signature.args[0], *values[:2]))
        return context.get_dummy_value()

    extending.register_model(column)(extending.models.OpaqueModel)
    for key, resolve in ((operator.getitem, read), (operator.setitem, write)):
        templates.infer_global(key)(type("Access", (templates.AbstractTemplate,), {"key": key, "generic": resolve}))
    extending.lower_builtin(operator.getitem, column, types.Integer)(load)
    extending.lower_builtin(operator.setitem, column, types.Integer, types.Any)(store)
    return column
