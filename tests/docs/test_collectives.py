"""Tables of docs/collectives.md load, and its errors are those of the comparison."""

from __future__ import annotations

import re

import numpy as np
import pytest

import whatif
from tests.paths import ROOT
from whatif.fitting.collective_steps import relative_errors
from whatif.validation.library_collectives import points_by_machine, sheet_of
from whatif.validation.tables import rows_of

PAGE = (ROOT / "docs" / "collectives.md").read_text(encoding="utf-8")
SLOW = ("Polaris", "Alps", "AWS p4de", "AWS p5")
"""Machines with Slingshot or EFA."""
RING, MEASURED = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_tables_of_the_page_load(tmp_path):
    (tmp_path / "ours.toml").write_text(f'extends = "polaris"\nname = "ours"\n\n{RING}')
    phase = 'kind = "collective"\nalgorithm = "best"\nmodel = "nccl"\nmessage_size = "1 MiB"\n'
    application = '[application]\nname = "one"\nrank_count = 1024\niteration_count = 1\n\n[application.phases.sum]\n'
    (tmp_path / "one.toml").write_text(f'platform = "ours"\n\n{application}{phase}')
    time = float(whatif.run(tmp_path / "one.toml")["iteration_time"])
    expected = 14e-6 + 16 * (12e-6 + 2**17 / 3.8e9) + (2**20 - 2**17) / 3.8e9
    assert time == pytest.approx(expected, rel=1e-9)
    (tmp_path / "two.toml").write_text(
        f'platform = "ours"\n\n{application.partition("[application.phases")[0]}{MEASURED}'
    )
    with pytest.raises(whatif.WhatifError, match="no measured allreduce of mpi"):
        whatif.run(tmp_path / "two.toml")


@pytest.fixture(scope="module")
def rows(compared):
    return compared("collectives").to_pandas()


def test_errors_are_those_of_the_comparison(rows):
    for line, name in (("data sheets", "error"), ("fitted", "fitted"), ("held out", "held out")):
        stated = re.search(rf"\| {line}[^|]*\| ([\d.]+) % \(([-+\d.]+) %\)[^|]*\| ([\d.]+) % \(([-+\d.]+) %\)", PAGE)
        bias = "bias" if name == "error" else f"{name} bias"
        for at, (part, count) in enumerate((("", "from 1 MiB"), (" below", "below"))):
            known = rows[np.isfinite(rows[f"{name}{part}"])]
            for place, column in ((1, name), (2, bias)):
                mean = 100 * np.average(known[f"{column}{part}"], weights=known[count])
                assert float(stated[2 * at + place]) == pytest.approx(mean, abs=0.06)


@pytest.mark.parametrize("slow", [False, True])
def test_series_within_the_bar_are_counted(slow):
    """Times that are too short and times that are too long do not cancel."""
    line = re.search(r"\| Slingshot, EFA(.*)" if slow else r"\| one domain, InfiniBand, RoCE(.*)", PAGE)[1]
    stated, found = [float(text) for text in re.findall(r"[\d.]+", line)], []
    for large in (True, False):
        factors = [factor for machine, factor in series_factors(large) if (machine in SLOW) == slow]
        found += [sum(factor <= 1.5 for factor in factors), len(factors), max(factors)]
    assert stated == pytest.approx(found, rel=0.01)


def series_factors(large):
    """Machine of each series of sizes from 1 MiB on, or below, and the factor by which it is off."""
    for machine, points in points_by_machine(rows_of("gpu_collectives.csv")).items():
        ratios = np.log1p(relative_errors(sheet_of(machine), points))
        for operation, ranks in dict.fromkeys(zip(points.operations, points.ranks, strict=True)):
            own = (points.operations == operation) & (points.ranks == ranks) & ((points.sizes >= 2**20) == large)
            if own.any():
                yield machine, float(np.exp(np.abs(ratios[own]).mean()))
