"""Factor on the latencies of a library of GPUs between link domains: of each machine by those of the two others."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import ROOT
from whatif.fitting.collective_steps import relative_errors
from whatif.fitting.library_points import CollectivePoints
from whatif.models import gpu_collectives
from whatif.models.gpu_collectives import BETWEEN_DOMAINS
from whatif.validation.library_collectives import points_by_machine, sheet_of
from whatif.validation.tables import rows_of

MACHINES = ("Sophia (DGX A100)", "Lambda (HGX B200)", "MI355X, AINIC")
"""Machines with InfiniBand or RoCE whose allreduces below 1 MiB are known, on two link domains of eight GPUs."""
PAGE = (ROOT / "docs" / "collectives.md").read_text(encoding="utf-8")
FACTORS = np.arange(1.0, 3.0, 0.01)


def small_allreduces(machine: str) -> CollectivePoints:
    points = points_by_machine(rows_of("gpu_collectives.csv"))[machine]
    return points.at(points.sizes < 2**20)


@cache
def ratios(machine, factor):
    """Logarithms of predicted over measured times of a machine, with some factor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_collectives, "BETWEEN_DOMAINS", factor)
        return np.log1p(relative_errors(sheet_of(machine), small_allreduces(machine)))


@cache
def best(*machines):
    """Factor of least mean absolute logarithm, with machines that count alike."""
    return min(FACTORS, key=lambda factor: sum(np.abs(ratios(machine, factor)).mean() for machine in machines))


def test_the_factor_is_that_of_all_three():
    assert_allclose(best(*MACHINES), BETWEEN_DOMAINS, atol=0.05, rtol=0)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_is_within_the_bar_by_the_factor_of_the_others(machine):
    factor = best(*(other for other in MACHINES if other != machine))
    held_out, without = (np.abs(ratios(machine, each)) for each in (factor, 1.0))
    assert np.exp(held_out.mean()) < 1.35
    assert np.exp(without.mean()) > 1.45


def test_documented_errors_are_those_of_the_machines_held_out():
    stated = re.search(r"mean error ([^;]+) %; without any factor ([^.]+) %", PAGE.replace("\n", " "))
    for text, fitted in zip(stated.groups(), (True, False), strict=True):
        factors = [best(*(other for other in MACHINES if other != name)) if fitted else 1.0 for name in MACHINES]
        errors = [np.abs(np.expm1(ratios(*pair))).mean() for pair in zip(MACHINES, factors, strict=True)]
        assert_allclose(
            [float(number) for number in re.findall(r"\d+", text)], 100 * np.array(errors), atol=0.6, rtol=0
        )
