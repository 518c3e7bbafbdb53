"""Features of curves against hand-made curves and brute force."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from whatif.core.curve_features import best, knee, leads, level_stretch, runner_up

NAN = np.nan


def array(*values):
    return np.array(values, dtype=np.float64)


def test_best_names_ties_and_skips_missing_values():
    assert best(array(3, NAN, 1, 1 + 1e-12, 2), most=False).tolist() == [2, 3]
    assert best(array(3, NAN, 1, 3, 2), most=True).tolist() == [0, 3]
    assert best(array(NAN, NAN), most=False).size == 0


def test_runner_up_is_the_best_of_the_others():
    assert runner_up(array(3, 1, 1, 2, NAN), most=False) == 3
    assert runner_up(array(3, 1, 1, 2, NAN), most=True) == 3
    assert runner_up(array(1, 1, NAN), most=False) is None


@pytest.mark.parametrize("seed", range(20))
def test_best_and_runner_up_of_random_values_against_sorting(seed):
    values = np.random.default_rng(seed).choice([1.0, 2.0, 3.0, 4.0, NAN], 12)
    known = sorted(set(values[np.isfinite(values)]))
    assert set(values[best(values, most=False)]) == {known[0]}
    assert values[runner_up(values, most=False)] == known[1]
    assert values[runner_up(values, most=True)] == known[-2]


def test_knee_of_a_hyperbola_is_at_the_geometric_mean_of_its_ends():
    # 1 - u - v is greatest where the slope is that of the chord: x = sqrt(1 * 100).
    x = np.linspace(1, 100, 100)
    assert x[knee(x, 1 / x, most=False)] == 10


def test_knee_of_a_corner_is_the_corner():
    x = np.arange(11.0)
    y = np.maximum(10 - 3 * x, 1.0 - 0.01 * x)
    assert x[knee(x, y, most=False)] == 3
    assert x[knee(x, -y, most=True)] == 3
    assert x[::-1][knee(x[::-1], y[::-1], most=False)] == 3


def test_no_knee_of_straight_wavy_flat_short_or_wrongly_bent_curves():
    x = np.arange(10.0)
    for y in (5 - 0.5 * x, np.sin(x), np.ones(10), -(x**2)):
        assert knee(x, y, most=False) is None
    assert knee(x[:3], array(9, 1, 0.9), most=False) is None


def test_crossover_lies_on_straight_lines_between_points():
    x = array(0, 1, 2, 3)
    [lead] = leads(x, np.stack([x, 2.5 - x]), most=False)
    assert lead[:4] == (1, 2, 0, 1)
    np.testing.assert_allclose([lead.x, lead.y], [1.25, 1.25], rtol=1e-15, atol=0)
    [other] = leads(x, np.stack([x, 2.5 - x]), most=True)
    assert (other.before, other.after) == (1, 0)


def test_crossover_at_a_point_names_that_point():
    x = array(0, 1, 2)
    [lead] = leads(x, np.stack([x, 2 - x]), most=False)
    assert lead == (1, 1, 0, 1, 1.0, 1.0)


def test_touching_curves_do_not_cross():
    x = array(0, 1, 2)
    for order in ([0, 1], [1, 0]):
        curves = np.stack([array(1, 1, 1), array(2, 1, 2)])[order]
        assert not list(leads(x, curves, most=False))


def test_curve_that_ends_changes_no_lead():
    x = array(0, 1, 2, 3)
    assert not list(leads(x, np.stack([array(1, 1, NAN, NAN), array(2, 2, 2, 2)]), most=False))
    assert not list(leads(x, np.stack([array(1, NAN, 3, 3), array(2, NAN, 2, 2)]), most=False))
    assert not list(leads(x, np.full((2, 4), NAN), most=False))


def brute_force_leads(x, curves):
    """Each pair of neighbouring points with different leaders, for curves without ties and gaps."""
    order = sorted(range(x.size), key=lambda i: x[i])
    found = []
    for last, first in pairwise(order):
        one = min(range(len(curves)), key=lambda c: curves[c][last])
        other = min(range(len(curves)), key=lambda c: curves[c][first])
        if one != other:
            slopes = [(curves[c][first] - curves[c][last]) / (x[first] - x[last]) for c in (one, other)]
            at = x[last] + (curves[other][last] - curves[one][last]) / (slopes[0] - slopes[1])
            found.append((last, first, one, other, at))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_leads_of_random_curves_against_brute_force(seed):
    random = np.random.default_rng(seed)
    x, curves = random.permutation(np.cumsum(random.uniform(0.1, 1, 15))), random.uniform(1, 2, (4, 15))
    found, expected = list(leads(x, curves, most=False)), brute_force_leads(x, curves)
    assert [lead[:4] for lead in found] == [item[:4] for item in expected]
    np.testing.assert_allclose([lead.x for lead in found], [item[4] for item in expected], rtol=1e-9, atol=0)


def test_level_stretch_ends_at_the_first_value_that_differs():
    assert level_stretch(array(2, 1.005, 1, 1.009, 1.02, 1), 2, 0.01) == (1, 3)
    assert level_stretch(array(1, 1, 1), 1, 0.01) == (0, 2)
    assert level_stretch(array(1, NAN, 1), 2, 0.01) == (2, 2)
