"""Runs of a structured-grid program, checked, and the rows they give to the linear form of its model.

With 1/K_w and 1/K_b as coefficients every measured time is a sum of products (Sharif et al., section II.B), so that
each run gives a row for each of its times: `P T_w / I` (Eq. 5), `T_c / I` (Eq. 2, 6), and the rest of the total
(Eq. 3), in which the columns of a time that was not measured apart stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, did_you_mean
from whatif.models.quantities import FloatArray
from whatif.models.structured_grid import inter_node_share
from whatif.table import Column, Table
from whatif.units import ONE, PER_SECOND, SECOND, Dimension

SYMBOLS: Final[Mapping[str, str]] = {
    "cell_rate": "K_w",
    "overhead_time": "O_w",
    "packing_time": "O_h",
    "latency": "O_l",
    "halo_rate": "K_b",
    "reduction_time": "K_r",
    "intra_node_latency": "O_n",
    "intra_node_halo_rate": "K_n",
    "startup_time": "O_s",
    "cell_setup_time": "O_c",
    "miscellaneous_time": "O_i",
}
"""The parameters by their names in a phase. Of inseparable ones, the first here takes the time."""
RATES: Final = ("cell_rate", "halo_rate", "intra_node_halo_rate")
"""Fitted as their inverse."""
DIMENSIONS: Final[Mapping[str, Dimension]] = {name: PER_SECOND if name in RATES else SECOND for name in SYMBOLS}
VARIABLES: Final[Mapping[str, str]] = {"C": "cells", "P": "processes", "I": "iterations", "H": "halo_cells"}
TIMES: Final[Mapping[str, str]] = {"T_w": "computation_time", "T_c": "communication_time", "T_t": "total_time"}
_NEEDED: Final = ("cells", "processes", "iterations")
_OTHERS: Final = ("inter_node_halo_cells", "ranks_per_node", "case")
NAMES: Final = (*VARIABLES.values(), *TIMES.values(), *_OTHERS)
PLANNED: Final = (*VARIABLES.values(), "case", "ranks_per_node")
"""Columns that describe a planned run."""
_ALIASES: Final = {symbol.casefold(): name for symbol, name in (*VARIABLES.items(), *TIMES.items())} | {
    name: name for name in NAMES
}
MOST_COUNTED: Final = 2.0**53
"""Larger counts are not exact, and no run has them."""
COUNTED: Final = "a whole number of at most 2**53"
_MOST_OVER: Final = 0.05
"""Share of the total by which means over processes may exceed it."""
_FLOOR: Final = 1e-3
"""Share of a run's time that bounds the precision of its parts from below: relative errors near 0 have no meaning."""


