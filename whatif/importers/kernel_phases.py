"""Profiled kernels of all profilers: the columns of their table, and phases of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from whatif.errors import UsageError
from whatif.importers.kernel_names import phase_names
from whatif.schema.toml_text import one_line
from whatif.table import Table
from whatif.units import BYTE, FLOP, ONE, SECOND, Dimension, format_quantity

KERNEL_COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "kernel": None,
    "dominant_operation": None,
    "metrics_per": None,
    "profiled_launch_count": ONE,
    "operations": FLOP,
    "dram_size": BYTE,
    "l2_size": BYTE,
    "operation_efficiency": ONE,
    "compute_fraction": ONE,
    "load_store_fraction": ONE,
    "block_count": ONE,
    "block_size": ONE,
    "reference_time": SECOND,
}
"""Columns of a table of profiled kernels: the kernel's full name, parameters of a kernel phase, and the measured time.

`operations`, `dram_size`, `l2_size` and `reference_time` are those of `metrics_per`: the whole `profile`
of `profiled_launch_count` launches, or the mean of one `launch`. NaN for a number that was not measured;
`dominant_operation` is empty if `operations` were not.
"""
DOMINANT_OPERATIONS: Final = ("fp_32", "fp_64", "integer")


def kernels_toml(table: Table) -> str:
    """The kernels of a table as `[application.phases.NAME]` tables, with their source as a comment.

    The names of the phases are those of the kernels without namespaces and arguments, numbered where they repeat.
    The launches in an iteration are not in a profile: `launch_count` is 1, to be corrected by hand.
    Raise `UsageError` for a table of something else.
    """
    if not table.columns.keys() >= KERNEL_COLUMNS.keys():
        raise UsageError("not a table of profiled kernels")
    stated = (f"{key} {value}" for key, value in table.notes.items() if "\n" not in value and key != "warnings")
    head = "# " + one_line(", ".join(stated))
    rows = list(table.records())
    names = phase_names(row["kernel"] for row in rows)
    return "\n".join([head, *(_phase(name, row) for name, row in zip(names, rows, strict=True))])


def _phase(name: str, row: Mapping[str, Any]) -> str:
    count = row["profiled_launch_count"]
    time = "" if row["reference_time"] is None else f", {format_quantity(row['reference_time'], SECOND)} measured"
    lines = [
        f"\n# {one_line(row['kernel'])}: {count:g} launch{'es' * (count != 1)} profiled{time} per {row['metrics_per']}",
        f"[application.phases.{name}]",
        'kind = "kernel"',
        f'model = "{"roofline_l2" if _needs_l2(row) else "roofline"}"',
        f'dominant_operation = "{row["dominant_operation"] or "fp_32"}"',
        f'metrics_per = "{row["metrics_per"]}"',
    ]
    if row["metrics_per"] == "profile":
        lines.append(f"profiled_launch_count = {count:.0f}")
    for parameter, unit in (("operations", "flop"), ("dram_size", "B"), ("l2_size", "B")):
        if row[parameter] is not None:
            lines.append(f'{parameter} = "{_number(row[parameter])} {unit}"')
        elif parameter != "l2_size":
            lines.append(f'{parameter} = "0 {unit}"  # not recorded: this roof is missing')
    lines += [
        f"{parameter} = {row[parameter]!r}"
        for parameter in ("operation_efficiency", "compute_fraction", "load_store_fraction")
        if row[parameter] is not None
    ]
    lines.append("launch_count = 1                # in one iteration: launches of the profile / its iterations")
    if row["block_count"] is not None and row["block_size"] is not None:
        count = _number(row["block_count"])
        lines.append(f'block_count = {count:17} # of a launch; if other grids have as many: blocks_follow = "nothing"')
        lines.append(f"block_size = {_number(row['block_size'])}")
    if row.get("roof_exponent") is not None:
        lines.append(f"roof_exponent = {row['roof_exponent']:g}")
    if row.get("measured_factor") is not None:
        lines.append(f"measured_factor = {row['measured_factor']:.6g}  # limited by {row['binding']}")
    if row.get("launch_time") is not None:
        lines.append(f'launch_time = "{format_quantity(row["launch_time"], SECOND, 6)}"')
    return "\n".join([*lines, ""])


def _needs_l2(row: Mapping[str, Any]) -> bool:
    return (
        row.get("highest_roof") == "l2"
        or row.get("roof_exponent") is not None
        or (row["operations"] is None and row["dram_size"] is None)
    )


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
