"""Tables of docs/collectives.md load, and its errors are those of the comparison."""

from __future__ import annotations

import re

import numpy as np
import pytest

import whatif
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "collectives.md").read_text(encoding="utf-8")
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


def test_errors_are_those_of_the_comparison():
    rows = whatif.comparisons("collectives").table().to_pandas()
    for line, name in (("data sheets", "error"), ("fitted", "fitted"), ("held out", "held out")):
        stated = re.search(rf"\| {line}[^|]*\| ([\d.]+) % \(([-+\d.]+) %\)[^|]*\| ([\d.]+) % \(([-+\d.]+) %\)", PAGE)
        bias = "bias" if name == "error" else f"{name} bias"
        for at, (part, count) in enumerate((("", "from 1 MiB"), (" below", "below"))):
            known = rows[np.isfinite(rows[f"{name}{part}"])]
            for place, column in ((1, name), (2, bias)):
                mean = 100 * np.average(known[f"{column}{part}"], weights=known[count])
                assert float(stated[2 * at + place]) == pytest.approx(mean, abs=0.06)
