"""Number of communicating pairs in the rows of a network fit, and warnings about rows without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.table import Table

UNKNOWN_PAIRS: Final = "unknown_pairs"
"""Note of importers with the files of multi-pair tests that lack the number of pairs."""

Mask = NDArray[np.bool_]


def without_pairs(table: Table, rows: Mask) -> Mask:
    """Mask of the rows of one test whose pair count is unknown and not 1.

    Rows without a count are lone pairs where no row has one, but in files of tests of several pairs.
    """
    unknown: Mask = rows & np.isnan(table.columns["pair_count"].values)
    if (rows & ~unknown).any():
        return unknown
    files = table.notes.get(UNKNOWN_PAIRS, "").split("; ")
    several: Mask = unknown & np.isin(table.columns["file"].values.astype(str), [file for file in files if file])
    return several


def without_pairs_in_words(table: Table, left_out: Mask, test: str) -> str:
    """Warning about rows of `without_pairs`: their files, and how to give the count."""
    files = ", ".join(dict.fromkeys(table.columns["file"].values[left_out].astype(str))) or "a table"
    missing = f"{left_out.sum()} rows of the {test} test do not state how many pairs communicate at the same time"
    give = "write it below the title of OSU's output, `# [ pairs: 4 ]`, or give `pair_count` for a CSV file"
    return f"{files}: {missing}; {give}"


def rows_in_words(table: Table, rows: Mask) -> str:
    """Some rows by test with its pair counts: `23 rows of bandwidth with 8 pairs, 23 of allreduce`; empty for none."""
    tests = table.columns["test"].values[rows].astype(str)
    pairs = table.columns["pair_count"].values[rows]
    groups = []
    for test in dict.fromkeys(tests.tolist()):
        same = pairs[tests == test]
        counts = np.unique(same[np.isfinite(same)])
        groups.append(f"{len(same)} of {test}" + (f" with {pairs_in_words(counts)}" if len(counts) else ""))
    return ", ".join(groups).replace(" of ", " rows of ", 1)


def pairs_in_words(counts: Sequence[float] | NDArray[Any]) -> str:
    """`1 pair`, `1, 2 pairs`."""
    listed = ", ".join(f"{count:g}" for count in counts)
    return f"{listed} pair" + ("" if listed == "1" else "s")


def why_unshared(table: Table, rows: Mapping[str, Mask]) -> str:
    """Reason why the rows of some tests contain nothing about sharing: each test has one pair count, or none."""
    counts = {test: np.unique(table.columns["pair_count"].values[chosen]) for test, chosen in rows.items()}
    if all(np.isnan(found).all() for found in counts.values()):
        return "no pair_count was given"
    if len({float(found[0]) for found in counts.values()}) == 1:
        return "all measurements have the same number of pairs"
    words = ("no pair count" if np.isnan(found[0]) else f"{pairs_in_words(found)} only" for found in counts.values())
    each = ", ".join(f"{test} has {text}" for test, text in zip(counts, words, strict=True))
    return f"{each}, and one test needs two pair counts"
