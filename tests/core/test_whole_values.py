"""Values of `[parameters]` from which whole numbers are computed."""

from __future__ import annotations

import pytest

from tests.one_phase import one_phase
from whatif.core.scenario import Scenario
from whatif.schema.toml import parse_document


def whole(expression, **values):
    text = one_phase("1 s", **values).replace("iteration_count = 1", f'iteration_count = "= {expression}"')
    program = Scenario(parse_document(text, "t.toml")).program
    return {name for name in values if program.parameters[f"parameters.{name}"].field.domain.whole}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x", {"x"}),
        ("2 * x", set()),
        ("5 * x", set()),
        ("x * x", {"x"}),
        ("24 / x", set()),
        ("x / 2", {"x"}),
        ("x * y", {"x"}),
        ("ceil(x)", set()),
        ("ceil(y * x)", set()),
        ("z", {"x"}),
        ("x + y + y", {"x"}),
    ],
)
def test_whole_are_those_of_which_no_fraction_makes_a_whole_number(expression, expected):
    assert whole(expression, x=4.0, y=0.5, z='"= 3 * x"') == expected


@pytest.mark.parametrize(("value", "expected"), [("uniform(2, 6)", {"x"}), ("uniform(3.5, 4.5)", set())])
def test_a_distribution_between_whole_numbers_has_whole_samples(value, expected):
    assert whole("x", x=f'"{value}"') == expected


def test_infinite_numbers_are_not_whole():
    assert whole("1 / x", x=0.0) == set()
