"""What several test files share."""

from __future__ import annotations

import sys

import pytest

import whatif.cli.main


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
