"""Checks of measured times before a fit: possible values, and agreement of all files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.units import BYTE, SECOND, format_quantity

FEWEST_SIZES: Final = 3
"""Different sizes without which nothing is fitted."""
POOR: Final = 0.1
"""Relative error of message times above which a fit, or a difference of files, is reported."""
ONE_KIND: Final = "are these one distance, one machine, one library?"
LARGEST_SIZE: Final = 2.0**60
"""Bytes: more is in no memory."""
SHORTEST_TIME: Final = 1e-12
LONGEST_TIME: Final = 1e6
"""Seconds, eleven days: a time outside has a wrong unit."""


def refuse_invalid_numbers(words: str, message_size: FloatArray, time: FloatArray) -> None:
    """Raise `UsageError` for sizes beyond 1 EiB or times outside 1 ps to 1e6 s, in bytes and seconds."""
    bad = (message_size > LARGEST_SIZE) | (time < SHORTEST_TIME) | (time > LONGEST_TIME)
    if bad.any():
        at = int(np.argmax(bad))
        example = f"{message_size[at]:g} B in {time[at]:g} s is not possible: are the units mixed up?"
        raise UsageError(f"{words}: {bad.sum()} rows of impossible sizes or times; {example}")


def falls(message_size: FloatArray, time: FloatArray) -> bool:
    """Whether times go down with the size, by the correlation of ranks: sizes are spaced by powers of two."""
    size_rank, time_rank = (np.argsort(np.argsort(values, kind="stable")) for values in (message_size, time))
    return bool(np.corrcoef(size_rank, time_rank)[0, 1] < 0)


def disagreement(files: NDArray[Any], keys: Mapping[str, FloatArray], time: FloatArray, limit: float) -> str:
    """Text on the two files that differ most in the median time of equal `keys`, one of them `message_size`.

    All arrays are of shape (rows,), in base units. Empty if no two files differ by more than `limit`, relative to
    the shorter time.
    """
    if len(dict.fromkeys(files.tolist())) < 2:
        return ""
    import pandas as pd

    frame = pd.DataFrame({**keys, "file": files.astype(str), "time": time})
    medians = frame.groupby([*keys, "file"], sort=False)["time"].median().reset_index()
    alike = medians.groupby(list(keys), sort=False)["time"]
    ratio = (alike.transform("max") / alike.transform("min")).to_numpy()
    if not ratio.max() > 1 + limit:
        return ""
    worst = medians[(medians[list(keys)] == medians[list(keys)].iloc[int(ratio.argmax())]).all(axis=1)]
    fast, slow = (worst.iloc[int(place)] for place in (worst["time"].argmin(), worst["time"].argmax()))
    times = " and ".join(format_quantity(float(row["time"]), SECOND) for row in (fast, slow))
    size = format_quantity(float(fast["message_size"]), BYTE)
    return f"{fast['file']} and {slow['file']} differ: {times} for {size}"
