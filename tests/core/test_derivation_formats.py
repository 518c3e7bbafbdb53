"""Derivations as JSON, Markdown and LaTeX: the same tree in each, and text that starts no command."""

from __future__ import annotations

import json
import re

import pytest
from latex2mathml.converter import convert
from numpy.testing import assert_allclose

import whatif
from tests.paths import ROOT
from whatif.core.derivation import Explanation, TermExplanation
from whatif.equations import latex_text

SCENARIOS = sorted(path.stem for path in (ROOT / "scenarios").glob("*.toml"))
TERM = r"training.\allowbreak{}micro\_\allowbreak{}batch\_\allowbreak{}count"
ODD = "a_b 50 % {x} \\ ~ ^ $ # & <b> |µ≤α×"


def nodes(tree):
    return [tree, *(node for child in tree.get("inputs", []) for node in nodes(child))]


def odd():
    leaf = Explanation("p\x1b[31m", "a", "1 GB/s", None, "assumed", ODD)
    return TermExplanation(Explanation("t", "", "2 s", 0.5, "assumed", "s", "T = α n / R", ODD, (leaf, leaf)))


def test_the_tree_as_data_has_numbers_in_base_units():
    found = whatif.explain("minife", "halo")
    tree = json.loads(found.to_json())
    assert tree == found.to_dict()
    assert len(nodes(tree)) == len(found.table())
    times = {node["name"]: node for node in nodes(tree)}
    assert_allclose(tree["number"], float(whatif.run("minife")["terms.halo"]), rtol=1e-12, atol=0)
    assert (tree["unit"], tree["equation"]) == ("s", "T = m t")
    latency = times["platform.network.inter_node.max_rate.short.latency"]
    assert_allclose(latency["number"], 1.55e-6, rtol=1e-12, atol=0)
    assert {"value", "grade", "source"} <= set(latency)


def test_a_term_is_derived_once_however_many_paths_lead_to_it():
    """At a rate of requests the tree of all paths has 10^10 nodes."""
    rate = {"application.plan.request_rate": "1 1/s"}
    found = whatif.explain("llama_serving", "token_time", overrides=rate)
    tree = nodes(found.to_dict())
    derived = [node["name"] for node in tree if "inputs" in node]
    assert len(derived) == len(set(derived)) > 100
    assert {node["name"] for node in tree if node.get("repeated")} <= set(derived)
    assert len(found.table()) == len(tree) < 5000


def test_depth_limits_every_format():
    for depth, names in ((0, 1), (1, 3)):
        found = whatif.explain("minife", "halo", depth=depth)
        assert len(nodes(found.to_dict())) == names
        assert found.to_markdown().count("**") == 2 * names
        assert found.to_latex().count(r"\item ") == (0 if depth == 0 else 2)


def test_a_term_first_met_at_the_lowest_level_shows_its_inputs_above_it():
    found = whatif.explain("llama_training", depth=4)
    count = len(nodes(found.to_dict()))
    assert len(found.table()) == count
    assert found.to_markdown().count("**") == 2 * count
    assert sum(re.search(r"\(.*\)$", line) is not None and ": " in line for line in found.lines()) == count
    _, item = found.to_latex().split(rf"\item[\texttt{{{TERM}}}]")
    assert "begin{itemize}" in item.split(r"\item[")[0]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_formulas_of_every_shipped_scenario_are_latex(scenario):
    found = whatif.explain(scenario)
    formulas = re.findall(r"\$\$\n(.*?)\n\s*\$\$", found.to_markdown())
    aligned = re.findall(r"\\begin{align\*}\n(.*?)\n\\end{align\*}", found.to_latex())
    assert {formula.strip() for formula in formulas} == set(aligned)
    for formula in aligned:
        assert convert(formula).startswith("<math")


@pytest.mark.parametrize("scenario", ["minife", "jacobi2d"])
def test_latex_is_balanced_and_has_every_term_once(scenario):
    text = whatif.explain(scenario).to_latex()
    for kind in ("description", "itemize", "align*"):
        assert text.count(rf"\begin{{{kind}}}") == text.count(rf"\end{{{kind}}}") > 0
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    terms = re.findall(r"\\item\[(.*?)\]", text)
    assert len(terms) == len(set(terms)) > 10


def test_text_starts_no_command_tag_or_formula():
    written = odd().to_latex()
    assert r"a\_b 50 \% \{x\} \textbackslash{} \textasciitilde{}" in written
    assert r"\textless{}b\textgreater{} \textbar{}\(\mu\)\(\le\)\(\alpha\)\(\times\)" in written
    assert "\x1b" not in written
    marked = odd().to_markdown()
    assert "&lt;b>" in marked
    assert r"\$ #" in marked
    assert "\x1b" not in marked
    assert latex_text("x\u202ey") == r"x\textbackslash{}u202ey"


def test_files_and_refusals_of_the_command(whatif_main, tmp_path):
    found = whatif.explain("minife", "halo")
    for ending, text in (("json", found.to_json()), ("md", found.to_markdown()), ("tex", found.to_latex()),
                         ("txt", "\n".join(found.lines()))):  # fmt: skip
        assert whatif_main("explain", "minife", "halo", "-o", f"x.{ending}")[:2] == (0, "")
        assert (tmp_path / f"x.{ending}").read_text("utf-8") == f"{text}\n"
    code, out, _ = whatif_main("explain", "minife", "halo", "--format", "latex")
    assert (code, out) == (0, f"{found.to_latex()}\n")
    code, out, err = whatif_main("explain", "minife", "-o", "x.svg")
    assert (code, out) == (2, "")
    assert "x.svg: an explanation has no picture" in err
    code, _, err = whatif_main("explain", "minife", "-o", "x.csv")
    assert code == 2
    assert "use .json, .md, .tex, .txt" in err