@dataclass(frozen=True, eq=False)
class GridRuns:
    """Runs with their times; every array of shape (runs,)."""

    cells: FloatArray
    processes: FloatArray
    iterations: FloatArray
    halo_cells: FloatArray
    """Halo cells of one process; 0 if not stated."""
    share: FloatArray
    """Share of the halo sent to other nodes; 1 if the ranks on a node are not stated."""
    ranks_per_node: FloatArray
    """NaN if not stated."""
    case: NDArray[Any]
    computation_time: FloatArray
    communication_time: FloatArray
    total_time: FloatArray
    """Times in s; NaN where one was not measured."""

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def cases(self) -> tuple[str, ...]:
        """Cases in the order of the runs; a single empty name without cases."""
        return tuple(dict.fromkeys(map(str, self.case.tolist())))

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Mask of the runs that exchange a part of the halo inside a node; a single process has no partner."""
        return np.asarray((self.share < 1) & (self.processes > 1))

    @property
    def rest(self) -> FloatArray:
        """The total without the times that were measured apart."""
        return self.total_time - np.nan_to_num(self.computation_time) - np.nan_to_num(self.communication_time)

    @property
    def longest(self) -> FloatArray:
        """The total, or as much of it as was measured."""
        parts = np.nan_to_num(self.computation_time) + np.nan_to_num(self.communication_time)
        return np.where(np.isnan(self.total_time), parts, self.total_time)

    def at(self, chosen: Any) -> GridRuns:
        """Some of the runs, by index or mask."""
        return GridRuns(**{item.name: getattr(self, item.name)[chosen] for item in fields(self)})

    def joined(self, others: GridRuns) -> GridRuns:
        """These runs and others after them."""
        both = {item.name: (getattr(self, item.name), getattr(others, item.name)) for item in fields(self)}
        return GridRuns(**{name: np.concatenate(pair) for name, pair in both.items()})

    def changed(self, **arrays: FloatArray) -> GridRuns:
        """The same runs with other values."""
        return replace(self, **arrays)


@dataclass(frozen=True, eq=False)
class LinearRows:
    """The linear form: `values = terms . coefficients`, one row a measured time of a run."""

    terms: FloatArray
    """Shape (rows, columns)."""
    values: FloatArray
    """Shape (rows,): P T_w / I, T_c / I, T_t - T_w - T_c, in s."""
    floor: FloatArray
    """Shape (rows,): what the value is known to at best, in s."""
    factor: FloatArray
    """Shape (rows,): what a value counts in the total time."""
    kind: NDArray[Any]
    """Shape (rows,): what was measured, `computation`, `communication`, `setup` or `total`."""
    run: NDArray[np.intp]
    """Shape (rows,): the run."""


@dataclass(frozen=True)
class Columns:
    """The coefficients: parameters of the phase, with one K_w for each case."""

    names: tuple[str, ...]
    cases: tuple[str, ...]
    """Case of each coefficient, empty but for those of K_w."""

    @classmethod
    def of(cls, cases: Sequence[str], *, reduction: bool, intra_node: bool) -> Columns:
        """Columns of a model: K_r with a reduction, K_n and O_n where runs on one node identify them."""
        left_out = {"reduction_time"} if not reduction else set()
        left_out |= set() if intra_node else {"intra_node_latency", "intra_node_halo_rate"}
        shared = [name for name in SYMBOLS if name != "cell_rate" and name not in left_out]
        return cls(("cell_rate",) * len(cases) + tuple(shared), tuple(cases) + ("",) * len(shared))

    def __len__(self) -> int:
        return len(self.names)

    def symbol(self, at: int) -> str:
        """`K_w`, or `K_w of Harvey` if there are several."""
        several = self.names.count("cell_rate") > 1 and self.names[at] == "cell_rate"
        return (
            f"{SYMBOLS[self.names[at]]} of {self.cases[at] or 'runs without a case'}"
            if several
            else SYMBOLS[self.names[at]]
        )


def terms_of(runs: GridRuns, columns: Columns) -> dict[str, FloatArray]:
    """Factor of each coefficient in the time of an iteration, and in the fixed time, of shape (runs, columns).

    `computation` in T_w / I (Eq. 1), `communication` in T_c / I (Eq. 6), `setup` in T_o (Eq. 3).
    """
    one, halo = np.ones(len(runs)), runs.halo_cells
    away, near = runs.share, 1 - runs.share
    # A single process has no partner to exchange with.
    several = runs.processes > 1
    products = {
        "overhead_time": ("computation", one),
        "packing_time": ("computation", halo),
        "latency": ("communication", several & (away > 0)),
        "halo_rate": ("communication", several * halo * away),
        "reduction_time": ("communication", np.log2(runs.processes)),
        "intra_node_latency": ("communication", several & (near > 0)),
        "intra_node_halo_rate": ("communication", several * halo * near),
        "startup_time": ("setup", one),
        "cell_setup_time": ("setup", runs.cells),
        "miscellaneous_time": ("setup", runs.iterations),
    }
    found = {part: np.zeros((len(runs), len(columns))) for part in ("computation", "communication", "setup")}
    for at, (name, case) in enumerate(zip(columns.names, columns.cases, strict=True)):
        if name == "cell_rate":
            found["computation"][:, at] = np.where(runs.case == case, runs.cells / runs.processes, 0.0)
        else:
            part, factor = products[name]
            found[part][:, at] = factor
    return found


def total_terms(runs: GridRuns, columns: Columns) -> FloatArray:
    """Factor of each coefficient in T_t (Eq. 4), of shape (runs, columns)."""
    parts = terms_of(runs, columns)
    return runs.iterations[:, None] * (parts["computation"] + parts["communication"]) + parts["setup"]


def rows_of(runs: GridRuns, columns: Columns) -> LinearRows:
    """The rows of all measured times, those of one kind together."""
    parts, steps, processes = terms_of(runs, columns), runs.iterations, runs.processes
    timed, sent = np.isfinite(runs.computation_time), np.isfinite(runs.communication_time)
    apart = timed & sent
    exchanged = sent & (processes > 1)
    rest = parts["setup"] + steps[:, None] * (
        np.where(timed[:, None], 0.0, parts["computation"]) + np.where(sent[:, None], 0.0, parts["communication"])
    )
    # A rest below zero shows how imprecise the difference of means is.
    least, one = np.maximum(_FLOOR * runs.longest, np.nan_to_num(-runs.rest)), np.ones(len(runs))
    per_step = processes / steps
    given = (
        ("computation", timed, parts["computation"] * processes[:, None], runs.computation_time, per_step),
        ("communication", exchanged, parts["communication"], runs.communication_time, 1 / steps),
        ("setup", apart & np.isfinite(runs.total_time), rest, runs.rest, one),
        ("total", ~apart & np.isfinite(runs.total_time), rest, runs.rest, one),
    )
    chosen = [(kind, np.flatnonzero(mask), terms, time, scale) for kind, mask, terms, time, scale in given]
    return LinearRows(
        np.concatenate([terms[at] for _, at, terms, _, _ in chosen]),
        np.concatenate([(time * scale)[at] for _, at, _, time, scale in chosen]),
        np.concatenate([(least * scale)[at] for _, at, _, _, scale in chosen]),
        np.concatenate([1 / scale[at] for _, at, _, _, scale in chosen]),
        np.concatenate([np.full(len(at), kind) for kind, at, _, _, _ in chosen]),
        np.concatenate([at for _, at, _, _, _ in chosen]),
    )


def canonical(name: str) -> str:
    """The name of a column, which may be the paper's symbol, in capitals or not."""
    return _ALIASES.get(name.casefold(), name)


