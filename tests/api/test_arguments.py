"""Arguments of the library: unknown words, numbers out of range, empty lists, shares, and names given twice."""

from __future__ import annotations

import re

import numpy as np
import pytest

import whatif
from tests.paths import DATA
from whatif.arguments import pairs, positive_share, share_of
from whatif.core.uncertainty import Sampling
from whatif.errors import UsageError

GRID = DATA / "runs" / "caliper" / "lulesh_grid_runs.csv"
CORES = DATA / "importers" / "host" / "likwid_bench.txt"
MESSAGES = DATA / "importers" / "network" / "fugaku" / "riken_imb_pingpong.csv"
HEADINGS = "message_size=size (bytes),time=time (seconds)"
HPL = DATA / "hpl" / "HPL.dat.4x4"
MODEL = "total_time ~ processes"
RANKS = "application.rank_count"
COUNTS = "platform.node.gpu_count=1, 2"


def drawn(relation):
    parts = whatif.sweep_parts("jacobi2d", COUNTS)
    parts.relation = relation
    parts.picture()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: whatif.fit_host(CORES, platform="fugaku", binding="spred"), "--binding spred: .*; did you mean"),
        (lambda: whatif.fit_grid(GRID, weighting="equals"), "--weighting equals: expected one of relative, equal"),
        (lambda: whatif.fit_network(MESSAGES, columns=HEADINGS, weighting="x"), "--weighting x: .*, uniform"),
        (lambda: whatif.fit_regression(GRID, formula=MODEL, interval="x", at=["processes=5"]), "--interval x: .*conf"),
        (lambda: whatif.fit_scaling(GRID, show="model"), "--show model: .*; did you mean `models`"),
        (lambda: whatif.sensitivity("jacobi2d", show="x"), "--show x: expected one of tornado, ladder, sobol"),
        (lambda: whatif.diff("minimd", platforms=["summit"], by="x"), "--by x: expected one of parameter, table"),
        (lambda: whatif.validate("minimd", by="runs"), "--by runs: .*; did you mean `run`"),
        (lambda: whatif.compare("jacobi2d", ["summit"], show="x"), "--show x: expected one of ranking, commitment"),
        (lambda: whatif.scale("jacobi2d_strong", show="x"), "--show x: expected one of scaling, answers"),
        (lambda: whatif.scale("jacobi2d_strong", nodes=[]), "--nodes: state at least one number of nodes"),
        (lambda: whatif.study("successor", show="x"), "--show x: expected one of bids, jobs"),
        (lambda: drawn("x"), "--relative x: expected one of value, speedup"),
    ],
)  # fmt: skip
def test_unknown_words_are_refused_with_the_known_ones(call, message):
    with pytest.raises(UsageError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: whatif.seek("minife", "application.overhead_time", minimise="total_time", seed=-1), "--seed -1"),
        (lambda: whatif.run("jacobi2d", samples=64, seed=-1), "--seed -1: expected at least 0"),
        (lambda: whatif.run("jacobi2d", samples=0), "0 samples: must be between 2 and"),
        (lambda: whatif.diff("minimd", platforms=["summit"], seed=-1), "--seed -1"),
        (lambda: whatif.fit_regression(GRID, formula=MODEL, folds=3, seed=-1), "--seed -1"),
        (lambda: whatif.fit_grid(GRID, bootstrap=10, seed=-1), "--seed -1"),
        (lambda: whatif.fit_grid(GRID, bootstrap=-1), "--bootstrap -1: expected at least 10"),
        (lambda: whatif.hpl(HPL, platform="dahu", replicates=-1), "--replicates -1: expected at least 1"),
        (lambda: list(whatif.sweep_parts("jacobi2d", COUNTS, on="threads", workers=-2)), "--workers -2: expected at"),
        (lambda: whatif.explain("jacobi2d", depth=-1), "--depth -1: expected at least 0"),
        (lambda: whatif.tune_transformer("llama_training", top=0), "--top 0: expected at least 1"),
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: whatif.compare("jacobi2d", []), "state at least one platform"),
        (lambda: whatif.compare([], ["summit"]), "state at least one scenario"),
        (lambda: whatif.import_gpu([]), "no files: name at least one"),
        (lambda: whatif.import_kernels([]), "no files: name at least one"),
        (lambda: whatif.import_network([]), "no files: name at least one"),
        (lambda: whatif.fit_transfer([], platform="titan"), "no files: name at least one"),
        (lambda: whatif.fit_kernel([]), "no files: name at least one"),
        (lambda: whatif.study("successor", sweep={"limits.power": []}), "state at least one value"),
        (lambda: whatif.sweep("jacobi2d", {}), "sweep: state at least one parameter"),
        (lambda: whatif.sweep("jacobi2d", {"platform.node.gpu_count": []}), "state at least one value"),
    ],
)  # fmt: skip
def test_empty_lists_are_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()


