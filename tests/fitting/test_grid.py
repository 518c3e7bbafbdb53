"""`whatif fit grid`: runs of a structured-grid program to its parameters, predictions, and the run to make next."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.structured_grid import TRUTH, design
from tests.paths import DATA
from whatif.axes import Axis, Grid
from whatif.core.compile import compile_scenario
from whatif.core.evaluate import evaluate
from whatif.core.fit_range import extrapolations
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling, result_samples
from whatif.errors import UsageError
from whatif.files.fitted_grid import model_part
from whatif.fitting.grid import fit_grid, held_out_times
from whatif.fitting.grid_advice import constants, next_run, predict, unidentified, weakly_identified
from whatif.fitting.grid_plan import halo_cells_at, next_candidates, planned
from whatif.fitting.grid_runs import RATES, GridRuns, runs_of
from whatif.models.structured_grid import (
    communication_time_by_distance,
    communication_time_with_reduction,
    computation_time,
    inter_node_share,
    scaled_iteration_count,
    setup_time,
    total_time,
)
from whatif.schema.load import load_document
from whatif.schema.toml import parse_document
from whatif.schema.toml_text import toml_text
from whatif.table import Column, Table
from whatif.units import ONE, SECOND

LULESH = DATA / "runs" / "caliper"
SCENARIO = """\
platform = "summit"
[application]
name = "lab"
rank_count = 64
iteration_count = 5000
[application.grid]
scaling = "strong"
cells = { x = 10000, y = 10000 }
[application.phases.step]
extends = "model"
halo_cell_count = 20000
"""


def settings(cells=(1e6, 4e6, 1.6e7), processes=(2, 4, 8, 16), iterations=(500, 2000), halo=None, case=""):
    """Runs without times, of square grids by rows."""
    runs = design(cells, processes, iterations)
    return runs.changed(
        halo_cells=runs.halo_cells if halo is None else np.full(len(runs), float(halo)),
        case=np.full(len(runs), case, dtype=object),
    )


def timed(runs, noise=0.0, seed=0, rates=None, **other):
    """The runs with the times of the model functions for the truth, scattered."""
    truth = {**TRUTH, **other}
    rate = np.array([(rates or {}).get(case, truth["cell_rate"]) for case in runs.case])
    work = computation_time(
        runs.cells, runs.processes, runs.halo_cells, rate, truth["packing_time"], truth["overhead_time"]
    )
    exchange = communication_time_with_reduction(
        runs.halo_cells, runs.processes, truth["halo_rate"], truth["latency"], truth["reduction_time"]
    )
    once = setup_time(
        runs.iterations, runs.cells, truth["miscellaneous_time"], truth["cell_setup_time"], truth["startup_time"]
    )
    random = np.random.default_rng(seed)
    w, c, o = (
        time * (1 + noise * random.standard_normal(len(runs)))
        for time in (runs.iterations * work, runs.iterations * exchange, once)
    )
    return runs.changed(computation_time=w, communication_time=c, total_time=w + c + o)


def joined(*parts):
    return GridRuns(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in GridRuns.__dataclass_fields__)
    )


def values(fit):
    return {name: fit.value(at) for at, name in enumerate(fit.columns.names)}


def table_of(runs, **columns):
    """Runs as a table, as an importer gives them; None leaves a column out."""
    numbers = {
        "cells": runs.cells,
        "processes": runs.processes,
        "iterations": runs.iterations,
        "halo_cells": runs.halo_cells,
    }
    times = {name: getattr(runs, name) for name in ("computation_time", "communication_time", "total_time")}
    found = {name: Column(item, ONE) for name, item in numbers.items()}
    found |= {name: Column(item, SECOND) for name, item in times.items()} | columns
    return Table({name: column for name, column in found.items() if column is not None})


def write(path, runs, more=()):
    """A CSV with the paper's symbols as headings."""
    rows = zip(runs.cells, runs.processes, runs.iterations, runs.halo_cells, runs.case, runs.computation_time,
               runs.communication_time, runs.total_time, strict=True)  # fmt: skip
    text = "C,P,I,H,case,T_w [s],T_c [s],T_t [s]\n"
    path.write_text(text + "".join(",".join(map(str, row)) + "\n" for row in (*rows, *more)))


# Parameters.


@pytest.mark.parametrize("weighting", ["relative", "equal"])
def test_exact_times_give_back_all_nine_parameters(weighting):
    fit = fit_grid(timed(settings()), weighting=weighting, reduction=True)
    for name, value in values(fit).items():
        assert_allclose(value, TRUTH[name], rtol=1e-6, atol=0, err_msg=name)
    assert not list(unidentified(fit))


def test_a_prediction_is_the_models_total_time():
    fit = fit_grid(timed(settings()), reduction=True)
    target = settings([1e8], [512], [4000])
    prediction = predict(fit, target)
    wanted = timed(target)
    assert_allclose(prediction.total_time, wanted.total_time, rtol=1e-7, atol=0)
    assert_allclose(prediction.computation_time, wanted.computation_time, rtol=1e-7, atol=0)
    steps = wanted.computation_time / 4000, wanted.communication_time / 4000
    rest = wanted.total_time - wanted.computation_time - wanted.communication_time
    assert_allclose(prediction.total_time, total_time(4000, *steps, rest), rtol=1e-7, atol=0)


