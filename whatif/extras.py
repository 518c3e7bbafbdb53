"""Commands that install the packages of an extra."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec


def install_command(extra: str) -> str:
    """Command that installs the packages of an extra in the environment of this program.

    It names packages, not `whatif[EXTRA]`: an index may have another project of that name.
    """
    from importlib.metadata import requires

    parts = (line.partition("; extra == ") for line in requires("whatif") or ())
    packages = [package for package, _, name in parts if name.strip("'\"") == extra]
    python = sys.executable
    installer = [python, "-m", "pip", "install"] if find_spec("pip") else ["uv", "pip", "install", "--python", python]
    return shlex.join([*installer, *packages])
