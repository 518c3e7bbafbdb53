"""Segmented regression: exact against trying every division, robust against noise, refuses what it cannot do."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import nnls

from whatif.errors import UsageError
from whatif.fitting.segments import segmented, segments_at


def brute_force(x, y, segments, fewest):
    """The least sum of squares over every division, each part fitted by scipy's non-negative least squares."""
    best = np.inf, ()
    for cuts in combinations(range(fewest, len(x) - fewest + 1), segments - 1):
        places = [0, *cuts, len(x)]
        if min(np.diff(places)) < fewest:
            continue
        rest = 0.0
        for start, end in pairwise(places):
            terms = np.stack((np.ones(end - start), x[start:end]), axis=1)
            rest += nnls(terms, y[start:end])[1] ** 2
        best = min(best, (rest, tuple(x[np.array(cuts, dtype=int) - 1])))
    return best


@pytest.mark.parametrize("segments", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_division_is_the_best_of_all(segments, seed):
    random = np.random.default_rng(seed)
    x = np.sort(random.uniform(0, 10, 18))
    y = np.abs(random.normal(size=18).cumsum())
    found = segmented(x, y, most_segments=4, fewest=3)[segments - 1]
    rest, breaks = brute_force(x, y, segments, 3)
    np.testing.assert_allclose(found.rest, rest, rtol=1e-9, atol=0)
    assert tuple(found.breaks) == breaks


def test_breaks_of_exact_lines_are_found_among_many_points_with_their_lines():
    x = np.arange(20000.0)
    y = np.where(x <= 3333, 1 + 2 * x, np.where(x <= 15001, 9000 + x, 5 + 0.25 * x))
    found = min(segmented(x, y, most_segments=5), key=lambda segments: segments.criterion)
    assert found.breaks.tolist()[:2] == [3333, 15001] or found.breaks.tolist() == [3333, 15001]
    three = segmented(x, y, most_segments=3)[2]
    assert three.breaks.tolist() == [3333, 15001]
    assert three.next_values.tolist() == [3334, 15002]
    np.testing.assert_allclose(three.slopes[0], [2, 1, 0.25], rtol=1e-6, atol=0)
    np.testing.assert_allclose(three.intercepts[0], [1, 9000, 5], rtol=1e-6, atol=0)


def test_noise_about_one_line_is_not_chased():
    random = np.random.default_rng(7)
    chosen = []
    for _ in range(40):
        x = np.sort(random.uniform(0, 1, 60))
        tried = segmented(x, 1 + x + random.normal(0, 0.05, 60), most_segments=4, fewest=3)
        chosen.append(len(min(tried, key=lambda segments: segments.criterion)))
    assert chosen.count(1) >= 36


def test_groups_have_lines_of_their_own_and_breaks_in_common():
    x = np.tile(np.arange(1.0, 21), 2)
    group = np.repeat([1, 4], 20)
    y = np.where(x <= 8, x, 20 + x / 2) * group
    found = segmented(x, y, groups=group, most_segments=2)[1]
    assert found.breaks.tolist() == [8]
    np.testing.assert_allclose(found.slopes, [[1, 0.5], [4, 2]], rtol=1e-9, atol=0)


def test_lines_neither_fall_nor_start_below_zero():
    x = np.arange(1.0, 13)
    level = segmented(x, 30 - x, most_segments=1)[0]
    assert level.slopes.tolist() == [[0]]
    np.testing.assert_allclose(level.intercepts, [[23.5]], rtol=1e-9, atol=0)
    assert segmented(x, 2 * x - 1, most_segments=1)[0].intercepts.tolist() == [[0]]


def test_repeated_x_stay_together():
    x = np.repeat([1.0, 2, 3, 4, 5, 6], 5)
    y = np.where(x <= 3, 1.0, 7.0) + np.tile([-0.1, 0.1, 0, 0.05, -0.05], 6)
    assert segmented(x, y, most_segments=2)[1].breaks.tolist() == [3]


def test_given_breaks_are_inclusive_and_never_better_than_the_found_ones():
    x = np.arange(30.0)
    y = np.where(x <= 11, x, 3 * x) + np.sin(5 * x)
    given = segments_at(x, y, [11.5, 40])
    assert given.breaks.tolist() == [11]
    assert segments_at(x, y, [12]).rest > given.rest
    assert segmented(x, y, most_segments=2)[1].rest <= given.rest


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1.0, 2, 3], [1.0, 2], "one length"),
        ([1.0, 2, np.nan], [1.0, 2, 3], "finite"),
        ([1.0, 1, 1], [1.0, 2, 3], "different x"),
    ],
)
def test_indivisible_grids_are_refused_with_the_reason(x, y, reason):
    with pytest.raises(UsageError, match=reason):
        segmented(x, y)
