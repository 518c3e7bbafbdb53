"""Power of whole machines beside published figures, and the model of a power cap beside measured slowdowns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from whatif.models.power import busy_power, capped_clock, devices_power, summed_power
from whatif.models.quantities import FloatArray
from whatif.schema.load import load_part, load_platform
from whatif.schema.platform import Platform
from whatif.table import Table
from whatif.units import ONE, WATT, Dimension

Rows = list[dict[str, str]]
_MEASURED_ON: Final = "v100-sxm2-16gb"


def full_power(machine: Platform) -> FloatArray:
    """What one node draws in W with a kernel on each of its devices, without the site's cooling."""
    node = machine.node
    kinds = [(node.gpu, node.gpu_count), (node.cpu, node.socket_count)]
    idle = [devices_power(_number(count), _number(device.idle_power)) for device, count in kinds if device]
    rest = (_number(node.host.power), _number(node.network_power))
    device, count = next((device, count) for device, count in kinds if device)
    one = _number(1)
    return busy_power(summed_power(*idle, *rest), one, _number(count), _number(device.dynamic_power), one)


def _number(value: Any) -> Any:
    """A value of a shipped machine, none of which is an expression."""
    return float(value)


def machine_power(rows: Rows) -> Table:
    """Full load of as many nodes as ran HPL, beside the power on the list."""
    columns: dict[str, Dimension | None] = dict.fromkeys(("machine", "list"))
    columns |= {"nodes": ONE, "published": WATT, "full load": WATT, "error": ONE}
    table, errors = [], []
    for row in rows:
        machine, _ = load_platform(row["platform"])
        nodes, published = float(row["nodes"]), 1e3 * float(row["power_kW"])
        ours = nodes * float(full_power(machine))
        errors.append(ours / published - 1)
        table.append([machine.name, row["list"], nodes, published, ours, errors[-1]])
    mean = sum(map(abs, errors)) / len(errors)
    title = f"full load of the nodes that ran HPL beside TOP500; mean absolute error {mean:.1%}"
    return Table.of_rows(columns, table, {"title": title})


def power_caps(rows: Rows) -> Table:
    """Times under a limit over those without: measured, and as if all of the time were limited by arithmetic.

    The uncapped power is the mean one under the highest limit; the idle power is that of the shipped V100.
    """
    uncapped = {row["application"]: row for row in rows if row["power_limit_W"] == "250"}
    columns: dict[str, Dimension | None] = {"application": None, "limit": WATT}
    columns |= {"measured": ONE, "predicted": ONE, "error": ONE}
    table = []
    for row in rows:
        first = uncapped[row["application"]]
        measured, predicted = float(row["time_s"]) / float(first["time_s"]), _slowdown(row, first)
        limit = float(row["power_limit_W"])
        table.append([row["application"], limit, measured, predicted, predicted / measured - 1])
    return Table.of_rows(columns, table, {"title": "epochs of training on a V100 under a power limit (Zeus)"})


def _slowdown(row: Mapping[str, str], uncapped: Mapping[str, str]) -> float:
    idle = _number(load_part(_MEASURED_ON).idle_power)  # type: ignore[attr-defined]
    dynamic = float(uncapped["average_power_W"]) - idle
    exponent = _number(3)
    return 1 / float(capped_clock(_number(row["power_limit_W"]), idle, _number(dynamic), exponent))
