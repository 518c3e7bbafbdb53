"""Stored results of every shipped scenario; `python -m tests.shipped.stored_results` writes them anew.

Write them anew only where a change is meant to move numbers: look at the difference, and state its reason in
CHANGELOG.md.
"""

from __future__ import annotations

import json
import math
from typing import Final

import whatif
from tests.paths import DATA
from whatif.schema.shipped import shipped_names

FILE: Final = DATA / "shipped_results.json"

Cell = float | str | None
Columns = dict[str, list[Cell]]


def columns_of(table: whatif.Table) -> Columns:
    """Columns of a table as plain values; None for a number that is missing or infinite."""
    found: Columns = {}
    for name, column in table.columns.items():
        if column.values.dtype.kind in "OUS" or name == "infeasible":
            found[name] = [str(value) for value in column.values]
        else:
            found[name] = [float(value) if math.isfinite(value) else None for value in column.values.astype(float)]
    return found


def results_of(name: str) -> dict[str, Columns]:
    """All result columns of a scenario at its point and, if it declares one, over its own sweep."""
    has_sweep = bool(whatif.load(name).program.loaded.scenario.sweep)
    return {
        "point": columns_of(whatif.run(name).table()),
        "sweep": columns_of(whatif.sweep(name).table()) if has_sweep else {},
    }


def main() -> None:
    """Write the results of all shipped scenarios, one a line so that a difference shows the scenario."""
    lines = [f"{json.dumps(name)}: {json.dumps(results_of(name))}" for name in shipped_names("scenarios")]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