def unused(table: Table) -> list[str]:
    """Headings of a table that are not used."""
    return [name for name in table.columns if canonical(name) not in NAMES]


def runs_of(table: Table) -> GridRuns:
    """The runs of a table whose columns have the names of `NAMES`, or the paper's symbols, in base units.

    Raise `UsageError` for a column that is missing or in another unit, missing cells, counts below 1 and times below 0.
    """
    columns = _columns(table)
    known = {name: _numbers(columns[name], name) for name in NAMES if name in columns and name != "case"}
    for name, values in known.items():
        _refuse(name, values)
    unknown = np.full(len(table), np.nan)
    cases = columns["case"].values.tolist() if "case" in columns else [""] * len(table)
    runs = GridRuns(
        **{name: known[name] for name in _NEEDED},
        halo_cells=known.get("halo_cells", np.zeros(len(table))),
        share=_inter_node_share(known, len(table)),
        ranks_per_node=known.get("ranks_per_node", unknown),
        case=np.array([_text(item) for item in cases], dtype=object),
        **{name: known.get(name, unknown) for name in TIMES.values()},
    )
    _refuse_times(runs)
    return runs


def _columns(table: Table) -> dict[str, Column]:
    """Columns by their canonical names."""
    headings: dict[str, str] = {}
    for heading in table.columns:
        name = canonical(heading)
        if name in NAMES and name in headings:
            raise UsageError(f"`{headings[name]}` and `{heading}` are both `{name}`: leave out one of them")
        headings[name] = heading
    for name in _NEEDED:
        if name not in headings:
            raise UsageError(f"no column `{name}`{did_you_mean(name, table.columns)}; {_wanted(table)}")
    if not {"computation_time", "total_time"} & headings.keys():
        raise UsageError(f"no column `total_time`, nor `computation_time` and `communication_time`; {_wanted(table)}")
    return {name: table.columns[heading] for name, heading in headings.items()}


