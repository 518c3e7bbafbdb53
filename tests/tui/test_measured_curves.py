"""Measured points of a sweep: several runs at one place."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from whatif.tui.widgets.measured_curves import averaged


def test_several_runs_at_one_place_are_their_mean_with_the_sample_deviation():
    x, mean, deviation = averaged(np.array([4.0, 1.0, 4.0, 4.0]), np.array([1.0, 7.0, 2.0, 3.0]))
    assert_array_equal(x, [1, 4])
    assert_allclose(mean, [7, 2], rtol=1e-12, atol=0)
    assert_allclose(deviation, [np.nan, 1.0], rtol=1e-12, atol=0)