def test_eq_5_is_what_equal_weights_square():
    """The same solution by `lstsq` on P T_w / I, where no parameter is at its bound."""
    runs = timed(settings(), noise=1e-4)
    fit = fit_grid(runs, weighting="equal")
    p = runs.processes
    left = np.column_stack((runs.cells, p, p * runs.halo_cells))
    found = np.linalg.lstsq(left, p * runs.computation_time / runs.iterations, rcond=None)[0]
    ours = [fit.coefficients[fit.index(name)] for name in ("cell_rate", "overhead_time", "packing_time")]
    assert_allclose(ours, found, rtol=1e-8, atol=0)


def test_standard_errors_are_those_of_least_squares():
    """Of relative residuals of T_c: `s² (Jᵀ J)⁻¹` by hand."""
    runs = timed(settings(), noise=0.02)
    fit = fit_grid(runs)
    left = np.column_stack((np.ones(len(runs)), runs.halo_cells))
    time = runs.communication_time / runs.iterations
    scale = left @ fit.coefficients[[fit.index("latency"), fit.index("halo_rate")]]
    left, time = left / scale[:, None], time / scale
    found, squares = np.linalg.lstsq(left, time, rcond=None)[:2]
    errors = np.sqrt(np.diag(squares[0] / (len(runs) - 2) * np.linalg.inv(left.T @ left)))
    ours = fit.deviations[[fit.index("latency"), fit.index("halo_rate")]]
    assert_allclose(ours, errors, rtol=1e-3, atol=0)
    assert_allclose(fit.coefficients[fit.index("latency")], found[0], rtol=1e-3, atol=0)


def coverage(trials, **options):
    """The share of parameters, and of a single further run, that lie within their 90 % interval."""
    runs, target = settings(), settings([1e8], [64], [5000])
    inside, predicted = [], []
    for seed in range(trials):
        fit = fit_grid(timed(runs, 0.03, seed), reduction=True, level=0.9, **options)
        low, high = fit.intervals
        truth = np.array([1 / TRUTH[name] if name in RATES else TRUTH[name] for name in fit.columns.names])
        inside.append((low <= truth) & (truth <= high))
        found = predict(fit, target)
        one = timed(target, 0.03, seed + 10_000).total_time
        predicted.append(abs(found.total_time - one) <= found.reach)
    return np.mean(inside, axis=0), np.mean(predicted)


def test_intervals_cover_the_true_value_with_their_probability():
    parameters, runs = coverage(150)
    assert abs(parameters.mean() - 0.9) < 0.03
    assert (parameters > 0.8).all()
    assert abs(runs - 0.9) < 0.08


def test_runs_drawn_again_have_errors_like_those_of_the_design():
    runs = timed(settings(), 0.03, 1)
    design, drawn = fit_grid(runs), fit_grid(runs, draws=300, seed=4)
    again = fit_grid(runs, draws=300, seed=4)
    free = (design.coefficients > 0) & (design.unbounded > 3 * design.deviations)
    assert free.sum() >= 4
    assert_allclose(drawn.deviations[free], design.deviations[free], rtol=0.5, atol=0)
    assert drawn.drawn.tolist() == again.drawn.tolist()


def test_a_lone_run_cannot_be_drawn_again():
    lone = timed(joined(settings(case="wet"), settings([1e6], [2], [500], case="dry")), 0.02)
    with pytest.raises(UsageError, match="case `dry` has fewer than 3 runs"):
        fit_grid(lone, draws=10)
    few = fit_grid(timed(settings([1e6, 4e6], [2, 8], [500])).at([0, 1, 2]), draws=10)
    assert np.isnan([few.deviations[few.index("cell_rate")], *(ends[0] for ends in few.intervals)]).all()


def test_a_time_that_is_not_there_is_at_its_bound_with_a_warning():
    fit = fit_grid(timed(settings(), 0.03, 1, packing_time=0.0, miscellaneous_time=0.0))
    assert fit.bound.any()
    words = "\n".join(weakly_identified(fit))
    for at in np.flatnonzero(fit.bound):
        assert f"{fit.columns.symbol(int(at))} is at its bound of 0; at 95% it is at most" in words
    assert (fit.coefficients >= 0).all()


def test_each_case_has_its_own_cell_rate_and_one_run_sets_that_of_a_new_one():
    rates = {"Harris": 2e8, "Conasauga": 1e8, "Harvey": 5e8}
    base = [settings(case=name) for name in ("Harris", "Conasauga")]
    one = settings([2e6], [12], [700], case="Harvey")
    made = timed(joined(*base, one), rates=rates)
    fit = fit_grid(made, reduction=True)
    for case, rate in rates.items():
        assert_allclose(fit.value(fit.index("cell_rate", case)), rate, rtol=1e-6, atol=0)
    target, error = planned(made, {"cells": [2e6 * 144], "processes": [768], "case": ["Harvey"]})
    assert target.iterations.tolist() == [12 * 700]
    assert "iterations follow the runs: 8400" in error[0]
    assert_allclose(predict(fit, target).total_time, timed(target, rates=rates).total_time, rtol=1e-6, atol=0)


