"""What the README shows works: every command, the scenario in it, the names in its table of quantities."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import time

import pytest

from tests.paths import ROOT
from tests.quantity_names import quantity_names, quantity_table
from whatif.core.scenario import Scenario

README = (ROOT / "README.md").read_text()
BLOCKS = [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)]
DATA = ROOT / "tests" / "data"
# What stands for the files of the reader: outputs of osu_bw between the nodes of Alps, a schedule, a profile.
BESIDE = {
    "osu/mpich_02.txt": "importers/network/cscs/mpich_02.txt",
    "runs.csv": "runs/zeus/resnet50_v100.csv",
    "halo.goal": "traces/goal/binary_tree_32.goal",
    "lammps.nvvp": "profiles/ahead/lammps_summit.nvvp",
    "dgemm.csv": "kernels/dahu_dgemm_calibration.csv",
    "HPL.dat": "hpl/HPL.dat.4x4",
}


@pytest.mark.parametrize("commands", BLOCKS, ids=lambda block: block[0][:40])
def test_commands_of_the_readme(commands, tmp_path, whatif_main):
    """One after another in one folder, where the outputs of a benchmark lie."""
    (tmp_path / "osu").mkdir()
    for name, path in BESIDE.items():
        (tmp_path / name).write_bytes((DATA / path).read_bytes())
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "whatif"
        code, out, err = whatif_main(*words[1:])
        assert code == 0, err
        assert out.strip() or {"-o", "--save", "--new"} & set(words)
    for path in tmp_path.glob("*.json"):
        found = json.loads(path.read_text())
        assert len(found["results"]) == 2 if path.name == "held.json" else len(found["rows"]) == 6


def test_scenario_of_the_readme(tmp_path):
    text = re.search(r"```toml\n(.*?)```", README, re.DOTALL)[1]
    path = tmp_path / "stencil.toml"
    path.write_text(text)
    program = Scenario.open(path).program
    assert program.grade == "assumed"
    assert "parameters.depth" in program.reached


def test_make_targets_of_the_readme_exist():
    for target in set(re.findall(r"make (run|check|test|bench|screenshots)", README)):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_pictures_and_links_of_the_readme_exist():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_quantity_table_lists_every_parameter_and_parameter():
    assert quantity_table() in README, "run `python -m tests.quantity_names` and put its rows into the README"


def test_quantities_have_one_unit_under_one_name():
    units: dict[str, set[str]] = {}
    for unit, names in quantity_names().items():
        for name in names:
            units.setdefault(name, set()).add(unit)
    # A coefficient of HPL's kernels has the name of its product; the size of a group is a number of ranks.
    assert {name: found for name, found in units.items() if len(found) > 1} == {"size": {"1", "s"}}


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
