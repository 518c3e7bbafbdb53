"""What a machine says about itself: texts of hwloc, /proc and /sys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.paths import DATA
from whatif.errors import InvalidFileError, UsageError
from whatif.measuring.hardware import Machine, PhysicalCore, usable
from whatif.measuring.hwloc import parse_hwloc
from whatif.measuring.kernel_files import parse_cpuinfo, parse_meminfo, parse_processors, parse_sysfs

FOLDER = DATA / "measuring"


def test_hwloc_of_two_cores():
    machine = parse_hwloc((FOLDER / "two_cores.xml").read_text(), "vm")
    assert machine.cores == (PhysicalCore((0,), 0, 0, 0), PhysicalCore((1,), 0, 0, 0))
    assert machine.caches == (48 * 2**10, 2**20, 32 * 2**20)
    assert (machine.processor, machine.source) == ("AMD EPYC", "hwloc 2.9.0")


def test_hwloc_of_two_sockets_with_two_domains_each():
    machine = parse_hwloc((FOLDER / "two_sockets.xml").read_text())
    assert [(core.processor, core.socket, core.domain, core.cache) for core in machine.cores] == [
        (0, 0, 0, 0), (2, 0, 0, 0), (4, 0, 1, 1), (6, 0, 1, 1),
        (8, 1, 2, 2), (10, 1, 2, 2), (12, 1, 3, 3), (14, 1, 3, 3),
    ]  # fmt: skip
    assert (machine.socket_count, machine.domain_count, machine.cache_count) == (2, 4, 4)


def test_hwloc_version_1_names_sockets_and_caches_differently():
    text = """<topology><object type="Machine" cpuset="0x3">
    <object type="Socket" cpuset="0x3"><object type="Cache" depth="3" cache_size="8388608" cache_type="0" cpuset="0x3">
    <object type="Cache" depth="1" cache_type="2" cache_size="32768" cpuset="0x1"/>
    <object type="Core" cpuset="0x1"/><object type="Core" cpuset="0x2"/></object></object></object></topology>"""
    machine = parse_hwloc(text)
    assert (len(machine.cores), machine.socket_count, machine.caches) == (2, 1, (8388608.0,))


def test_caches_of_unknown_size_in_hwloc_are_left_out():
    text = """<topology><object type="L3Cache" cache_size="0" cpuset="0x1">
    <object type="L2Cache" cache_size="1048576" cpuset="0x1"><object type="Core" cpuset="0x1"/></object></object>
    </topology>"""
    assert parse_hwloc(text).caches == (1048576.0,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no XML"),
        ("<topology>", "no XML"),
        ("<topology/>", "no object of the type `Core`"),
        ('<!DOCTYPE t [<!ENTITY a "aaaa">]><topology>&a;</topology>', "entities are not read"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(InvalidFileError, match=message):
        parse_hwloc(text)


def test_cores_are_spread_over_domains():
    machine = parse_hwloc((FOLDER / "two_sockets.xml").read_text())
    assert [core.domain for core in machine.spread] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_cores_of_a_domain_are_spread_over_its_caches():
    machine = Machine("", "", tuple(PhysicalCore((at,), 0, 0, at // 4) for at in range(8)))
    assert [core.cache for core in machine.spread] == [0, 1, 0, 1, 0, 1, 0, 1]


SYSFS = {
    f"cpu/cpu{at}/{name}": text
    for at in range(4)
    for name, text in {
        "topology/physical_package_id": "0",
        "topology/core_id": str(at % 2),
        "cache/index0/level": "1",
        "cache/index0/type": "Data",
        "cache/index0/size": "32K",
        "cache/index0/shared_cpu_list": f"{at % 2},{at % 2 + 2}",
        "cache/index1/level": "1",
        "cache/index1/type": "Instruction",
        "cache/index1/size": "64K",
        "cache/index2/level": "3",
        "cache/index2/type": "Unified",
        "cache/index2/size": "16M",
        "cache/index2/shared_cpu_list": "0-3",
    }.items()
} | {"node/node0/cpulist": "0-3"}


def test_sysfs_of_two_cores_with_two_threads_each():
    machine = parse_sysfs(SYSFS, "laptop")
    assert [core.processor for core in machine.cores] == [0, 1]
    assert machine.caches == (32 * 2**10, 16 * 2**20)
    assert machine.cache_count == 1


def test_cpuinfo_has_name_and_highest_clock():
    text = (
        "processor\t: 0\nmodel name\t: AMD  EPYC 7763\ncpu MHz\t\t: 2450.000\n\nprocessor\t: 1\ncpu MHz\t\t: 3500.5\n"
    )
    assert parse_cpuinfo(text) == ("AMD EPYC 7763", 3500.5e6)
    assert parse_cpuinfo("") == ("", 0.0)


def test_meminfo():
    assert parse_meminfo("MemTotal:       16384 kB\nMemFree: 1 kB\n") == 16384 * 1024
    assert parse_meminfo("") == 0.0


def test_lists_of_processors():
    assert parse_processors("0-2,8\n") == [0, 1, 2, 8]
    assert parse_processors("") == []


def test_only_allowed_cores_are_described():
    machine = usable(parse_sysfs(SYSFS), {1, 3}, "max 100000")
    assert [core.processor for core in machine.cores] == [1]
    assert machine.warnings == ("this process may use 1 of 2 cores: only these are described",)


def test_second_threads_of_cores_are_used_where_the_first_are_not_allowed():
    """Processors 0 and 2 are threads of one core, 1 and 3 of the other."""
    for allowed, bound in (({2, 3}, [2, 3]), ({0, 3}, [0, 3]), ({0, 2}, [0])):
        machine = usable(parse_sysfs(SYSFS), allowed, "")
        assert [core.processor for core in machine.cores] == bound
    machine = usable(parse_hwloc((FOLDER / "two_sockets.xml").read_text()), {1, 2}, "")
    assert [core.processor for core in machine.cores] == [1, 2]


def test_a_quota_of_a_container_limits_the_cores():
    machine = usable(parse_sysfs(SYSFS), None, "150000 100000\n")
    assert len(machine.cores) == 1
    assert "the time of 1 of 2 cores" in machine.warnings[0]


@pytest.mark.parametrize(
    ("size", "limit", "expected"),
    [
        (64e9, "4000000000\n", 4e9),
        (64e9, "max\n", 64e9),
        (64e9, "", 64e9),
        (64e9, "9223372036854771712\n", 64e9),
        (0.0, "4000000000\n", 4e9),
    ],
)
def test_a_limit_of_a_container_limits_the_memory(size, limit, expected):
    machine = usable(replace(parse_sysfs(SYSFS), memory_size=size), None, "", limit)
    assert machine.memory_size == expected
    assert ("4 GB" in "".join(machine.warnings)) is (expected != size)


def test_no_core_is_refused():
    with pytest.raises(UsageError, match="no core of this machine is known"):
        usable(parse_sysfs({}), None, "")
