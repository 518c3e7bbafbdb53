"""`key = "none"` removes a value that a file inherits from the one that it extends, or that an override takes away."""

from __future__ import annotations

import pytest

import whatif
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError
from whatif.schema.load import load_platform
from whatif.schema.parameters import DEFAULT

BID = 'extends = "el_capitan"\nname = "Bid"\n'


def platform(folder, text):
    (folder / "bid.toml").write_text(BID + text)
    return load_platform(folder / "bid.toml")[0]


def test_a_bid_drops_the_price_and_a_power_of_the_machine_that_it_extends(tmp_path):
    assert load_platform("el_capitan")[0].price is not None
    bid = platform(tmp_path, 'price = "none"\nnode.host.power = "none"\nnode.gpu.memory_size = "none"\n')
    assert (bid.price, bid.node.host.power, bid.node.gpu.memory_size) == (None, None, None)
    assert bid.node.host.memory_size == 512e9


def test_resolve_and_energy_know_nothing_of_a_removed_value(tmp_path):
    platform(tmp_path, 'price = "none"\nnode.host.power = "none"\n')
    scenario = whatif.load("jacobi2d", platform=tmp_path / "bid.toml")
    assert "price" not in whatif.resolve(scenario).to_toml()
    assert "total_energy" not in whatif.run(scenario).columns


def test_a_removed_value_of_a_part_gives_way_to_the_default(tmp_path):
    (tmp_path / "mine.toml").write_text('extends = "dgx_h100"\nnode.gpu.multiprocessor_count = "none"\n')
    table = Scenario.open("jacobi2d", platform="mine", folders=(tmp_path,)).program.parameters
    assert table["platform.node.gpu.multiprocessor_count"].source == DEFAULT


def test_a_value_stated_again_is_the_new_one_alone(tmp_path):
    (tmp_path / "second.toml").write_text('extends = "bid"\nnode_count = 8\n[price]\nlifetime = "5 year"\n')
    platform(tmp_path, 'price = "none"\n')
    prices = load_platform(tmp_path / "second.toml")[0].price
    assert prices.machine_price is None
    assert prices.lifetime is not None
    table = Scenario.open("jacobi2d", platform="second", folders=(tmp_path,)).program.parameters
    assert table["platform.price.utilisation"].source == DEFAULT


def test_an_override_removes_a_phase_and_keeps_a_choice_named_none():
    overrides = {"application.phases.reduce": "none", "application.congestion": "none"}
    application = whatif.run("jacobi2d", overrides=overrides).program.loaded.scenario.application
    assert "reduce" not in application.phases
    assert application.congestion == "none"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('node_count = "none"', r"bid.toml:3:1: node_count: `node_count` is required and cannot be removed"),
        ('kernels = "none"', r"bid.toml:3:1: kernels: `none` removes an inherited value, but nothing .* `kernels`"),
        ('prise = "none"', r"`prise`: unknown key; did you mean `price`"),
    ],
)
def test_what_cannot_be_removed_is_an_error(tmp_path, text, message):
    with pytest.raises(InvalidFileError, match=message):
        platform(tmp_path, text)
