"""Values relative to the present one: `x2`, `/2`, `+10 %`, `200 %`."""

import re

import pytest

import whatif
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import InvalidFileError, UsageError
from whatif.schema.relative import absolute, is_relative
from whatif.tui.commands.explorer_commands import Edit, EditAll
from whatif.tui.commands.performing import queued
from whatif.tui.state import ExplorerState

GPUS = "platform.node.gpu_count"
MEMORY = "platform.node.gpu.dram_bandwidth"
EFFICIENCY = "platform.node.gpu.matrix_efficiency"
FACTOR = "platform.site.power_usage_effectiveness"
PARAMETERS = Scenario.open("jacobi2d").program.parameters


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        (MEMORY, "x2", 2 * 779.4108e9),
        (MEMORY, "*2", 2 * 779.4108e9),
        (MEMORY, "1.5 x", 1.5 * 779.4108e9),
        (MEMORY, "×2", 2 * 779.4108e9),
        (MEMORY, "/2", 779.4108e9 / 2),
        (MEMORY, "+10 %", 1.1 * 779.4108e9),
        (MEMORY, "-10%", 0.9 * 779.4108e9),
        (MEMORY, "+\u00a010 %", 1.1 * 779.4108e9),
        (MEMORY, "+\t10 %", 1.1 * 779.4108e9),
        (MEMORY, "200 %", 2 * 779.4108e9),
        (GPUS, "50%", 3.0),
        (GPUS, "+50 %", 9.0),
    ],
)
def test_relative_text_scales_the_present_value(path, text, value):
    parameter = PARAMETERS[path]
    assert parameter.field.parse(absolute(parameter, text)) == pytest.approx(value, rel=1e-11, abs=0)


def test_percentage_of_a_fraction_is_its_value_and_a_signed_one_is_relative():
    parameter = PARAMETERS[EFFICIENCY]
    present = parameter.value
    assert absolute(parameter, "10 %") == "0.1"
    assert float(absolute(parameter, "+10 %")) == pytest.approx(1.1 * present, rel=1e-11, abs=0)
    assert float(absolute(parameter, "/2")) == pytest.approx(present / 2, rel=1e-11, abs=0)
    assert absolute(PARAMETERS[FACTOR], "110 %") == "1.1"


@pytest.mark.parametrize("text", ["2", "-3", "12.5 GB/s", "12 GB/s +- 2 %", "= 2 * 3", "x", "%", "x2 GB/s", 2.0])
def test_other_texts_are_not_relative(text):
    assert not is_relative(text)
    assert absolute(PARAMETERS[MEMORY], text) == text


def test_text_of_a_name_is_not_relative():
    assert absolute(PARAMETERS["platform.name"], "x2") == "x2"


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        (GPUS, "+10 %", "`+10 %` of 6 is 6.6; it must be a whole number of at least 1; did you mean 7?"),
        (GPUS, "x0", "`x0` of 6 is 0; it must be a whole number of at least 1"),
        (
            GPUS,
            "x1e308",
            "`x1e308` of 6 is inf; it must be a whole number of at least 1 and at most 2^53",
        ),
        (MEMORY, "-200 %", "`-200 %` of 779.411 GB/s is -779.4108 GB/s; it must be greater than 0 B/s"),
        (MEMORY, "/0", "`/0`: division by 0"),
    ],
)
def test_relative_text_outside_the_domain_is_refused(path, text, message):
    with pytest.raises(UsageError) as caught:
        absolute(PARAMETERS[path], text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "doubled"),
    [
        ("uniform(1 TB/s, 2 TB/s)", "uniform(2 TB/s, 4 TB/s)"),
        ("800 GB/s +- 5 %", "1.6 TB/s +- 80 GB/s"),
        ("lognormal(1 TB/s, 1.2)", "lognormal(2 TB/s, 1.2)"),
        ("triangular(1 TB/s, 1.5 TB/s, 3 TB/s)", "triangular(2 TB/s, 3 TB/s, 6 TB/s)"),
    ],
)
def test_an_uncertain_value_keeps_its_relative_width(value, doubled):
    scenario = Scenario.open("jacobi2d", overrides={MEMORY: value})
    assert absolute(scenario.program.parameters[MEMORY], "x2") == doubled
    changed = Scenario.open("jacobi2d", overrides={MEMORY: doubled}).program.parameters[MEMORY]
    assert changed.value == pytest.approx(2 * scenario.program.parameters[MEMORY].value, rel=1e-12, abs=0)


