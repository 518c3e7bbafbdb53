"""Edits of phases in the text of a scenario: what changes, what follows, what is refused; comments and order stay."""

from __future__ import annotations

import difflib

import pytest
import tomli

import whatif
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError, UsageError, WhatifError
from whatif.schema.motifs import motif_named, motifs
from whatif.schema.phase_edits import EditedDocument, PhaseEdit, edited, rebased
from whatif.schema.phase_kinds import phase_kinds
from whatif.schema.shipped import shipped_names
from whatif.schema.toml import parse_document

TEXT = """# Where does the time go?

platform = "summit"

[application]
name = "mine"
rank_count = 16
iteration_count = 10

[application.grid]
scaling = "weak"
cells = { x = 256, y = 256 }

# The borders.
[application.phases.halo]
kind = "halo"
model = "max_rate"          # of the paper
neighbours = "faces"

# The copies of application.phases.halo.
[application.phases.copy]
kind = "transfer"
direction = "device_to_host"
halo = "halo"

[application.phases.work]
kind = "overhead"
overhead_time = "= 2 * application.phases.halo.halo_width * 1 ms"   # a guess

[application.repeats.work]
repeat_count = 2

[application.overlaps.both]
phases = ["halo", "work"]
fraction = 0.5

[sweep.width]
"application.phases.halo.halo_width" = "1, 2"

[calibration.application.kernel_factors]
work = 1.1

[sources]
"application.phases.halo" = { grade = "measured", source = "a run" }
"application.phases.work.overhead_time" = { grade = "assumed", source = "a guess" }
"""


def document(text=TEXT):
    return parse_document(text, "mine.toml")


def after(*edits, text=TEXT):
    found = document(text)
    for edit in edits:
        found = edited(found, PhaseEdit(*edit))
    return found


def order(found):
    return list(found.data["application"]["phases"])