def _inter_node_share(known: Mapping[str, FloatArray], count: int) -> FloatArray:
    """Share of the halo sent to other nodes: stated, by the ranks on a node, or all of it."""
    if "inter_node_halo_cells" not in known:
        node = known.get("ranks_per_node")
        return np.ones(count) if node is None else np.asarray(inter_node_share(known["processes"], node))
    sent, halo = known["inter_node_halo_cells"], known.get("halo_cells", np.zeros(count))
    if (sent > halo).any():
        raise UsageError("`inter_node_halo_cells` exceeds `halo_cells`: those that leave the node are a part of them")
    return np.where(halo > 0, sent / np.where(halo > 0, halo, 1.0), 1.0)


def _refuse_times(runs: GridRuns) -> None:
    """Raise `UsageError` for runs without a time, and those whose parts exceed their total."""
    timed = np.isfinite([runs.computation_time, runs.communication_time, runs.total_time]).any(axis=0)
    if not timed.all():
        raise UsageError(f"run {int(np.argmin(timed)) + 1} has no time at all")
    if not (runs.longest > 0).all():
        raise UsageError(f"run {int(np.argmin(runs.longest)) + 1} takes no time: every run takes some")
    over = -runs.rest / runs.longest
    if (over > _MOST_OVER).any():
        at = int(np.nanargmax(over))
        raise UsageError(f"run {at + 1} computes and communicates for longer than its total: are these of one process?")


def _text(item: Any) -> str:
    """The name of a case, which a file may have as a number."""
    if isinstance(item, float):
        return f"{item:g}" if np.isfinite(item) else ""
    return "" if item is None else str(item).strip()


def _wanted(table: Table) -> str:
    return f"the columns are {', '.join(table.columns)}; map them by --columns {NAMES[0]}=HEADING,.."


def _numbers(column: Any, name: str) -> FloatArray:
    wanted = SECOND if name.endswith("_time") else ONE
    try:
        values = np.asarray(column.values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"`{name}` holds texts; it must be numbers") from None
    # A heading without a unit is read as plain numbers.
    if (column.dimension or ONE) != wanted:
        example = f"; write the unit into the heading, such as `{name} [s]`" if wanted == SECOND else ""
        raise UsageError(f"`{name}` is in {column.dimension or 'no unit'}, not in {wanted}{example}")
    return values


def _refuse(name: str, values: FloatArray) -> None:
    """Raise `UsageError` for what no run can have; a time may be missing if the run has another one."""
    time, least = name.endswith("_time"), 0.0 if name.endswith(("_time", "halo_cells")) else 1.0
    missing = ~np.isfinite(values)
    if missing.any() and not (time and np.isnan(values[missing]).all()):
        raise UsageError(f"`{name}` of run {int(np.argmax(missing)) + 1} is missing, or no number")
    low = values < least
    if low.any():
        at = int(np.argmax(low))
        raise UsageError(f"`{name}` of run {at + 1} is {values[at]:g}: it must be at least {least:g}")
    no_count = np.logical_not(time | is_count(name, values))
    if no_count.any():
        at = int(np.argmax(no_count))
        raise UsageError(f"`{name}` of run {at + 1} is {values[at]:g}: expected {COUNTED}")


def is_count(name: str, values: FloatArray) -> NDArray[np.bool_]:
    """Mask of the valid counts: whole, except halo cells, which may be a mean over processes, and not too large."""
    return np.asarray((values <= MOST_COUNTED) & (name.endswith("halo_cells") | (values == np.round(values))))