def test_levels_are_shares_everywhere():
    for fit in (whatif.fit_scaling, whatif.fit_grid):
        assert fit(GRID, level="90%").to_pandas().equals(fit(GRID, level=0.9).to_pandas())
    options = {"formula": MODEL, "at": ["processes=512"]}
    fits = [whatif.fit_regression(GRID, level=level, **options).to_pandas() for level in ("90%", 0.9)]
    assert fits[0].equals(fits[1])
    with pytest.raises(UsageError, match="--level 90: is 9000%; for 90 per cent write `90%`"):
        whatif.fit_regression(GRID, level="90", **options)
    for level in ("150", "150%", "0"):
        with pytest.raises(UsageError, match=f"--level {level}: expected a level above 0 % and below 100 %"):
            whatif.fit_regression(GRID, level=level, **options)


def test_per_cent_are_suggested_where_they_are_allowed():
    with pytest.raises(UsageError, match="--within 100: is 10000%; for 100 per cent write `100%`"):
        positive_share("--within", "100")
    with pytest.raises(UsageError, match="--within 150: expected a share above 0 and at most 100 %, such as 95%"):
        positive_share("--within", "150")


@pytest.mark.parametrize(("share", "number"), [("20%", 0.2), (" 0.2 ", 0.2), (0.2, 0.2), ("150 %", 1.5), (0, 0)])
def test_shares_are_read(share, number):
    assert share_of("--level", share) == pytest.approx(number, rel=1e-15, abs=0)


@pytest.mark.parametrize("share", ["-1%", "x", "", "nan", "inf", float("nan"), -1, 1.5, "1.5", "20% x"])
def test_texts_that_are_no_shares_are_refused(share):
    with pytest.raises(UsageError, match=re.escape(f"--level {share}: ")):
        share_of("--level", share)
    with pytest.raises(UsageError, match=re.escape(f"--level {share}: ")):
        positive_share("--level", share)


def test_a_name_is_given_once():
    assert pairs("--weight", ["a=1", " b = x=2 "], "SCENARIO=VALUE") == {"a": "1", "b": "x=2"}
    with pytest.raises(UsageError, match="--weight a=2: a is given already, as 1"):
        pairs("--weight", ["a=1", "a=2"], "SCENARIO=VALUE")
    with pytest.raises(UsageError, match="--weight a: expected SCENARIO=VALUE"):
        pairs("--weight", ["a"], "SCENARIO=VALUE")


def test_a_sampling_without_a_number_has_the_default_one():
    assert whatif.run("minife", spreads={"assumed": "20%"}).bands.sampling == Sampling(spreads={"assumed": 0.2})


def test_a_relative_override_refers_to_an_earlier_one():
    path = "platform.node.gpu_count"
    four = whatif.load("jacobi2d", overrides={path: 4})
    for text, expected in (("x2", 8), ("+50 %", 6), (2, 2)):
        changed = whatif.load(four, overrides={path: text, "application.rank_count": 12})
        assert changed.program.parameters[path].value == expected
    assert whatif.load(whatif.load(four, overrides={path: "x2"}), overrides={path: "x2"}).overrides == {path: "16"}
    # Without an earlier one it refers to the machine, whichever that is.
    assert whatif.load("jacobi2d", platform="frontier", overrides={path: "x2"}).program.parameters[path].value == 16


def test_none_drops_an_override_of_a_value_that_no_file_states():
    path = "platform.node.failure_interval"
    overridden = whatif.load("jacobi2d", overrides={path: "1 year"})
    assert whatif.load(overridden, overrides={path: "none"}).overrides == {}


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([np.int64(8), np.int64(16)], 2),
        (np.array([8, 16]), 2),
        (np.array(["8", "16"]), 2),
        (8, 1),
        (np.float64(8), 1),
    ],
)
def test_swept_values_may_be_those_of_numpy_or_a_single_number(values, count):
    swept = whatif.sweep("jacobi2d", {RANKS: values})
    assert swept.grid.coordinate(RANKS).tolist() == [8.0, 16.0][:count]


def test_swept_choices_may_be_an_array():
    swept = whatif.sweep("jacobi2d", {"platform": np.array(["summit", "lassen"])})
    expected = whatif.sweep("jacobi2d", "platform=summit, lassen")
    np.testing.assert_array_equal(swept["iteration_time"], expected["iteration_time"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: whatif.sweep("jacobi2d", {RANKS: [[6], [12]]}), "`\\[6\\]` is not a quantity"),
        (lambda: whatif.sweep("jacobi2d", {RANKS: np.array([True])}), "`True` is not a quantity"),
        (lambda: whatif.seek("jacobi2d", {RANKS: 8}, minimise="iteration_time"), "expected PATH, or PATH=LOW .. HIGH"),
        (lambda: whatif.sweep("jacobi2d", {RANKS: [6, 12]}).plot(y="total_cost"), "does not state platform.price.node"),
        (lambda: whatif.sweep("jacobi2d", {RANKS: [6, 12]}).answers("speed"), "no such result"),
    ],
)
def test_values_and_results_that_a_sweep_cannot_have_are_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()
