"""Numbers of docs/validation.md about the runs of docs/hpl_calibration.md."""

from __future__ import annotations

import re

import whatif
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "hpl_calibration.md").read_text(encoding="utf-8")
VALIDATION = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
RUNS = ROOT / "validation" / "hpl_two_cores.out"
INPUT, PLATFORM = RUNS.with_suffix(".dat"), RUNS.with_suffix(".toml")


_ERRORS = r"mean error (\S+)%, bias (\S+)%, rank correlation (\d\.\d+)(?:; (\d+)% of the runs)?"


def test_errors_of_validation_md_are_those_that_the_page_shows():
    shown = re.findall(_ERRORS, PAGE)
    assert len(shown) == 4
    for text, found in zip(("all kernels calibrated", "the same with `--noise`"), shown[:2], strict=True):
        mean, bias, correlation, coverage = found
        covered = f" {coverage} % |" if coverage else " |"
        assert f"| {text} | {mean} % | {bias} % | {correlation} |{covered}" in VALIDATION


def runs_of(path, *sizes):
    """Output of HPL with the runs of some matrix sizes."""
    lines = RUNS.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], *(line for line in lines[2:] if line.split()[1] in sizes)]) + "\n")
    return path


def input_of(path, *sizes):
    """HPL.dat for some of the matrix sizes."""
    path.write_text(INPUT.read_text().replace("3\n2000 4000 6000\n", f"{len(sizes)}\n{' '.join(sizes)}\n"))
    return path


def row(text, errors):
    """Row of the table of docs/validation.md."""
    shown = f"| {text} | {100 * errors.mean_error:.1f} % | {100 * errors.bias:+.1f} % | {errors.rank_correlation:.2f} |"
    return f"{shown} {100 * errors.coverage:.0f} % |"


def test_correction_learnt_from_small_matrices_holds_for_large_ones(tmp_path):
    small, large = runs_of(tmp_path / "small.out", "2000", "4000"), runs_of(tmp_path / "large.out", "6000")
    largest, others = input_of(tmp_path / "large.dat", "6000"), input_of(tmp_path / "small.dat", "2000", "4000")
    whatif.hpl(others, platform=PLATFORM, measured=[small]).write(tmp_path / "corrected.toml")
    folders = [tmp_path, PLATFORM.parent]
    before = whatif.hpl(largest, platform=PLATFORM, measured=[large], noise=True).errors()
    after = whatif.hpl(largest, platform="corrected", platform_dirs=folders, measured=[large], noise=True).errors()
    assert row("N = 6,000 only, `--noise`", before) in VALIDATION
    text = "N = 6,000 only, `--noise`, with the correction learnt from N = 2,000 and 4,000 (1.059)"
    assert row(text, after) in VALIDATION
    assert after.mean_error < before.mean_error
    assert after.coverage >= 0.8
