"""Performance model normal form search against Extra-P, on its sample with three parameters.

Extra-P needs numpy < 2 and runs in a separate environment, created on the first run (0.8 GB); both programs are timed
in their own processes after reading the file and one warm-up run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Row, median_seconds
from whatif.fitting.pmnf import search
from whatif.importers.extrap import read_extrap

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / ".venv-extrap"
EXTRAP = "extrap==4.2.5"
SAMPLE = ROOT / "tests/data/runs/extrap/input/input_data_3p.txt"


def searching() -> Iterator[Row]:
    """Time of the search over 625 runs at 125 points of three parameters."""
    columns = read_extrap(SAMPLE).columns
    variables, values = {name: columns[name].values for name in "xyz"}, columns["metr"].values
    seconds = median_seconds(lambda: search(variables, values), 20)
    try:
        others = _extrap_seconds()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"left out: {EXTRAP} cannot be installed or run here ({_reason(error)})", file=sys.stderr)
        return
    what = "PMNF search over 3 parameters, 625 runs"
    yield Row(what, f"{seconds * 1e3:.0f} ms", f"{others * 1e3:.0f} ms", others / seconds, EXTRAP)


def _extrap_seconds() -> float:
    # An inherited path may lead to another numpy.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(*words: object) -> str:
        done = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True, env=environment)
        return done.stdout

    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / ".installed").exists():
        run(sys.executable, "-m", "venv", ENVIRONMENT)
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", EXTRAP, "numpy<2")
        (ENVIRONMENT / ".installed").touch()
    return float(run(python, ROOT / "benchmarks" / "with_extrap.py", "seconds", SAMPLE))


def _reason(error: OSError | subprocess.CalledProcessError) -> str:
    message = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    return (message.strip().splitlines() or [str(error)])[-1]


if __name__ == "__main__":
    for row in searching():
        print(row)
