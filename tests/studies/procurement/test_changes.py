"""Turning points, changes and options of studies, against hand arithmetic and against changed studies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.studies.procurement.studies_at_hand import study_file
from tests.studies.procurement.test_study import FOUR, SIX, throughput
from whatif.errors import UsageError
from whatif.studies.procurement.changes import changes, turns

BIDS = """
[bids.six]
platform = "summit"
node_price = "50 USD"
[bids.four]
platform = "lassen"
node_price = "40 USD"
"""


@pytest.fixture(name="path")
def path_of_study(tmp_path):
    """A study of two bids with so many nodes that whole ones do not matter."""
    return study_file(tmp_path, bids=BIDS)


def rows(study, show):
    return replace(study, show=show).to_dict()["rows"]


def test_the_price_at_which_another_bid_leads_is_that_of_equal_throughput(path):
    found = whatif.study(path)
    assert list(found.bids) == ["four", "six"]
    ratio = throughput(1 / 40, FOUR) / throughput(1 / 50, SIX)
    turning = {its.name: its for its in turns(found)}
    assert_allclose(turning["prices of four"].at, ratio, rtol=1e-3, atol=0)
    assert_allclose(turning["prices of six"].at, 1 / ratio, rtol=1e-3, atol=0)
    assert turning["prices of four"].leader == "six"


def test_prices_of_a_bid_include_its_fixed_price(path):
    prices = {"bids.four.node_price": "20 USD", "bids.four.fixed_price": "2 MUSD"}
    turning = {its.name: its for its in turns(whatif.study(path, overrides=prices))}["prices of four"]
    leaders = []
    for factor in (0.999 * turning.at, 1.001 * turning.at):
        scaled = {"bids.four.node_price": f"{20 * factor} USD", "bids.four.fixed_price": f"{2 * factor} MUSD"}
        leaders.append(whatif.study(path, overrides=scaled).winner)
    assert leaders == ["four", turning.leader] == ["four", "six"]


def test_a_turn_that_the_next_whole_node_turns_back_is_found():
    """Just below the power of 131 accelerators, which are then 130, superchips lead; with more power for these not."""
    study = whatif.study("successor")
    power = {its.name: its for its in turns(study)}["limits.power"]
    known = study.bids["accelerators"]
    node_power = float(known.power[0] / known.node_count[0])
    assert power.leader == "superchips"
    assert_allclose(power.at, round(power.at / node_power) * node_power, rtol=1e-3, atol=0)

    def winner(limit):
        return whatif.study("successor", overrides={"limits.power": f"{limit} W"}).winner

    steps = np.arange(129, 135) * node_power
    assert {winner(0.9999 * step) for step in steps[steps > 1.001 * power.at]} == {"accelerators"}
    assert winner(0.9999 * power.at) == "superchips"


def test_the_weight_at_which_another_bid_leads_is_that_of_equal_throughput(path):
    """Per money, `six` takes 12/12 x 50/40 as long for `a`, and 20/45 x 50/40 for `b`, whose weight stays 1."""
    found = whatif.study(path, overrides={"bids.six.node_price": "60 USD"})
    a, b = 1 * 60 / 40, 20 / 45 * 60 / 40
    weight = (1 - b) / (a - 1)
    turning = next(its for its in turns(found) if its.name == "mix.a.weight")
    assert found.winner == "four"
    assert_allclose(turning.at, weight, rtol=5e-5, atol=0)
    before, after = (whatif.study(path, overrides={"bids.six.node_price": "60 USD", "mix.a.weight": at}).winner
                     for at in (1.01 * weight, 0.99 * weight))  # fmt: skip
    assert (before, after) == ("four", "six")


def test_nodes_for_the_same_money_are_those_with_which_an_offer_is_level(path):
    """The offer of 50,000 nodes of `six` limits it; a lower price of a node buys no more of them."""
    offer = {"bids.six.node_price": "none", "bids.six.price": "2.5 MUSD", "bids.six.node_count": "50000"}
    found = whatif.study(path, overrides=offer)
    assert found.winner == "four"
    change = {its.name: its for its in changes(found)}
    nodes = change["nodes for the same money"]
    leaders = [
        whatif.study(path, overrides=offer | {"bids.six.node_count": f"{factor * nodes.needed:.0f}"}).winner
        for factor in (0.999, 1.001)
    ]
    assert leaders == ["four", "six"]
    assert np.isnan(change["price of a node"].factor)
    shown = next(row for row in rows(found, "changes") if row["change"] == "price of a node")
    assert shown["remark"].endswith("no more nodes are offered")


def test_no_limit_of_money_changes_the_order_of_bids_that_money_alone_limits(path):
    turning = {its.name: its for its in turns(whatif.study(path))}
    assert np.isnan(turning["limits.capital"].at)
    assert np.isnan(turning["site.energy_price"].at)
    shown = next(row for row in rows(whatif.study(path), "turns") if row["value"] == "limits.capital")
    assert (shown["turns at"], shown["best there"]) == ("", "four")


@pytest.mark.parametrize("name", ["price of a node", "nodes for the same money"])
def test_the_least_change_of_price_makes_a_bid_level(path, name):
    found = whatif.study(path)
    change = next(its for its in changes(found) if its.name == name)
    ratio = throughput(1 / 40, FOUR) / throughput(1 / 50, SIX)
    assert change.bid == "six"
    assert_allclose(change.factor, 1 / ratio if name == "price of a node" else ratio, rtol=1e-3, atol=0)
    assert_allclose(change.needed, 50 / ratio if name == "price of a node" else 100_000 * ratio, rtol=1e-3, atol=0)


def test_a_study_with_the_least_change_has_equal_bids():
    found = whatif.study("successor")
    known = {(its.bid, its.name): its for its in changes(found)}
    price = known["superchips", "price of a node"].needed
    level = whatif.study("successor", overrides={"bids.superchips.node_price": f"{price} USD"})
    scores = [level.scores[name][0] for name in ("superchips", "accelerators")]
    assert_allclose(*scores, rtol=5e-3, atol=0)
    memory = known["superchips", "memory bandwidth"].factor
    path = "bids.superchips.overrides.node.gpu.dram_bandwidth"
    faster = whatif.study("successor", overrides={path: f"x{memory}"})
    assert_allclose(faster.scores["superchips"][0], faster.scores["accelerators"][0], rtol=5e-3, atol=0)


def test_power_binds_where_no_price_is_low_enough():
    change = next(
        its for its in changes(whatif.study("successor")) if (its.bid, its.name) == ("processors", "price of a node")
    )
    assert np.isnan(change.factor)
    cheap = whatif.study("successor", overrides={"bids.processors.node_price": "3 kUSD"})
    assert (cheap.bids["processors"].limit, cheap.winner) == ("power", "accelerators")


def test_an_option_is_the_study_with_its_values():
    found = rows(whatif.study("successor"), "options")
    changed = whatif.study("successor", overrides={"bids.superchips.overrides.node.gpu_count": 6})
    row = next(row for row in found if (row["option"], row["bid"]) == ("six_superchips_a_node", "superchips"))
    assert_allclose(row["throughput"], changed.bids["superchips"].throughput[0], rtol=1e-12, atol=0)
    assert row["best"] == changed.winner == "superchips"
    # At the price with what it is worth, the bid has the throughput that it has without the option.
    price = 120e3 + row["worth a node"]
    overrides = {"bids.superchips.overrides.node.gpu_count": 6, "bids.superchips.node_price": f"{price} USD"}
    level = whatif.study("successor", overrides=overrides).bids["superchips"].throughput[0]
    assert_allclose(level, whatif.study("successor").bids["superchips"].throughput[0], rtol=5e-3, atol=0)


def test_an_option_refers_to_overridden_values(path):
    path.write_text(path.read_text() + '[options.less]\nlimits.capital = "x0.5"\n')
    row = rows(whatif.study(path, overrides={"limits.capital": "1 MUSD"}), "options")[0]
    halved = whatif.study(path, overrides={"limits.capital": "0.5 MUSD"})
    assert row["throughput"] == halved.bids[row["bid"]].throughput[0]


def test_a_sweep_is_a_study_at_each_value(path):
    prices = ["30 USD", "60 USD"]
    swept = whatif.study(path, sweep={"bids.six.node_price": prices})
    assert swept.summary() == ("six is best at 30 USD", "four is best at 60 USD")
    single = [whatif.study(path, overrides={"bids.six.node_price": price}) for price in prices]
    for row in swept.to_dict()["rows"]:
        its = single[prices.index(f"{row['bids.six.node_price']:.0f} USD")].bids[row["bid"]]
        assert row["throughput"] == its.throughput[0]
    assert [line.label for line in swept.picture().lines if line.label] == ["six", "four"]


def test_a_sweep_over_hardware_words_and_wrong_values(path):
    swept = whatif.study(path, sweep={"bids.six.overrides.node.gpu_count": "6, 12"})
    assert [study.jobs.of("six")["a"].time[0] for study in swept.studies] == [6.0, 12.0]
    words = whatif.study(path, sweep={"criterion": "merit, throughput"})
    assert [study.criterion for study in words.studies] == ["merit", "throughput"]
    with pytest.raises(UsageError, match="words have no axis"):
        words.picture()
    with pytest.raises(UsageError, match="must be greater than 0"):
        whatif.study(path, sweep={"limits.lifetime": "0 s, 1 year"})
    with pytest.raises(UsageError, match="one parameter"):
        whatif.study(path, sweep={"limits.lifetime": "1 year", "criterion": "merit"})


@pytest.mark.parametrize(
    ("criterion", "score"),
    [
        ("merit", lambda its: its.merit[0]),
        ("cost", lambda its: its.throughput[0] / its.ownership[0]),
        ("energy", lambda its: its.throughput[0] / its.mean_power[0]),
    ],
)
def test_the_criterion_ranks_the_bids(path, criterion, score):
    found = whatif.study(path, overrides={"criterion": criterion})
    scores = [score(its) for its in found.bids.values()]
    assert scores == sorted(scores, reverse=True)
    assert_allclose([its[0] for its in found.scores.values()], scores, rtol=1e-12, atol=0)


def test_a_free_bid_has_changes_without_a_price(tmp_path):
    bids = '[bids.free]\nplatform = "frontier"\ndiscount = 1\n[bids.best]\nplatform = "el_capitan"'
    limits = 'capital = "600 MUSD"\nlifetime = "5 years"\npower = "20 MW"'
    found = changes(whatif.study(study_file(tmp_path, bids=bids, limits=limits)))
    (price,) = (its for its in found if (its.bid, its.name) == ("free", "price of a node"))
    assert np.isnan(price.present)
