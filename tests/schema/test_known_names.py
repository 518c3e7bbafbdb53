"""Patterns stand for the names that they match, in sweeps, searches and comparisons."""

import pytest

import whatif
from whatif.errors import UsageError
from whatif.schema.known_names import known_machines, matching
from whatif.schema.shipped import shipped_names

MODEL = "application.phases.exchange.model"


def test_matching_names_keep_their_order():
    assert matching("dgx_?100", ["dgx_h100", "dgx_a100", "dgx_b200", "lumi"]) == ["dgx_h100", "dgx_a100"]
    with pytest.raises(UsageError, match=r"^`x\*` matches none of a, b$"):
        matching("x*", ["a", "b"])


def test_parts_are_those_of_the_table():
    gpus, processors = (known_machines(f"platform.node.{key}.extends", ()) for key in ("gpu", "cpu"))
    assert {"h100-sxm5-80gb", "mi300x"} <= set(gpus)
    assert not set(gpus) & set(processors)


def test_sweeps_of_patterns_are_those_of_their_names():
    patterns = whatif.sweep("minimd", {"platform": "dgx_*, lumi"}, {MODEL: "*max_rate"})
    names = [name for name in shipped_names("platforms") if name.startswith("dgx_")]
    assert len(names) > 2
    listed = whatif.sweep("minimd", {"platform": [*names, "lumi"]}, {MODEL: ["max_rate"]})
    assert patterns.columns["total_time"].tolist() == listed.columns["total_time"].tolist()


def test_platforms_beside_a_scenario_match(tmp_path):
    (tmp_path / "my_own.toml").write_text('extends = "lassen"\nname = "Mine"\n')
    (tmp_path / "mine.toml").write_text('extends = "minimd"\n')
    swept = whatif.sweep(tmp_path / "mine.toml", {"platform": "my_*"})
    assert swept.columns["total_time"].tolist() == [whatif.run("minimd")["total_time"]]
    ranking = whatif.compare(tmp_path / "mine.toml", ["lumi", "my_*"])
    assert {standing.platform for standing in ranking.standings} == {"lumi", "my_own"}


def test_a_search_tries_the_names_that_match():
    found = whatif.seek("minimd", vary=[f"{MODEL}=p*, max_*"], minimise="total_time")
    assert found.choices[MODEL] in ("postal", "max_rate")


@pytest.mark.parametrize("path", ["platform", "platform.node.gpu.extends", MODEL])
def test_a_pattern_without_a_match_names_what_there_is(path):
    with pytest.raises(UsageError, match=rf"^sweep `{path}`: `x\*` matches none of \w"):
        whatif.sweep("minimd", {path: "x*"})
    with pytest.raises(UsageError, match=r"^`x\*` matches none of alps"):
        whatif.compare("minimd", ["x*"])


def test_places_of_parts_are_named_by_their_table(whatif_main):
    _, _, said = whatif_main("run", "minimd", "--sweep", "platform.node.gpu.extends=*b200*,h20-sxm")
    assert "fastest with gpu b200-sxm and gb200: " in said