def test_iterations_follow_the_grids_of_a_case_where_there_are_two():
    runs = settings(iterations=[1])
    cubes = runs.changed(iterations=np.round(np.cbrt(runs.cells)))
    target, error = planned(cubes, {"cells": [1e9], "processes": [64]})
    assert target.iterations.tolist() == [1000]
    assert "they grow as C^0.333, fitted to the grids that were run" in error[0]
    assert "the root of C: one grid" in planned(GOOD.at([0]), {"cells": [1e8], "processes": [8]})[1][0]


def test_whole_counts_leave_a_prediction_its_interval():
    runs = timed(settings(halo=4000).changed(iterations=np.full(24, 997.0)), 0.02)
    near, far = (settings([1e7], [8], [997], halo=halo) for halo in (4001, 4100))
    assert np.isfinite(predict(fit_grid(runs), near).mean_reach).all()
    assert np.isnan(predict(fit_grid(runs), far).mean_reach).all()


def test_a_single_process_exchanges_nothing():
    runs = timed(settings(processes=(1, 2, 4)))
    alone = runs.processes == 1
    sent = np.where(alone, 0.0, runs.communication_time)
    total = runs.total_time - runs.communication_time + sent
    fit = fit_grid(runs.changed(communication_time=sent, total_time=total), reduction=True)
    assert_allclose(predict(fit, runs.at(alone)).total_time, total[alone], rtol=1e-7, atol=0)
    assert not predict(fit, runs.at(alone)).communication_time.any()
    assert not halo_cells_at(runs, np.array([1e8]), np.array([1.0]))[0].any()


def test_a_time_below_zero_is_a_model_that_does_not_fit():
    fit = fit_grid(timed(settings(), packing_time=0.0, overhead_time=-1e-4))
    assert "O_w is at its bound of 0; the runs contradict a time of at least 0: the model does not fit" in "\n".join(
        weakly_identified(fit)
    )


def test_iterations_scale_with_the_inverse_size_of_a_cell():
    assert scaled_iteration_count(np.float64(100), np.float64(1_890_063), np.float64(1_890_063 * 144)) == 1200
    printed = scaled_iteration_count(np.float64(1), np.float64(1_890_063), np.float64(272_321_896))
    assert_allclose(printed, 12, rtol=1e-3, atol=0)  # 144.08 times the cells


def test_exchanges_in_a_node_have_parameters_of_their_own():
    runs = settings(processes=(2, 4, 8, 16, 32))
    share = inter_node_share(runs.processes, np.float64(4))
    assert np.unique(share).tolist() == [0.0, 0.5]
    runs = replace(timed(runs), share=share)
    numbers = (TRUTH["halo_rate"], TRUTH["latency"], 0.0, 4e9, 2e-6)
    time = runs.iterations * communication_time_by_distance(runs.halo_cells, share, runs.processes, *numbers)
    fit = fit_grid(runs.changed(communication_time=time, total_time=runs.computation_time + time + 1.0))
    found = values(fit)
    for name, truth in {
        "halo_rate": 4e8,
        "latency": 20e-6,
        "intra_node_halo_rate": 4e9,
        "intra_node_latency": 2e-6,
    }.items():
        assert_allclose(found[name], truth, rtol=1e-6, atol=0, err_msg=name)
    one_node = communication_time_by_distance(1000.0, 0.0, 4.0, 1e6, 1e-5, 0.0, 1e9, 1e-6)
    assert_allclose(one_node, 1000 / 1e9 + 1e-6, rtol=1e-14, atol=0)


def test_runs_on_one_node_do_not_determine_a_target_on_several():
    node = Column(np.full(len(GOOD), 16.0), ONE)
    runs = runs_of(table_of(GOOD, ranks_per_node=node))
    assert not runs.share.any()
    target, _ = planned(runs, {"cells": [1e8], "processes": [8, 768], "iterations": [5000]})
    assert target.share.tolist() == [0, 0.5]
    assert np.isfinite(predict(fit_grid(runs), target).mean_reach).tolist() == [True, False]
    at_hand = next_candidates(runs, "")
    assert "K_b: no run has a term with it; 1/K_b is fixed at 0; runs on several nodes would identify it" in list(
        unidentified(fit_grid(runs))
    )
    assert at_hand.share.tolist() == np.where(at_hand.processes > 16, 0.5, 0).tolist()
    with pytest.raises(UsageError, match="no run identifies the time of an exchange inside a node"):
        planned(GOOD, {"cells": [1e8], "processes": [8], "iterations": [5000], "ranks_per_node": [4]})


# What runs cannot tell.


def test_a_constant_halo_parameters_packing_and_overhead_in_one():
    fit = fit_grid(timed(settings(halo=4000)))
    text = "\n".join(unidentified(fit))
    assert "O_h and O_w are not separately identifiable; O_h is fixed at 0; a run that changes only H" in text
    assert "K_b and O_l are not separately identifiable" in text
    assert constants(fit.runs) == ["H = 4000"]
    assert_allclose(values(fit)["overhead_time"], 400e-6 + 4000 * 30e-9, rtol=1e-6, atol=0)
    alike, other = (predict(fit, settings([1e7], [32], [1000], halo=halo)) for halo in (4000, 8000))
    assert np.isfinite(alike.mean_reach).all()
    assert np.isnan(other.mean_reach).all()


