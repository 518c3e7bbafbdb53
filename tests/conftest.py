"""What several test files share."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import settings

import whatif.cli.main

# A build must not fail on a case that no change in it caused: there the examples are always the same ones.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(autouse=True)
def _own_home(monkeypatch, tmp_path_factory):
    """What a person prefers, or left unsaved, must not decide a test."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.delenv("WHATIF_CONFIG", raising=False)


@pytest.fixture
def whatif_main(monkeypatch, capsys, tmp_path):
    """Run `whatif ARGUMENTS` in this process, in an empty folder: (exit code, stdout, stderr); never a traceback."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["whatif", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            whatif.cli.main.main()
        captured = capsys.readouterr()
        code = caught.value.code
        assert "Traceback" not in captured.err
        assert code in (0, 2, 3, 4)
        assert code == 0 or captured.err.strip()
        return code, captured.out, captured.err

    return run