def test_expression_is_multiplied():
    scenario = Scenario.open("jacobi2d", overrides={MEMORY: "= 100 GB/s + 50 GB/s"})
    session = Session.start(scenario).edit(MEMORY, "x2")
    assert session.scenario.overrides[MEMORY] == "= 2 * (100 GB/s + 50 GB/s)"
    assert session.at.values[MEMORY] == pytest.approx(300e9, rel=1e-12, abs=0)


def test_override_is_relative_to_the_value_of_each_platform():
    for platform in ("summit", "frontier"):
        present = whatif.load("jacobi2d", platform=platform).program.parameters[MEMORY].value
        doubled = whatif.load("jacobi2d", platform=platform, overrides={MEMORY: "x2"})
        assert doubled.program.parameters[MEMORY].value == pytest.approx(2 * present, rel=1e-11, abs=0)
        assert doubled.on_platform(platform).overrides == {}


def test_override_is_relative_to_the_value_with_the_other_overrides():
    sets = {MEMORY: "x2", "platform.node.gpu.extends": "h200-sxm"}
    assert whatif.load("jacobi2d", overrides=sets).program.parameters[MEMORY].value == pytest.approx(
        2 * 4258e9, rel=1e-11, abs=0
    )


def test_relative_override_is_written_as_a_value():
    scenario = Scenario.open("jacobi2d", overrides={GPUS: "x2"})
    assert "gpu_count = 12" in scenario.to_toml()
    assert Session.start(scenario).scenario.overrides == {GPUS: "12"}


def test_relative_override_that_is_refused_names_its_option():
    message = r"^--set platform\.node\.gpu_count=/4: platform\.node\.gpu_count: `/4` of 6 is 1.5; it must be a whole"
    with pytest.raises(InvalidFileError, match=message):
        _ = Scenario.open("jacobi2d", overrides={GPUS: "/4"}).program


def test_edits_of_the_explorer_are_relative_to_the_edited_value_and_never_merged():
    state = ExplorerState.start(Session.start(Scenario.open("jacobi2d")))
    twice = Edit(GPUS, "x2").apply(Edit(GPUS, "x2").apply(state))
    assert twice.session.scenario.overrides == {GPUS: "24"}
    assert queued((Edit(GPUS, "x2"),), Edit(GPUS, "x2")) == (Edit(GPUS, "x2"), Edit(GPUS, "x2"))
    both = EditAll(((GPUS, "x2"), (MEMORY, "1 TB/s"))).apply(twice)
    assert both.session.scenario.overrides == {GPUS: "48", MEMORY: "1 TB/s"}


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("rank_count", "did you mean `application.rank_count`?"),
        ("gpu_count", "did you mean `platform.node.gpu_count`?"),
        ("nosuch", "known keys: accuracy, application"),
    ],
)
def test_the_last_word_of_a_path_is_completed(path, hint):
    with pytest.raises(InvalidFileError, match=re.escape(f"`{path}`: unknown key; {hint}")):
        _ = whatif.run("jacobi2d", overrides={path: 8})


def test_ends_of_ranges_are_relative_to_the_present_value():
    present = PARAMETERS[MEMORY].value
    swept = whatif.sweep("jacobi2d", f"{MEMORY}=x0.5 .. x2 log 3").grid.coordinate(MEMORY)
    assert swept.tolist() == pytest.approx([present / 2, present, 2 * present], rel=1e-9)
    counts = whatif.sweep("jacobi2d", f"{GPUS}=50% .. +50% step 3").grid.coordinate(GPUS)
    assert counts.tolist() == [3.0, 6.0, 9.0]
    found = whatif.seek("jacobi2d", vary=[f"{MEMORY}=x0.5 .. x2"], minimise="total_time")
    assert found.values[MEMORY] == pytest.approx(2 * present, rel=1e-6)


@pytest.mark.parametrize("text", ["+2", " + 2", "+.5 TB/s", "+1e9 B/s"])
def test_sum_with_the_present_value_is_refused(text):
    reason = f"`{text.strip()}`: no sums; state the value, a factor (`x2`) or a change (`+10 %`)"
    with pytest.raises(InvalidFileError) as set_to:
        whatif.run("jacobi2d", overrides={MEMORY: text})
    assert str(set_to.value) == f"--set {MEMORY}={text}: {MEMORY}: {reason}"
    with pytest.raises(UsageError) as swept:
        whatif.sweep("jacobi2d", f"{MEMORY}=800 GB/s, {text}")
    assert str(swept.value) == f"--sweep: {reason}"