def test_weak_scaling_cannot_separate_cells_and_overheads():
    c = 1e6 * np.array([2.0, 4.0, 8.0, 16.0])
    runs = timed(replace(settings([1e6], [2, 4, 8, 16], [100], halo=4000), cells=c))
    text = "\n".join(unidentified(fit_grid(runs)))
    assert "O_w and K_w are not separately identifiable; O_w is fixed at 0; a run that changes only C or P" in text
    assert "C / P = 1e+06" in constants(runs)


def test_the_run_that_is_named_does_tell():
    runs = timed(settings(halo=4000))
    more = timed(settings([1e6], [2], [500], halo=8000))
    assert not list(unidentified(fit_grid(joined(runs, more))))


def test_totals_alone_tell_what_they_can():
    runs = timed(settings())
    nothing = np.full(len(runs), np.nan)
    fit = fit_grid(runs.changed(computation_time=nothing, communication_time=nothing), reduction=True)
    text = "\n".join(unidentified(fit))
    assert "O_l and O_w" in text
    assert "runs with computation_time and communication_time next to the total would identify it" in text
    target = settings([1e8], [64], [3000])
    assert_allclose(predict(fit, target).total_time, timed(target).total_time, rtol=1e-6, atol=0)
    assert_allclose(values(fit)["cell_rate"], TRUTH["cell_rate"], rtol=1e-6, atol=0)


def test_fewer_runs_than_parameters_leave_the_errors_unknown():
    fit = fit_grid(timed(settings([1e6], [2, 4], [500])))
    assert np.isnan(fit.deviations[fit.index("cell_rate")])
    assert np.isnan(predict(fit, settings([1e6], [8], [500])).mean_reach).all()
    assert np.isfinite(fit.coefficients).all()
    assert fit.identified.sum() < 8
    assert next_run(fit, settings([1e6], [8], [500]), settings()).assumed_noise


def test_missing_measurements_are_requested():
    nothing, runs = np.full(len(GOOD), np.nan), GOOD.changed(halo_cells=0 * GOOD.cells)
    text = "\n".join(unidentified(fit_grid(runs)))
    assert "K_b: no run has a term with it; 1/K_b is fixed at 0; a column `halo_cells` would identify it" in text
    text = "\n".join(unidentified(fit_grid(GOOD.changed(total_time=nothing))))
    assert "O_s: no run has a term with it; O_s is fixed at 0; a column `total_time` would identify it" in text
    zeros = Column(0 * GOOD.cells, SECOND)
    with pytest.raises(UsageError, match="run 1 takes no time"):
        runs_of(table_of(GOOD, total_time=zeros, computation_time=zeros, communication_time=zeros))


# Advice.


def test_the_advised_run_narrows_the_interval_as_much_as_a_fit_with_it_would():
    runs = timed(settings(processes=(2, 4)), 0.02, 5)
    fit = fit_grid(runs)
    target, candidates = settings([1e8], [64], [5000]), settings([1e6, 6.4e7], [2, 32], [500])
    advice = next_run(fit, target, candidates)
    assert (np.diff(advice.after) > -1e-3 * advice.before).all()
    assert (advice.after <= advice.before).all()
    best = advice.runs.at([0])
    assert best.processes[0] == 32
    # With the scatter and the scales as they are, its rows added.
    again = fit_grid(joined(runs, timed(best)))
    fixed = replace(again, pulls=again.pulls)
    fixed.__dict__["spread"] = {kind: (fit.spread[kind][0], 1e9) for kind in fit.spread}
    old = replace(fit)
    old.__dict__["spread"] = fixed.__dict__["spread"]
    ratio = predict(fixed, target).mean_reach / predict(old, target).mean_reach
    assert_allclose(advice.after[0] / advice.before, ratio, rtol=0.1, atol=0)
    assert_allclose(advice.cost, advice.total_time * advice.runs.processes, rtol=1e-14, atol=0)


def test_where_nothing_is_told_the_first_run_is_one_that_tells():
    fit = fit_grid(timed(settings(halo=4000), 0.02))
    target = settings([1e7], [32], [1000], halo=8000)
    candidates = joined(settings([1e6], [2], [500], halo=4000), settings([1e6], [2], [500], halo=9000))
    advice = next_run(fit, target, candidates)
    assert np.isnan(advice.before)
    assert advice.runs.halo_cells.tolist() == [9000, 4000]
    assert np.isfinite(advice.after).tolist() == [True, False]


def test_candidates_reach_twice_as_far_as_the_runs_and_halo_cells_follow_them():
    runs = settings()
    at_hand = next_candidates(runs, "")
    assert at_hand.processes.max() == 32
    assert at_hand.cells.max() == 3.2e7
    rows, _ = halo_cells_at(runs, np.array([1e8]), np.array([64.0]))
    assert rows.tolist() == [20000]
    blocks = replace(runs, halo_cells=4 * np.sqrt(runs.cells / runs.processes))
    assert halo_cells_at(blocks, np.array([1e8]), np.array([64.0]))[0].tolist() == [5000]
    uneven = replace(runs, halo_cells=runs.halo_cells * np.where(runs.processes > 4, 3, 1))
    assert "no power of C and P" in halo_cells_at(uneven, np.array([1e8]), np.array([64.0]))[1]


