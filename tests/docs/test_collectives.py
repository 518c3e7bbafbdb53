"""Tables of docs/collectives.md load, and its errors are those of the comparison."""

from __future__ import annotations

import re

import numpy as np
import pytest

import whatif
from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.core.accuracy_cards import model_cards
from whatif.fitting.collective_steps import relative_errors
from whatif.studies.run_accuracy import pooled_card
from whatif.validation.library_collectives import datasheet_groups, points_by_machine, sheet_of, transport_of
from whatif.validation.tables import rows_of

PATH = ROOT / "docs" / "collectives.md"
PAGE = PATH.read_text(encoding="utf-8")
NODES = ("Azure ND A100 v4", "Azure ND H200 v5", "Azure ND GB200 v6", "H200, NVLS off", "H200")
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
    transport = "libfabric" if slow else "verbs"
    for large in (True, False):
        factors = [factor for machine, factor in series_factors(large) if transport_of(machine) == transport]
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


def points_and_errors(machine):
    points = points_by_machine(rows_of("gpu_collectives.csv"))[machine]
    return points, relative_errors(sheet_of(machine), points)


def test_table_of_nodes_is_that_of_the_page():
    """`WHATIF_WRITE_MACHINES=1 pytest tests/docs/test_collectives.py -k of_the_page` writes it."""
    lines = ["| node | GPUs | sizes | from 1 MiB | below |", "|---|---|---|---|---|"]
    for machine in NODES:
        points, errors = points_and_errors(machine)
        ranks = " to ".join(dict.fromkeys(f"{count:.0f}" for count in (points.ranks.min(), points.ranks.max())))
        parts = (errors[points.sizes >= 2**20], errors[points.sizes < 2**20])
        cells = [f"{np.abs(part).mean():.1%} ({part.mean():+.1%})" if len(part) else "-" for part in parts]
        lines.append(
            f"| {machine} | {ranks} | {len(np.unique(points.sizes))} | {' | '.join(cells)} |".replace("%", " %")
        )
    assert_shown(PATH, "node allreduces", "\n".join(lines) + "\n")


def bus_bandwidths(machine):
    points, _ = points_and_errors(machine)
    return 2 * (points.ranks - 1) / points.ranks * points.sizes / points.times / 1e9


def test_why_nodes_are_off_is_as_on_the_page():
    page = " ".join(PAGE.split())
    (azure, errors), ring = points_and_errors("Azure ND A100 v4"), bus_bandwidths("H200, NVLS off")
    late = errors[(azure.sizes >= 2**21) & (azure.sizes <= 2**27)]
    assert f"2 to 128 MiB are too fast by {-100 * late.max():.0f} to {-100 * late.min():.0f} %" in page
    assert f"reach {bus_bandwidths('Azure ND A100 v4')[-1] / 300:.2f} of the data sheet of A100" in page
    assert f"{ring[-1] / 450:.2f} of that of H200" in page
    assert f"{bus_bandwidths('Azure ND GB200 v6')[-1] / 900:.2f} of that of GB200" in page
    gains = bus_bandwidths("H200") / ring[1:]
    assert f"a factor of {gains[0]:.2f} on 5 GPUs to {gains[-1]:.2f} on 8" in page
    short = {name: points_and_errors(name) for name in NODES[:2]}
    times = [points.times[points.sizes < 2**20] * 1e6 for points, _ in short.values()]
    assert (
        "{:.0f} to {:.0f} us on A100, {:.0f} to {:.0f} us on H200".format(
            *(number for each in times for number in (each.min(), each.max()))
        )
        in page
    )
    found = np.concatenate([(points.times * (1 + error))[points.sizes < 2**20] for points, error in short.values()])
    assert f"LL would take {found.min() * 1e6:.0f} to {found.max() * 1e6:.0f} us" in page


def contained(machine, groups):
    """Share of the times of a machine in bands of 90 % with the card of the others."""
    card = pooled_card([group for group in groups if group.platform != machine])
    distances = np.log(np.concatenate([group.ratios for group in groups if group.platform == machine]) / card.ratio)
    return float(np.mean(np.abs(distances) <= 1.645 * np.log(card.scatter)))


def shares_contained(**chosen):
    """Share of the times of each machine in bands with the card of the others."""
    groups = list(datasheet_groups(rows_of("gpu_collectives.csv"), **chosen))
    return {machine: contained(machine, groups) for machine in dict.fromkeys(group.platform for group in groups)}


def test_bands_contain_the_shares_of_the_page_of_machines_held_out():
    rows = {"nccl_in_domain": {"in_domain": True}, "nccl_verbs": {"transport": "verbs"}}
    rows |= {"nccl_libfabric": {"transport": "libfabric"}, "nccl": {}}
    for model, chosen in rows.items():
        card, shares = model_cards()["communication", model], shares_contained(**chosen)
        numbers = f"{card.ratio:.2f} | {card.scatter:.2f} | {100 * np.mean(list(shares.values())):.0f} %"
        least = min(shares, key=shares.get)
        assert f"| {len(shares)} | {card.run_count} | {numbers} | {least}, {100 * shares[least]:.0f} % |" in PAGE


def test_ranks_across_domains_are_those_of_the_page():
    machines = points_by_machine(rows_of("gpu_collectives.csv"))
    ranks = np.concatenate([
        points.ranks[points.ranks > sheet_of(machine).domain_rank_count]
        for machine, points in machines.items()
        if transport_of(machine) == "verbs"
    ])  # fmt: skip
    words = f"InfiniBand and RoCE are those of {ranks.min():.0f} to {ranks.max():.0f} GPUs"
    assert words in " ".join(PAGE.split())


def test_errors_without_slingshot_and_efa_are_those_of_the_model_page():
    page = " ".join((ROOT / "docs" / "models" / "gpu_collectives.md").read_text(encoding="utf-8").split())
    machines = {name: its for name, its in points_by_machine(rows_of("gpu_collectives.csv")).items()
                if transport_of(name) == "verbs"}  # fmt: skip
    errors = {name: np.abs(relative_errors(sheet_of(name), points)) for name, points in machines.items()}
    large, small = (
        np.mean(np.concatenate([errors[name][(its.sizes >= 2**20) == from_1] for name, its in machines.items()]))
        for from_1 in (True, False)
    )
    assert f"({large:.0%} and {small:.0%} without Slingshot and EFA)".replace("%", " %") in page
