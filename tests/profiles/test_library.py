"""`whatif.import_profile` and `whatif.project`: examples, results, and options without effect."""

from __future__ import annotations

import doctest

import pytest

import whatif
from tests.paths import DATA, ROOT
from whatif.api import profiles
from whatif.errors import InvalidFileError

TITAN_COPIES = DATA / "importers" / "transfer" / "titan_copies.nvvp"


def test_examples_of_the_docstrings_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(profiles)
    assert (found.attempted, found.failed) == (6, 0)


def test_rows_of_a_projection_are_classes_sizes_or_operations():
    kinds = [{}, {"sizes": True}, {"operations": True}]
    counts = [len(whatif.project(TITAN_COPIES, "summit", "titan", **kind).table()) for kind in kinds]
    assert counts[0] < counts[1] < counts[2] == 87
    with pytest.raises(whatif.WhatifError, match="exclude each other"):
        whatif.project(TITAN_COPIES, "summit", "titan", sizes=True, operations=True)


def test_scenario_of_a_profile_runs(tmp_path):
    whatif.import_profile(TITAN_COPIES, platform="titan").write(tmp_path / "copies.toml")
    assert whatif.run(tmp_path / "copies.toml")["transfer_time"] > 0.1
    with pytest.raises(whatif.WhatifError, match="--platform"):
        whatif.import_profile(TITAN_COPIES).to_toml()


@pytest.mark.parametrize(
    ("options", "unused"),
    [
        (("--platform", "titan"), "--platform"),
        (("--format", "toml", "--platform", "titan", "--table", "sizes"), "--table"),
    ],
)
def test_option_without_effect_is_refused(whatif_main, options, unused):
    code, out, error = whatif_main("import", "profile", str(TITAN_COPIES), *options)
    assert (code, out) == (2, "")
    assert f"{unused}: no effect" in error


def test_a_profile_of_another_device_than_that_of_the_platform_is_remarked():
    file = DATA / "profiles" / "kineto" / "a100_trace.json.gz"
    notes = whatif.import_profile(file, platform="frontier").notes
    assert any("the profile is of NVIDIA A100-PG509-200, not of Frontier's MI250X" in note for note in notes)
    assert not any("the profile is of" in note for note in whatif.import_profile(file).notes)


def test_a_profile_of_the_device_of_its_platform_needs_no_remark():
    notes = whatif.import_profile(DATA / "profiles" / "kineto" / "torch_copies_h200.json.gz", platform="aws_p5e").notes
    assert not any("the profile is of" in note for note in notes)


def test_a_profile_of_the_target_that_does_not_exist_is_refused():
    with pytest.raises(InvalidFileError, match=r"none\.csv: cannot be read: No such file"):
        whatif.project(TITAN_COPIES, "summit", "titan", target_profile="none.csv")