def test_each_setting_is_held_out_with_its_repetitions():
    runs = timed(settings(), 0.02)
    twice = joined(runs, timed(settings(), 0.02, 1))
    held = held_out_times(fit_grid(twice), most_fits=1000)
    assert held[: len(runs)].tolist() == held[len(runs) :].tolist()
    assert np.abs(held / twice.total_time - 1).max() < 0.1


def test_a_run_that_alone_identifies_a_parameter_has_no_held_out_time():
    runs = timed(settings(halo=4000))
    held = held_out_times(fit_grid(joined(runs, timed(settings([1e6], [2], [500], halo=8000)))), most_fits=1000)
    assert np.isnan(held).tolist() == [False] * len(runs) + [True]
    assert_allclose(held[:-1], runs.total_time, rtol=1e-2, atol=0)
    inside = settings([1e6, 4e6], [2, 8, 16], [500, 2000])
    inside = timed(inside).changed(share=np.where((inside.processes == 2) & (inside.cells == 1e6), 0.0, 1.0))
    inside = inside.at((inside.share > 0) | (inside.iterations == 500))
    held = held_out_times(fit_grid(inside), most_fits=1000)
    assert np.isnan(held).tolist() == inside.inside.tolist()


def test_a_serial_run_has_no_exchange_inside_a_node():
    runs = settings(processes=(1, 2, 4))
    runs = timed(runs.changed(share=inter_node_share(runs.processes, np.float64(1)), ranks_per_node=np.ones(len(runs))))
    sent = np.where(runs.processes > 1, runs.communication_time, 0.0)
    total = runs.total_time - runs.communication_time + sent
    fit = fit_grid(runs.changed(communication_time=sent, total_time=total))
    assert "intra_node_latency" not in fit.columns.names
    assert fit.identified.all()
    with pytest.raises(UsageError, match="no run identifies the time of an exchange inside a node"):
        planned(fit.runs, {"cells": [1e8], "processes": [8], "iterations": [5000], "ranks_per_node": [8]})


def test_a_run_that_identifies_a_parameter_is_not_serial():
    runs = timed(settings(processes=(1, 2), halo=4000))
    alone = runs.processes == 1
    sent = np.where(alone, 0.0, runs.communication_time)
    runs = runs.changed(
        halo_cells=np.where(alone, 0.0, 4000.0), communication_time=sent,
        total_time=runs.total_time - runs.communication_time + sent,
    )  # fmt: skip
    text = "\n".join(unidentified(fit_grid(runs)))
    assert "K_b and O_l are not separately identifiable; 1/K_b is fixed at 0; a run that changes only H would" in text


# A scenario.


def test_a_fit_becomes_a_phase_that_sweeps_and_carries_its_uncertainty(tmp_path):
    fit = fit_grid(timed(settings(), 0.02, 2), reduction=True)
    (tmp_path / "model.toml").write_text(toml_text(model_part(fit, "", "fitted to mine.csv")))
    program = compile_scenario(load_document(parse_document(SCENARIO, "q.toml", tmp_path)))
    target = settings([1e8], [64], [5000])
    prediction = predict(fit, target)
    assert_allclose(evaluate(program).column("total_time"), prediction.total_time[0], rtol=1e-6, atol=0)
    counts = np.array([8.0, 64.0, 512.0])
    swept = evaluate(program, Grid((Axis("p", {"application.rank_count": counts}),)).arrays())
    wanted = [predict(fit, settings([1e8], [count], [5000])).total_time[0] for count in counts]
    assert_allclose(swept.column("total_time"), wanted, rtol=1e-6, atol=0)
    parameter = program.parameters["application.phases.step.cell_rate"]
    assert (parameter.grade, parameter.source) == ("measured", "fitted to mine.csv")
    assert any("process counts of 64 lie outside the 2 to 16" in text for text in extrapolations(evaluate(program)))
    samples = result_samples(program, "total_time", Sampling(2**12))
    variance = target_variance(fit, target)
    assert_allclose(samples.std(), np.sqrt(variance), rtol=0.15, atol=0)


def test_times_far_below_the_computation_are_no_error_of_the_fit():
    """Communication of 20 us an iteration next to computation of 5 s: every run is on the model."""
    runs = timed(settings([4e8], [2, 4, 8, 16], [100]))
    for weighting in ("relative", "absolute"):
        fit = fit_grid(runs, weighting=weighting)
        assert np.abs(fit.residuals).max() < 0.01
        assert model_part(fit, "", "mine")["fits"][""]["error"] < 0.01


def target_variance(fit, target):
    """Of the total: coefficients around their values, those at their bound held, and the scatter of single runs."""
    from whatif.fitting.grid_runs import terms_of, total_terms

    weights = total_terms(target, fit.columns)[0]
    free = fit.coefficients > 0
    parts = {name: float((terms @ fit.coefficients)[0]) for name, terms in terms_of(target, fit.columns).items()}
    steps = {"computation": 5000, "communication": 5000, "setup": 1}
    scatter = sum((fit.scatter(kind) * steps[kind] * parts[kind]) ** 2 for kind in steps)
    return weights[free] @ fit.free_covariance[np.ix_(free, free)] @ weights[free] + scatter


