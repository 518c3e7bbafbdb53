"""Rates of products from data sheets: matrix units for FP64 where there are any, else vector peaks, else sockets."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.linpack.datasheet import NO_DATASHEET, datasheet_of
from whatif.linpack.simulation.costs import DGEMM, DGEMM_LIMITS, KERNEL_COLUMNS, KERNELS, PER_MNK
from whatif.schema.toml import parse_document


def values_of(platform: str) -> dict[str, float]:
    text = f'[platform]\nextends = "{platform}"\n[application]\nname = "x"\nrank_count = 1\niteration_count = 1\n'
    text += '[application.phases.nothing]\nkind = "overhead"\noverhead_time = "1 s"\n'
    program = Scenario(parse_document(text, "x.toml")).program
    return {path: float(np.ravel(value)[0]) for path, value in evaluate(program).values.items() if np.size(value) == 1}


@pytest.mark.parametrize(
    ("platform", "rate"),
    [("leonardo", 0.72 * 22.4e12), ("frontier", 0.4 * 47.85e12), ("summit", 0.91 * 6.34045e12), ("fugaku", 3.072e12)],
)
def test_products_run_on_the_fastest_units_for_fp64(platform, rate):
    values, table = values_of(platform), np.zeros((len(KERNELS), KERNEL_COLUMNS))
    table[DGEMM_LIMITS] = np.inf
    sheet = datasheet_of(values)
    sheet.charge(table, ["dgemm"], values, int(values[sheet.device_count]))
    stated = values["platform.node.cpu.peak_double_rate"] if platform == "fugaku" else rate
    assert_allclose(table[DGEMM, PER_MNK], 2 / stated, rtol=1e-5, atol=0)
    assert_allclose(stated, rate, rtol=0.15, atol=0)


def test_nothing_is_charged_without_a_device():
    assert datasheet_of({}) is NO_DATASHEET
