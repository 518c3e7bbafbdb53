"""Memory of the sockets of shipped machines and processors: channels times rate, and the same in both."""

from __future__ import annotations

import re

import pytest
import tomli
from numpy.testing import assert_allclose

from whatif.schema.shipped import shipped_folder, shipped_names

CHANNELS = {"four": 4, "six": 6, "eight": 8, "twelve": 12}
OF_CHANNELS = re.compile(rf"({'|'.join(CHANNELS)}) (?:DDR\d|MRDIMM)-(\d+) channels")
KEY = "memory_bandwidth"


def read(kind, name):
    return tomli.loads((shipped_folder(kind) / f"{name}.toml").read_text(encoding="utf-8"))


MACHINES = {name: read("platforms", name) for name in shipped_names("platforms")}
PROCESSORS = {name: data for name in shipped_names("parts") if (data := read("parts", name))["part"] == "cpu"}
STATED = {
    **{name: (data["node"]["host"][KEY], data["sources"].get(f"node.host.{KEY}")) for name, data in MACHINES.items()
       if KEY in data.get("node", {}).get("host", {})},
    **{name: (data["host"][KEY], data["sources"][f"host.{KEY}"]) for name, data in PROCESSORS.items()},
}  # fmt: skip
BY_CHANNELS = {
    name: (value, found) for name, (value, entry) in STATED.items()
    if entry and (found := OF_CHANNELS.search(entry["source"]))
}  # fmt: skip


def number(text):
    value, unit = text.split()
    return float(value) * {"GB/s": 1e9, "TB/s": 1e12}[unit]


def test_bandwidths_of_channels_are_of_machines_and_of_parts():
    assert {"aws_p4d", "aws_p5", "dgx_a100", "epyc-9654", "xeon-6980p"} < BY_CHANNELS.keys()


@pytest.mark.parametrize("name", BY_CHANNELS)
def test_memory_of_a_socket_is_channels_times_their_rate(name):
    """A channel is 8 B wide; the key is for one socket."""
    value, found = BY_CHANNELS[name]
    assert_allclose(number(value), CHANNELS[found[1]] * int(found[2]) * 8e6, rtol=4e-3, atol=0)


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_processor_has_its_memory(name):
    assert number(PROCESSORS[name]["host"][KEY]) > 0


WITH_PART = {
    name: node for name, data in MACHINES.items() if "extends" in (node := data.get("node", {})).get("cpu", {})
}


@pytest.mark.parametrize("name", WITH_PART)
def test_a_machine_has_the_memory_of_its_processor(name):
    node = WITH_PART[name]
    assert node["host"][KEY] == PROCESSORS[node["cpu"]["extends"]]["host"][KEY]
