"""Terms of a training step against hand arithmetic and limits, and plans that cannot run."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.transformers.steps_at_hand import step, terms
from whatif.axes import Grid
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError, ToleranceError
from whatif.models.gpu_collectives import library_time
from whatif.transformers.training.memory import MEMORY
from whatif.validation.tables import TABLES, rows_of
from whatif.validation.training_steps import BOUNDS, errors_of, kinds, measured_memory, predictions, training_steps

HIDDEN, INNER, HEADS, KEYS, LAYERS, TOKENS = 4096, 14336, 32, 8, 32, 4096
PEAK, SHARE, BANDWIDTH = 989e12, 0.662, 2970e9
PORT = "platform.network.inter_node.injection.rendezvous"


def test_products_attention_and_memory_traffic_by_hand():
    found = terms()
    tiles = float(found["projections.tile_efficiency"])
    projections = 3 * 2 * TOKENS * 2 * HIDDEN * 128 * (HEADS + KEYS)
    assert_allclose(found["projections"], LAYERS * projections / (PEAK * SHARE * tiles), rtol=1e-12, atol=0)
    blocks = 3 * 2 * TOKENS * 3 * HIDDEN * INNER
    share = SHARE * float(found["feed_forward.tile_efficiency"])
    assert_allclose(found["feed_forward"], LAYERS * blocks / (PEAK * share), rtol=1e-12, atol=0)
    # Half of the scores are masked: two products of 2 x 128 operations by head and pair of tokens.
    scores = 3.5 * TOKENS * HEADS * 128 * 2 * TOKENS
    assert_allclose(found["attention"], LAYERS * scores / (PEAK * 0.513), rtol=1e-12, atol=0)
    moved = (36 * HIDDEN + 8 * INNER) * TOKENS * 2
    assert_allclose(found["pointwise"], LAYERS * moved / (BANDWIDTH * 0.527), rtol=1e-12, atol=0)


def test_a_rank_alone_communicates_nothing_and_a_pipeline_of_one_waits_for_nothing():
    found = terms(ranks=1, global_batch=1)
    names = ("tensor_parallel", "context_parallel", "stage_messages", "gradients", "pipeline_bubble")
    assert [float(found[name]) for name in names] == [0.0] * 5


def test_the_bubble_is_that_of_narayanan():
    found = terms(ranks=8, pipeline_size=4, virtual_count=2, global_batch=16)
    micro_batches = 16 / 2
    expected = 3 / (2 * micro_batches) * found["training.stage_time"]
    assert_allclose(found["pipeline_bubble"], expected, rtol=1e-12, atol=0)
    third = terms(ranks=8, pipeline_size=4, virtual_count=2, global_batch=16, schedule="zero_bubble")
    assert_allclose(third["pipeline_bubble"], found["pipeline_bubble"] / 3, rtol=1e-12, atol=0)


def test_scales_of_blocks_are_by_default_no_faster_than_those_of_tensors():
    """MI300X states its share of the peak in fp8, 0.4, and none in mxfp8."""
    tensors, blocks = (terms(platform="mi300x_node", precision=name) for name in ("fp8", "mxfp8"))
    assert_allclose(blocks["projections"], tensors["projections"], rtol=1e-12, atol=0)


def test_full_recomputation_takes_one_pass_forward_more():
    without, again = terms(), terms(recomputation="full")
    for name, ratio in (
        ("projections", 4 / 3),
        ("feed_forward", 4 / 3),
        ("attention", 4.5 / 3.5),
        ("pointwise", 4 / 3),
    ):
        assert_allclose(again[name], without[name] * ratio, rtol=1e-12, atol=0)


def test_tensor_ranks_gather_and_reduce_the_activations_eight_times_a_layer():
    found = terms(ranks=8, tensor_size=8)
    link = found["tensor_parallel.link_bandwidth"]
    once = library_time(np.array(2.0 * TOKENS * HIDDEN), *map(np.asarray, (8.0, 1.0, 8.0, 8.0)), link, np.asarray(1.0),
                        algorithm="ring_allgather")  # fmt: skip
    assert_allclose(found["tensor_parallel"], 0.81 * 8 * once * 8 * LAYERS, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("shape", "plan", "gathers"),
    [("", {}, 4), ("", {"sequence_parallel": False}, 6), ("shared_expert_count = 1", {}, 8),
     ("leading_dense_count = 12\nfeed_forward_size = 6144", {}, 5)],
)  # fmt: skip
def test_tensor_ranks_gather_no_tokens_for_routed_experts(shape, plan, gathers):
    """Each rank sends its share of the tokens to the experts (Megatron Core, experts without tensor parallelism).

    Without sequence parallelism it gathers the results; a quarter of the layers may be dense.
    """
    found = terms("qwen3-30b-a3b", ranks=8, tensor_size=8, expert_size=8, shape=shape, **plan)
    once = float(found["tensor_parallel.operation_time"])
    assert_allclose(found["tensor_parallel.communication_time"], gathers * once * 8 * 48, rtol=1e-12, atol=0)


def test_communication_that_takes_longer_than_computation_is_exposed():
    plan = {"ranks": 64, "global_batch": 64, "sharding": "full"}
    fast = step(**plan)
    slow = fast.changed({f"{PORT}.{key}_bandwidth": "0.5 GB/s" for key in ("process", "injection")})
    values = evaluate(slow.program).values
    total, computing = values["gradients.communication_time"], values["training.computing_time"]
    assert total > 3 * computing
    assert_allclose(values["gradients"], total - computing, rtol=1e-12, atol=0)


def test_unsharded_gradients_are_gathered_and_sharded_weights():
    """An allreduce of gradients in fp32; replicas that spread their optimiser gather weights in bf16."""
    whole, spread = terms(sharding="none"), terms(sharding="optimiser")
    assert_allclose(whole["gradients.dense.weight_size"], whole["gradients.dense.gradient_size"], rtol=1e-12, atol=0)
    assert_allclose(
        spread["gradients.dense.weight_size"], spread["gradients.dense.gradient_size"] / 2, rtol=1e-12, atol=0
    )
    assert_allclose(
        whole["gradients.dense.time"], 2 * whole["gradients.dense.gradient.operation_time"], rtol=1e-12, atol=0
    )


def test_the_fullest_stage_has_the_states_of_its_layers():
    """32 layers in three stages of two parts: two parts of six; in three stages of one: eleven."""
    for virtual, layers in ((1, 11), (2, 12)):
        found = terms(ranks=3, pipeline_size=3, virtual_count=virtual, global_batch=3)
        for name, element in (("weights", 2), ("gradients", 4), ("optimiser", 12)):
            expected = float(found["model.dense_parameters"]) * layers / 32 * element
            assert_allclose(found[f"training.{name}_size"], expected, rtol=1e-12, atol=0)


def test_parts_of_one_stage_are_all_layers():
    """32 layers in five parts of one stage are 32, not five times seven."""
    whole, parts = terms(ranks=8), terms(ranks=8, virtual_count=5)
    for name in ("iteration.time", MEMORY):
        assert_allclose(parts[name], whole[name], rtol=1e-12, atol=0)


def test_experts_have_tokens_of_all_ranks_and_their_own_replicas():
    found = terms("qwen3-30b-a3b", ranks=16, expert_size=8, global_batch=16)
    assert float(found["training.expert_tokens"]) == TOKENS * 8 * 8 / 128
    assert float(found["training.local_expert_count"]) == 16
    assert float(found["training.expert_replicas"]) == 2
    halved = terms("qwen3-30b-a3b", ranks=16, tensor_size=2, expert_size=8, global_batch=16)
    assert float(halved["training.expert_tokens"]) == TOKENS / 2 * 8 * 8 / 128
    assert float(halved["training.expert_replicas"]) == 2
    assert_allclose(found["expert_parallel.message_size"], TOKENS * 8 * 2048 * 2, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ({"tensor_size": 3, "ranks": 9}, "application.plan.tensor_size does not divide the heads"),
        ({"tensor_size": 4, "ranks": 6}, "tensor, context and pipeline ranks do not divide application.rank_count"),
        (
            {"sequence_length": 4097, "context_size": 8},
            "application.plan.context_size does not divide the tokens (application.plan.sequence_length)",
        ),
        (
            {"global_batch": 12},
            "replicas times application.plan.micro_batch do not divide",
        ),
        ({"expert_size": 2}, "a model without experts needs application.plan.expert_size = 1"),
        ({"pipeline_size": 8, "virtual_count": 5}, "more parts of stages than layers"),
        ({"model": "llama-3-70b"}, "do not fit the device (platform.node.gpu.memory_size)"),
        ({"model": "qwen3-30b-a3b", "expert_size": 3}, "application.plan.expert_size does not divide the experts"),
        ({"model": "qwen3-30b-a3b", "expert_size": 16}, "does not divide the ranks with the same layers"),
        ({"ranks": 8192, "global_batch": 8192}, "the ranks need more nodes than the platform has"),
    ],
)
def test_plans_that_cannot_run_have_a_reason(plan, reason):
    result = run_whole(step(**plan), Grid())
    assert reason in "; ".join(result.reasons)
    assert np.isnan(result.columns["total_time"])
    assert np.isnan(result.columns["token_rate"])


def test_heads_that_do_not_divide_the_hidden_size_need_a_stated_size():
    scenario = Scenario.open("llama_training").with_overrides({"application.transformer.head_count": "48"})
    assert "head_count does not divide application.transformer.hidden_size, and no head_size is stated" in "; ".join(
        run_whole(scenario, Grid()).reasons
    )
    stated = scenario.with_overrides({"application.transformer.head_size": "128"})
    assert run_whole(stated, Grid()).columns["total_time"] > 0


@pytest.mark.parametrize(
    ("plan", "numbers"),
    [
        ({"tensor_size": 4, "ranks": 6}, "6 is not a multiple of 4"),
        ({"tensor_size": 2, "pipeline_size": 3, "ranks": 8}, "8 is not a multiple of 6"),
        ({"tensor_size": 3, "ranks": 9}, "32 is not a multiple of 3"),
        ({"global_batch": 12}, "12 is not a multiple of 8"),
        ({"global_batch": 8, "micro_batch": 2}, "8 is not a multiple of 16"),
        ({"pipeline_size": 4, "virtual_count": 2, "global_batch": 6, "ranks": 4}, "6 is not a multiple of 4"),
    ],
)
def test_a_plan_that_cannot_run_states_its_numbers(plan, numbers):
    assert run_whole(step(**plan), Grid()).notes[-1].endswith(f"; {numbers}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"platform": "dgx_a100", "precision": "fp8"}, "states no `matrix_rates.fp8`, which fp8 needs"),
        ({"platform": "turin"}, "has no GPUs, which training needs"),
        ({"platform": "titan"}, r"needs `\[platform.node.peer_link\]`"),
        ({"platform": "summit"}, 'training sends between GPUs: state `application.buffers = "device"`'),
        (
            {"overrides": {"application.communication": "simulated"}},
            "training has closed forms and cannot be simulated",
        ),
        ({"overrides": {"application.transformer.feed_forward_size": "none"}}, "missing key, needed by dense blocks"),
    ],
)
def test_files_that_cannot_be_used_are_refused(options, message):
    overrides = options.pop("overrides", {})
    scenario = step(**options)
    with pytest.raises(InvalidFileError, match=message):
        scenario.changed(overrides).program  # noqa: B018 - compiles it


def test_measured_steps_are_met_within_the_stated_bounds(compared):
    rows = rows_of("training_steps.csv")
    errors = errors_of(rows, compared("training").columns["predicted"].values)
    masks = {kind: kinds(rows) == kind for kind in BOUNDS}
    counts = {kind: int(mask.sum()) for kind, mask in masks.items()}
    assert counts == {"dense": 156, "with experts": 66, "held out": 15}
    for kind, mask in masks.items():
        assert 0.01 < np.abs(errors[mask]).mean() < BOUNDS[kind]
    for kind in ("dense", "with experts"):
        assert np.abs(errors[masks[kind]].mean()) < BOUNDS[kind] / 4
    newest = [row["platform"] in ("dgx_h100", "dgx_b200") for row in rows] & masks["dense"]
    assert np.abs(errors[newest]).max() < 0.3


def test_peak_memory_with_full_recomputation_is_met_within_30_percent_where_a_rank_has_the_whole_model():
    """Ours is less: what is left are buffers of the framework. FSDP in a pipeline keeps gathered weights, which is not
    modelled."""
    rows = [row for row in rows_of("training_steps.csv") if row["peak_memory_GiB"] and row["recomputation"] == "full"]
    measured = np.array([measured_memory(row) for row in rows])
    errors = predictions(rows)["training.memory_size"] / measured - 1
    staged = np.array([row["pipeline_size"] != "1" for row in rows])
    assert errors[~staged].size == 4
    assert -0.3 < errors[~staged].min() < errors[~staged].max() < 0
    assert errors[staged].max() < -0.5


@pytest.mark.parametrize(
    "plan",
    [
        {"model": "llama-3-8b", "ranks": 32, "tensor_size": 4, "pipeline_size": 4, "context_size": 2, "micro_batch": 2},
        {"model": "qwen3-30b-a3b", "ranks": 32, "tensor_size": 2, "pipeline_size": 2, "expert_size": 8},
        {"model": "qwen3-30b-a3b", "ranks": 16, "tensor_size": 4, "expert_size": 16},
        {"model": "deepseek-v3", "ranks": 32, "expert_size": 32},
    ],
)
def test_all_ranks_together_compute_the_operations_of_the_model(plan):
    """6 N for each token, however layers, tokens and experts are divided; the router takes no time."""
    found = terms(**plan, global_batch=64)
    passes = {"projections": "layer", "feed_forward": "dense", "experts": "expert", "shared_experts": "expert"}
    work = sum(float(found[f"{name}.operations"] * found[f"training.{kind}_passes"])
               for name, kind in passes.items() if f"{name}.operations" in found)  # fmt: skip
    work += float(found["logits.operations"] * found["training.stage_share"])
    router = found.get("model.expert_layer_count", 0) * found["model.router_parameters"]
    expected = 6 * (found["model.token_parameters"] - router) * 64 * TOKENS
    assert_allclose(plan["ranks"] * work, expected, rtol=1e-12, atol=0)


def test_without_sequence_parallelism_norms_and_messages_are_not_divided():
    shared, whole = (terms(ranks=8, tensor_size=4, pipeline_size=2, sequence_parallel=flag) for flag in (True, False))
    inner = 8 * INNER / 4
    ratio = (36 * HIDDEN + inner) / (36 * HIDDEN / 4 + inner)
    assert_allclose(whole["pointwise"], ratio * shared["pointwise"], rtol=1e-12, atol=0)
    assert whole["stage_messages.message_size"] == 4 * shared["stage_messages.message_size"]
    assert whole["training.memory_size"] > shared["training.memory_size"]


def test_a_power_cap_slows_down_products():
    scenario = step()
    capped = scenario.changed({"platform.node.gpu.power_cap": "400 W"})
    values = evaluate(capped.program).values
    assert_allclose(values["projections"], terms()["projections"] / values["node.clock_fraction"], rtol=1e-12, atol=0)
    assert float(values["pointwise"]) == float(terms()["pointwise"])


def test_a_mean_error_beyond_its_bound_is_an_error(monkeypatch, compared):
    columns = compared("training").columns
    known = {"iteration.time": columns["predicted"].values, MEMORY: columns["predicted memory"].values}
    monkeypatch.setattr("whatif.validation.training_steps.predictions", lambda rows: known)
    monkeypatch.setitem(BOUNDS, "dense", 0.03)
    monkeypatch.setitem(TABLES, "training", lambda: training_steps(rows_of("training_steps.csv")))
    with pytest.raises(ToleranceError, match=r"training: dense: mean error \d\.\d%, bound 3%"):
        whatif.comparisons("training").raise_if_beyond()


def test_results_of_a_step_by_hand():
    result = whatif.run("llama_training")
    tokens = 256 * 8192 / float(result.columns["iteration_time"])
    assert_allclose(result.columns["token_rate"], tokens, rtol=1e-12, atol=0)
    operations = 6 * (70.55e9 - 128256 * 8192) + 6 * 80 * 8192 * 8192
    assert_allclose(result.columns["model_utilisation"], operations * tokens / 64 / 1979e12, rtol=1e-3, atol=0)


def test_offloaded_states_of_devices_that_share_a_link_share_its_bandwidth():
    own, shared = (
        evaluate(step(offload="optimiser").changed({"platform.node.host_link.device_count": count}).program).values
        for count in ("1", "2")
    )
    assert_allclose(shared["offload"], 2 * own["offload"], rtol=1e-12, atol=0)


def test_a_run_says_what_takes_the_memory(whatif_main):
    code, _, error = whatif_main("run", "llama_training")
    assert code == 0
    line = next(line for line in error.splitlines() if line.startswith("memory of a rank: "))
    assert line.startswith("memory of a rank: 74.6 GB of 80 GB: ")
    sizes = dict(re.findall(r"(\w+) ([\d.]+) GB", line.split(": ", 2)[2]))
    assert list(sizes) == ["weights", "gradients", "optimiser", "activations", "buffers"]
    total = float(whatif.run("llama_training").columns["memory_size"]) / 1e9
    assert_allclose(sum(map(float, sizes.values())), total, rtol=3e-3, atol=0)


def test_memory_has_one_unit_where_a_part_is_a_whole_number_of_mebibytes(whatif_main):
    _, _, error = whatif_main("run", "llama_training", "--point", "--set", "application.plan.tensor_size=3")
    assert "weights 5.88 GB, gradients 11.8 GB, " in error


def test_offloaded_states_leave_the_device_and_are_updated_by_the_host():
    plain, moved = terms(), terms(offload="optimiser")
    states = float(plain["training.optimiser_size"])
    assert_allclose(plain["training.memory_size"] - moved["training.memory_size"], states, rtol=1e-12, atol=0)
    assert moved["training.host_optimiser_size"] == states
    # Four ranks share the memory of a socket.
    update = float(moved["training.dense_update_size"]) * 4 / (307.2e9 * 0.527)
    assert_allclose(moved["optimiser"], update, rtol=1e-12, atol=0)
    own = float(moved["training.dense_parameters"]) / 8
    link = float(moved["host_link.long.effective_bandwidth"])
    assert_allclose(moved["offload"], own * (4 + 2) / link, rtol=1e-12, atol=0)
    assert_allclose(link, 57.6e9, rtol=1e-3, atol=0)
    hidden = terms(offload="optimiser", offload_exposure=0.25)
    assert_allclose(hidden["offload"], moved["offload"] / 4, rtol=1e-12, atol=0)


def test_devices_draw_idle_power_while_the_host_updates_the_weights():
    plain, moved = terms(), terms(offload="optimiser")
    kernels = float(plain["iteration.kernel_time"] - plain["optimiser"])
    assert_allclose(moved["iteration.kernel_time"], kernels, rtol=1e-12, atol=0)
    busy = 8 * 612.5 * kernels
    idle = float(moved["node.idle_power"] * moved["iteration.time"])
    assert_allclose(moved["iteration.energy"], idle + busy, rtol=1e-12, atol=0)


def test_states_that_do_not_fit_the_host_are_infeasible():
    result = run_whole(step("llama-3-405b", ranks=8, offload="optimiser", sharding="none"), Grid())
    assert "optimiser states do not fit the host" in "; ".join(result.reasons)


BARE = """
name = "bare"
node_count = 1
[node]
gpu_count = 8
socket_count = 2
[node.gpu]
extends = "h100-sxm5-80gb"
[node.peer_link]
extends = "nvlink4-18"
[network.inter_node]
extends = "infiniband-400"
"""


def test_offload_needs_a_link_and_the_memory_of_a_host(tmp_path):
    (tmp_path / "bare.toml").write_text(BARE, encoding="utf-8")
    with pytest.raises(InvalidFileError, match=r"bare lacks .*, which offload needs"):
        whatif.run(step(offload="optimiser"), platform=tmp_path / "bare.toml")


@pytest.mark.parametrize("recomputation", ["selective", "full"])
def test_scores_that_are_computed_again_take_memory_of_one_layer(recomputation):
    plan = {"recomputation": recomputation, "tensor_size": 2}
    fused, stored = terms(**plan), terms(**plan, fused_attention=False)
    scores = 5 * TOKENS * HEADS * TOKENS / 2
    assert_allclose(stored[MEMORY] - fused[MEMORY], scores, rtol=1e-12, atol=0)
    assert_allclose(stored["training.activations_size"], fused["training.activations_size"], rtol=1e-12, atol=0)


def test_executed_operations_count_what_is_computed_again():
    """Korthikanti et al. 2022: with full recomputation 8 of 6 parts of the products are executed."""
    plain, full = terms(), terms(recomputation="full")
    assert plain["training.hardware_utilisation"] == plain["training.model_utilisation"]
    tokens = float(full["model.token_parameters"])
    embedding = 4096 * 128256
    again = 2 * (tokens - embedding) + LAYERS * HEADS * 256 * TOKENS
    assert_allclose(full["model.executed_operations"] - full["model.token_operations"], again, rtol=1e-12, atol=0)
    attention = terms(recomputation="selective", fused_attention=False)
    extra = attention["model.executed_operations"] - attention["model.token_operations"]
    assert_allclose(extra, LAYERS * HEADS * 256 * TOKENS, rtol=1e-12, atol=0)
