"""Performance model normal form search against Extra-P, on its sample with three parameters.

Extra-P needs numpy < 2 and runs in a separate environment, created on the first run (0.8 GB); both programs are timed
in their own processes after reading the file and one warm-up run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from benchmarks.measure import Row, median_seconds
from benchmarks.separate import ROOT, Separate
from whatif.fitting.pmnf import search
from whatif.importers.extrap import read_extrap

EXTRAP = "extrap==4.2.5"
SAMPLE = ROOT / "tests/data/runs/extrap/input/input_data_3p.txt"


def searching() -> Iterator[Row]:
    """Time of the search over 625 runs at 125 points of three parameters."""
    columns = read_extrap(SAMPLE).columns
    variables, values = {name: columns[name].values for name in "xyz"}, columns["metr"].values
    seconds = median_seconds(lambda: search(variables, values), 20)
    other = Separate("extrap", EXTRAP, "numpy<2")
    try:
        others = float(other.run("with_extrap.py", "seconds", SAMPLE))
    except (OSError, subprocess.CalledProcessError) as error:
        other.left_out(error)
        return
    what = "PMNF search over 3 parameters, 625 runs"
    yield Row(what, f"{seconds * 1e3:.0f} ms", f"{others * 1e3:.0f} ms", others / seconds, EXTRAP)


if __name__ == "__main__":
    for row in searching():
        print(row)
