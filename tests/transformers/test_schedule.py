"""The pipeline simulated pass by pass: an oracle for the bubble, and orders that every pass keeps."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.transformers.steps_at_hand import terms
from whatif.errors import UsageError
from whatif.models.transformer_steps import bubble_time
from whatif.transformers.training.simulated_step import BACKWARD, FORWARD, MOST_PASSES, pass_order, simulate


@pytest.mark.parametrize(
    ("stages", "parts", "micro_batches"),
    [(1, 1, 5), (2, 1, 2), (4, 1, 4), (4, 1, 32), (8, 1, 3), (4, 2, 8), (4, 5, 16), (8, 3, 8), (2, 4, 6)],
)
@pytest.mark.parametrize("ratio", [1.0, 2.0, 3.0])
def test_the_bubble_is_that_of_the_simulated_schedule(stages, parts, micro_batches, ratio):
    forward, backward = 0.25, 0.25 * ratio
    simulated = simulate(stages, parts, micro_batches, forward, backward)
    stage_time = micro_batches * parts * (forward + backward)
    values = map(np.asarray, (stage_time, float(stages), float(parts), float(micro_batches), 1.0))
    # With fewer micro batches than stages the pipeline never fills: the formula still is (p - 1) passes.
    assert_allclose(simulated.time, stage_time + float(bubble_time(*values)), rtol=1e-12)


def test_passes_of_a_stage_do_not_overlap_and_each_occurs_once():
    simulated = simulate(4, 3, 8, 1.0, 2.0)
    for stage in range(4):
        mine = simulated.stage == stage
        order = np.argsort(simulated.start[mine])
        start, end = simulated.start[mine][order], simulated.end[mine][order]
        assert (start[1:] >= end[:-1] - 1e-12).all()
        assert Counter(simulated.direction[mine].tolist()) == {FORWARD: 24, BACKWARD: 24}
        assert len(set(pass_order(stage, 4, 3, 8))) == 48


def test_a_training_step_takes_as_long_as_it_is_simulated():
    shape = {"pipeline_size": 8, "virtual_count": 4, "global_batch": 32}
    found = terms("llama-3-8b", ranks=8, **shape)
    each = float(found["training.stage_time"]) / (32 * 4)
    simulated = simulate(8, 4, 32, each / 3, 2 * each / 3)
    assert_allclose(simulated.time, found["training.stage_time"] + found["pipeline_bubble"], rtol=1e-12)


def test_what_cannot_be_simulated_says_why():
    with pytest.raises(UsageError, match="4 stages do not divide 6 micro batches"):
        simulate(4, 2, 6, 1.0, 2.0)
    with pytest.raises(UsageError, match="more than 200,000 passes"):
        simulate(4, 1, MOST_PASSES, 1.0, 2.0)
