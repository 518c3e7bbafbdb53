"""Loader of kernels: plain functions of modules, compiled by numba on demand, machine code cached on disk.

This is the one module that imports numba. It uses numba's private interfaces in four places: compiling without
reference counts (`_nrt`), machine code of the entries only (`_compiler_of_callees`), one machine code for all constant
arguments (`get_call_template`), and a type whose columns are read through a table of addresses (`in_memory`). Where
numba is missing or has changed, `CompilerError` is raised and callers run the same functions in Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Functions = tuple[Callable[..., Any], ...]
Fields = tuple[tuple[str, str, int], ...]
"""Name and type of each field, and the stride of its column in values; 0 for a scalar."""

ROUTINE: Final = 13
"""Arguments that a routine of a library is called with, those of dgemm."""


class CompilerError(Exception):
    """Numba is missing or cannot compile the functions; the same functions run in Python."""


def plain(values: NDArray[Any], kind: type[np.generic]) -> Any:
    """An array of one memory order, whatever the caller's was, so that a kernel is compiled once."""
    return np.require(values, kind, ["C", "W", "A"])


def fields_of(state: Any) -> Fields:
    """Fields of a named tuple of one-dimensional arrays and of scalars."""
    return tuple((name, np.asarray(v).dtype.str, _stride(v)) for name, v in state._asdict().items())


def _stride(value: Any) -> int:
    if not isinstance(value, np.ndarray):
        return 0
    return value.strides[0] // value.itemsize if value.size else 1


def table_of(state: NamedTuple) -> NDArray[np.int64]:
    """Addresses of the columns of a state, and its scalars; the state must live as long as the table is used."""
    entries = (v.ctypes.data if isinstance(v, np.ndarray) else np.asarray(v).view(np.int64) for v in state)
    return np.array([int(entry) for entry in entries], dtype=np.int64)


@cache
def jitted(
    modules: tuple[ModuleType, ...],
    entries: tuple[str, ...],
    *,
    borrowing: bool = False,
    inlined: frozenset[str] = frozenset(),
    fields: Fields = (),
    calling: bool = False,
) -> Functions:
    """Compiled functions of modules that call one another; each is compiled when it is first called.

    `borrowing`: all but the entries make no arrays and keep none, so that no references are counted, which would take
    most of the time. Entries run without the interpreter lock, on arrays that no other thread uses.
    `inlined`: functions to become part of their callers.
    `fields`: the entries take a table of addresses (`table_of`) instead of a named tuple, and `in_memory(table)` gives
    the state with these fields; numba would pass on every column of a named tuple at every call.
    `calling`: `call_routine(address, arguments)` calls a routine of a C or Fortran library with the first `ROUTINE`
    entries of an array of addresses, and a product followed by a sum becomes one operation.
    The machine code is in numba's cache: next to the module, in the user's cache folder where that is read-only,
    or nowhere if neither can be written to. Raise `CompilerError`, here or when a function is first called.
    """
    names = _names(modules)
    functions = _functions(modules)
    stamp = _stamp(names, functions, inlined, (*fields, ("", "calling", 0)) if calling else fields)
    try:
        for name, function in functions.items():
            copy = FunctionType(function.__code__, names, name)
            copy.__qualname__ = f"{name}_{stamp}"
            names[name] = _jitted(copy, name in entries, borrowing, name in inlined, calling)
        if fields:
            names["in_memory"] = _in_memory(fields, stamp)
        if calling:
            names["call_routine"] = _call_routine()
    except _compiler_errors() as error:
        raise CompilerError(str(error)) from error
    return tuple(_guarded(names[entry]) for entry in entries)


def jitted_or_plain(modules: tuple[ModuleType, ...], entries: tuple[str, ...], **options: Any) -> Functions:
    """Functions of modules compiled as by `jitted`, or the plain functions where they cannot be compiled."""
    functions = _functions(modules)
    plain = tuple(functions[entry] for entry in entries)
    try:
        compiled = jitted(modules, entries, **options)
    except CompilerError:
        return plain
    return tuple(_with_fallback(*pair) for pair in zip(compiled, plain, strict=True))