def test_computation_hides_communication_where_an_overlap_says_so(tmp_path):
    """The paper's future work is what `[application.overlaps]` is there for."""
    fit = fit_grid(timed(settings()))
    (tmp_path / "model.toml").write_text(toml_text(model_part(fit, "", "mine")))
    overlap = '[application.overlaps.hidden]\nphases = ["step.computation", "step.communication"]\nfraction = 1\n'
    plain, hidden = (
        evaluate(compile_scenario(load_document(parse_document(text, "q.toml", tmp_path))))
        for text in (SCENARIO, SCENARIO + overlap)
    )
    saved = plain.column("total_time") - hidden.column("total_time")
    assert_allclose(saved, 5000 * plain.column("communication_time"), rtol=1e-9, atol=0)


def test_the_stated_times_of_the_paper_come_out_of_the_assumed_triton():
    scenario = Scenario.open("triton")
    assert_allclose(evaluate(scenario.program).column("total_time"), 65, rtol=5e-3, atol=0)
    nodes = 2.0 ** np.arange(1, 8)
    grid = Grid((Axis("p", {"application.rank_count": 6 * nodes}),))
    minutes, hours = [], []
    for cells, width in ((1890063, 60), (7562646, 30), (68080474, 10), (272321896, 5)):
        harvey = Scenario.open(
            "triton", overrides={"parameters.cells": str(cells), "parameters.cell_width_in_m": str(width)}
        )
        times = evaluate(harvey.program, grid.arrays()).column("total_time")
        minutes.append(times.sum() / 60)
        hours.append((nodes * times).sum() / 3600)
    assert 150 < hours[-1] < 168
    # The paper has 680 minutes and 168 node hours for all of them: docs/structured_grids.md.
    assert_allclose([sum(minutes), sum(hours)], [794, 218], rtol=2e-3, atol=0)


# Measured runs: LULESH on 27 to 343 ranks, 30³ cells each.


def test_the_runs_of_lulesh_are_those_of_its_profiles():
    profile = defaultdict(dict)
    with (LULESH / "lulesh_cycle.csv").open() as file:
        for row in csv.DictReader(file):
            profile[int(row["ranks"])][row["region"]] = row
    with (LULESH / "lulesh_grid_runs.csv").open() as file:
        for row in csv.DictReader(file):
            regions = profile[int(row["processes"])]
            mean = {name: float(item["avg_s_per_rank"]) for name, item in regions.items()}
            sent = sum(time for name, time in mean.items() if name.startswith("main/lulesh.cycle/") and "MPI_" in name)
            assert_allclose(float(row["communication_time [s]"]), sent, rtol=1e-6, atol=0)
            assert_allclose(float(row["computation_time [s]"]), mean["main/lulesh.cycle"] - sent, rtol=1e-6, atol=0)
            assert float(row["total_time [s]"]) == float(regions["main"]["elapsed_s"])


def test_weak_scaling_of_lulesh_predicts_larger_runs_but_identifies_few_parameters(whatif_main):
    code, out, err = whatif_main("fit", "grid", LULESH / "lulesh_grid_runs.csv", "--reduction", "--format", "json")
    assert code == 0
    rows = {row["symbol"]: row for row in json.loads(out)["rows"]}
    assert [name for name, row in rows.items() if row["note"] == "not identified"] == ["O_w", "O_h", "K_b", "O_i"]
    assert 0.7e6 < rows["K_w"]["low"] < rows["K_w"]["value"] < rows["K_w"]["high"] < 0.77e6
    assert "the same in all runs: H = 5400, I = 800, C / P = 27000" in err
    assert "5 runs for 9 parameters" in err
    assert "warning: communication scatters by more than 30%" in err
    target = "cells=27e6,processes=1000,iterations=800,halo_cells=5400"
    code, out, _ = whatif_main("fit", "grid", LULESH / "lulesh_grid_runs.csv", "--target", target, "--format", "json")
    (row,) = json.loads(out)["rows"]
    assert row["run_low"] < row["mean_low"] < row["total_time"] < row["mean_high"] < row["run_high"]


# The command.


