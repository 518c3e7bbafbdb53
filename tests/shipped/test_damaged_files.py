"""Shipped files with random damage: they work, or say what is wrong and in which file; nothing else may happen."""

from __future__ import annotations

import re
import string
from functools import cache

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from whatif.core.derivation import explain, lines
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run
from whatif.core.scenario import Scenario
from whatif.core.sweep import file_axes, grid_of
from whatif.errors import InvalidFileError, WhatifError
from whatif.schema.load import load_platform
from whatif.schema.parameters import parameter_table
from whatif.schema.shipped import shipped_folder, shipped_names
from whatif.schema.toml import parse_document

TEXTS = {
    kind: {name: (shipped_folder(kind) / f"{name}.toml").read_text(encoding="utf-8") for name in shipped_names(kind)}
    for kind in ("scenarios", "platforms")
}
# Small enough that a damaged count cannot make a test of minutes.
LIMIT = 2_000
ALLOWED = {"--set", "--sweep", "--platform"}

NUMBERS = st.one_of(
    st.integers(-10, 5000), st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([0, -1, 1e308, 5e-324])
).map(str)
WORDS = st.sampled_from(
    [
        "true",
        "false",
        "nan",
        "inf",
        "''",
        '""',
        "[]",
        "{}",
        "[1]",
        "[[]]",
        "{ a = 1 }",
        "1979-05-27",
        "07:32:00",
        "0x10",
    ]
)
UNITS = ["B", "GB", "GB/s", "us", "s", "Gb", "flop", "Tflop/s", "1/s", "ns/B", "", "W", "EB^9", "s^-9", "%"]
QUANTITIES = st.tuples(NUMBERS, st.sampled_from(UNITS)).map(lambda pair: f'"{pair[0]} {pair[1]}"')
NAMES = ["n", "cells", "application.rank_count", "platform.node.gpu_count", "8 B", "2", "1 us", "0", "parameters.cells"]
EXPRESSIONS = st.lists(
    st.sampled_from([*NAMES, "+", "-", "*", "/", "**", "(", ")", "min(", "ceil(", ","]), min_size=1, max_size=8
).map(lambda parts: f'"= {" ".join(parts)}"')
PHASES = ["kernel", "halo", "collective", "transfer", "overhead", "structured_grid", "postal", "max_rate", "k_model"]
WAYS = ["all", "given", "bisection", "strong", "tiles", "round_robin", "file", "cell", "rank", "surface", "minife"]
CHOICES = st.sampled_from(PHASES + WAYS).map(lambda word: f'"{word}"')
TEXT = st.text(st.characters(codec="utf-8", exclude_characters='"\\\n\r', exclude_categories=["Cc", "Cs"]), max_size=20)
VALUES = st.one_of(NUMBERS, WORDS, QUANTITIES, EXPRESSIONS, CHOICES, TEXT.map(lambda text: f'"{text}"'))


def rows_of(text):
    return text.splitlines(keepends=True)


def pick(draw, text, wanted=r"\S"):
    """The number of a line that matches."""
    numbers = [number for number, line in enumerate(rows_of(text)) if re.match(wanted, line)]
    return draw(st.sampled_from(numbers)) if numbers else None


def deleted(draw, text):
    rows, start = rows_of(text), pick(draw, text)
    return text if start is None else "".join(rows[:start] + rows[start + draw(st.integers(1, 6)) :])


def duplicated(draw, text):
    rows, start = rows_of(text), pick(draw, text)
    return (
        text
        if start is None
        else "".join(rows[: start + 1] + rows[start : start + draw(st.integers(1, 6))] + rows[start + 1 :])
    )


def swapped(draw, text):
    rows, one, other = rows_of(text), pick(draw, text), pick(draw, text)
    if one is not None and other is not None:
        rows[one], rows[other] = rows[other], rows[one]
    return "".join(rows)


def revalued(draw, text):
    rows, at = rows_of(text), pick(draw, text, r'[\w"]+.*=')
    if at is None:
        return text
    rows[at] = f"{rows[at].partition('=')[0]}= {draw(VALUES)}\n"
    return "".join(rows)


def renamed(draw, text):
    rows, at = rows_of(text), pick(draw, text, r"\[?\w")
    if at is None:
        return text
    row, place = rows[at], draw(st.integers(0, 12))
    letter = draw(st.sampled_from([*string.ascii_lowercase, "", ".", "_", "-", '"', " ", "]", "é"]))
    rows[at] = row[:place] + letter + row[place + 1 :]
    return "".join(rows)


def controlled(draw, text):
    place = draw(st.integers(0, len(text)))
    return (
        text[:place]
        + draw(st.sampled_from(["\x00", "\x01", "\x7f", "\r", "\u2028", "\ufeff", "\t", '"""', "'", "#", "="]))
        + text[place:]
    )


def truncated(draw, text):
    return text[: draw(st.integers(0, len(text)))]


def joined(draw, text):
    kind = draw(st.sampled_from(sorted(TEXTS)))
    return text + TEXTS[kind][draw(st.sampled_from(sorted(TEXTS[kind])))]


DAMAGES = (deleted, duplicated, swapped, revalued, revalued, revalued, renamed, controlled, truncated, joined)


