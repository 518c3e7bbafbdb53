"""Programs of other projects in environments of their own, created on the first run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Separate:
    """Environment with some packages, in which scripts of this folder run."""

    def __init__(self, name: str, *packages: str) -> None:
        self.folder, self.packages = ROOT / f".venv-{name}", packages

    def run(self, script: str, *words: object, text: str | None = None) -> str:
        """Standard output of a script. Raise `OSError` or `CalledProcessError` if it cannot be installed or run."""
        python = self.folder / "bin" / "python"
        if not (self.folder / ".installed").exists():
            _run(sys.executable, "-m", "venv", self.folder)
            _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *self.packages)
            (self.folder / ".installed").touch()
        return _run(python, ROOT / "benchmarks" / script, *words, text=text)

    def left_out(self, error: OSError | subprocess.CalledProcessError) -> None:
        """Report why a comparison is left out."""
        message = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        reason = (message.strip().splitlines() or [str(error)])[-1]
        print(f"left out: {self.packages[0]} cannot be installed or run here ({reason})", file=sys.stderr)


def _run(*words: object, text: str | None = None) -> str:
    # An inherited path may lead to other packages.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, words)), check=True, capture_output=True, text=True, env=environment, input=text
    )
    return done.stdout