def test_two_commands_lead_from_runs_to_a_band_at_a_scale_never_run(whatif_main, tmp_path):
    write(tmp_path / "runs.csv", timed(settings(), 0.02))
    target = ("--target", "C=1e8,P=64,I=5000")
    code, out, err = whatif_main("fit", "grid", "runs.csv", *target, "-o", "m.toml", "--scenario", "q.toml")
    assert code == 0
    assert "mean_high" in out
    assert "written: m.toml" in err
    code, out, err = whatif_main("run", "q.toml", "--point", "--samples", "64", "--format", "json")
    assert code == 0
    (row,) = json.loads(out)["rows"]
    assert_allclose(row["total_time"], float(timed(settings([1e8], [64], [5000])).total_time[0]), rtol=0.1, atol=0)
    assert row["total_time.p5"] < row["total_time"] < row["total_time.p95"]
    assert "cell counts of 100000000 lie outside the 1000000 to 16000000" in err
    (tmp_path / "whole.toml").write_text(whatif_main("resolve", "q.toml")[1])
    whole = whatif_main("run", "whole.toml", "--point", "--samples", "64", "--format", "json")[1]
    assert json.loads(whole)["rows"][0]["total_time.p95"] == row["total_time.p95"]
    again = whatif_main("fit", "grid", "runs.csv", "-o", "m.toml", "--scenario", "q.toml")
    assert (again[0], "already exists" in again[2]) == (2, True)
    assert whatif_main("fit", "grid", "runs.csv", *target, "-o", "m.toml", "--scenario", "q.toml")[0] == 0
    refused = whatif_main("fit", "grid", "runs.csv", "-o", "new.toml", "--scenario", "q.toml")
    assert (refused[0], (tmp_path / "new.toml").exists()) == (2, False)
    assert "Mcell/s" in whatif_main("fit", "grid", "runs.csv", "--bootstrap", "50")[1]


def test_the_next_run_and_the_residuals_are_tables(whatif_main, tmp_path):
    write(tmp_path / "runs.csv", timed(settings(processes=(2, 4)), 0.02))
    target = ("--target", "C=1e8,P=64,I=5000")
    code, out, err = whatif_main("fit", "grid", "runs.csv", *target, "--next", "--format", "json")
    assert code == 0
    rows = json.loads(out)["rows"]
    assert len(rows) == 10
    assert rows[0]["narrower"] >= rows[-1]["narrower"] > 0
    assert "s either way" in err
    code, out, _ = whatif_main(
        "fit", "grid", "runs.csv", *target, "--vary", "P=4,8", "--vary", "C=1e6", "--format", "json"
    )
    assert sorted(row["processes"] for row in json.loads(out)["rows"]) == [4, 8]
    few = ("fit", "grid", "few.csv", "--target", "C=1e8,P=64,I=5000")
    write(tmp_path / "few.csv", timed(settings([1e6], [2], [500, 2000], halo=4000)))
    code, out, err = whatif_main(*few, "--next", "--vary", "P=2", "--vary", "C=1e6", "--vary", "I=500")
    assert (code, out, "no single run identifies it" in err) == (0, "", True)
    code, out, _ = whatif_main("fit", "grid", "runs.csv", "--points", "--format", "json")
    assert max(abs(row["residual"]) for row in json.loads(out)["rows"]) < 0.1


def test_a_file_of_several_cases_needs_a_choice(whatif_main, tmp_path):
    runs = timed(joined(settings(case="wet"), settings(case="dry")), 0.01, rates={"dry": 8e8})
    write(tmp_path / "runs.csv", runs)
    code, _, err = whatif_main("fit", "grid", "runs.csv", "-o", "m.toml")
    assert (code, "choose it by --case, one of wet, dry" in err) == (2, True)
    assert whatif_main("fit", "grid", "runs.csv", "-o", "m.toml", "--case", "dry")[0] == 0
    assert 'cell_rate = "8' in (tmp_path / "m.toml").read_text()
    wet = ("--target", "C=1e8,P=64,case=wet,I=10", "-o", "m.toml")
    assert whatif_main("fit", "grid", "runs.csv", *wet)[0] == 0
    assert 'cell_rate = "2' in (tmp_path / "m.toml").read_text()
    code, _, err = whatif_main("fit", "grid", "runs.csv", *wet, "--case", "dry")
    assert (code, "--case dry, but the target is of wet" in err) == (2, True)
    code, _, err = whatif_main("fit", "grid", "runs.csv", "--target", "C=1e8,P=64,case=damp,I=10", "-o", "m.toml")
    assert (code, "case damp: no run of it" in err) == (2, True)
    code, _, err = whatif_main("fit", "grid", "runs.csv", "--target", "C=1e8,P=64,case=damp,I=10")
    assert (code, "a target depends on what the runs do not identify" in err) == (0, True)
    assert "K_w of damp: no run of this case; one would identify it" in err
    code, out, _ = whatif_main(
        "fit", "grid", "runs.csv", "--target", "C=1e8,P=64,case=damp,I=10", "--next", "--format", "json"
    )
    assert {row["case"] for row in json.loads(out)["rows"]} == {"damp"}


def test_a_target_and_the_scenario_written_with_it_agree_where_exchanges_stay_on_nodes(whatif_main, tmp_path):
    runs = timed(settings(processes=(2, 4, 8, 16, 32)))
    share = inter_node_share(runs.processes, np.float64(4))
    numbers = (TRUTH["halo_rate"], TRUTH["latency"], 0.0, 4e9, 2e-6)
    time = runs.iterations * communication_time_by_distance(runs.halo_cells, share, runs.processes, *numbers)
    runs = runs.changed(communication_time=time, total_time=runs.computation_time + time + 1.0)
    columns = {"ranks_per_node": np.full(len(runs), 4.0), "inter_node_halo_cells": np.round(0.3 * runs.halo_cells)}
    for name, column in columns.items():
        units = {"computation_time": " [s]", "communication_time": " [s]", "total_time": " [s]"}
        made = {item: getattr(runs, item) for item in ("cells", "processes", "iterations", "halo_cells", *units)}
        heads = ",".join(item + units.get(item, "") for item in (*made, name))
        np.savetxt(
            tmp_path / "r.csv", np.column_stack([*made.values(), column]), "%.17g", ",", header=heads, comments=""
        )
        asked = ("--target", "C=1e8,P=64,I=5000", "-o", "m.toml", "--scenario", f"{name}.toml", "--format", "json")
        code, out, err = whatif_main("fit", "grid", "r.csv", *asked)
        assert (code, "by its ranks per node" in err) == (0, name != "ranks_per_node")
        if name == "ranks_per_node":
            again = whatif_main("run", f"{name}.toml", "--point", "--format", "json")[1]
            (message,), (found,) = (json.loads(text)["rows"] for text in (out, again))
            assert_allclose(found["total_time"], message["total_time"], rtol=1e-8, atol=0)


