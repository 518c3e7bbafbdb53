"""Phases simulated message by message: against closed forms in the limit, and against results computed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.errors import InvalidFileError
from whatif.schema.toml import parse_document

HALO = """
[platform]
extends = "lassen"

[application]
name = "halo"
rank_count = 64
iteration_count = 1
communication = "simulated"

[application.grid]
scaling = "weak"
cells = { x = 2048, y = 2048 }

[application.phases.halo]
kind = "halo"
model = "postal"
neighbours = "all"
"""
OWN = """name = "Mine"
node_count = 64

[platform.node]
socket_count = 2
gpu_count = 4

[platform.node.gpu]
extends = "v100-sxm2-16gb"

[platform.node.host]
memory_bandwidth = "100 GB/s"

[platform.node.host_link]
extends = "nvlink2-3"

[platform.network.inter_node]
extends = "infiniband-100"
"""
STAR = """
[platform.network.topology]
kind = "star"
bandwidth = "1 GB/s"
latency = "1 us"
"""
COPIES = """
[platform]
extends = "titan"

[platform.node]
gpu_count = 2

[platform.node.links]
up = { ends = ["cpu0", "switch0"], bandwidth = "8 GB/s" }
first = { ends = ["switch0", "gpu0"], bandwidth = "8 GB/s" }
second = { ends = ["switch0", "gpu1"], bandwidth = "8 GB/s" }

[application]
name = "copies"
rank_count = 1
iteration_count = 1

