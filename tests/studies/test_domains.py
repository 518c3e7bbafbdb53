"""Domains of machines: counts, links and ports as their files state them, and what messages cross."""

from __future__ import annotations

import pytest

from tests.paths import ROOT
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.plotting.boxes import box_runs
from whatif.plotting.description import text_cells
from whatif.studies.domain_study import domain_boxes, domain_picture
from whatif.studies.message_curves import message_curves

PLATFORMS = sorted(path.stem for path in (ROOT / "platforms").glob("*.toml"))


def picture(platform, chosen=None, **changes):
    scenario = Scenario.open(ROOT / "scenarios" / "jacobi2d.toml", platform=platform)
    program = scenario.changed({key.replace("__", "."): value for key, value in changes.items()}).program
    evaluation = evaluate(program)
    sent = next(iter(message_curves(program, evaluation).phases), None)
    return domain_picture(program, evaluation, sent, chosen)


def chain(domain):
    """Domains from the outside in, the last of several inside."""
    return [domain, *(chain(domain.inside[-1]) if domain.inside else [])]


def every(domain):
    return [domain, *(one for inner in domain.inside for one in every(inner))]


def crossed(found):
    return {domain.kind for domain in every(found.machine) if domain.crossed}


def test_all_machines_are_there():
    assert len(PLATFORMS) >= 27


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_domains_of_every_machine_are_drawn_on_small_and_large_screens(platform):
    found = picture(platform)
    for width, height in ((116, 30), (76, 14), (40, 9)):
        lines = ["".join(run.text for run in line) for line in box_runs(domain_boxes(found), width, height)]
        assert 0 < len(lines) <= height
        assert all(len(text_cells(line)) <= width for line in lines)
        assert found.platform in lines[0]
    kinds = [domain.kind for domain in every(found.machine)]
    assert kinds[0] == "machine"
    assert {"node", "socket"} <= set(kinds)
    assert found.machine.link is not None
    assert found.machine.link.latency > 0
    assert found.machine.link.bandwidth > 0


def test_counts_links_and_ports_are_those_of_the_file():
    machine = picture("perlmutter").machine
    (node,) = machine.inside
    socket, domain = node.inside
    assert (node.count, socket.count, socket.holds) == (1792, 1, "64 cores")
    assert (domain.kind, domain.count, domain.holds) == ("link domain", 1, "4 GPUs")
    assert (machine.link.port_count, machine.link.table, machine.link.borrowed) == (4, "network.inter_node", False)
    assert (socket.link.table, socket.link.borrowed) == ("network.inter_node", True)
    assert domain.link.table == "node.peer_link"


def test_cores_are_those_of_one_of_several_sockets():
    (node,) = picture("turin", application__rank_count=64).machine.inside
    assert (node.inside[0].count, node.inside[0].holds) == (2, "128 cores")


def test_link_domains_are_a_part_of_a_node_or_span_nodes():
    assert [(one.kind, one.count) for one in chain(picture("lassen").machine)] == [
        ("machine", 1), ("node", 792), ("link domain", 2),
    ]  # fmt: skip
    nvl = chain(picture("gb200_nvl72").machine)
    assert [one.kind for one in nvl] == ["machine", "link domain", "node", "socket"]
    assert nvl[2].count == 18
    assert nvl[2].holds == "4 GPUs"
    # 624 trays fill 34 racks, and two thirds of one more.
    assert (nvl[1].count, nvl[1].holds) == (35, "up to 72 GPUs")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_domains_of_every_machine_are_whole(platform):
    assert [one.count for one in every(picture(platform).machine) if one.count % 1] == []


def test_a_node_with_one_gpu_or_none_has_no_link_domain():
    assert [one.kind for one in every(picture("titan").machine)] == ["machine", "node", "socket"]
    assert picture("titan").machine.inside[0].holds == "1 GPU"
    assert [one.kind for one in every(picture("fugaku").machine)] == ["machine", "node", "socket"]


@pytest.mark.parametrize(
    ("platform", "buffers", "expected"),
    [
        ("summit", "host", {"machine", "node", "socket"}),
        ("summit", "device", {"machine", "node", "link domain"}),
        ("gb200_nvl72", "host", {"machine", "link domain", "node", "socket"}),
        ("gb200_nvl72", "device", {"machine", "link domain", "node"}),
    ],
)
def test_a_message_between_nodes_crosses_all_domains_from_where_it_starts(platform, buffers, expected):
    found = picture(platform, application__buffers=buffers)
    assert found.chosen.distance == "inter_node"
    assert crossed(found) == expected


def test_a_message_in_a_socket_or_link_domain_stays_there():
    host, device = picture("summit", 0), picture("summit", 0, application__buffers="device")
    assert (host.chosen.distance, crossed(host)) == ("intra_socket", {"socket"})
    assert (device.chosen.distance, crossed(device)) == ("link_domain", {"link domain"})


def test_the_resource_that_the_chosen_message_shares_is_named_with_its_users():
    def words(found):
        return " ".join("".join(run.text for run in line) for line in box_runs(domain_boxes(found), 116, 40))

    assert "shared: the 4 ports of a node, by 4 processes" in words(picture("perlmutter"))
    assert "shared: the network adapter of a node, by 6 processes" in words(picture("summit"))
    assert "shared: its memory, by 2 pairs" in words(picture("summit", 0))
    linked = words(picture("summit", 0, application__buffers="device"))
    assert "shared: nothing: each GPU has a link to each other GPU" in linked


def test_a_change_of_a_port_or_a_link_changes_the_picture():
    found = picture("perlmutter", platform__network__port_count=2, platform__node__domain_gpu_count=2)
    assert found.machine.link.port_count == 2
    assert chain(found.machine)[-1].count == 2