def test_headings_are_read_in_capitals_and_others_are_named(whatif_main, tmp_path):
    write(tmp_path / "runs.csv", timed(joined(settings(case="wet"), settings(case="dry")), 0.02))
    text = (tmp_path / "runs.csv").read_text().replace("case,T_w [s],T_c [s]", "Case,T_w [s],comm_time [s]")
    (tmp_path / "runs.csv").write_text(text)
    code, out, err = whatif_main("fit", "grid", "runs.csv")
    assert (code, "not used: comm_time" in err, "K_w of wet" in out) == (0, True, True)


GOOD = timed(settings())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": None}, "no column `cells`"),
        ({"total_time": None, "computation_time": None, "communication_time": None}, "no column `total_time`"),
        ({"total_time": Column(-GOOD.total_time, SECOND)}, "`total_time` of run 1 is -"),
        ({"processes": Column(0 * GOOD.processes, ONE)}, "`processes` of run 1 is 0: it must be at least 1"),
        ({"cells": Column(np.where(GOOD.cells > 1e7, np.nan, GOOD.cells), ONE)}, "is missing, or no number"),
        ({"total_time": Column(GOOD.total_time, ONE)}, "`total_time` is in 1, not in s; write the unit"),
        ({"cells": Column(np.full(len(GOOD), "many", dtype=object))}, "`cells` holds texts"),
        ({"inter_node_halo_cells": Column(2 * GOOD.halo_cells, ONE)}, "exceeds `halo_cells`"),
        ({"total_time": Column(GOOD.computation_time / 2, SECOND)}, "for longer than its total"),
        ({"total_time": Column(np.full(len(GOOD), np.inf), SECOND)}, "is missing, or no number"),
        ({"C": Column(GOOD.cells, ONE)}, "`cells` and `C` are both `cells`"),
        ({"cells": Column(1e300 * GOOD.cells, ONE)}, "`cells` of run 1 is 1e.306: expected a whole number of at most"),
        ({"processes": Column(GOOD.processes + 0.5, ONE)}, "`processes` of run 1 is 2.5: expected a whole number"),
    ],
)
def test_impossible_runs_are_refused(changes, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        runs_of(table_of(GOOD, **changes))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--next",), "need one --target"),
        (("--scenario", "q.toml"), "--scenario needs -o MODEL.toml"),
        (("-o", "m.toml", "--scenario", "elsewhere/q.toml"), "write both into one folder"),
        (("--target", "C=1e8"), "a run needs `processes`"),
        (("--target", "C=1e8,P=64"), "state `iterations`: runs of one grid have 500 and 2000"),
        (("--target", "C=1e8,Q=64"), "expected NAME=VALUE of cells, processes"),
        (("--target", "C=1e8,P=sixty"), "P=sixty"),
        (("--target", "C=1e8,P=0"), "expected a number of at least 1"),
        (("--target", "C=1e8,P=6.5"), "expected a whole number of at most 2**53"),
        (("--target", "C=1e8,P=6,processes=7"), "`processes` is given twice"),
        (("--target", "C=1e8,P=6,I=9", "--next", "--vary", "P=4", "--vary", "P=8"), "`processes` is given twice"),
        (("--points", "--target", "C=1e8,P=6,I=9"), "leave out --target"),
        (("--case", "dry"), "--case needs -o"),
        (("--source", "mine"), "--source needs -o"),
        (("--platform", "frontier", "-o", "m.toml"), "--platform needs --scenario"),
        (("--seed", "3"), "--seed needs --bootstrap"),
        (
            ("--target", "C=9,P=6,I=9", "--target", "C=9,P=6,I=9", "-o", "m.toml", "--scenario", "q.toml"),
            "one --target",
        ),
        (("--where", "P=4", "--where", "P=8"), "P is given already, as 4"),
        (("--level", "often"), "--level often: expected a level above 0 % and below 100 %"),
        (("-o", "model.txt"), "call the file NAME.toml"),
        (("--case", "dry", "-o", "m.toml"), "no run of it"),
        (("--columns", "cells=C"), "no column `processes`"),
    ],
)
def test_grid_fit_refuses_contradicting_options(whatif_main, tmp_path, options, message):
    write(tmp_path / "runs.csv", GOOD)
    code, out, err = whatif_main("fit", "grid", "runs.csv", *options)
    assert (code, out) == (2, "")
    assert message in err
