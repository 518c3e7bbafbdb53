"""The best decomposition: against every one of them, run by itself."""

from __future__ import annotations

import csv
import io
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.schema.toml import read_document
from whatif.studies.decompositions import layouts, settings

GRID = "application.grid"
RANKS = "application.rank_count"


def time_of(scenario, sets):
    return float(run_whole(scenario.changed({**scenario.overrides, **sets}), Grid()).columns["iteration_time"])


@pytest.mark.parametrize(
    ("name", "ranks", "dimensions", "mappings", "count"),
    [("jacobi2d", 12, "xy", ("block", "round_robin", "tiles"), 6), ("minimd", 8, "xyz", ("round_robin",), 10)],
)
def test_every_layout_has_the_time_of_a_run_with_it(name, ranks, dimensions, mappings, count):
    scenario = Scenario.open(name, overrides={RANKS: str(ranks)})
    found = layouts(scenario)
    shapes = [shape for shape in product(range(1, ranks + 1), repeat=len(dimensions)) if np.prod(shape) == ranks]
    assert len(shapes) == count
    by_layout = {(item.ranks, item.mapping, item.order): item.result for item in found.ranked}
    # Three mappings and two ways to number ranks; halos between faces have no bisection.
    assert len(by_layout) == len(found.ranked) == 6 * count
    for shape, mapping, order in product(shapes, mappings, ("fortran",) if name == "minimd" else ("c", "fortran")):
        sets = {f"{GRID}.ranks.{key}": str(extent) for key, extent in zip(dimensions, shape, strict=True)}
        sets |= {f"{GRID}.decomposition": "given", f"{GRID}.mapping": mapping, f"{GRID}.order": order}
        assert by_layout[shape, mapping, order] == time_of(scenario, sets)
    results = [item.result for item in found.ranked]
    assert results == sorted(results)
    assert found.present.result == time_of(scenario, {})
    assert by_layout[found.present.ranks, found.present.mapping, found.present.order] == found.present.result
    assert time_of(scenario, settings(found.ranked[0], scenario)) == results[0]
    assert settings(found.present, scenario).keys() <= {f"{GRID}.mapping", f"{GRID}.order"}


def test_a_bisection_is_one_of_them_and_of_equal_ones_the_present_stands_first():
    scenario = Scenario.open("minife", overrides={RANKS: "8"})
    found = layouts(scenario)
    assert (found.present.decomposition, found.present.ranks) == ("bisection", ())
    assert [item.result for item in found.ranked if item.decomposition == "bisection"] == [found.present.result]
    strong = Scenario.open("jacobi2d_strong", overrides={RANKS: "16"})
    assert layouts(strong).is_present(layouts(strong).ranked[0])
    given = Scenario.open("minife", overrides={RANKS: "8", f"{GRID}.decomposition": "balanced"})
    bisected = next(item for item in layouts(given).ranked if not item.ranks)
    assert time_of(given, settings(bisected, given)) == bisected.result
    extents = {f"{GRID}.ranks.{key}": extent for key, extent in zip("xyz", "311", strict=True)}
    wrong = layouts(Scenario.open("minife", overrides={RANKS: "8", f"{GRID}.decomposition": "given", **extents}))
    assert "do not multiply" in wrong.present.reason
    assert not any(wrong.is_present(item) for item in wrong.ranked)


def test_the_verb_keeps_the_whole_grid_and_writes_the_best_with_its_comments(whatif_main, tmp_path):
    code, out, err = whatif_main("tune", "grid", "jacobi2d", "--set", f"{RANKS}=24", "--whole-grid", "--show", "3",
                                 "--save", "best.toml", "--format", "csv")  # fmt: skip
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert "written: best.toml" in err
    assert [row["place"] for row in rows[:3]] == ["1.0", "2.0", "3.0"]
    text = (tmp_path / "best.toml").read_text()
    assert "# Choi et al., ICS 2020, sections 4.2 and 5.1" in text
    scenario = Scenario(read_document(tmp_path / "best.toml"))
    time = float(run_whole(scenario, Grid()).columns["iteration_time"])
    assert_allclose(time, float(rows[0]["iteration_time [s]"]), rtol=1e-15, atol=0)
    # The file's 24 ranks are 6 x 4 with 16384 x 16384 cells each.
    cells = {f"{GRID}.cells.x": str(6 * 16384), f"{GRID}.cells.y": str(4 * 16384), f"{GRID}.scaling": "strong"}
    (now,) = (row for row in rows if row["present"])
    present = Scenario.open("jacobi2d", overrides={RANKS: "24", **cells})
    assert float(now["iteration_time [s]"]) == time_of(present, {})
    assert float(rows[0]["change"]) == time / time_of(present, {}) - 1
    assert "at present" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["jacobi2d", "--set", f"{RANKS}=30000"], 4, "the ranks need more nodes than the platform has"),
        (["jacobi2d", "--set", f"{RANKS}=6", "--save", "no/folder/x.toml"], 2, "no folder no/folder"),
        (["jacobi2d", "--set", f"{RANKS}=6", "--result", "terms.hallo"], 2, "did you mean `terms.halo`"),
        (["jacobi2d", "--set", f"{RANKS}=1", "--result", "terms.halo"], 0, "terms.halo: 0 s at present, 0 s at best; "),
        (["jacobi2d", "--result", f"{GRID}.cells.x"], 2, f"whatif: `{GRID}.cells.x`: no such result"),
        (["plain.toml"], 2, "no `[application.grid]`"),
        (["plain.toml", "--whole-grid"], 2, "no whole grid to keep"),
        (["hpl.toml"], 2, "`whatif tune hpl`"),
    ],
)
def test_placements_that_do_not_fit_are_refused(whatif_main, tmp_path, arguments, code, message):
    (tmp_path / "plain.toml").write_text(
        'platform = "summit"\n[application]\nname = "t"\nrank_count = 6\niteration_count = 1\n'
        '[application.phases.work]\nkind = "overhead"\noverhead_time = "1 s"\n'
    )
    (tmp_path / "hpl.toml").write_text(
        'platform = "dahu"\n[application]\nkind = "hpl"\nmatrix_size = 1000\nblock_size = 100\n'
        "process_rows = 2\nprocess_columns = 2\nranks_per_node = 4\n"
    )
    found, _, err = whatif_main("tune", "grid", *arguments)
    assert found == code
    assert message in err


def test_a_file_that_cannot_be_written_is_reported_before_the_search(whatif_main, tmp_path):
    place = tmp_path / "missing" / "best.toml"
    assert whatif_main("tune", "grid", "jacobi2d", "--set", f"{RANKS}=24", "--save", str(place)) == (
        2,
        "",
        f"whatif: {place}: no folder {place.parent}\n",
    )