def changed_lines(found, text=TEXT):
    lines = difflib.unified_diff(text.splitlines(), found.text.splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def test_rename_is_followed_everywhere_and_changes_nothing_else():
    found = after(("rename", "halo", "border"))
    assert order(found) == ["border", "copy", "work"]
    assert "halo" not in {
        word for line in found.text.split("[application.phases.border]")[0].splitlines() for word in line.split()
    }
    data = found.data
    assert data["application"]["phases"]["copy"]["halo"] == "border"
    assert data["application"]["overlaps"]["both"]["phases"] == ["border", "work"]
    assert list(data["sweep"]["width"]) == ["application.phases.border.halo_width"]
    assert "application.phases.border" in data["sources"]
    assert data["application"]["phases"]["work"]["overhead_time"] == "= 2 * application.phases.border.halo_width * 1 ms"
    assert "# The copies of application.phases.border." in found.text
    assert "   # a guess" in found.text
    assert len(changed_lines(found)) == 2 * 7


def test_rename_of_repetitions_and_correction_factors():
    found = after(("rename", "work", "rest"))
    assert found.data["application"]["repeats"] == {"rest": {"repeat_count": 2}}
    assert found.data["calibration"]["application"]["kernel_factors"] == {"rest": 1.1}
    assert "application.phases.rest.overhead_time" in found.data["sources"]


def test_a_rename_there_and_back_leaves_the_file():
    start = document()
    found = edited(edited(start, PhaseEdit("rename", "halo", "border")), PhaseEdit("rename", "border", "halo"))
    assert found is start


def test_delete_is_refused_with_the_places_that_are_computed_from_the_phase():
    with pytest.raises(InvalidFileError) as caught:
        after(("delete", "halo"))
    assert [(problem.line, problem.key) for problem in caught.value.problems] == [
        (TEXT[: TEXT.index('halo = "halo"')].count("\n") + 1, "application.phases.copy.halo"),
        (TEXT[: TEXT.index("overhead_time =")].count("\n") + 1, "application.phases.work.overhead_time"),
    ]


def test_delete_takes_along_what_only_describes_the_phase():
    found = after(("delete", "work"))
    assert isinstance(found, EditedDocument)
    assert order(found) == ["halo", "copy"]
    assert "work" not in found.text
    assert found.notes == (
        "also deleted: sources.application.phases.work.overhead_time, application.overlaps.both, "
        "calibration.application.kernel_factors.work",
    )
    assert all(line.startswith("-") for line in changed_lines(found))


def test_delete_of_a_swept_phase_drops_its_axis():
    found = after(("delete", "work"), ("delete", "copy"), ("add", "rest", "fixed_time"), ("delete", "halo"))
    assert order(found) == ["rest"]
    assert not found.data.get("sweep")
    with pytest.raises(UsageError, match="the only phase"):
        edited(found, PhaseEdit("delete", "rest"))


def test_move_carries_comments_and_repetitions():
    found = after(("move", "work", "-2"))
    assert order(found) == ["work", "halo", "copy"]
    assert found.text.index("[application.repeats.work]") < found.text.index("# The borders.")
    assert edited(found, PhaseEdit("move", "work", "2")).text == TEXT
    assert tomli.loads(found.text) == tomli.loads(TEXT)
    with pytest.raises(UsageError, match="is phase 1 of 3; it cannot move by -1"):
        after(("move", "halo", "-1"))
    with pytest.raises(UsageError, match="whole steps"):
        after(("move", "halo", "up"))


def test_copy_stands_behind_its_original_with_its_comment():
    found = after(("copy", "halo", "second"))
    assert order(found) == ["halo", "second", "copy", "work"]
    assert found.text.count("# The borders.\n") == 2
    assert found.data["application"]["phases"]["second"] == found.data["application"]["phases"]["halo"]
    assert all(line.startswith("+") for line in changed_lines(found))


def test_kind_keeps_what_both_kinds_have():
    text = TEXT.replace(
        '[application.phases.work]\nkind = "overhead"\n',
        '[application.phases.work]\nkind = "measured_kernel"\nlaunch_count = 3   # often\nkernel_time = "1 ms"\n#',
    )
    found = after(("kind", "work", "gemm"), text=text.replace("#overhead_time", "# overhead_time"))
    table = found.data["application"]["phases"]["work"]
    assert table["kind"] == "gemm"
    assert table["launch_count"] == 3
    assert "launch_count = 3   # often" in found.text
    assert found.notes == ("dropped: kernel_time", "with first values: m, n, k, precision")


def test_kind_drops_a_value_that_the_new_kind_does_not_allow():
    found = after(("kind", "halo", "collective"), ("kind", "halo", "kernel"))
    table = found.data["application"]["phases"]["halo"]
    assert table["model"] == "roofline"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("delete", "hola"), "no phase `hola`"),
        (("rename", "halo", "work"), "there is a phase `work` already"),
        (("rename", "halo", "2nd"), "start with a letter"),
        (("rename", "halo", "platform"), "reserved"),
        (("add", "x", "stencle"), "no such motif, scenario or file; did you mean `stencil`"),
        (("add", "x", "minife:dit"), "minife has no phase `dit`; did you mean `dot`"),
        (("add", "x", "gemm after hal"), "no phase `hal`; did you mean `halo`"),
        (("kind", "halo", "halo"), "of kind `halo` already"),
        (("kind", "halo", "kernal"), "did you mean `kernel`"),
        (("kind", "halo", "trace"), "made from a file"),
    ],
)
def test_refused_edits_say_what_was_meant(edit, message):
    with pytest.raises(UsageError, match=message):
        after(edit)


def test_a_phase_of_an_inline_table_is_left_to_an_editor():
    table = '[application.phases]\na = { kind = "overhead", overhead_time = "1 s" }\n'
    text = f'platform = "summit"\n[application]\nname = "x"\n{table}'
    for edit in (("rename", "a", "b"), ("kind", "a", "gemm"), ("move", "a", "1")):
        with pytest.raises(WhatifError, match=r"only an editor can change|cannot move"):
            after(edit, text=text)


