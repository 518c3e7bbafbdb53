"""The sweep oracle: a sweep equals loading, validating, compiling and evaluating each of its points alone, exactly."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.scenarios_at_hand import FEW, SCENARIOS
from whatif.axes import Axis, Grid
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run, run_whole
from whatif.core.result import Result, result_of
from whatif.core.scenario import Scenario
from whatif.core.session import Session, SessionInputs
from whatif.core.sweep import grid_of, parse_axis
from whatif.errors import UsageError, WhatifError
from whatif.schema.shipped import shipped_names
from whatif.units import BYTE, ONE

QUESTIONS = {name: Scenario.open(name) for name in SCENARIOS}
LIMIT = 1_000_000
NUMERIC = [
    (name, path)
    for name in FEW
    for path, parameter in QUESTIONS[name].program.parameters.items()
    if not parameter.structural and path in QUESTIONS[name].program.reached
]
STRUCTURAL = [
    (name, path)
    for name in FEW
    for path, parameter in QUESTIONS[name].program.parameters.items()
    if parameter.structural and len(parameter.choices) > 1
]


@cache
def upstream(name):
    """Inputs of each term of a scenario."""
    program = QUESTIONS[name].program
    return {term: program.inputs_of(term) for term in program.terms}


@cache
def at(name):
    """A scenario, evaluated."""
    return evaluate(QUESTIONS[name].program)


def kind_of(name, path):
    """What a parameter is, whatever its phase is called: `kernel.launch_count`, `regression.coefficients` of any
    term."""
    if path.startswith("application.estimates."):
        return f"estimate.{path.split('.')[3]}"
    phases = QUESTIONS[name].program.loaded.scenario.application.phases
    table, _, rest = path.removeprefix("application.phases.").partition(".")
    if table not in phases:
        return path
    return f"{phases[table].kind}.{rest.partition('.')[0] if phases[table].kind == 'regression' else rest}"


def first_of(cases, kind):
    """The cases that are the first of their kind: those are tried with every value, the others with another one."""
    return set({kind(*case): case for case in reversed(cases)}.values())


# A number is the same parameter in every scenario; a choice decides about terms that differ from scenario to scenario.
FIRST = first_of(NUMERIC, kind_of) | first_of(STRUCTURAL, lambda name, path: (name, kind_of(name, path)))


def alone(name, sets, platform=None):
    """The one point: from the text of the file again, through validation, compilation and evaluation."""
    document = QUESTIONS[name].document
    return result_of(evaluate(Scenario(document, platform, dict(sets)).program), Grid())


def smaller(path):
    """Values that make a sweep of a parameter quick: simulations with links have few ranks."""
    return {"application.rank_count": "64"} if path == "application.communication" else {}


def written(value, parameter):
    """A value as a text that reads back as the same float."""
    number = str(int(value)) if parameter.field.domain.whole else repr(float(value))
    return number if parameter.dimension == ONE else f"{number} {parameter.dimension}"


def around(name, path):
    """Texts of five values around that of a parameter, each allowed by the parameter itself."""
    parameter = QUESTIONS[name].program.parameters[path]
    domain, value = parameter.field.domain, float(at(name).values[path])
    candidates = (value, value / 2, value * 1.1, value * 2, domain.minimum, value * 3, value / 3, 0.7, 0.1, 1e-3)
    if domain.whole:
        candidates = (value, value // 2, value + 1, value * 2, domain.minimum, value + 2, value * 3, value + 5)
    allowed = dict.fromkeys(item for item in candidates if math.isfinite(item) and domain.accepts(item))
    return [written(item, parameter) for item in list(allowed)[:5]]


def same(one, other):
    """Equal to the last bit, NaN equal to NaN."""
    return np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)


def differ(swept, value):
    """Whether an array over one axis is anywhere another one than at the value that stands there."""
    rows = swept.reshape(len(swept), -1) if swept.ndim > np.ndim(value) else np.ravel(swept)
    return not same(*np.broadcast_arrays(rows, np.ravel(value)))


def differences(swept: Result, index, single: Result):
    """The names of columns and phases that are not the same at one point of a sweep."""
    assert [name for name in swept.columns if name in single.columns] == list(single.columns)
    assert [name for name in swept.terms if name in single.terms] == list(single.terms)
    absent = 0.0 * single.columns["total_time"]
    # A machine that states no power has no energy among others that have.
    pairs = [(name, array, single.columns.get(name, np.nan)) for name, array in swept.columns.items()]
    pairs += [(f"terms.{name}", array, single.terms.get(name, absent)) for name, array in swept.terms.items()]
    return [
        f"{name}: swept {swept.grid.spread(array)[index]!r}, alone {float(value)!r}"
        for name, array, value in pairs
        if not same(swept.grid.spread(array)[index], value)
    ]


def outcome(compute):
    """A result, or the message of the error that a user would see."""
    try:
        return compute()
    except WhatifError as error:
        return str(error)


def test_there_is_something_to_sweep():
    assert len(NUMERIC) > 300
    assert len(STRUCTURAL) > 50


@pytest.mark.parametrize(("name", "path"), NUMERIC)
def test_numeric_sweep_equals_each_point_alone(name, path):
    scenario, texts = QUESTIONS[name], around(name, path)
    assert len(texts) >= 4, texts
    grid = grid_of([parse_axis(path, {path: texts}, scenario.program, LIMIT)], LIMIT)
    swept = run_whole(scenario, grid)
    # All are swept; of a parameter that other phases and scenarios have too, each of them loads another one.
    places = range(len(texts)) if (name, path) in FIRST else [1 + NUMERIC.index((name, path)) % (len(texts) - 1)]
    for index in places:
        text = texts[index]
        single = alone(name, {path: text})
        assert float(grid.coordinate(path)[index]) == single.program.parameters[path].value
        assert differences(swept, (index,), single) == [], text
        assert swept.reason[index] == single.reason[()]
        assert (single.infeasible == 0) == bool(np.isfinite(swept.grid.spread(swept.columns["total_time"])[index]))


@pytest.mark.parametrize(("name", "path"), NUMERIC)
def test_parameter_that_reaches_a_term_moves_it(name, path):
    """Another value changes a term, unless the parameter only decides whether the point can exist."""
    program, before = QUESTIONS[name].program, at(name)
    limits = {constraint.term for constraint in program.constraints}
    downstream = [term for term in program.terms if path in upstream(name)[term] and term not in limits]
    parameter = program.parameters[path]
    # Far values too: a protocol's limit decides nothing until it passes the size of a message, nor an interval a time,
    # nor a stated memory until it passes that of the cells.
    texts = around(name, path) + (["1 B", "1 GB"] if path.endswith("_limit") and parameter.dimension == BYTE else [])
    texts += ["1 min"] if path.endswith("launch_interval") else []
    texts += ["1 TB"] if path == "application.memory_size" else []
    after = evaluate(program, {path: np.array([parameter.field.number(text) for text in texts])})
    assert not downstream or any(differ(after.values[term], before.values[term]) for term in downstream)
    finite = np.broadcast_to(np.isfinite(after.column("total_time")), len(texts))
    reasons = np.broadcast_to("" if after.reason() is None else after.reason(), len(texts))
    for text, answered, reason in zip(texts, finite, reasons, strict=True):
        assert answered or reason, text


@pytest.mark.parametrize(("name", "path"), STRUCTURAL)
def test_structural_sweep_equals_loading_anew(name, path):
    few = smaller(path)
    scenario = Scenario(QUESTIONS[name].document, None, few)
    present, choices = scenario.program.parameters[path].text(), scenario.program.parameters[path].choices
    whole = (name, path) in FIRST
    if not whole:
        others = [choice for choice in choices if choice != present]
        choices = [others[STRUCTURAL.index((name, path)) % len(others)]]
    possible = {}
    for choice in choices:
        axis = parse_axis(path, {path: choice}, scenario.program, LIMIT)
        swept = outcome(lambda axis=axis: run_whole(scenario, Grid((axis,))))
        single = outcome(lambda choice=choice: alone(name, {**few, path: choice}))
        if isinstance(single, str):
            assert swept == single.replace("--set ", "--sweep ")
            continue
        assert isinstance(swept, Result), swept
        assert differences(swept, (0,), single) == [], choice
        assert swept.grade == single.grade
        possible[choice] = single
    if not whole:
        return
    assert present in possible
    swept = run_whole(scenario, Grid((parse_axis(path, {path: list(possible)}, scenario.program, LIMIT),)))
    for index, (choice, single) in enumerate(possible.items()):
        assert differences(swept, (index,), single) == [], choice


@pytest.mark.parametrize("name", FEW)
def test_platform_sweep_equals_loading_anew(name):
    scenario = QUESTIONS[name]
    platforms = list(shipped_names("platforms"))
    swept = run_whole(scenario, Grid((parse_axis("platform", {"platform": platforms}, scenario.program, LIMIT),)))
    for index, platform in enumerate(platforms):
        single = outcome(lambda platform=platform: alone(name, {}, platform))
        # A machine without GPUs is a row that says so.
        assert disagreements(swept, (index,), single) == [], platform


@st.composite
def pairs(draw):
    """A scenario and two of its parameters, each with two or three values."""
    name = draw(st.sampled_from(FEW))
    numeric = [path for scenario, path in NUMERIC if scenario == name]
    structural = [path for scenario, path in STRUCTURAL if scenario == name]
    parameters = st.one_of(st.sampled_from(numeric), st.sampled_from(numeric), st.sampled_from(structural))
    paths = draw(st.lists(parameters, min_size=2, max_size=2, unique=True))
    return name, {path: draw(values_of(name, path)) for path in paths}


def values_of(name, path):
    parameter = QUESTIONS[name].program.parameters[path]
    texts = list(parameter.choices) if parameter.structural else around(name, path)
    return st.lists(st.sampled_from(texts), min_size=2, max_size=3, unique=True)


RANDOM = settings(max_examples=10, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.data_too_large])


def after_the_set(error):
    """An error without the option and the value that it is told of."""
    return error.partition(": ")[2] if error.startswith(("--set ", "--sweep ")) else error


def disagreements(swept, index, single):
    """What is not the same at one point of a sweep: where a scenario is not valid alone, the reason says why."""
    if not isinstance(single, str):
        return differences(swept, index, single)
    reason = swept.reason[index]
    agrees = reason and single.splitlines()[0].endswith(reason) and np.isnan(swept.columns["total_time"][index])
    return [] if agrees else [f"swept {reason!r}, alone {single}"]


@RANDOM
@given(pairs(), st.sampled_from([1, 2, 1000]))
def test_grid_of_two_parameters_equals_each_point_alone(pair, chunk):
    name, texts = pair
    scenario = QUESTIONS[name]
    (first, second), (ones, others) = texts.keys(), texts.values()
    axes = [parse_axis(path, {path: values}, scenario.program, LIMIT) for path, values in texts.items()]
    grid = grid_of(axes, LIMIT)
    singles = {
        (i, j): outcome(lambda one=one, other=other: alone(name, {first: one, second: other}))
        for i, one in enumerate(ones)
        for j, other in enumerate(others)
    }
    parts = outcome(lambda: list(run(scenario, grid, chunk_points=chunk)))
    if all(isinstance(single, str) for single in singles.values()):
        # Of two values that are set it may name either: the one that is swept as a number is set in no file.
        assert after_the_set(parts) in map(after_the_set, singles.values())
        return
    assert not isinstance(parts, str), parts
    points = iter(singles.values())
    for part in parts:
        for index in np.ndindex(part.grid.shape):
            assert disagreements(part, index, next(points)) == []
    assert next(points, None) is None


@RANDOM
@given(pairs())
def test_tied_parameters_equal_each_point_alone(pair):
    name, texts = pair
    scenario = QUESTIONS[name]
    size = min(len(values) for values in texts.values())
    tied = {path: values[:size] for path, values in texts.items()}
    axis = parse_axis("tied", tied, scenario.program, LIMIT)
    swept = outcome(lambda: run_whole(scenario, Grid((axis,))))
    singles = [
        outcome(lambda i=i: alone(name, {path: values[i] for path, values in tied.items()})) for i in range(size)
    ]
    if all(isinstance(single, str) for single in singles):
        assert after_the_set(swept) in map(after_the_set, singles)
        return
    for index, single in enumerate(singles):
        assert disagreements(swept, (index,), single) == []


@st.composite
def edits(draw):
    """A scenario, a parameter to sweep, and edits one after another: numbers, choices, expressions."""
    name = draw(st.sampled_from(FEW))
    numeric = [path for scenario, path in NUMERIC if scenario == name]
    structural = [path for scenario, path in STRUCTURAL if scenario == name]
    parameters = st.one_of(*[st.sampled_from(numeric)] * 4, st.sampled_from(structural))
    steps = []
    for path in draw(st.lists(parameters, min_size=1, max_size=6)):
        parameter = QUESTIONS[name].program.parameters[path]
        texts = list(parameter.choices) if parameter.structural else around(name, path)
        texts += [] if parameter.structural else [f"= {texts[0]} * 1"]
        steps.append((path, draw(st.sampled_from(texts))))
    return name, draw(st.sampled_from(numeric)), steps


def rows(result):
    return {
        name: np.array(result.grid.spread(array)) for name, array in (*result.columns.items(), *result.terms.items())
    }


@RANDOM
@given(edits())
def test_incremental_session_equals_a_fresh_one(case):
    name, swept, steps = case
    session = Session.start(QUESTIONS[name]).sweep(swept)
    sets = {}
    for path, text in steps:
        changed = outcome(lambda session=session, path=path, text=text: session.edit(path, text))
        after = {**sets, path: text}
        scenario = Scenario(QUESTIONS[name].document, None, after)
        fresh = outcome(lambda scenario=scenario: scenario.program)
        if isinstance(changed, str) or isinstance(fresh, str):
            assert changed == fresh
            continue
        session, sets = changed, after
        anew = Session.of(SessionInputs(scenario, session.grid))
        for one, other in ((session.point, anew.point), (session.result, anew.result)):
            left, right = rows(one), rows(other)
            assert list(left) == list(right)
            assert [key for key in left if not same(left[key], right[key])] == []
            assert one.reasons == other.reasons
        # What the file says itself is no edit, so that its source and grade hold.
        inputs = Session.of(SessionInputs(session.scenario, session.grid))
        assert session.result.grade == inputs.result.grade
        assert {key: parameter.grade for key, parameter in session.program.parameters.items()} == {
            key: parameter.grade for key, parameter in inputs.program.parameters.items()
        }


@pytest.mark.parametrize("name", SCENARIOS)
def test_own_sweep_in_chunks_equals_the_sweep_in_one(name):
    session = Session.start(QUESTIONS[name])
    parts = list(run(QUESTIONS[name], session.grid, chunk_points=3))
    whole = rows(run_whole(QUESTIONS[name], session.grid))
    assert len(parts) > 1
    for key, array in whole.items():
        assert same(np.concatenate([rows(part)[key] for part in parts]), array), key


def test_sweeping_a_parameter_that_another_platform_lacks_is_an_error():
    """Summit has parameters inside a socket, Bridges has not: nothing may be swept there without a word."""
    path = "platform.network.intra_socket.max_rate.eager.latency"
    scenario = QUESTIONS["jacobi2d"]
    axes = (
        parse_axis("platform", {"platform": "summit, bridges"}, scenario.program, LIMIT),
        parse_axis(path, {path: "1 us, 2 us"}, scenario.program, LIMIT),
    )
    with pytest.raises(WhatifError, match="intra_socket"):
        run_whole(scenario, Grid(axes))


def test_axis_of_numbers_keeps_the_written_order():
    axis = parse_axis("r", {"application.rank_count": "64 .. 4 log 5"}, QUESTIONS["jacobi2d"].program, LIMIT)
    assert isinstance(axis, Axis)
    assert axis.parameters["application.rank_count"].tolist() == [64, 32, 16, 8, 4]


def test_values_relative_to_the_present_one_are_swept_as_what_they_are():
    scenario = Scenario.open("jacobi2d")
    path = "platform.node.gpu.dram_bandwidth"
    present = scenario.program.parameters[path].value
    axis = parse_axis(path, {path: "x0.5, +10 %, 200 %, 1 TB/s"}, scenario.program, LIMIT)
    (values,) = axis.parameters.values()
    np.testing.assert_allclose(values, [0.5 * present, 1.1 * present, 2 * present, 1e12], rtol=1e-9, atol=0)
    with pytest.raises(UsageError, match="must be"):
        parse_axis(path, {path: "x0"}, scenario.program, LIMIT)
