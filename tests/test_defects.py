"""Unforeseen errors: a message, a documented exit code, and a file with the traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys, whatif.cli.list, whatif.cli.main
def fail(*_, **__):
    raise KeyError("zebra")
whatif.cli.list.echo = fail
sys.argv = ["whatif", "list", "scenarios"]
whatif.cli.main.main()
"""


def ended(tmp_path, **variables):
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), **variables}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of the state is that of XDG")
def test_a_defect_is_a_message_and_a_file(tmp_path):
    found = ended(tmp_path)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr == "whatif: defect: KeyError: 'zebra'; please report it with ~/state/whatif/defect.txt\n"
    text = (tmp_path / "state" / "whatif" / "defect.txt").read_text()
    assert text.startswith("whatif ")
    assert text.endswith("KeyError: 'zebra'\n")
    assert 'raise KeyError("zebra")' in text or "in fail" in text


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of the state is that of XDG")
def test_a_defect_where_nothing_can_be_written_is_still_a_message(tmp_path):
    (tmp_path / "state").write_text("a file in place of the folder")
    assert ended(tmp_path).stderr == "whatif: defect: KeyError: 'zebra'\n"


def test_the_traceback_is_shown_on_request(tmp_path):
    found = ended(tmp_path, WHATIF_TRACEBACK="1")
    assert found.returncode == 1
    assert "Traceback" in found.stderr