def test_an_inherited_phase_is_deleted_and_copied_but_not_renamed(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "minife"\n')
    scenario = Scenario.open(path)
    deleted = scenario.with_phase(PhaseEdit("delete", "overhead"))
    assert 'overhead = "none"' in deleted.document.text
    assert "terms.overhead" not in whatif.run(deleted).columns
    copied = scenario.with_phase(PhaseEdit("copy", "overhead", "again"))
    assert whatif.run(copied)["terms.again"] == whatif.run(copied)["terms.overhead"]
    with pytest.raises(UsageError, match="comes from the scenario that this one extends"):
        scenario.with_phase(PhaseEdit("rename", "overhead", "rest"))


def test_edits_are_repeated_on_another_text_of_the_file():
    mine = after(("rename", "halo", "border"))
    theirs = document(TEXT.replace("rank_count = 16", "rank_count = 32"))
    found = rebased(mine, theirs)
    assert found.data["application"]["rank_count"] == 32
    assert order(found) == ["border", "copy", "work"]
    gone = edited(edited(theirs, PhaseEdit("delete", "work")), PhaseEdit("delete", "copy"))
    with pytest.raises(UsageError, match=r"`phase rename halo = border` does not fit mine.toml any more: there is no"):
        rebased(mine, document(edited(gone, PhaseEdit("rename", "halo", "other")).text))


def test_overrides_follow_a_rename_and_go_with_a_deletion():
    scenario = Scenario.open(
        "minimd", overrides={"application.phases.pack.launch_count": "7", "application.rank_count": "8"}
    )
    renamed = scenario.with_phase(PhaseEdit("rename", "pack", "packing"))
    assert renamed.overrides == {"application.phases.packing.launch_count": "7", "application.rank_count": "8"}
    assert whatif.run(renamed)["iteration_time"] == whatif.run(scenario)["iteration_time"]
    assert scenario.with_phase(PhaseEdit("delete", "pack")).overrides == {"application.rank_count": "8"}


@pytest.mark.parametrize("name", sorted(set(shipped_names("scenarios")) - {"llama_training", "llama_serving"}))
def test_every_phase_of_a_shipped_scenario_can_be_renamed_or_says_why_not(name):
    scenario = Scenario.open(name)
    before = whatif.run(scenario)["iteration_time"]
    base = scenario.document.data.get("extends")
    inherited = motif_named(base).phases if base else {}
    for phase in motif_named(name).phases:
        edit = PhaseEdit("rename", phase, "renamed_here")
        if phase in inherited:
            with pytest.raises(UsageError, match="comes from the scenario that this one extends"):
                scenario.with_phase(edit)
        else:
            found = scenario.with_phase(edit)
            assert whatif.run(found)["iteration_time"] == before
            assert found.with_phase(PhaseEdit("rename", "renamed_here", phase)).document.text == scenario.document.text


GPU, CPU = "frontier", "turin"
ON_GPUS = {"gemm"}


@pytest.mark.parametrize("motif", [motif.name for motif in motifs()])
@pytest.mark.parametrize("scenario", ["jacobi2d", "minife", "minimd"])
@pytest.mark.parametrize("platform", [GPU, CPU])
def test_a_motif_runs_in_a_shipped_scenario(motif, scenario, platform):
    opened = Scenario.open(scenario, platform=platform)
    found = opened.with_phase(PhaseEdit("add", "extra", motif))
    if platform == CPU and motif in ON_GPUS:
        with pytest.raises(InvalidFileError, match="has no GPU for these products"):
            whatif.run(found)
        return
    names = [name for name in found.document.data["application"]["phases"] if name.startswith("extra")]
    times = [float(whatif.run(found)[f"terms.{name}"]) for name in names]
    copies = motif in {"checkpoint", "transfer"}
    # Where kernels run on sockets there is nothing to copy.
    assert all(time == 0 for time in times) if copies and platform == CPU else all(time > 0 for time in times)


def test_a_motif_brings_a_grid_where_there_is_none():
    scenario = Scenario.open("sedov")
    found = scenario.with_phase(PhaseEdit("add", "extra", "stencil"))
    assert found.document.notes == ("`[application.grid]` is added too",)
    assert found.document.data["application"]["grid"]["cells"] == {"x": 4096, "y": 4096}


def test_every_motif_has_a_description_and_the_kinds_are_covered():
    assert all(20 < len(motif.description) <= 130 for motif in motifs())
    kinds = {"kernel", "halo", "collective", "transfer", "overhead", "gemm", "measured_kernel"}
    assert set(phase_kinds()) == kinds


def test_phases_of_another_file(tmp_path):
    path = tmp_path / "other.toml"
    path.write_text(TEXT)
    found = after(("add", "taken", f"{path}:halo after halo"))
    assert order(found) == ["halo", "taken", "copy", "work"]
    assert 'model = "max_rate"          # of the paper' in found.text.split("[application.phases.taken]")[1]
    whole = after(("add", "all", str(path)))
    assert order(whole)[3:] == ["all_halo", "all_copy", "all_work"]
    assert whole.data["application"]["phases"]["all_copy"]["halo"] == "all_halo"
    assert "application.phases.all_halo.halo_width" in whole.data["application"]["phases"]["all_work"]["overhead_time"]


def test_phase_that_states_no_kind_is_refused(tmp_path):
    """A scenario that extends another one may state some keys of a phase only."""
    (tmp_path / "part.toml").write_text('extends = "minife"\n[application.phases.dot]\nlaunch_count = 3\n')
    with pytest.raises(UsageError, match=r"`dot` states no kind: its scenario extends another one"):
        edited(Scenario.open("jacobi2d").document, PhaseEdit("add", "more", str(tmp_path / "part.toml")))
