"""What docs/domains.md shows works, and its errors are those of the comparison."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest

import whatif
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "domains.md").read_text(encoding="utf-8")
HALO, ALLREDUCE, LAYER, ENSEMBLE = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
OTHER_NETWORKS = ("Polaris", "Alps", "AWS p4de", "AWS p5")


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_run_and_give_the_times_of_the_page(line, whatif_main, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("halo", HALO), ("allreduce", ALLREDUCE), ("layer", LAYER), ("ensemble", ENSEMBLE)):
        (tmp_path / f"{name}.toml").write_text(text)
    command, _, remark = line.partition("#")
    code, _, err = whatif_main(*shlex.split(command)[1:], "--format", "json")
    assert code == 0, err
    if stated := re.search(r"([\d.]+) (us|ms)", remark):
        time = whatif.run(shlex.split(command)[2], overrides=_overrides(command)).columns["iteration_time"]
        assert float(time) == pytest.approx(float(stated[1]) * {"us": 1e-6, "ms": 1e-3}[stated[2]], rel=0.02)


def _overrides(command):
    words = shlex.split(command)
    return dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--set")


def test_errors_are_those_of_the_comparison():
    rows = whatif.comparisons("collectives").table().to_pandas()
    assert rows[["from 1 MiB", "below"]].to_numpy().sum() == 456
    other = rows["machine"].isin(OTHER_NETWORKS)
    usual, others = r"error is ([\d.]+) % and the bias (-[\d.]+) %", r"it is ([\d.]+) % and (-[\d.]+) %"
    for part, words in ((~other, usual), (other, others)):
        stated = re.search(words, PAGE)
        for place, name in ((1, "error"), (2, "bias")):
            assert float(stated[place]) == pytest.approx(100 * np.mean(rows.loc[part, name]), abs=0.5)
