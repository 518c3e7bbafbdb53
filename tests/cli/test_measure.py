"""`whatif measure` on a simulated machine: the file, the table, wrong input and an interrupt."""

from __future__ import annotations

import csv
import io
import sys

import pytest

from tests.measured_at_hand import SimulatedTeam, no_messages, simulated
from whatif.api import measuring
from whatif.cli.main import main


@pytest.fixture
def machine(monkeypatch):
    """The team of the simulated machine that `whatif measure` finds."""
    team = SimulatedTeam()
    monkeypatch.setattr(measuring, "Instruments", lambda: simulated(team))
    return team


def test_measure_writes_a_valid_platform_and_a_table(whatif_main, machine, tmp_path):
    path = tmp_path / "mine.toml"
    code, output, errors = whatif_main("measure", "--quick", "-o", str(path))
    assert code == 0, errors
    assert "triad on 8 cores" in output
    assert f"written: {path}" in errors
    assert whatif_main("check", str(path))[0] == 0


def test_table_as_csv_without_a_file(whatif_main, machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output, errors = whatif_main("measure", "--quick", "--format", "csv")
    assert code == 0
    rows = {row["quantity"]: row for row in csv.DictReader(io.StringIO(output))}
    assert rows["triad on 1 core"]["grade"] == "measured"
    assert rows["power"]["grade"] == "assumed"
    assert "nothing is written without -o PLATFORM.toml" in errors
    assert list(tmp_path.iterdir()) == []


def test_interrupt_leaves_no_file(machine, monkeypatch, capsys, tmp_path):
    machine.interrupt_at = 3.0
    monkeypatch.setattr(sys, "argv", ["whatif", "measure", "--quick", "-o", str(tmp_path / "mine.toml")])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 130
    assert capsys.readouterr().err.endswith("whatif: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_missing_messages_are_told(whatif_main, monkeypatch, tmp_path):
    monkeypatch.setattr(measuring, "Instruments", lambda: simulated(messages=no_messages))
    code, _, errors = whatif_main("measure", "--quick", "-o", str(tmp_path / "mine.toml"))
    assert code == 0
    assert "messages were not measured: mpi4py is not installed" in errors


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mine.txt", None, "call the file NAME.toml"),
        ("folder/mine.toml", None, "mine.toml: no folder "),
        ("/proc/mine.toml", None, "/proc/mine.toml: cannot be written"),
        ("my machine.toml", None, "has only ASCII letters, digits"),
        ("mine.toml", 'extends = "summit"\n', "not written by `whatif measure`"),
        ("mine.toml", "", "not written by `whatif measure`"),
    ],
)
def test_a_wrong_file_is_refused_before_anything_is_measured(whatif_main, machine, tmp_path, name, text, message):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    code, _, errors = whatif_main("measure", "-o", str(path))
    assert code == 2
    assert message in errors
    assert machine.now == 0.0


def test_a_wrong_blas_is_refused_before_anything_is_measured(whatif_main, machine, tmp_path):
    code, _, errors = whatif_main("measure", "--blas", str(tmp_path / "libblas.so"))
    assert code == 2
    assert "no BLAS with Fortran names" in errors
    assert machine.now == 0.0
