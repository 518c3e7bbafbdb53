"""`whatif fit scaling` on the command line: formats, exit codes."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def runs(tmp_path):
    rows = [f"{nodes},{200 / nodes + 2.2:.4g}" for nodes in (1, 2, 4, 8, 16, 32)]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["nodes,total_time [s]", *rows, ""]))
    return path


def test_json_has_rows_with_an_interval_and_a_model(runs, whatif_main):
    _, out, _ = whatif_main("fit", "scaling", runs, "--predict", "nodes=64", "--format", "json")
    found = json.loads(out)
    assert list(found["rows"][0]) == ["nodes", "fit", "lower", "upper", "naive", "model"]
    assert found["units"]["fit"] == "s"


def test_table_is_written_to_a_file(runs, whatif_main, tmp_path):
    code, _, _ = whatif_main("fit", "scaling", runs, "--predict", "nodes=64", "-o", "out.csv")
    assert code == 0
    assert (tmp_path / "out.csv").read_text().startswith("nodes,fit")


def test_level_is_a_share(runs, whatif_main):
    widths = []
    for level in ("50%", "0.95"):
        _, out, _ = whatif_main("fit", "scaling", runs, "--predict", "nodes=64", "--level", level, "--format", "json")
        (row,) = json.loads(out)["rows"]
        widths.append(row["upper"] - row["lower"])
    assert widths[0] < widths[1] / 2


def test_wrong_parameter_ends_with_2_and_names_it(runs, whatif_main):
    code, out, err = whatif_main("fit", "scaling", runs, "--predict", "node=64")
    assert code == 2
    assert not out
    assert "--predict node: no such column; did you mean `nodes`?" in err


@pytest.mark.parametrize("heading", ["ranks", "rank_count", "MPI tasks", "procs"])
@pytest.mark.parametrize("time", ["time [s]", "wall time [s]"])
def test_usual_headings_need_no_mapping(runs, whatif_main, heading, time):
    runs.write_text(runs.read_text().replace("nodes", heading).replace("total_time [s]", time))
    code, out, err = whatif_main("fit", "scaling", runs, "--predict", "processes=64", "--format", "json")
    assert code == 0, err
    assert json.loads(out)["rows"][0]["fit"] == pytest.approx(200 / 64 + 2.2, rel=0.1)


def test_two_usual_headings_of_one_meaning_are_not_chosen_from(runs, whatif_main):
    runs.write_text("ranks,tasks,time [s]\n1,2,9\n2,4,5\n4,8,3\n")
    code, _, err = whatif_main("fit", "scaling", runs)
    assert code == 2
    assert "no column `nodes` or `processes`" in err
