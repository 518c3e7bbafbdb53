"""`whatif show`: one side of a scenario as a table, on the terminal and in files of every kind."""

from __future__ import annotations

import json
import re

import pytest

import whatif

KINDS = ("roofline", "messages", "placement", "domains", "timeline")
FEW = ("--set", "application.rank_count=12")
STARTS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_those_of_the_library_and_pictures_are_written(whatif_main, tmp_path, kind):
    table = getattr(whatif, kind)("jacobi2d", overrides={"application.rank_count": 12}).table()
    code, out, err = whatif_main("show", kind, "jacobi2d", *FEW, "--format", "json")
    assert (code, json.loads(out)) == (0, table.to_dict())
    assert "Summit: rests on assumed values" in err
    for ending in ("csv", "md"):
        assert whatif_main("show", kind, "jacobi2d", *FEW, "-o", f"x.{ending}")[:2] == (0, "")
        assert len((tmp_path / f"x.{ending}").read_text("utf-8").splitlines()) > len(table)
    for ending, start in STARTS.items():
        assert whatif_main("show", kind, "jacobi2d", *FEW, "-o", f"x.{ending}")[:2] == (0, "")
        assert (tmp_path / f"x.{ending}").read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("roofline", ["779.4 GB/s", "fp64 6.34 Tflop/s", "stencil", "pack"]),
        ("messages", ["across nodes K-model k=", "sent by the slowest rank", "eager to 64 KiB"]),
        ("placement", ["AAA\nAAA\nbbb\nbbb", "capitals: busiest node 0 of 2"]),
        ("domains", ["━ Summit ━", "┌─ link domain × 2, 3 GPUs each ─", "▶ x: 1 message of 128 KiB"]),
    ],
)
def test_plots_on_the_terminal(whatif_main, kind, shown):
    code, out, _ = whatif_main("show", kind, "jacobi2d", *FEW, "--plot")
    assert code == 0
    assert [text for text in shown if text not in out] == []
    assert "\x1b" not in out


def test_what_a_plot_states_is_not_noted_again(whatif_main):
    _, out, err = whatif_main("show", "placement", "jacobi2d", *FEW, "--plot")
    _, _, noted = whatif_main("show", "placement", "jacobi2d", *FEW)
    busiest = next(line for line in noted.splitlines() if line.startswith("busiest node "))
    assert f"capitals: {busiest}\n" in out
    assert [line for line in noted.splitlines() if line not in err.splitlines()] == ["4 x 3 ranks", busiest]


def test_table_of_the_timeline_has_bars_that_follow_one_another(whatif_main):
    code, out, _ = whatif_main("show", "timeline", "jacobi2d")
    bars = [re.search("█+", line) for line in out.splitlines()[1:]]
    assert code == 0
    assert [bar is not None for bar in bars] == [True] * 6
    assert [bar.start() for bar in bars] == sorted(bar.start() for bar in bars)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("roofline", "jacobi2d", "--against", "fugaku"), 2, "fugaku has no GPU"),
        (("roofline", "jacobi2d", "--against", "fronteer"), 2, "did you mean `frontier`?"),
        (("messages", "jacobi2d", "--phase", "hallo"), 2, "did you mean `halo`?"),
        (("messages", "jacobi2d", "--phase", "stencil"), 2, "phases with messages: halo"),
        (("messages", "jacobi2d", "--sent", "--plot"), 2, "--sent: no effect on a picture"),
        (("placement", "game_of_life"), 2, "no halo phase"),
        (("domains", "jacobi2d", "--message", "4"), 2, "message 4: halo sends 1 to 3"),
    ],
)
def test_what_cannot_be_shown_is_told(whatif_main, words, code, message):
    found, out, err = whatif_main("show", *words)
    assert (found, out) == (code, "")
    assert message in err


@pytest.mark.parametrize("kind", KINDS)
def test_infeasible_points_exit_with_4(whatif_main, kind):
    code, out, err = whatif_main("show", kind, "jacobi2d", "--set", "application.rank_count=1000000")
    assert code == 4
    assert err.startswith("whatif: infeasible") or "\nwhatif: infeasible" in err
    # The domains exist all the same, without messages.
    assert bool(out) == (kind == "domains")


def test_a_machine_without_gpus_has_no_roofs_without_kernels(whatif_main, tmp_path):
    scenario = (
        '[platform]\nextends = "fugaku"\n[application]\nname = "t"\nrank_count = 1\niteration_count = 1\n'
        '[application.phases.wait]\nkind = "overhead"\noverhead_time = "1 ms"\n'
    )
    (tmp_path / "t.toml").write_text(scenario, encoding="utf-8")
    code, out, err = whatif_main("show", "roofline", "t.toml")
    assert (code, out) == (2, "")
    assert "Fugaku: no roofs to draw: no GPU, and no kernel phase" in err
    code, out, err = whatif_main("show", "roofline", "t.toml", "--platform", "summit", "--plot")
    assert code == 0
    assert "no kernel phase: the roofs alone" in err
    assert "fp32 " in out
