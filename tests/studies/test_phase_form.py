"""Form of a phase: which fields it has, what is wrong with typed texts, and the values that they mean."""

import pytest

from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.schema.motifs import motifs
from whatif.schema.phase_edits import PhaseEdit
from whatif.studies.phase_form import form_problems, form_values, phase_form

STENCIL = "application.phases.stencil"
MIX = (f"{STENCIL}.compute_fraction", f"{STENCIL}.load_store_fraction")


@pytest.fixture(scope="module")
def jacobi():
    return Scenario.open("jacobi2d")


def fields_of(scenario, phase):
    return {field.label: field for field in phase_form(scenario.program, phase)}


def test_stated_fields_come_first_and_every_key_of_the_kind_is_there(jacobi):
    fields = fields_of(jacobi, "halo")
    assert list(fields)[:4] == ["model", "neighbours", "concurrency", "element_size"]
    assert {"message_size", "message_sizes.x", "message_sizes.y", "exchange_count", "total_count"} <= fields.keys()
    assert "kind" not in fields
    stated = [bool(field.text) for field in fields.values()]
    assert stated == sorted(stated, reverse=True)


def test_a_field_has_default_unit_help_and_choices(jacobi):
    fields = fields_of(jacobi, "halo")
    assert (fields["exchange_count"].text, fields["exchange_count"].default) == ("", "1")
    assert (fields["element_size"].text, fields["element_size"].unit) == ("8 B", "B")
    assert fields["halo_width"].help == "Depth of the halo in cells."
    assert fields["model"].required
    assert not fields["message_size"].required
    assert dict(fields["neighbours"].choices)["faces"] == "2 per dimension"


@pytest.mark.parametrize("motif", [motif.name for motif in motifs()])
def test_each_phase_of_each_motif_has_a_form_whose_texts_are_right_as_they_stand(jacobi, motif):
    scenario = jacobi.with_phase(PhaseEdit("add", "added", motif))
    for phase in scenario.program.loaded.scenario.application.phases:
        fields = phase_form(scenario.program, phase)
        assert fields
        assert form_values(fields, {}) == {}
        assert form_problems(scenario, fields, {}) == {}


@pytest.mark.parametrize(
    ("typed", "path", "words"),
    [
        ({"operations": "3"}, "operations", "`3` has no unit; write a quantity in flop"),
        ({"operations": ""}, "operations", "is required"),
        ({"compute_fraction": "1.5"}, "compute_fraction", "must be between 0 and 1"),
        ({"compute_fraction": ""}, "compute_fraction", "missing key, needed by `load_store_fraction`"),
        ({"follows": "cels"}, "follows", "is not one of cells, surface, nothing"),
        ({"launch_time": "= nothing_known * 1 s"}, "launch_time", "nothing_known"),
    ],
)
def test_a_wrong_text_is_told_at_its_field(jacobi, typed, path, words):
    fields = phase_form(jacobi.program, "stencil")
    found = form_problems(jacobi, fields, {f"{STENCIL}.{key}": text for key, text in typed.items()})
    assert list(found) == [f"{STENCIL}.{path}"]
    assert words in found[f"{STENCIL}.{path}"]


def test_changed_fields_become_values_and_empty_ones_are_removed(jacobi):
    fields = phase_form(jacobi.program, "stencil")
    texts = {**dict.fromkeys(MIX, ""), f"{STENCIL}.launch_time": " 3 us ", f"{STENCIL}.launch_count": "1"}
    values = form_values(fields, texts)
    assert values == {**dict.fromkeys(MIX, "none"), f"{STENCIL}.launch_time": "3 us"}
    changed = jacobi.with_overrides(values)
    before, after = (text.splitlines() for text in (jacobi.document.text, changed.to_toml()))
    assert set(after) - set(before) == {'launch_time = "3 us"'}
    assert [line.split(" ")[0] for line in before if line not in after] == ["compute_fraction", "load_store_fraction"]


def test_none_drops_an_override_of_a_value_that_no_file_states(jacobi):
    path = f"{STENCIL}.launch_time"
    changed = jacobi.with_overrides({path: "3 us"})
    assert changed.overrides == {path: "3 us"}
    assert changed.with_overrides({path: "none"}).overrides == {}
    # A choice of this name is a value, not a removal.
    assert jacobi.with_overrides({"application.congestion": "none"}).overrides == {"application.congestion": "none"}


def test_an_inherited_value_is_removed_by_none_in_the_file(tmp_path):
    (tmp_path / "above.toml").write_text('extends = "jacobi2d"\n')
    scenario = Scenario.open(tmp_path / "above.toml").with_overrides(dict.fromkeys(MIX, "none"))
    assert 'compute_fraction = "none"' in scenario.to_toml()


def test_a_choice_of_the_name_none_is_taken_back_like_any_other():
    path = "application.congestion"
    session = Session.start(Scenario.open("jacobi2d"))
    before = session.parameter(path).text()
    other = next(choice for choice in session.parameter(path).choices if choice != before)
    assert session.edit(path, other).edit(path, before).scenario.overrides == {}


def test_a_session_takes_a_value_that_nothing_states_and_removes_it_again(jacobi):
    session, path = Session.start(jacobi), f"{STENCIL}.launch_time"
    slower = session.edit(path, "1 ms")
    time = [float(item.point.columns["iteration_time"]) for item in (session, slower, slower.edit(path, "none"))]
    assert time[1] == pytest.approx(time[0] + 1e-3 - 2e-6)
    assert time[2] == time[0]
