"""A sweep of every parameter of a training equals loading each point alone, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.test_sweep_oracle import LIMIT, QUESTIONS, alone, around, differences
from whatif.core.result import run_whole
from whatif.core.sweep import grid_of, parse_axis

NAME = "llama_training"
PROGRAM = QUESTIONS[NAME].program
NUMERIC = [path for path, item in PROGRAM.parameters.items() if not item.structural and path in PROGRAM.reached]


def test_there_is_something_to_sweep():
    assert len(NUMERIC) > 40


@pytest.mark.parametrize("path", NUMERIC)
def test_a_sweep_equals_each_point_alone(path):
    texts = around(NAME, path)
    swept = run_whole(QUESTIONS[NAME], grid_of([parse_axis(path, {path: texts}, PROGRAM, LIMIT)], LIMIT))
    for index, text in enumerate(texts):
        single = alone(NAME, {path: text})
        assert differences(swept, (index,), single) == [], text
        assert swept.reason[index] == single.reason[()]
        assert (single.infeasible == 0) == bool(np.isfinite(swept.grid.spread(swept.columns["total_time"])[index]))
