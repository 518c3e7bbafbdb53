"""Fits of collectives of a library of GPUs: known parameters are found again, and larger scales are predicted."""

from __future__ import annotations

import numpy as np
import pytest

from whatif.fitting.collective_steps import fit_library, held_out_errors, relative_errors
from whatif.fitting.library_points import CollectivePoints, LibrarySheet
from whatif.models.library_steps import library_steps_time, short_tree_time

SHEET = LibrarySheet(4.0, 100e9, 50e9, "mesh")
RING = {"limits": (8192.0, 131072.0), "starts": (10e-6, 30e-6, 150e-6), "gaps": (8e-6, 30e-6, 50e-6), "share": 0.75}
PAIRS = {"limits": (128.0, 32768.0), "starts": (15e-6, 25e-6, 40e-6), "gaps": (22e-6, 10e-6, 24e-6), "share": 0.4}
TREE = 14e-6, 12e-6, 4e9
SIZES = 2.0 ** np.arange(7, 31)


def times(parameters, algorithm, sizes, ranks):
    group = SHEET.groups(ranks)
    each = [np.array(value) for pair in zip(parameters["starts"], parameters["gaps"], strict=True) for value in pair]
    limits = map(np.array, parameters["limits"])
    return library_steps_time(sizes, *group, *limits, *each, np.array(parameters["share"]), algorithm=algorithm)


def made(operation, function, ranks, noise=0.0):
    counts, sizes = (part.ravel() for part in np.meshgrid(ranks, SIZES))
    factors = np.exp(noise * np.random.default_rng(7).standard_normal(len(sizes)))
    names = np.full(len(sizes), operation, dtype=object)
    return CollectivePoints(names, sizes, counts, function(sizes, counts) * factors)


def gathered(noise=0.0, ranks=(8.0, 32.0)):
    return made("allgather", lambda n, p: times(RING, "ring_allgather", n, p), ranks, noise)


def found(parameters, noise=0.0):
    points = (
        gathered(noise)
        if parameters is RING
        else made("alltoall", lambda n, p: times(PAIRS, "pairwise", n, p), (8.0, 32.0), noise)
    )
    name = "ring" if parameters is RING else "pairwise"
    return fit_library(points, SHEET).steps["between_domains", name]


@pytest.mark.parametrize("parameters", [RING, PAIRS], ids=["ring", "pairs"])
def test_known_limits_gaps_and_shares_are_found(parameters):
    fit = found(parameters)
    np.testing.assert_array_equal(fit.limits, parameters["limits"])
    expected = [*parameters["starts"], *parameters["gaps"], parameters["share"]]
    np.testing.assert_allclose(fit.solution.values, expected, rtol=0.03, atol=0)
    assert fit.solution.seen.all()


def test_known_parameters_lie_within_a_few_standard_errors_of_noisy_ones():
    fit = found(RING, noise=0.05)
    expected = np.array([*RING["starts"], *RING["gaps"], RING["share"]])
    errors = np.sqrt(np.diag(fit.solution.covariance))
    assert (np.abs(fit.solution.values - expected) < 4 * errors).all()
    assert (errors[3:] < 0.1 * expected[3:]).all()


def test_short_messages_leave_the_bandwidth_as_the_data_sheet_has_it():
    points = gathered(0.02)
    fit = fit_library(points.at(points.sizes <= 65536), SHEET)
    steps = fit.steps["between_domains", "ring"]
    assert not steps.solution.seen[-1]
    assert steps.solution.values[-1] == pytest.approx(1.0, rel=0.1)
    longest = points.at(points.sizes == points.sizes.max())
    assert np.abs(relative_errors(fit, longest)).max() < 0.5


def test_known_trees_are_found():
    points = made("allreduce", lambda n, p: short_tree_time(n, p / 4, *map(np.array, TREE)), (8.0, 32.0))
    tree = fit_library(points.at(points.sizes <= 2**15), SHEET).trees["between_domains"]
    np.testing.assert_allclose(tree.solution.values, TREE, rtol=0.03, atol=0)


def test_larger_scales_follow_from_messages_of_the_same_size():
    errors = held_out_errors(gathered(ranks=(8.0, 32.0, 1024.0)), SHEET)
    held = np.isfinite(errors)
    assert held.sum() == len(SIZES)
    assert np.abs(errors[held]).max() < 0.02


def test_one_number_of_ranks_holds_nothing_out():
    assert not np.isfinite(held_out_errors(gathered(ranks=(8.0,)), SHEET)).any()


def test_few_points_have_one_protocol_and_say_what_they_do_not_show():
    points = gathered(ranks=(8.0,))
    fit = fit_library(points.at(points.sizes >= 2**29), SHEET)
    steps = fit.steps["between_domains", "ring"]
    assert len(steps.limits) == 0
    fits = {item.path.rpartition(".")[2]: item for item in steps.fits()}
    assert fits["short"].borrowed == fits["eager"].borrowed == "rendezvous"
    assert "gap" in fits["rendezvous"].undetermined
    assert np.abs(relative_errors(fit, points.at(points.sizes >= 2**29))).max() < 5e-3


def test_what_was_not_measured_follows_from_the_data_sheet():
    fit = fit_library(gathered(), SHEET)
    other = made("alltoall", lambda n, p: times(PAIRS, "pairwise", n, p), (8.0,))
    np.testing.assert_array_equal(fit.time(other), SHEET.time(other))


@pytest.fixture(scope="module")
def rows(compared):
    return compared("collectives").to_pandas()


def test_held_out_scales_of_the_measured_collectives_are_predicted(rows):
    """Largest numbers of ranks of ten pairs of machine and operation; the bar is 15 % from 1 MiB on, 25 % below."""
    for part, size, bar, mean, points in (
        ("", "from 1 MiB", 0.15, 0.0744, 45), (" below", "below", 0.25, 0.1205, 32),
    ):  # fmt: skip
        held = rows[np.isfinite(rows[f"held out{part}"])]
        weights = held[size]
        assert weights.sum() == points
        assert float(np.average(held[f"held out{part}"], weights=weights)) == pytest.approx(mean, abs=5e-4)
        assert held[f"held out{part}"].max() < bar


def test_fits_are_better_than_data_sheets(rows):
    assert np.average(rows["fitted"], weights=rows["from 1 MiB"]) == pytest.approx(0.0594, abs=1e-3)
    assert np.average(rows["error"], weights=rows["from 1 MiB"]) > 0.32
