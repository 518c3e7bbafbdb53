"""A sweep of every parameter of training and serving equals loading each point alone, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.test_sweep_oracle import LIMIT, QUESTIONS, alone, around, differences
from whatif.core.grid_run import run_whole
from whatif.core.sweep import grid_of, parse_axis

NAMES = ("llama_training", "llama_serving")


def numeric(name):
    """Parameters of a scenario that have numbers and matter."""
    program = QUESTIONS[name].program
    return [path for path, item in program.parameters.items() if not item.structural and path in program.reached]


@pytest.mark.parametrize("name", NAMES)
def test_there_is_something_to_sweep(name):
    assert len(numeric(name)) > 40


@pytest.mark.parametrize(("name", "path"), [(name, path) for name in NAMES for path in numeric(name)])
def test_a_sweep_equals_each_point_alone(name, path):
    texts = around(name, path)
    axis = parse_axis(path, {path: texts}, QUESTIONS[name].program, LIMIT)
    swept = run_whole(QUESTIONS[name], grid_of([axis], LIMIT))
    for index, text in enumerate(texts):
        single = alone(name, {path: text})
        assert differences(swept, (index,), single) == [], text
        assert swept.reason[index] == single.reason[()]
        assert (single.infeasible == 0) == bool(np.isfinite(swept.grid.spread(swept.columns["total_time"])[index]))
