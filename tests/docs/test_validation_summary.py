"""The table at the head of docs/validation.md has the numbers of the tables below it."""

from __future__ import annotations

import re

import pytest

from tests.paths import ROOT

PAGE = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
SUMMARY = {
    cells[0]: cells[1:] for cells in re.findall(r"^\| \[([^\]]+)\]\([^)]*\) \| ([^|]*) \| ([^|]*) \|$", PAGE, re.M)
}


def rows(section):
    """Cells of the table rows of a section with subsections, by line; numbers lose `**`, `%` and signs."""
    body = re.search(rf"^(#+) {re.escape(section)}\n(.*?)(?=^(?!\1#)#|\Z)", PAGE, re.M | re.S)[2]
    return [
        [cell.strip(" *%+") for cell in line.strip("|").split("|")] for line in body.splitlines() if line[:1] == "|"
    ]


def numbers(cells):
    return [abs(float(cell)) for cell in cells if re.fullmatch(r"[-+]?\d+(\.\d+)?", cell)]


def test_halo_exchange():
    table = rows("Jacobi2D's halo exchange, measured on Summit and Lassen")
    errors = numbers(next(cells for cells in table if cells[0] == "mean absolute error"))
    count = sum(cells[0] in ("Summit", "Lassen") for cells in table)
    expected = [f"{count} runs on Summit and Lassen", f"{min(errors):.0f} to {max(errors):.0f} % by model"]
    assert SUMMARY["Halo exchange"] == tuple(expected)


def test_programs_on_gpus():
    errors = {cells[0]: float(cells[2]) for cells in rows("Programs on one GPU, and on another") if numbers(cells[2:3])}
    assert {round(errors[gpu]) for gpu in ("H100", "H200")} == {3}
    assert {round(errors[kind]) for kind in ("short", "partly filled")} == {10}
    assert SUMMARY["Programs on GPUs"][1] == "3 %; short kernels and few blocks 10 %"


def test_copies():
    first, second = [], []
    for cells in rows("Transfers between host and device (AHEAD, Eq. 2 to 10)"):
        (first if len(cells) == 5 else second).append(numbers(cells))
    sweeps = [row for row in first if row], [row for row in second if row]
    assert sum(map(len, sweeps)) == 4
    assert max(max(row[:2]) for part in sweeps for row in part) < 7
    assert max(max(row) for row in sweeps[0]) == 58
    assert SUMMARY["Copies"] == ("sweeps of copies on four machines", "pinned below 7 %, pageable up to 58 %")


def test_hpl():
    emulated = next(cells for cells in rows("The emulator on ideal networks") if "reference" in cells[0])
    geometry = next(cells for cells in rows("Dahu over geometries and settings") if "mean absolute error" in cells[0])
    low, high = float(emulated[2]), float(geometry[3])
    assert SUMMARY["HPL"][1] == f"{low:.1f} to {high:.0f} %"


@pytest.mark.parametrize(
    ("name", "section", "column", "unit"),
    [("HPL on whole machines", "HPL on whole machines", 5, "runs"),
     ("HPCG on whole machines", "HPCG on whole machines", 5, "runs"),
     ("Power", "Power of whole machines", 5, "machines")],
)  # fmt: skip
def test_whole_machines(name, section, column, unit):
    errors = [float(cells[column]) for cells in rows(section) if len(cells) > column and numbers([cells[column]])]
    mean = sum(map(abs, errors)) / len(errors)
    assert SUMMARY[name][0].startswith(f"{len(errors)} {unit} of TOP500")
    assert SUMMARY[name][1].startswith(f"{mean:.0f} %")


def test_power_limits():
    table = [cells for cells in rows("Power limits") if numbers(cells[1:2])]
    errors = [float(cells[2]) for cells in table]
    epochs = f"{sum(int(cells[1]) for cells in table)} epochs of training on four GPUs"
    assert SUMMARY["Power limits"] == (epochs, f"{min(errors):.0f} to {max(errors):.0f} %")
