"""Phases from files of other programs: profiles, traces and profiled kernels become those that `import` would write."""

import shutil

import pytest
import tomli

import whatif
from tests.paths import DATA
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.schema.motifs import phase_file, phase_files, source_name
from whatif.schema.phase_edits import PhaseEdit

PROFILES = {
    "nsys": DATA / "profiles" / "nsys" / "saxpy_a100.sqlite",
    "nvprof": DATA / "profiles" / "ahead" / "lammps_summit.nvvp",
    "kineto": DATA / "profiles" / "kineto" / "a100_trace.json.gz",
    "rocprof": DATA / "profiles" / "rocprof" / "timestamps.csv",
}
KERNELS = DATA / "gpuroofperf" / "kernel_params" / "jacobi2d" / "jacobi2d.json"
TRACE = DATA / "traces" / "goal" / "binary_tree_32.goal"
MINE = """\
# Where does the time go?
platform = "summit"

[application]
name = "mine"
rank_count = 32
iteration_count = 10

# It waits.
[application.phases.wait]
kind = "overhead"
overhead_time = "1 ms"
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.toml").write_text(MINE)
    return Scenario.open(tmp_path / "mine.toml")


def renamed(phases, name):
    return {f"{name}_{phase}" if len(phases) > 1 else name: table for phase, table in phases.items()}


def phases_of(text):
    return tomli.loads(text)["application"]["phases"]


@pytest.mark.parametrize("path", PROFILES.values(), ids=PROFILES)
def test_phases_of_a_profile_are_those_that_import_writes(mine, path):
    imported = whatif.import_profile(path, platform="summit").to_toml()
    changed = mine.with_phase(PhaseEdit("add", "gpu", str(path)))
    found = phases_of(changed.document.text)
    assert found.pop("wait") == phases_of(MINE)["wait"]
    assert found == renamed(phases_of(imported), "gpu")
    assert "# It waits." in changed.document.text


@pytest.mark.parametrize("path", PROFILES.values(), ids=PROFILES)
def test_a_profile_takes_as_long_in_a_scenario_as_alone(mine, path, tmp_path):
    whatif.import_profile(path, platform="summit").write(tmp_path / "alone.toml")
    alone = float(whatif.run(tmp_path / "alone.toml")["iteration_time"])
    changed = mine.with_phase(PhaseEdit("add", "gpu", str(path)))
    assert float(whatif.run(changed)["iteration_time"]) == pytest.approx(alone + 1e-3, rel=1e-9)


def test_phases_of_profiled_kernels_are_those_that_import_writes(mine):
    imported = phases_of(whatif.import_kernels(KERNELS).to_toml())
    found = phases_of(mine.with_phase(PhaseEdit("add", "jacobi", f"{KERNELS} after wait")).document.text)
    assert next(iter(found)) == "wait"
    assert {name: table for name, table in found.items() if name != "wait"} == renamed(imported, "jacobi")


def test_a_trace_beside_the_scenario_becomes_a_phase_that_replays_it(mine, tmp_path):
    shutil.copy(TRACE, tmp_path)
    changed = mine.with_phase(PhaseEdit("add", "tree", TRACE.name))
    assert phases_of(changed.document.text)["tree"] == {"kind": "trace", "file": TRACE.name, "model": "k_model"}
    assert float(whatif.run(changed)["iteration_time"]) > 1e-3


def test_a_trace_elsewhere_is_refused_with_the_folder_it_belongs_to(mine):
    with pytest.raises(UsageError, match=r"a trace is read from the folder of the scenario, .*: copy it there"):
        mine.with_phase(PhaseEdit("add", "tree", str(TRACE)))


def test_a_profile_needs_a_machine_with_gpus(mine):
    text = mine.document.text.replace("summit", "turin")
    elsewhere = Scenario.of(tomli.loads(text))
    with pytest.raises(UsageError, match="has no GPU"):
        elsewhere.with_phase(PhaseEdit("add", "gpu", str(PROFILES["nsys"])))


@pytest.mark.parametrize("content", ["", "words, words\n1, 2\n", "{}", "\0\1\2"])
def test_any_other_file_is_refused_with_what_can_be_read(mine, tmp_path, content):
    path = tmp_path / "some.dat"
    path.write_text(content)
    assert phase_file(path) is None
    with pytest.raises(UsageError, match=r"some.dat: neither a scenario nor any of: profile of GPU work"):
        mine.with_phase(PhaseEdit("add", "x", str(path)))


def test_overlaps_follow_the_names_of_their_phases(tmp_path, mine):
    both = '\n[application.overlaps.both]\nphases = ["a", "b"]\nfraction = 0.5\n'
    tables = "".join(f'[application.phases.{name}]\nkind = "overhead"\noverhead_time = "1 ms"\n\n' for name in "ab")
    (tmp_path / "two.toml").write_text(f'[application]\nname = "two"\n\n{tables}{both}')
    changed = mine.with_phase(PhaseEdit("add", "x", str(tmp_path / "two.toml")))
    overlaps = tomli.loads(changed.document.text)["application"]["overlaps"]
    assert overlaps == {"x_a_x_b": {"phases": ["x_a", "x_b"], "fraction": 0.5}}
    assert changed.document.notes == ("`application.overlaps.x_a_x_b` is added too",)
    # One of the two phases overlaps nothing.
    one = mine.with_phase(PhaseEdit("add", "x", f"{tmp_path / 'two.toml'}:a"))
    assert "overlaps" not in one.document.text


def test_files_of_phases_in_a_folder_are_listed_with_what_they_are(tmp_path):
    for path in (PROFILES["nsys"], TRACE, KERNELS):
        shutil.copy(path, tmp_path)
    (tmp_path / "notes.txt").write_text("nothing")
    found = dict(phase_files(tmp_path))
    assert found["saxpy_a100.sqlite"] == "profile of GPU work"
    assert found[TRACE.name] == "trace of MPI calls"
    assert found["jacobi2d.json"].startswith("profiled kernels")
    assert "notes.txt" not in found
    assert phase_files(tmp_path / "missing") == ()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("stencil", "stencil"),
        ("minife:dot", "dot"),
        ("../runs/lammps-summit.nvvp", "lammps_summit"),
        ("a100_trace.json.gz", "a100_trace"),
        ("/data/2026.sqlite", "phase"),
        ("mine.toml:halo", "halo"),
    ],
)
def test_a_phase_is_named_after_its_source(source, name):
    assert source_name(source) == name