[application.phases.copy]
kind = "transfer"
direction = "host_to_device"
transfer_size = "256 MiB"
device_count = 2
"""
PING = """num_ranks 2
rank 0 {
a: calc 1000
b: send 8b to 1 tag 0
b requires a
}
rank 1 {
c: recv 8b from 0 tag 0
}
"""


def inputs(text: str, folder: Path | None = None, **sets: str) -> Scenario:
    """The question of a text, parameters being changed by the names `a__b`."""
    paths = {path.replace("__", "."): value for path, value in sets.items()}
    return Scenario(parse_document(text, "question.toml", folder), None, paths)


def times(scenario: Scenario, sweep: str = "", column: str = "communication_time") -> np.ndarray:
    axes = [parse_option(sweep, scenario.program, 1000)] if sweep else []
    return np.atleast_1d(run_whole(scenario, grid_of(axes, 1000)).columns[column])


@pytest.mark.parametrize("model", ["postal", "max_rate", "k_model"])
@pytest.mark.parametrize("scenario", ["jacobi2d", "minife", "minimd"])
def test_with_one_models_times_a_simulated_scenario_is_the_closed_form(scenario: str, model: str) -> None:
    halos = [name for name, phase in _phases(scenario).items() if phase.kind == "halo"]
    sets = {f"application.phases.{name}.model": model for name in halos} | {"application.congestion": "none"}
    modelled = Scenario.open(scenario, overrides=sets)
    simulated = modelled.changed({**sets, "application.communication": "simulated"})
    np.testing.assert_allclose(times(simulated), times(modelled), rtol=1e-9, atol=0)


def _phases(scenario: str) -> dict[str, object]:
    return dict(Scenario.open(scenario).program.loaded.scenario.application.phases)


@pytest.mark.parametrize("algorithm", ["binomial_tree", "recursive_doubling", "ring", "rabenseifner", "ring_allgather"])
def test_collectives_of_one_distance_are_the_closed_form(algorithm: str) -> None:
    text = HALO.replace('kind = "halo"', f'kind = "collective"\nalgorithm = "{algorithm}"\nmessage_size = "1 MiB"')
    text = text.replace('neighbours = "all"', "").replace(
        '[application.grid]\nscaling = "weak"\ncells = { x = 2048, y = 2048 }', ""
    )
    # One rank on a node: every message goes between nodes, as the closed form has it.
    scenario = inputs(text, application__ranks_per_node="1", application__congestion="none")
    modelled = scenario.changed({**scenario.overrides, "application.communication": "modelled"})
    np.testing.assert_allclose(times(scenario), times(modelled), rtol=1e-9, atol=0)


def test_near_ranks_make_a_collective_faster_in_simulation_and_closed_form() -> None:
    text = HALO.replace('kind = "halo"', 'kind = "collective"\nalgorithm = "recursive_doubling"\nmessage_size = "8 B"')
    scenario = inputs(text.replace('neighbours = "all"', ""))
    modelled = scenario.changed({"application.communication": "modelled"})
    far = scenario.changed({"application.communication": "modelled", "application.phases.halo.distance": "inter_node"})
    # The first two of six rounds stay on a node of four ranks.
    np.testing.assert_allclose(times(scenario)[0], times(modelled)[0], rtol=1e-9, atol=0)
    assert times(modelled)[0] < times(far)[0]


def test_a_swept_parameter_is_simulated_at_every_point() -> None:
    sweep = "application.rank_count=4, 16, 64"
    swept = times(inputs(HALO), sweep)
    alone = [times(inputs(HALO, application__rank_count=count))[0] for count in ("4", "16", "64")]
    np.testing.assert_array_equal(swept, alone)
    assert len(set(swept.tolist())) == 3


def test_messages_between_nodes_share_the_links_of_a_star() -> None:
    shared = inputs(HALO + STAR, application__communication="shared_links")
    bandwidth = times(shared, "platform.network.topology.bandwidth=1 GB/s, 2 GB/s, 1000 GB/s")
    alone = times(inputs(HALO))[0]
    # Fast links do not matter but for their latency: the last message crosses two.
    np.testing.assert_allclose(bandwidth[2], alone + 2e-6, rtol=1e-9, atol=0)
    assert bandwidth[0] > bandwidth[1] > bandwidth[2]


def test_shared_links_of_a_platform_without_topology_are_refused() -> None:
    with pytest.raises(InvalidFileError, match=r"Mine does not state `\[network.topology\]`"):
        _ = inputs(HALO.replace('extends = "lassen"', OWN), application__communication="shared_links").program


def test_of_the_closed_form_of_nodes_messages_of_max_rate_are_simulated() -> None:
    node_aware, max_rate = (times(inputs(HALO.replace("postal", model)))[0] for model in ("node_aware", "max_rate"))
    assert node_aware == max_rate != times(inputs(HALO))[0]


@pytest.mark.parametrize(("direction", "factor"), [("host_to_device", 2.0), ("device_to_host", 2.0)])
def test_devices_behind_one_switch_halve_each_others_copies(direction: str, factor: float) -> None:
    scenario = inputs(COPIES, application__phases__copy__direction=direction)
    found = times(scenario, "application.phases.copy.device_count=1, 2", "transfer_time")
    # The latency is paid once, 256 MiB hide it.
    np.testing.assert_allclose(found[1] / found[0], factor, rtol=1e-3, atol=0)


def test_more_devices_than_links_lead_to_cannot_be() -> None:
    sweep = [parse_option("application.phases.copy.device_count=2, 3", inputs(COPIES).program, 10)]
    result = run_whole(inputs(COPIES), grid_of(sweep, 10))
    assert "exceeds the 2 devices of platform.node.links" in result.reasons[0]
    assert np.isfinite(result.columns["transfer_time"][0])


def test_devices_that_share_nothing_stated_are_asked_for_it() -> None:
    text = COPIES.replace("links]", "links2]").partition("[platform.node.links2]")
    text_without = text[0] + "[application]" + text[2].partition("[application]")[2]
    with pytest.raises(InvalidFileError, match=r"device_count.*Titan does not state the links"):
        _ = inputs(text_without).program


def test_a_trace_next_to_the_scenario_is_replayed(tmp_path: Path) -> None:
    (tmp_path / "ping.goal").write_text(PING)
    text = HALO.partition("[application.grid]")[0].replace("= 64", "= 2") + (
        '[application.phases.trace]\nkind = "trace"\nfile = "ping.goal"\nmodel = "postal"\n'
    )
    scenario = inputs(text, tmp_path)
    latency = "platform.network.intra_socket.postal.short.latency"
    found = times(scenario, f"{latency}=1 us, 2 us")
    np.testing.assert_allclose(found[1] - found[0], 1e-6, rtol=1e-9, atol=0)
    kernel = times(scenario, "application.phases.trace.computation_factor=1, 3", "kernel_time")
    np.testing.assert_allclose(kernel, [1e-6, 3e-6], rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", ["../ping.goal", "missing.goal", "/etc/passwd"])
def test_a_trace_in_another_folder_is_refused(tmp_path: Path, name: str) -> None:
    text = HALO.partition("[application.grid]")[0] + (
        f'[application.phases.trace]\nkind = "trace"\nfile = "{name}"\nmodel = "postal"\n'
    )
    with pytest.raises(InvalidFileError, match=r"application.phases.trace.file"):
        _ = inputs(text, tmp_path).program


def test_a_measured_kernel_follows_the_rate_that_bounds_it() -> None:
    text = HALO.partition("[application.phases.halo]")[0] + (
        '[application.phases.sweep]\nkind = "measured_kernel"\nkernel_time = "3 ms"\nlaunch_count = 2\n'
        'bound = "dram_bandwidth"\nprofiled_bandwidth = "400 GB/s"\n'
    )
    found = times(inputs(text, platform__node__gpu__dram_bandwidth="800 GB/s"), column="kernel_time")
    # Of 3 ms, the 2 us of an empty kernel stay.
    np.testing.assert_allclose(found, [2 * (2e-6 + 2.998e-3 / 2)], rtol=1e-12, atol=0)
    tiny = times(
        inputs(text.replace("3 ms", "1.5 us"), platform__node__gpu__dram_bandwidth="800 GB/s"), column="kernel_time"
    )
    np.testing.assert_allclose(tiny, [3e-6], rtol=1e-12, atol=0)
    with pytest.raises(InvalidFileError, match="profiled_bandwidth"):
        _ = inputs(text.replace('profiled_bandwidth = "400 GB/s"\n', "")).program


def test_groups_of_one_rank_send_nothing_over_shared_links() -> None:
    groups = 'communication = "shared_links"\n[application.groups]\none = { size = 1 }\n'
    text = (
        'platform = "lassen"\n[application]\nname = "t"\nrank_count = 8\niteration_count = 1\nbuffers = "host"\n'
        f'{groups}[application.phases.gather]\nkind = "collective"\nmodel = "postal"\nalgorithm = "ring_allgather"\n'
        'message_size = "8 B"\ngroup = "one"\n'
    )
    result = run_whole(Scenario(parse_document(text, "t.toml")), grid_of([], 1))
    assert float(result.columns["iteration_time"]) == 0.0
