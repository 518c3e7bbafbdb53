"""Completion scripts and the man page."""

from __future__ import annotations

import re
import shutil
import subprocess

import click
import pytest

from whatif.cli.main import VERBS, program
from whatif.cli.shell import man_page


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_those_of_the_shell(shell, whatif_main):
    code, out, _ = whatif_main("shell", shell)
    assert (code, "_WHATIF_COMPLETE" in out) == (0, True)
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=out, text=True, capture_output=True, check=False).stderr == ""


@pytest.mark.parametrize(
    ("words", "at", "expected"),
    [
        ("whatif va", 1, ["plain,validate"]),
        ("whatif run jac", 2, ["plain,jacobi2d", "plain,jacobi2d_strong", "file,jac"]),
        ("whatif run jacobi2d --platform fr", 4, ["plain,frontier", "file,fr"]),
        ("whatif run jacobi2d --plo", 3, ["plain,--plot"]),
    ],
)
def test_verbs_options_and_shipped_files_are_completed(words, at, expected, monkeypatch, capsys):
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(at))
    monkeypatch.setenv("_WHATIF_COMPLETE", "bash_complete")
    with pytest.raises(SystemExit):
        program.main(prog_name="whatif")
    assert capsys.readouterr().out.splitlines() == expected


def test_the_man_page_has_every_verb_and_no_error():
    page = "\n".join(man_page(click.Context(program, info_name="whatif")))
    assert [name for name in VERBS if f".SS whatif {name}".replace("-", "\\-") not in page] == []
    if shutil.which("groff"):
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        assert "--platform-dir DIR" in re.sub(".\x08", "", done.stdout)  # bold as overstrikes