def _with_fallback(compiled: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(plain)
    def either(*arguments: Any) -> Any:
        try:
            return compiled(*arguments)
        except CompilerError:
            return plain(*arguments)

    return either


def _guarded(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which raises `CompilerError` when its first call cannot compile it; kernels raise nothing."""
    errors = _compiler_errors()

    def guarded(*arguments: Any) -> Any:
        try:
            return compiled(*arguments)
        except errors as error:
            raise CompilerError(str(error)) from error

    return guarded


def _compiler_errors() -> tuple[type[Exception], ...]:
    """Errors of a missing numba, and of one whose interfaces have changed."""
    try:
        from numba.core.errors import NumbaError
    except ImportError:
        return (ImportError,)
    return (ImportError, AttributeError, TypeError, NotImplementedError, NumbaError)


def _names(modules: tuple[ModuleType, ...]) -> dict[str, Any]:
    """Names known in any of the modules; their functions are compiled as if of one module."""
    names: dict[str, Any] = {}
    for module in modules:
        for name, value in vars(module).items():
            if names.setdefault(name, value) != value and not name.startswith("__"):
                raise ValueError(f"{name} of {module.__name__} differs from that of a module compiled with it")
    return names


@cache
def _functions(modules: tuple[ModuleType, ...]) -> dict[str, FunctionType]:
    """Functions that the modules define."""
    owners = {module.__name__ for module in modules}
    known = _names(modules).items()
    return {name: value for name, value in known if isinstance(value, FunctionType) and value.__module__ in owners}


def _stamp(names: dict[str, Any], functions: dict[str, FunctionType], inlined: frozenset[str], fields: Fields) -> str:
    """Checksum of everything that the machine code depends on.

    Numba compares only the file of an entry with its cache, so the name of an entry carries the rest.
    """
    numbers = sorted((name, value) for name, value in names.items() if isinstance(value, int | float))
    contents = [(name, _contents(functions[name].__code__)) for name in sorted(functions)]
    # The cache holds pickled argument types: one of a class that was renamed could not be read.
    kinds = sorted(f"{value.__module__}.{value.__qualname__}" for value in names.values() if isinstance(value, type))
    return f"{crc32(repr((numbers, contents, kinds, sorted(inlined), fields)).encode()):08x}"


def _contents(code: CodeType) -> tuple[Any, ...]:
    """Byte code, constants and names of a function; nested code without its address, which differs between runs."""
    constants = [_contents(item) if isinstance(item, CodeType) else item for item in code.co_consts]
    return code.co_code, constants, code.co_names


def _jitted(function: FunctionType, entry: bool, borrowing: bool, inlined: bool, fused: bool) -> Callable[..., Any]:
    from numba import njit

    # Only entries are called from Python; wrappers of the others would take most of the compiler's time.
    options: dict[str, Any] = {"nogil": True} if entry else {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if not entry:
        options["pipeline_class"] = _compiler_of_callees()
    if borrowing and not entry:
        options["_nrt"] = False
    if inlined:
        options["forceinline"] = True
    if fused:
        options["fastmath"] = {"contract"}
    try:
        made: Callable[..., Any] = njit(cache=entry, error_model="numpy", **options)(function)
    except RuntimeError:  # No folder for the cache exists.
        made = njit(error_model="numpy", **options)(function)
    return made if entry else _without_literals(made)


@cache
def _compiler_of_callees() -> type[Any]:
    """Compiler of functions that only compiled functions call.

    They are linked into the entries and become machine code there; their own would take half of the compiler's time.
    """
    compiler, codegen = import_module("numba.core.compiler"), import_module("numba.core.codegen")

    class Linked(codegen.JITCodeLibrary):  # type: ignore[misc, name-defined]
        @property
        def codegen(self) -> Linked:
            return self

        def set_env(self, *_: Any) -> None:
            """Nothing: without machine code, the environment has no address."""

        def _optimize_final_module(self) -> None:
            """Nothing: the entry is optimised as a whole."""

        def _finalize_final_module(self) -> None:
            self._finalized = True

    class Pipeline(compiler.Compiler):  # type: ignore[misc, name-defined]
        def __init__(self, typing: Any, target: Any, _: None, *rest: Any) -> None:
            super().__init__(typing, target, Linked(target.codegen(), "callee"), *rest)

    return Pipeline


def _without_literals(made: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled once for all constants that it is called with, and not for each of them."""
    from numba.core.types import unliteral

    template: Callable[..., Any] = made.get_call_template  # type: ignore[attr-defined]
    made.get_call_template = lambda args, kws: template(tuple(map(unliteral, args)), kws)  # type: ignore[attr-defined]
    return made


def _in_memory(fields: Fields, stamp: str) -> Callable[..., Any]:
    """Intrinsic that turns a table of addresses into a value with fields."""
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

    # The address of a table, and the types of its attributes.
    opaque = type("State", (types.Opaque,), {})
    attributes = type("Attributes", (numba.typing.templates.AttributeTemplate,), {"key": opaque})
    attributes.generic_resolve = resolve  # type: ignore[attr-defined]

    def load(context: Any, builder: Any, _: Any, table: Any, name: str) -> Any:
        at = builder.gep(builder.bitcast(table, word.as_pointer()), [word(list(kinds).index(name))])
        entry = builder.load(at)
        # The table never changes: without this it would be read again after every write to a column.
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


def _call_routine() -> Callable[..., Any]:
    """Intrinsic that calls the routine at an address with addresses of arguments; what it does not take is ignored."""
    extending, ir = import_module("numba.extending"), import_module("llvmlite.ir")
    void, int64 = import_module("numba.core").types.void, import_module("numba.core").types.int64
    make_array = import_module("numba.np.arrayobj").make_array
    word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()

    def call_routine(_: Any, address: Any, arguments: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            start = make_array(signature.args[1])(context, builder, values[1]).data
            places = [builder.load(builder.gep(start, [word(at)])) for at in range(ROUTINE)]
            kind = ir.FunctionType(ir.VoidType(), [pointer] * ROUTINE).as_pointer()
            builder.call(builder.inttoptr(values[0], kind), [builder.inttoptr(place, pointer) for place in places])
            return context.get_dummy_value()

        return void(int64, arguments), code

    made: Callable[..., Any] = extending.intrinsic(call_routine)
    return made


@cache
def _column_type(types: Any, extending: Any, templates: Any) -> Any:
    """Numba type of a column with a fixed stride, without reference counts."""

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
