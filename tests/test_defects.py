"""Unforeseen errors: a message, a documented exit code, and a file with the traceback."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys

import pytest

from whatif.core.scenario import Scenario
from whatif.tui.app import Explorer

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


def test_a_defect_ends_the_explorer_with_its_message(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    explorer = Explorer(Scenario.open("jacobi2d"))
    # Without a terminal, Textual may still hold the standard error when it prints.
    explorer.error_console.file = io.StringIO()

    async def ends():
        async with explorer.run_test() as pilot:
            pilot.app._handle_exception(KeyError("[red]zebra"))

    with pytest.raises(KeyError, match="zebra"):
        asyncio.run(ends())
    shown = explorer.error_console.file.getvalue()
    assert "whatif: defect: KeyError: '[red]zebra'; please report it with" in shown
    assert "Unsaved edits are offered at the next start." in shown
    assert "Traceback" not in shown
