"""What the README says of make and of its files is so, and the explorer opens."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from docs.site.reference import quantity_names
from tests.paths import ROOT

README = (ROOT / "README.md").read_text()


def test_make_targets_of_the_readme_exist():
    for target in set(re.findall(r"make (run|check|test|bench|docs|screenshots)", README)):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_pictures_and_links_of_the_readme_exist():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_quantities_have_one_unit_under_one_name():
    units: dict[str, set[str]] = {}
    for unit, names in quantity_names().items():
        for name in names:
            units.setdefault(name, set()).add(unit)
    # A coefficient of HPL's kernels has the name of its product; the size of a group is a number of ranks.
    # A precision is the key of a rate and of a share of it.
    several = {name: found for name, found in units.items() if len(found) > 1}
    assert several == {"size": {"1", "s"}, "bf16": {"1", "flop/s"}, "fp8": {"1", "flop/s"}}


@pytest.mark.parametrize("words", [["open", "jacobi2d"], []])
def test_explorer_opens_in_a_terminal_and_quits_on_q(words):
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="100", LINES="30")
        os.execv(sys.executable, [sys.executable, "-m", "whatif", *words])  # noqa: S606
    screen = read_until(terminal, b"jacobi2d", b"Jacobi2D")
    os.write(terminal, b"q")
    read_until(terminal)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0, screen[-2000:]
    assert b"Traceback" not in screen


def read_until(terminal: int, *wanted: bytes, seconds: float = 30) -> bytes:
    """Read from a terminal until one of the texts has come, or its end."""
    seen, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                return seen
        if any(text in seen for text in wanted):
            time.sleep(0.5)
            return seen
    return seen