@st.composite
def damaged(draw, kind):
    """The name and text of a shipped file after one to four damages."""
    name = draw(st.sampled_from(sorted(TEXTS[kind])))
    text = TEXTS[kind][name]
    for damage in draw(st.lists(st.sampled_from(DAMAGES), min_size=1, max_size=4)):
        text = damage(draw, text)
    return name, text


def checked(compute, *files):
    """Run it; an error must be the user's, say something, and name a file it can be mended in."""
    try:
        return compute()
    except WhatifError as error:
        caught = error
    note(str(caught))
    assert str(caught).strip()
    if isinstance(caught, InvalidFileError):
        assert caught.problems
        for problem in caught.problems:
            assert problem.message.strip()
            assert len(problem.message) < 5_000
            assert problem.file in files or problem.file.endswith(".toml") or problem.file.split(" ")[0] in ALLOWED
            assert problem.line >= 0
    return None


def asked(text, name="damaged.toml"):
    """Everything the program does with a scenario: load, compile, evaluate, explain, sweep."""
    scenario = Scenario(parse_document(text, name, shipped_folder("scenarios")))
    program = scenario.program
    if sensible(program):
        evaluation = evaluate(program)
        assert all(isinstance(line, str) for line in lines(explain(evaluation)))
        for _ in run(scenario, grid_of(file_axes(program, LIMIT), LIMIT)):
            pass
    return program


def sensible(program):
    """Whether the counts are small enough to be evaluated many times a second."""
    counts = [
        parameter.value
        for path, parameter in program.parameters.items()
        if path in ("application.rank_count", "platform.node.gpu_count")
    ]
    dimensions = sum(path.startswith("application.grid.cells.") for path in program.parameters)
    return all(isinstance(count, float) and count <= 5_000 for count in counts) and dimensions <= 4


FUZZ = settings(
    max_examples=75,
    print_blob=True,
    derandomize=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@FUZZ
@given(damaged("scenarios"))
def test_damaged_scenarios_work_or_raise_a_clear_error(case):
    _, text = case
    checked(lambda: asked(text), "damaged.toml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("platforms")


@FUZZ
@given(case=damaged("platforms"))
def test_damaged_platforms_work_or_raise_a_clear_error(folder, case):
    _, text = case
    (folder / "damaged.toml").write_text(text, encoding="utf-8", newline="")
    file = str(folder / "damaged.toml")
    checked(lambda: load_platform(file), file)
    scenario = Scenario.open("jacobi2d", platform="damaged", folders=(folder,))

    def compute():
        program = scenario.program
        if sensible(program):
            evaluate(program)
            parameter_table(program.loaded)

    checked(compute, file)


@cache
def opened(name):
    return Scenario.open(name)


@FUZZ
@given(st.sampled_from(sorted(TEXTS["scenarios"])), st.data())
def test_overrides_work_or_raise_a_clear_error(name, data):
    document = opened(name).document
    parameters = sorted(opened(name).program.parameters)
    paths = st.one_of(
        st.sampled_from(parameters),
        st.sampled_from(parameters).map(lambda path: path.rpartition(".")[0]),
        st.sampled_from(parameters).map(lambda path: path + ".x"),
        st.sampled_from(parameters).map(lambda path: path[:-1]),
    )
    sets = data.draw(st.dictionaries(paths, VALUES.map(lambda text: text.strip('"')), min_size=1, max_size=3))

    def compute():
        program = Scenario(document, None, sets).program
        if sensible(program):
            evaluate(program)
            list(lines(explain(evaluate(program))))

    checked(compute, document.name)


SPECS = st.one_of(
    st.lists(VALUES.map(lambda text: text.strip('"')), min_size=1, max_size=4).map(", ".join),
    st.tuples(NUMBERS, st.sampled_from(UNITS), NUMBERS, st.sampled_from(["linear", "log", "step", ""]), NUMBERS).map(
        lambda parts: f"{parts[0]} {parts[1]} .. {parts[2]} {parts[1]} {parts[3]} {parts[4]}"
    ),
    TEXT,
)


@FUZZ
@given(st.sampled_from(sorted(TEXTS["scenarios"])), st.data())
def test_sweeps_work_or_raise_a_clear_error(name, data):
    from whatif.core.sweep import parse_option

    scenario = opened(name)
    paths = st.sampled_from(["platform", *sorted(scenario.program.parameters), "nothing"])
    option = f"{data.draw(paths)}={data.draw(SPECS)}"
    note(option)

    def compute():
        axis = parse_option(option, scenario.program, LIMIT)
        ranks = [
            values
            for path, values in axis.parameters.items()
            if path in ("application.rank_count", "platform.node.gpu_count")
        ]
        if len(axis) <= 50 and all(values.max() <= 5_000 for values in ranks):
            for result in run(scenario, grid_of([axis], LIMIT)):
                assert len(result.table()) == len(axis)

    checked(compute, f"{name}.toml")


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_the_texts_are_good_before_they_are_damaged(kind):
    for name, text in TEXTS[kind].items():
        if kind == "scenarios":
            assert asked(text, f"{name}.toml").terms
        else:
            assert load_platform(name)[0].name
