"""Shapley values against hand arithmetic, against every order made one by one, and from drawn orders."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.one_phase import one_phase
from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError, UsageError
from whatif.schema.toml import parse_document
from whatif.studies import attribution
from whatif.studies.attribution import STRUCTURE, attribute
from whatif.table_writers import shown_rows

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def program(formula="(a * b + c)", **values):
    text = one_phase(f"= 1 s * {formula}", **{"a": 2.0, "b": 3.0, "c": 1.0, "d": 1.0} | values)
    return Scenario(parse_document(text, "t.toml")).program


def contributions(found):
    return {change.name.removeprefix("parameters."): change.contribution for change in found.changes}


def test_a_product_is_shared_half_and_half_and_a_sum_each_to_its_own():
    found = attribute(program(), program(a=4.0, b=5.0, c=1.5))
    # a b goes from 6 to 20: a alone adds 6, with b 10; b alone 4, with a 8.
    expected = {"a": 8.0, "b": 6.0, "c": 0.5}
    assert contributions(found) == pytest.approx(expected, rel=1e-12)
    assert [change.name for change in found.changes] == ["parameters.a", "parameters.b", "parameters.c"]
    assert (found.before, found.after, found.exact, found.without_effect) == (7.0, 21.5, True, ())
    assert (found.changes[0].before, found.changes[0].after) == ("2", "4")


def test_changes_that_cancel_have_no_share_of_the_difference():
    found = attribute(program("(a + b)", a=2, b=4), program("(a + b)", a=4, b=2))
    assert_allclose(found.table().columns["contribution"].values, [2, -2], rtol=1e-12, atol=0)
    place = list(found.table().columns).index("share")
    assert [row[place] for row in shown_rows(found.table())] == ["-", "-"]


def test_what_no_number_says_is_one_change():
    found = attribute(program(), program("(a * b + 2 * c)", a=4.0))
    # a adds 6 in either order; the new formula adds c.
    assert contributions(found) == pytest.approx({"a": 6.0, STRUCTURE: 1.0}, rel=1e-12)
    structure = found.changes[1]
    assert structure.before == "application.phases.work.overhead_time: = 1 s * (a * b + c)"


def test_values_without_effect_are_listed_separately():
    found = attribute(program("(a * b + max(c, d) - d)"), program("(a * b + max(c, d) - d)", a=3.0, c=0.5))
    assert contributions(found) == pytest.approx({"a": 3.0}, rel=1e-12)
    assert found.without_effect == ("parameters.c",)
    same = attribute(program(), program())
    assert (same.changes, same.before, same.after) == ((), 7.0, 7.0)


def test_between_two_machines_the_parts_are_the_means_over_all_orders():
    one, other = Scenario.open("minimd"), Scenario.open("minimd", platform="summit")
    found = attribute(one.program, other.program, by_table=True)
    assert found.exact
    assert_allclose(sum(change.contribution for change in found.changes), found.after - found.before, rtol=1e-9, atol=0)
    tables = [change.name for change in found.changes if change.name != STRUCTURE]
    assert 3 <= len(tables) <= 5
    assert len(found.changes) == len(tables)

    def time(made):
        sets = {
            path: parameter.text(17)
            for path, parameter in other.program.parameters.items()
            if path.rpartition(".")[0] in made and path in one.program.parameters and parameter.field is not None
        }
        return float(run_whole(one.changed(sets), Grid()).columns["iteration_time"])

    known = {}
    steps = dict.fromkeys(tables, 0.0)
    orders = list(permutations(tables))
    for order in orders:
        for count, name in enumerate(order):
            before, after = frozenset(order[:count]), frozenset(order[: count + 1])
            for made in (before, after):
                if made not in known:
                    known[made] = time(made)
            steps[name] += (known[after] - known[before]) / len(orders)
    for change in found.changes:
        assert_allclose(change.contribution, steps[change.name], rtol=1e-6, atol=0)


def test_drawn_orders_approximate_all_with_a_stated_error(monkeypatch):
    one, other = Scenario.open("jacobi2d").program, Scenario.open("jacobi2d", platform="lassen").program
    exact = attribute(one, other)
    monkeypatch.setattr(attribution, "_MOST_EXACT", 2)
    drawn = attribute(one, other, seed=5)
    assert (exact.exact, drawn.exact) == (True, False)
    parts = {change.name: change for change in drawn.changes}
    assert_allclose(sum(part.contribution for part in parts.values()), drawn.after - drawn.before, rtol=1e-9, atol=0)
    assert parts.keys() == {change.name for change in exact.changes}
    assert len(parts) >= 5
    errors = [parts[change.name].standard_error for change in exact.changes]
    assert 0 < max(errors) < 0.02 * abs(exact.after - exact.before)
    for change in exact.changes:
        off = abs(parts[change.name].contribution - change.contribution)
        assert off <= 4 * parts[change.name].standard_error + 1e-9 * abs(change.contribution)
    again = attribute(one, other, seed=5)
    assert [change.contribution for change in again.changes] == [change.contribution for change in drawn.changes]


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ({"a": 8.0, "b": 7.2}, "warning: contributions of up to 31 times the difference cancel each other"),
        ({"a": 8.0, "b": 2.0}, ""),
        ({"a": 8.0, "b": 2.0, "name": "Other"}, "warning: t and Other are different applications"),
    ],
)
def test_shares_without_meaning_are_named_with_another_verb(after, reason):
    def opened(a, b, name="t"):
        text = one_phase("= 1 s * (10 + a - b)", a=a, b=b).replace('name = "t"', f'name = "{name}"')
        return Scenario(parse_document(text, "t.toml"))

    found = attribution.difference_study(opened(2.0, 1.0), opened(**after), "iteration_time", "parameter", 0)
    warned = f"{reason}, so that shares of the difference have no meaning; `whatif differences` shows results"
    assert any(note.startswith(warned) for note in found.notes) == bool(reason)
    assert any("no meaning" in note for note in found.notes) == bool(reason)


def test_a_phase_can_be_selected_and_a_wrong_name_is_refused():
    one, other = Scenario.open("minife").program, Scenario.open("minife", platform="jupiter").program
    whole, phase = attribute(one, other, by_table=True), attribute(one, other, "terms.waxpby", by_table=True)
    assert phase.before < whole.before
    assert phase.changes[0].name == "platform.node.gpu"
    with pytest.raises(UsageError, match=r"terms.waxpbi.*did you mean `terms.waxpby`"):
        attribute(one, other, "terms.waxpbi")


def test_a_way_that_leads_through_an_infeasible_point_says_so():
    with pytest.raises(InfeasiblePointError, match=r"the changes of parameters.b: .*--by table"):
        attribute(program("sqrt(b - a)"), program("sqrt(b - a)", a=0.5, b=1.0))
    found = attribute(program("sqrt(b - a)"), program("sqrt(b - a)", a=0.5, b=1.0), by_table=True)
    assert contributions(found) == pytest.approx({"parameters": np.sqrt(0.5) - 1}, rel=1e-12)


def test_the_verb_draws_a_waterfall_that_ends_at_the_other_time(whatif_main):
    code, out, err = whatif_main("diff", "minimd", "--platform", "summit")
    assert code == 0
    assert "iteration_time: 4.996 ms -> 6.68 ms (1.683 ms, +33.7%)" in err
    heading, *rows = out.splitlines()
    assert heading.split() == ["change", "before", "after", "contribution", "share", "then", "waterfall"]
    assert rows[0].split()[:3] == ["platform.node.gpu_count", "4", "6"]
    assert "6.6796 ms" in rows[-1]
    assert rows[0].rstrip().endswith("+++")
    code, out, err = whatif_main("diff", "minimd", "minimd")
    assert (code, out, "nothing that differs has an effect" in err) == (0, "", True)
    code, out, _ = whatif_main("diff", "minimd", "--platform", "summit", "--format", "csv")
    assert code == 0
    parts = [float(row.split(",")[3]) for row in out.splitlines()[1:]]
    assert_allclose(sum(parts), 1.6833e-3, rtol=1e-4, atol=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jacobi2d"], "state a second scenario, or the platform"),
        (["jacobi2d", "--platform", "a", "--platform", "b", "--platform", "c"], "at most twice"),
        (["jacobi2d", "minife", "--result", "terms.stencil"], "`terms.stencil`: no such result"),
        pytest.param(
            ["HEAD:a.toml", "jacobi2d"], "HEAD:a.toml: `HEAD` is not a revision of this repository", marks=needs_git
        ),
    ],
)
def test_invalid_options_are_refused_with_a_hint(whatif_main, arguments, message):
    code, out, err = whatif_main("diff", *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.fixture
def repository(tmp_path):
    """Two revisions of a scenario with a platform beside it."""

    def git(*arguments):
        settings = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *settings, *arguments], cwd=tmp_path, check=True)

    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "here.toml").write_text('extends = "summit"\n')
    (folder / "mine.toml").write_text(one_phase("= 1 s * (a * b + c)", platform="here", a=2.0, b=3.0, c=1.0))
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    (folder / "mine.toml").write_text((folder / "mine.toml").read_text().replace("a = 2.0", "a = 4.0"))
    (folder / "broken.toml").write_text("[application]\nrank_cuont = 3\n")
    git("add", ".")
    git("commit", "-q", "-m", "second")
    return folder


@needs_git
def test_a_file_is_compared_with_its_earlier_revision(whatif_main, repository):
    code, out, err = whatif_main("diff", "HEAD~1:scenarios/mine.toml", "scenarios/mine.toml", "--format", "csv")
    assert code == 0
    assert [row.split(",")[:5] for row in out.splitlines()[1:]] == [["parameters.a", "2", "4", "6.0", "1.0"]]
    assert "7 s -> 13 s" in err


@needs_git
def test_a_path_is_that_of_the_present_folder(whatif_main, repository, monkeypatch):
    monkeypatch.chdir(repository)
    code, out, _ = whatif_main("diff", "HEAD~1:mine.toml", "HEAD:mine.toml", "--format", "csv")
    assert (code, len(out.splitlines())) == (0, 2)


@needs_git
@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("nope:scenarios/mine.toml", 2, "`nope` is not a revision of this repository"),
        ("HEAD:scenarios/other.toml", 2, "no `scenarios/other.toml` in HEAD"),
        ("HEAD:../mine.toml", 2, "the path must be below this folder"),
        ("HEAD:scenarios/broken.toml", 3, "HEAD:scenarios/broken.toml:2:1: application.rank_cuont"),
    ],
)
def test_a_file_missing_from_a_revision_is_an_error(whatif_main, repository, name, code, message):
    found, out, err = whatif_main("diff", name, "scenarios/mine.toml")
    assert (found, out) == (code, "")
    assert message in err


def test_differences_of_a_share_are_in_per_cent_and_points(whatif_main):
    machines = ("--platform", "dgx_h100", "--platform", "dgx_b200")
    code, out, err = whatif_main("diff", "llama_training", *machines, "--result", "model_utilisation")
    assert code == 0
    before, after = (float(found) for found in re.search(r"([\d.]+)% -> ([\d.]+)%", err).groups())
    assert f"({after - before:+.1f}" in err
    assert " points, " in err
    assert out.splitlines()[-1].count("%") >= 3
