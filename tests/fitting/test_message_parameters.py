"""Network fits: parameters and limits of known truth, choices among rows, refusals and warnings."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from tests.message_times import BANDWIDTHS, KINDS, LATENCIES, LIMITS, SIZES, place, postal_times, shared, table
from whatif.errors import UsageError
from whatif.fitting.message_parameters import PROTOCOLS, fit_network
from whatif.fitting.points import choose
from whatif.fitting.protocols import find_limits
from whatif.importers.message_tables import measurements
from whatif.importers.osu import read_osu
from whatif.importers.rows import joined
from whatif.models.postal import postal


def test_exact_times_give_their_postal_parameters_and_limits_back():
    fit = fit_network(table(SIZES, postal_times(SIZES)))
    assert (fit.short_limit, fit.eager_limit) == LIMITS
    assert fit.limits.found
    for index, protocol in enumerate(PROTOCOLS):
        part = fit.fit_of("postal", protocol)
        np.testing.assert_allclose(part.values, [LATENCIES[index], BANDWIDTHS[index]], rtol=1e-6, atol=0)
    assert fit.recommended == "postal"


@pytest.mark.parametrize(("unit", "doubted"), [(1.0, False), (1e-3, True), (1e3, True), (1e6, True)])
def test_times_in_another_unit_are_doubted(unit, doubted):
    warnings = fit_network(table(SIZES, unit * postal_times(SIZES))).warnings
    assert any("is the unit of the times right?" in text for text in warnings) == doubted


@pytest.mark.parametrize(("model", "ratio"), [("max_rate", 0.3), ("injection", 2.5)])
def test_exact_times_of_sharing_give_their_parameters_back_and_are_recommended(model, ratio):
    size, count, times = shared(model)
    fit = fit_network(table(size, times, count), limits=LIMITS)
    for index, protocol in list(enumerate(PROTOCOLS))[model == "max_rate" :]:
        values = fit.fit_of(model, protocol).values
        expected = [LATENCIES[index], BANDWIDTHS[index], ratio * BANDWIDTHS[index]]
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=0)
    assert fit.recommended == model
    assert fit.held_out_errors[model] < 1e-6 < fit.held_out_errors["injection" if model == "max_rate" else "max_rate"]
    np.testing.assert_allclose(fit.curve(model, size, count), times, rtol=1e-6, atol=0)


def test_stated_standard_errors_are_those_of_repeated_measurements():
    random = np.random.default_rng(20)
    size, count, times = (np.tile(values, 4) for values in shared("max_rate", (1.0, 2, 4)))
    truth = {"postal": (LATENCIES[1], BANDWIDTHS[1]), "max_rate": (LATENCIES[1], BANDWIDTHS[1], 0.3 * BANDWIDTHS[1])}
    scores = {model: [] for model in truth}
    for _ in range(150):
        fit = fit_network(table(size, times * (1 + random.normal(0, 0.01, len(times))), count), limits=LIMITS)
        for model, values in truth.items():
            part = fit.fit_of(model, "eager")
            scores[model].append((part.values - values) / part.standard_errors)
    for model in truth:
        np.testing.assert_allclose(np.std(scores[model], axis=0), 1, rtol=0.15, atol=0)
        np.testing.assert_allclose(np.mean(scores[model], axis=0), 0, rtol=0, atol=0.25)


@pytest.mark.parametrize(
    ("noise", "repetitions", "exact_bar", "near_bar"),
    [(0.01, 1, 0.95, 1), (0.03, 1, 0.5, 0.9), (0.1, 1, 0.15, 0.6), (0.03, 10, 0.9, 1), (0.1, 10, 0.45, 0.9)],
)
def test_limits_are_found_again_under_noise(noise, repetitions, exact_bar, near_bar):
    """The lines cross near the eager limit: at 3 % noise no method can tell neighbours apart from one measurement."""
    random = np.random.default_rng(5)
    size = np.repeat(SIZES, repetitions)
    times = postal_times(size) * np.exp(random.normal(0, noise, (60, len(size))))
    fits = [fit_network(table(size, row)) for row in times]
    steps = np.array([np.abs(np.log2([fit.short_limit or 1, fit.eager_limit]) - np.log2(LIMITS)) for fit in fits])
    assert np.mean((steps == 0).all(axis=1)) >= exact_bar
    assert np.mean((steps <= 1).all(axis=1)) >= near_bar


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.1])
def test_repetitions_at_random_sizes_find_the_limit_between_measured_neighbours(noise):
    random = np.random.default_rng(6)
    size = np.repeat(np.unique(np.round(np.exp(random.uniform(0, np.log(4e6), 400)))), 20)
    limits = (1000.0, 17000.0)
    times = postal_times(size, limits) * np.exp(random.normal(0, noise, len(size)))
    times[::97] *= 30
    fit = fit_network(table(size, times))
    sizes = np.unique(size)
    assert fit.eager_limit == sizes[sizes <= 17000][-1]
    assert abs(np.log2(fit.short_limit / 1000)) < (0.2 if noise < 0.1 else 0.6)


def test_a_fit_of_one_line_reports_no_limit():
    fit = fit_network(table(SIZES, postal(SIZES, np.float64(2e-6), np.float64(1e10))))
    assert fit.segmentations[0].limits == ()
    assert any("no change of protocol" in warning for warning in fit.warnings)
    for protocol in PROTOCOLS:
        np.testing.assert_allclose(fit.fit_of("postal", protocol).values, [2e-6, 1e10], rtol=1e-6, atol=0)


def test_limits_are_moved_in_less_than_a_moment_and_given_ones_compared():
    size, count, times = shared("max_rate", (1.0, 2, 4))
    fit = fit_network(table(size, times, count), limits=(512, 8192))
    given = next(tried for tried in fit.segmentations if tried.kind == "given")
    assert given.limits == (512, 8192)
    assert fit.segmentations[0].limits == LIMITS
    assert fit.segmentations[0].criterion < given.criterion
    start = time.perf_counter()
    moved = fit.with_limits(*LIMITS)
    assert time.perf_counter() - start < 0.1
    assert (moved.short_limit, moved.eager_limit, moved.error("max_rate") < 1e-6) == (*LIMITS, True)


def test_the_band_is_the_spread_of_curves_fitted_to_repeated_measurements():
    random = np.random.default_rng(8)
    at = np.array([64.0, 4096, 2.0**20])
    curves, bands = [], []
    for _ in range(120):
        times = postal_times(SIZES) * (1 + random.normal(0, 0.01, len(SIZES)))
        fit = fit_network(table(SIZES, times), limits=LIMITS)
        curves.append(fit.curve("postal", at))
        bands.append(fit.band("postal", at))
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(bands), axis=0)), np.std(curves, axis=0), rtol=0.25, atol=0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"limits": (8192, 128)}, "ascend"),
        ({"limits": (-1, 128)}, "ascend"),
        ({"weighting": "relativ"}, "--weighting relativ: .*; did you mean `relative`"),
        ({"test": "allreduce"}, "no rows"),
        ({"buffers": "dev"}, "no measurements with buffers `dev`; `--buffers` can be not stated$"),
    ],
)
def test_options_without_sense_are_refused_with_the_reason(options, reason):
    with pytest.raises(UsageError, match=reason):
        fit_network(table(SIZES, postal_times(SIZES)), **options)


@pytest.mark.parametrize("test", ["allreduce", "ping_ping"])
def test_tests_other_than_one_way_messages_are_fitted_only_when_selected(test):
    with pytest.raises(UsageError, match=f"found: {test}"):
        fit_network(table(SIZES, postal_times(SIZES), test=test))


@pytest.mark.parametrize("test", ["allreduce", "bidirectional_bandwidth"])
def test_tests_of_collectives_are_never_fitted(test):
    with pytest.raises(UsageError, match=f"the test `{test}`: its time is not that of a message"):
        fit_network(table(SIZES, postal_times(SIZES), test=test), test=test)


@pytest.mark.parametrize("test", ["ping_ping", "sendrecv", "exchange"])
def test_tests_of_messages_are_fitted_when_selected(test):
    assert fit_network(table(SIZES, postal_times(SIZES), test=test), test=test).test == test


@pytest.mark.parametrize("count", [0.0, 1.5, -2.0, np.inf])
def test_a_pair_count_that_cannot_be_is_refused_with_its_file(count):
    counts = np.where(SIZES == 8, count, 1.0)
    with pytest.raises(UsageError, match=rf"^a.txt: 1 rows .* a pair count of {count:g}; it must be a whole number"):
        fit_network(table(SIZES, postal_times(SIZES), counts, file="a.txt"))


def test_no_rows_at_all_are_refused():
    with pytest.raises(UsageError, match="found: none"):
        fit_network(table([], []))


@pytest.mark.parametrize(
    ("size", "times", "reason"),
    [
        ([8.0, 8, 8], [1.0, 2, 3], "one message size"),
        ([8.0, 16], [1.0, 2], "at least 3"),
        ([8.0, 16, 32], [3.0, 2, 1], "go down"),
        ([8.0, 16, 32], [2.0, 2, 2], "equal"),
        ([8.0, 16, 32], [1.0, np.nan, 2], "no time above zero"),
        ([8.0, 16, 32], [1.0, 0, 2], "no time above zero"),
        ([8.0, 16, 1e300], [1.0, 2, 3], "1e\\+300 B in 3 s is not possible"),
        ([8.0, 16, 32], [1e-300, 2, 3], "8 B in 1e-300 s is not possible: are the units mixed up"),
        ([8.0, 16, 32], [1.0, 2, 2e6], "1 rows of impossible sizes or times"),
    ],
)
def test_measurements_that_determine_nothing_are_refused_with_the_reason(size, times, reason):
    with pytest.raises(UsageError, match=reason):
        fit_network(table(size, times))


def test_rows_of_several_kinds_have_to_be_chosen_among():
    mixed = table(np.tile(SIZES, 2), np.tile(postal_times(SIZES), 2), buffers=["host"] * 23 + ["device"] * 23)
    with pytest.raises(UsageError, match=r"\(device, host\); choose one by `--buffers`"):
        fit_network(mixed)
    assert len(fit_network(mixed, buffers="host").points) == 23
    with pytest.raises(UsageError, match="did you mean `ping_pong`"):
        fit_network(mixed, buffers="host", test="ping_pon")


def test_rows_without_a_kind_of_buffers_can_be_selected():
    mixed = table(np.tile(SIZES, 2), np.tile(postal_times(SIZES), 2), buffers=["host"] * 23 + [""] * 23)
    with pytest.raises(UsageError, match=r"\(not stated, host\); choose one by `--buffers`"):
        fit_network(mixed)
    assert len(fit_network(mixed, buffers="not stated").points) == len(fit_network(mixed, buffers="").points) == 23
    with pytest.raises(UsageError, match="`--buffers` can be not stated, host; did you mean `host`"):
        fit_network(mixed, buffers="hots")


@pytest.mark.parametrize(("factor", "expected"), [(1.05, False), (2.0, True)])
def test_files_that_differ_at_one_size_are_named(factor, expected):
    files = ["near.txt"] * 23 + ["far.txt"] * 23
    times = np.concatenate([postal_times(SIZES), factor * postal_times(SIZES)])
    text = "\n".join(fit_network(table(np.tile(SIZES, 2), times, file=files)).warnings)
    assert ("near.txt and far.txt differ: " in text) is expected
    assert ("the points scatter by 3" in text) is expected
    assert (KINDS in text) is expected


def test_files_of_different_pair_counts_do_not_differ():
    size, count, times = shared("max_rate", (1.0, 4))
    fit = fit_network(table(size, times, count, file=[f"{pairs:g}.txt" for pairs in count]), limits=LIMITS)
    assert not any(KINDS in warning for warning in fit.warnings)


def test_one_poor_protocol_among_good_ones_is_told_with_the_lines_that_fit():
    """Eager messages bend at 8 KiB: their line is poor, all lines together miss by less."""
    bend = np.where((place(SIZES) == 1) & (SIZES > 8192), 1.8, 1.0)
    fit = fit_network(table(SIZES, bend * postal_times(SIZES)), limits=LIMITS)
    (poor,) = (warning for warning in fit.warnings if "scatter" in warning)
    assert re.fullmatch(r"the points scatter by 1\d% around postal.eager; .*", poor)
    assert any(
        re.match(r"a line for each protocol misses by up to 1\d%; lines between 128 B, 8 KiB", w) for w in fit.warnings
    )


def test_windowed_tests_are_used_only_where_there_is_no_ping_pong_and_with_a_warning():
    stream = table(SIZES, postal_times(SIZES) / 2, test="bandwidth", window_size=64)
    fit = fit_network(stream)
    assert fit.test == "bandwidth"
    assert any("stream" in warning for warning in fit.warnings)
    both = {
        name: np.concatenate([column.values, other.values])
        for (name, column), other in zip(
            table(SIZES, postal_times(SIZES)).columns.items(), stream.columns.values(), strict=True
        )
    }
    assert fit_network(measurements(both, {})).test == "ping_pong"


def test_a_protocol_without_sizes_borrows_parameters_with_a_warning():
    fit = fit_network(table(SIZES[:10], postal_times(SIZES[:10])), limits=LIMITS)
    assert fit.fit_of("postal", "rendezvous").values.tolist() == fit.fit_of("postal", "eager").values.tolist()
    assert any("rendezvous: fewer than 2 sizes" in warning for warning in fit.warnings)
    borrowed = {protocol: fit.fit_of("postal", protocol).borrowed for protocol in PROTOCOLS}
    assert borrowed == {"short": "", "eager": "", "rendezvous": "eager"}


def test_points_without_which_nothing_could_be_fitted_are_not_left_out():
    """Of four sizes only two share a protocol: without one of those no protocol has two."""
    size, count, times = shared("max_rate", (1.0, 2))
    kept = np.isin(size, [8.0, 2048, 2.0**18, 2.0**20])
    fit = fit_network(table(size[kept], times[kept], count[kept]), limits=LIMITS)
    assert fit.held_out_errors.keys() == {"max_rate", "injection"}
    assert all(np.isfinite(error) for error in fit.held_out_errors.values())


@pytest.mark.parametrize(
    ("model", "message"),
    [("max_rate", "max_rate: least error at points left out"), ("injection", "injection: least error at points left")],
)
def test_the_recommendation_gives_its_reason(model, message):
    size, count, times = shared(model)
    assert fit_network(table(size, times, count), limits=LIMITS).recommendation.startswith(message)
    alone = fit_network(table(SIZES, postal_times(SIZES)))
    assert alone.recommendation == "postal: all measurements have the same number of pairs"
    unsaid = fit_network(table(SIZES, postal_times(SIZES), np.nan))
    assert unsaid.recommendation == "postal: no pair_count was given"


def test_limits_that_miss_are_dropped_for_lines_that_fit():
    """0 B takes less than the line of short messages, and long ones begin without a jump."""
    text = """0 2.10 1 2.35 2 2.34 4 2.36 8 2.35 16 2.36 32 2.37 64 2.40 128 2.44 256 2.81 512 2.88 1024 3.02
        2048 3.37 4096 4.10 8192 5.20 16384 7.90 32768 8.95 65536 9.80 131072 11.1 262144 13.7 524288 19.0
        1048576 29.9 2097152 51.6 4194304 95.1"""
    sizes, times = np.array(text.split(), dtype=float).reshape(-1, 2).T
    found, *_ = find_limits(choose(table(sizes, 1e-6 * times)).points)
    assert found.limits == (128.0, 16384.0)
    assert found.error < 0.03


def test_a_segmentation_tells_its_best_lines_beside_the_limits():
    tried = find_limits(choose(table(SIZES, postal_times(SIZES))).points)
    assert [segmentation.kind for segmentation in tried[:2]] == ["found", "lines"]
    assert tried[1].limits == LIMITS


MULTIPLE = "# OSU MPI Multi Latency Test v5.6.2\n# Size          Latency (us)\n" + "".join(
    f"{size:.0f}    {1.5 + size / 5e3:.2f}\n" for size in SIZES
)


def test_a_test_of_several_pairs_that_does_not_say_how_many_is_never_taken_for_one_pair():
    unsaid = read_osu(MULTIPLE, "multi.out")
    with pytest.raises(UsageError, match=r"^multi.out: 23 rows .* how many pairs .*; write it .* `# \[ pairs: 4 \]`"):
        fit_network(unsaid)
    lone = table(SIZES, postal_times(SIZES), file="latency.out", buffers="host")
    fit = fit_network(joined([lone, unsaid]))
    assert (len(fit.points), fit.points.time.tolist()) == (23, postal_times(SIZES).tolist())
    assert any("multi.out: 23 rows" in text and "left out" in text for text in fit.warnings)
    text = read_osu(MULTIPLE.replace("# Size", "# [ pairs: 4 ]\n# Size"), "multi.out")
    assert fit_network(joined([lone, text])).shared.counts.tolist() == [1, 4]


def test_rows_without_a_pair_count_beside_rows_with_one_are_left_out_with_their_file():
    fit = fit_network(table(SIZES, postal_times(SIZES), np.where(SIZES > 8, 1.0, np.nan), file="a.csv"))
    assert len(fit.points) == 19
    assert any("a.csv: 4 rows of the ping_pong test do not state" in text for text in fit.warnings)


def test_streams_beside_lone_messages_tell_bandwidths_but_no_latency():
    """The streams have a gap a fifth of the latency: 0.2 where a lone message takes 1 to start."""
    size, count, times = shared("max_rate", (1.0, 2, 4))
    gaps = times - 0.8 * LATENCIES[place(size)]
    streams = table(size, gaps, count, test="bandwidth", window_size=64)
    fit = fit_network(joined([table(SIZES, postal_times(SIZES)), streams]), limits=LIMITS)
    for index, protocol in enumerate(PROTOCOLS):
        lone, part = fit.fit_of("postal", protocol), fit.fit_of("max_rate", protocol)
        rates = [BANDWIDTHS[index], 0.3 * BANDWIDTHS[index]][: len(part.values) - 1]
        np.testing.assert_allclose(part.values, [LATENCIES[index], *rates], rtol=1e-6, atol=0)
        assert part.covariance[0].tolist() == [lone.covariance[0, 0], *[0.0] * len(rates)]
    np.testing.assert_allclose(fit.curve("max_rate", size, count), times, rtol=1e-6, atol=0)
    moved = fit.with_limits(*LIMITS)
    for known in (fit, moved):
        np.testing.assert_allclose(known.residuals("max_rate"), 0, rtol=0, atol=1e-6)
        assert known.fit_of("injection", "eager").values[0] == known.fit_of("postal", "eager").values[0]
    text = "\n".join(fit.warnings)
    assert "postal is fitted to 23 rows of ping_pong with 1 pair; max_rate and injection to 69 rows of bandw" in text
    assert "the latencies of max_rate and injection are those of postal" in text


def test_measurements_of_several_pairs_only_are_a_warning_with_their_number():
    warnings = fit_network(table(SIZES, postal_times(SIZES), 4.0)).warnings
    assert "measured with 4 pairs at a time: a lone message is faster" in warnings


def test_unused_rows_are_reported_by_test_and_pair_count():
    lone = table(SIZES, postal_times(SIZES))
    streams = table(SIZES, postal_times(SIZES), 8.0, test="bandwidth", window_size=64)
    sums = table(SIZES, postal_times(SIZES), np.nan, test="allreduce")
    fit = fit_network(joined([lone, streams, sums]))
    assert "not used: 23 rows of bandwidth with 8 pairs, 23 of allreduce" in fit.warnings
    needed = "ping_pong has 1 pair only, bandwidth has 8 pairs only, and one test needs two pair counts"
    assert f"{needed}: only the postal model can be fitted" in fit.warnings
    assert not any("not used" in text for text in fit_network(lone).warnings)


def test_a_bandwidth_of_the_node_that_no_count_reached_is_only_a_bound():
    size, count = (values.ravel() for values in np.meshgrid(SIZES, [1.0, 2, 4]))
    unlimited = fit_network(table(size, postal_times(size), count), limits=LIMITS)
    limited = fit_network(table(*(shared("injection")[at] for at in (0, 2, 1))), limits=LIMITS)
    for protocol in PROTOCOLS:
        assert unlimited.fit_of("injection", protocol).undetermined == ("injection_bandwidth",)
        assert limited.fit_of("injection", protocol).undetermined == ()
