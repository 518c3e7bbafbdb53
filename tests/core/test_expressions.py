"""Expressions: the grammar against Python's own, units, limits, and what must never be executed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whatif.core.evaluate import evaluate
from whatif.core.expression_terms import ExpressionFunction
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError
from whatif.schema.expressions import (
    FUNCTIONS,
    MAXIMUM_DEPTH,
    MAXIMUM_LENGTH,
    Expression,
    ExpressionError,
    dimension_of,
    parse_expression,
)
from whatif.schema.toml import parse_document
from whatif.units import BYTE, ONE, SECOND, Dimension

NAMES = {"n": 3.0, "width": 0.25, "count_2": 7.0}


def value_of(text, names=NAMES):
    expression = parse_expression(text)
    with np.errstate(all="ignore"):
        return float(ExpressionFunction(expression)(*(np.float64(names[name]) for name in expression.names())))


def dimension(text, **names):
    return dimension_of(parse_expression(text).tree, lambda name: names[name])


# Trees of (operator, left, right), ("-", operand), (function, operands), numbers and names; rendered as text twice.

PARAMETERS = st.one_of(
    st.integers(0, 9).map(str), st.sampled_from(["0.5", "2.25", "1e2", "1_000", ".75"]), st.sampled_from(sorted(NAMES))
)
BINDING = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4}
PYTHON = {
    "ceil": np.ceil,
    "floor": np.floor,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "min": lambda *values: float(np.min(values)),
    "max": lambda *values: float(np.max(values)),
}


def branches(children):
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "/"]), children, children),
        st.tuples(st.just("**"), children, children),
        st.tuples(st.just("negative"), children),
        st.tuples(st.sampled_from(["ceil", "floor", "log2", "sqrt"]), children),
        st.tuples(st.sampled_from(["min", "max"]), children, children, children),
    )


TREES = st.recursive(PARAMETERS, branches, max_leaves=12)


def render(tree, redundant=False):
    """The text of a tree and how strongly it binds, with the fewest brackets or with one around everything."""
    text, binding = render_bare(tree, redundant)
    return (f"( {text} )", 9) if redundant else (text, binding)


def render_bare(tree, redundant):
    if isinstance(tree, str):
        return tree, 9
    head, *operands = tree
    if head == "negative":
        text, binding = render(operands[0], redundant)
        return f"-{text}" if binding >= 3 else f"-({text})", 3
    if head not in BINDING:
        return f"{head}({', '.join(render(operand, redundant)[0] for operand in operands)})", 9
    (left, left_binding), (right, right_binding) = (render(operand, redundant) for operand in operands)
    own = BINDING[head]
    # The power joins from the right and takes a minus on its right side; everything else joins from the left.
    left_fits = left_binding > own if head == "**" else left_binding >= own
    right_fits = right_binding >= 3 if head == "**" else right_binding > own
    left, right = left if left_fits else f"({left})", right if right_fits else f"({right})"
    return f"{left} {head} {right}", own


def python_text(text):
    """The same text for Python, with every number a numpy float so that division by zero is a value."""
    words = text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").replace("-", " - ").split()
    return " ".join(f"F('{word}')" if word[0].isdigit() or word[0] == "." else word for word in words)


class Number:
    """A number on which Python's operators do what numpy's functions do, to the last bit."""

    def __init__(self, value):
        self.value = np.float64(value)

    def __add__(self, other):
        return Number(np.add(self.value, other.value))

    def __sub__(self, other):
        return Number(np.subtract(self.value, other.value))

    def __mul__(self, other):
        return Number(np.multiply(self.value, other.value))

    def __truediv__(self, other):
        return Number(np.divide(self.value, other.value))

    def __pow__(self, other):
        return Number(np.power(self.value, other.value))

    def __neg__(self):
        return Number(np.negative(self.value))


def by_python(text):
    functions = {
        name: lambda *values, apply=apply: Number(apply(*(item.value for item in values)))
        for name, apply in PYTHON.items()
    }
    scope = {"__builtins__": {}, "F": Number, **functions, **{name: Number(value) for name, value in NAMES.items()}}
    with np.errstate(all="ignore"):
        return float(eval(python_text(text), scope).value)  # noqa: S307 - the oracle


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_precedence_is_that_of_python(tree):
    plain, bracketed = render(tree)[0], render(tree, redundant=True)[0]
    expected = by_python(plain)
    for text in (f"= {plain}", f"={bracketed}", "=" + plain.replace(" ", "  "), f"=\t{plain}\n"):
        if len(text) > MAXIMUM_LENGTH:
            continue
        got = value_of(text)
        assert got == expected or (math.isnan(got) and math.isnan(expected)), text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("= 2 + 3 * 4", 14),
        ("= (2 + 3) * 4", 20),
        ("= 2 ** 3 ** 2", 512),
        ("= -2 ** 2", -4),
        ("= 2 ** -1", 0.5),
        ("= 2 - -3", 5),
        ("= - - 3", 3),
        ("= 8 / 4 / 2", 1),
        ("= 10 - 4 - 3", 3),
        ("= 2 * -3", -6),
        ("=1/4", 0.25),
        ("= min(3, 1, 2)", 1),
        ("= max(3)", 3),
        ("= ceil(1.2) + floor(1.8)", 3),
        ("= log2(8) * sqrt(9)", 9),
        ("= 3 us * 2", 6e-6),
        ("= 8 B/s * 2 s", 16),
        ("= 8 B/n", 8 / 3),
        ("= 8 B / n", 8 / 3),
        ("= 1 GB / 1 GB/s", 1),
        ("= 1 GB / (1 GB/s)", 1),
        ("= 2 B^2", 2),
        ("= 6 1/s", 6),
        ("= 51/s", 51 / 2),
        ("= 12.5 GB/s", 12.5e9),
        ("= 1e-3 s + 1 ms", 2e-3),
    ],
)
def test_examples(text, value):
    assert value_of(text, NAMES | {"s": 2.0}) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("= 8 B * n", BYTE),
        ("= 8 B / 2 s", BYTE / SECOND),
        ("= (8 B) ** 2", BYTE**2),
        ("= n ** 0.5", ONE),
        ("= n ** n", ONE),
        ("= max(1 B, 3 kB)", BYTE),
        ("= ceil(3.5 B)", BYTE),
        ("= -(3 B)", BYTE),
        ("= t * (1 / (2 s))", ONE),
        ("= (1 B) ** -1", BYTE**-1),
        ("= 3 GB/s / (1 flop/B)", Dimension((-1, 2, -1, 0))),
    ],
)
def test_dimensions(text, expected):
    assert dimension(text, n=ONE, t=SECOND) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 8 B + 1 s", "joins different units: B and s"),
        ("= 8 B - n", "joins different units: B and 1"),
        ("= min(8 B, 1)", "joins different units"),
        ("= max(0, 1 s)", "joins different units"),
        ("= sqrt(4 B)", "needs a number without a unit, not B"),
        ("= log2(1 s)", "needs a number without a unit"),
        ("= ceil(3.5 us)", r"divide by a unit, as in `ceil\(x / 1 s\) \* 1 s`"),
        ("= floor(2 * 1 GB/s)", "needs a number without a unit, or bytes, not B/s"),
        ("= (2 B) ** 0.5", "whole number"),
        ("= (2 B) ** n", "whole number"),
        ("= 2 ** (1 s)", "whole number"),
    ],
)
def test_units_joined_wrongly(text, message):
    with pytest.raises(ExpressionError, match=message):
        dimension(text, n=ONE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=", "at the end"),
        ("=   ", "at the end"),
        ("= 1 +", "at the end"),
        ("= + 1", "before `\\+`"),
        ("= (1", "expected `\\)`"),
        ("= 1)", "unexpected `\\)`"),
        ("= ()", "before `\\)`"),
        ("= 1 2", "unexpected `2`"),
        ("= n n", "unexpected `n`"),
        ("= n(1)", "unknown function `n`"),
        ("= squrt(2)", "did you mean `sqrt`"),
        ("= sqrt(1, 2)", "takes one argument"),
        ("= min()", "before `\\)`"),
        ("= min(1,)", "before `\\)`"),
        ("= 1 // 2", "before `/`"),
        ("= 1 % 2", "cannot read `%"),
        ("= 1 ^ 2", r"cannot read `\^ 2` in `= 1 \^ 2`; a power is `\*\*`"),
        ("= n == 1", "cannot read `=="),
        ("= n if n else 1", "unexpected `if`"),
        ("= lambda: 1", "cannot read `:"),
        ("= [1]", "cannot read `\\["),
        ("= 'a'", "cannot read `'"),
        ('= "a"', 'cannot read `"'),
        ("= n; n", "cannot read `;"),
        ("= n.", "cannot read `\\."),
        ("= .n", "cannot read `\\."),
        ("= __import__('os')", "cannot read|unknown function"),
        ("= __import__(os)", "unknown function `__import__`"),
        ("= os.system(1)", "unknown function `os.system`"),
        ("= eval(1)", "unknown function `eval`"),
        ("= 1 Gb", "unexpected `Gb`"),
        ("= 6 min(3, 4)", "unexpected `\\(`"),
        ("= 1e999", "too large"),
        ("= 2 * \x00", "cannot read"),
    ],
)
def test_unreadable_files_are_refused(text, message):
    with pytest.raises(ExpressionError, match=message):
        parse_expression(text)


def test_depth_and_length_are_limited():
    assert value_of("=" + "(" * MAXIMUM_DEPTH + "1" + ")" * MAXIMUM_DEPTH) == 1
    for deep in ("(" * 60 + "1" + ")" * 60, "-" * 60 + "1", "sqrt(" * 60 + "1" + ")" * 60, "**".join(["1"] * 60)):
        with pytest.raises(ExpressionError, match=f"more than {MAXIMUM_DEPTH} levels"):
            parse_expression(f"= {deep}")
    longest = "+".join(["1"] * (MAXIMUM_LENGTH // 2))
    assert value_of(f"={longest}") == MAXIMUM_LENGTH // 2
    assert dimension(f"={longest}") == ONE
    assert hash(parse_expression(f"={longest}")) == hash(parse_expression(f"={longest}"))
    with pytest.raises(ExpressionError, match=f"at most {MAXIMUM_LENGTH} characters"):
        parse_expression("= " + longest + "+1+1")


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from([*"+-*/(),. ", "**", "1", "2.5", "n", "a.b", "GB", "/s", *FUNCTIONS, "^2"])).map("".join)
)
def test_any_text_is_an_expression_or_an_expression_error(text):
    try:
        parsed = parse_expression(f"={text}")
    except ExpressionError as error:
        parsed = str(error)
    assert isinstance(parsed, Expression) or parsed


def test_names_are_listed_once_in_order():
    assert parse_expression("= b * a.c + b - max(d, a.c)").names() == ("b", "a.c", "d")


# Through a scenario: names of parameters and parameters.

SCENARIO = """
platform = "summit"
[application]
name = "Test"
rank_count = 4
iteration_count = 2
[application.phases.pause]
kind = "overhead"
overhead_time = "= {expression}"
[parameters]
{parameters}
"""


def loaded(expression, parameters=""):
    text = SCENARIO.format(expression=expression, parameters=parameters)
    return Scenario(parse_document(text, "test.toml")).program


def problems(expression, parameters=""):
    with pytest.raises(InvalidFileError) as caught:
        loaded(expression, parameters)
    return caught.value.problems


@pytest.mark.parametrize(
    ("expression", "parameters", "seconds"),
    [
        ("2 s", "", 2),
        ("n * 1 s", "n = 3", 3),
        ("t", 't = "5 ms"', 5e-3),
        ("t * n", 't = "5 ms"\nn = "= k + 1"\nk = 1', 1e-2),
        ("application.rank_count * 1 s", "", 4),
        ("parameters.n * 1 s", "n = 3", 3),
        ("1 GB / platform.node.gpu.dram_bandwidth", "", 1e9 / 779.4108e9),
        ("a * 1 s", "a = -3\nb = 1", None),
        ("max(a, b) * 1 s", "a = -3\nb = 1", 1),
    ],
)
def test_expression_parameters(expression, parameters, seconds):
    evaluation = evaluate(loaded(expression, parameters))
    got = float(evaluation.column("iteration_time"))
    if seconds is None:
        assert math.isnan(got)
        assert "must be at least 0 s" in evaluation.reasons()[0]
    else:
        assert got == seconds


@pytest.mark.parametrize(
    ("expression", "parameters", "key", "message"),
    [
        (
            "m * 1 s",
            "n = 3",
            "application.phases.pause.overhead_time",
            "`m`: neither a value of `[parameters]`",
        ),
        ("widht * 1 s", "width = 3", "application.phases.pause.overhead_time", "did you mean `width`"),
        ("platform.name", "", "application.phases.pause.overhead_time", "nor the path of a number"),
        ("n.__class__", "n = 3", "application.phases.pause.overhead_time", "neither a value of `"),
        ("application.rank_cout * 1 s", "", "application.phases.pause.overhead_time", "`application.rank_count`"),
        ("n", "n = 3", "application.phases.pause.overhead_time", "is in 1; it must be in s"),
        ("n * 1 B", "n = 3", "application.phases.pause.overhead_time", "is in B; it must be in s"),
        ("n * 1 s", 'n = "= n"', "parameters.n", "depends on itself: parameters.n -> parameters.n"),
        (
            "a * 1 s",
            'a = "= b"\nb = "= c"\nc = "= a"',
            "parameters.a",
            "depends on itself: parameters.a -> parameters.b -> parameters.c -> parameters.a",
        ),
        (
            "application.phases.pause.overhead_time",
            "",
            "application.phases.pause.overhead_time",
            "depends on itself",
        ),
        ("1 s +", "", "application.phases.pause.overhead_time", "at the end"),
        ("__import__('os')", "", "application.phases.pause.overhead_time", "cannot read"),
        ("1 s", 'n = "= 1 s + 1 B"', "parameters.n", "joins different units: s and B"),
    ],
)
def test_wrong_expressions_name_their_key(expression, parameters, key, message):
    found = problems(expression, parameters)
    assert [problem for problem in found if problem.key == key and message in problem.message], [str(p) for p in found]
    assert all(problem.file == "test.toml" and problem.line > 1 and problem.column >= 1 for problem in found)


def test_all_invalid_expressions_are_reported_at_once():
    found = problems("x * 1 s", 'a = "= y"\nb = "= 1 s + 1 B"')
    assert {problem.key for problem in found} == {
        "application.phases.pause.overhead_time",
        "parameters.a",
        "parameters.b",
    }


def test_a_long_chain_of_parameters_is_refused_and_a_short_one_is_not():
    def chain(length):
        return "\n".join(f'p{i} = "= p{i + 1}"' for i in range(length)) + f"\np{length} = 7"

    assert float(evaluate(loaded("p0 * 1 s", chain(60))).column("iteration_time")) == 7
    found = problems("p0 * 1 s", chain(3000))
    assert any("deep" in problem.message for problem in found)


def test_nothing_is_executed(tmp_path):
    target = tmp_path / "made"
    for text in (f"= __import__('os').mkdir('{target}')", f"= open('{target}', 'w')", "= exit()", "= os.abort()"):
        with pytest.raises(ExpressionError):
            parse_expression(text)
    assert list(tmp_path.iterdir()) == []
