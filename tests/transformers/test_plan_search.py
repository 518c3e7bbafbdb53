"""Search over plans: every plan equals its own run, the front, keys that stay, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.transformers.steps_at_hand import served, step
from whatif.errors import InfeasiblePointError, UsageError
from whatif.transformers.plan_search import search_plans
from whatif.transformers.serving.plan_space import candidates as served_candidates
from whatif.transformers.training.plan_space import CHOICES, SIZES, candidates


def text_of(value):
    return value if isinstance(value, str) else f"{value:.0f}"


def test_plans_equal_their_own_runs():
    scenario = step("llama-3-8b", ranks=16, global_batch=32)
    found = search_plans(scenario, top=40)
    for at in range(0, len(found.plans["iteration_time"]), 7):
        overrides = {f"application.plan.{key}": text_of(found.plans[key][at]) for key in (*SIZES, *CHOICES)}
        alone = whatif.run(scenario, overrides=overrides)
        for name in ("iteration_time", "memory_size", "model_utilisation"):
            assert_allclose(found.plans[name][at], alone.columns[name], rtol=1e-12, atol=0)


def test_nothing_is_faster_than_the_first_nor_on_the_front_beaten():
    found = search_plans(step("qwen3-30b-a3b", ranks=16, global_batch=32), top=50)
    time, memory = found.plans["iteration_time"], found.plans["memory_size"]
    assert (np.diff(time) >= 0).all()
    front = np.flatnonzero(found.plans["pareto"] == "yes")
    assert (np.diff(memory[front]) < 0).all()
    for at in front:
        assert not ((time < time[at]) & (memory <= memory[at])).any()
    assert set(found.plans["expert_size"]) >= {2.0, 8.0}


def test_all_sizes_that_divide_are_candidates():
    """8 ranks, 32 heads, 32 layers, 8 sequences: counted one by one."""
    scenario = step("llama-3-8b", ranks=8, global_batch=8)
    sizes = candidates(scenario, ())
    expected = set()
    for tensor in (1, 2, 4, 8, 16, 32):
        for context in (1, 2, 4, 8, 16, 32, 64):
            for stages in range(1, 33):
                if 8 % (tensor * context * stages):
                    continue
                each = 8 // (8 // (tensor * context * stages))
                for parts in range(1, (min(16, 32 // stages) if stages > 1 else 1) + 1):
                    expected |= {
                        (tensor, context, stages, parts, micro, 1) for micro in (1, 2, 4, 8) if not each % micro
                    }
    assert set(zip(*(sizes[key].astype(int).tolist() for key in SIZES), strict=True)) == expected


def test_keys_that_stay_and_a_better_plan_than_the_stated_one():
    found = whatif.tune_transformer("llama_training", keep=["tensor_size", "context_size", "recomputation"], top=5)
    assert set(found.plans["tensor_size"]) == {4.0}
    assert set(found.plans["recomputation"]) == {"none"}
    assert found.plans["iteration_time"][0] <= found.present
    assert "--set application.plan.tensor_size=4 " in found.notes[1]


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("llama_serving", {"largest_batch": "48"}),
        ("llama_training", {"global_batch": "192", "micro_batch": "3", "recomputation": "full"}),
    ],
)
def test_the_best_plan_is_never_slower_than_the_stated_one(name, plan):
    found = whatif.tune_transformer(name, overrides={f"application.plan.{key}": text for key, text in plan.items()})
    assert np.isfinite(found.present)
    assert found.plans["iteration_time"][0] <= found.present


def test_sizes_that_are_no_power_of_two_are_candidates():
    sizes = candidates(step("llama-3-8b", ranks=24, global_batch=72, context_size=3), ())
    assert {3.0, 9.0, 18.0} <= set(sizes["micro_batch"])
    assert 3.0 in sizes["context_size"]


def test_every_plan_that_is_found_has_a_schedule():
    found = search_plans(step("llama-3-8b", ranks=16, global_batch=24), top=300)
    plans = {key: found.plans[key] for key in SIZES}
    replicas = 16 / (plans["tensor_size"] * plans["context_size"] * plans["pipeline_size"])
    micro_batches = 24 / replicas / plans["micro_batch"]
    interleaved = (plans["virtual_count"] > 1) & (plans["pipeline_size"] > 1)
    assert interleaved.any()
    assert (micro_batches[interleaved] % plans["pipeline_size"][interleaved] == 0).all()


def test_what_is_refused(whatif_main):
    with pytest.raises(UsageError, match="not a transformer"):
        whatif.tune_transformer("jacobi2d")
    with pytest.raises(UsageError, match=r"--keep tensor: expected one of .*; did you mean `tensor_size`"):
        whatif.tune_transformer("llama_training", keep=["tensor"])
    with pytest.raises(InfeasiblePointError, match=r"none of .* plans fits DGX H100"):
        search_plans(step("llama-3-405b", ranks=8))
    code, _, error = whatif_main("tune", "transformer", "llama_training", "--set", "application.rank_count=7")
    assert code == 4
    assert "plans fits DGX H100" in error


def test_plans_without_room_say_what_the_smallest_needs(whatif_main):
    search = ("tune", "transformer", "llama_training", "--set", "application.rank_count=1")
    code, _, error = whatif_main(*search)
    assert code == 4
    assert "DGX H100: the smallest needs 1.297 TB a device, which has 80 GB" in error
    assert whatif_main(*search, "--set", "platform.node.gpu.memory_size=1.296 TB")[0] == 4
    assert whatif_main(*search, "--set", "platform.node.gpu.memory_size=1.298 TB")[0] == 0


def test_the_plan_that_was_measured_is_among_the_first_five():
    """Llama 3 70B on 64 H100 (NVIDIA Megatron Bridge 26.04)."""
    found = whatif.tune_transformer("llama_training", top=5)
    plans = list(zip(*(found.plans[key] for key in (*SIZES, *CHOICES)), strict=True))
    assert plans.index((4, 1, 8, 5, 1, 1, "optimiser", "none")) < 5


def test_plans_that_are_the_same_appear_once():
    found = whatif.tune_transformer("llama_training", top=200)
    keys = list(zip(*(found.plans[key].tolist() for key in (*SIZES, "iteration_time", "memory_size")), strict=True))
    assert len(keys) == len(set(keys))


def test_plans_of_serving_equal_their_own_runs_and_differ():
    found = search_plans(served("qwen3-30b-a3b", ranks=4, largest_batch=256), top=60)
    names = found.space.sizes
    for at in range(0, len(found.plans["iteration_time"]), 5):
        overrides = {f"application.plan.{key}": text_of(found.plans[key][at]) for key in names}
        alone = whatif.run(served("qwen3-30b-a3b", ranks=4), overrides=overrides)
        for name in ("iteration_time", "token_time", "first_token_time"):
            assert_allclose(found.plans[name][at], alone.columns[name], rtol=1e-12, atol=0)
    same = ("tensor_size", "pipeline_size", "expert_size", "iteration_time")
    rows = list(zip(*(found.plans[key].tolist() for key in same), strict=True))
    assert len(rows) == len(set(rows))
    front = np.flatnonzero(found.plans["pareto"] == "yes")
    assert (np.diff(found.plans["request_time"][front]) < 0).all()
    assert set(found.plans["expert_size"]) >= {1.0, 4.0}


def test_experts_may_be_spread_over_all_ranks_that_decode():
    """24 ranks, of which 8 prefill: 16 divides those that decode, but not all ranks."""
    scenario = served("qwen3-30b-a3b", ranks=24, prefill="separate", prefill_rank_count=8)
    assert set(served_candidates(scenario, ())["expert_size"]) == {1.0, 2.0, 4.0, 8.0, 16.0}


def test_the_worth_of_a_change_is_that_of_a_search_with_it():
    found = whatif.tune_transformer("llama_serving", worth=True)
    more = {"platform.node.gpu.memory_size": "x1.1"}
    other = whatif.tune_transformer("llama_serving", overrides=more)
    faster = float(found.plans["iteration_time"][0] / other.plans["iteration_time"][0]) - 1
    assert faster > 0.01
    said = next(text for text in found.worth if "memory_size x1.1" in text)
    assert f"{faster:.1%} faster" in said
    assert next(text for text in found.worth if "port_count" in text).endswith("no faster, same plan")


def test_the_worth_of_more_memory_is_relative_to_an_override():
    path = "platform.node.gpu.memory_size"
    found = whatif.tune_transformer("llama_serving", worth=True, overrides={path: "200 GB"})
    assert next(text for text in found.worth if f"{path} x1.1" in text).endswith("no faster, same plan")


def test_the_link_domain_may_be_an_expression_and_a_change_may_leave_no_plan():
    domain = "platform.node.domain_gpu_count"
    stated = {domain: "= 1 + 1", "platform.node.gpu_count": "6", "application.rank_count": "6"}
    found = whatif.tune_transformer("llama_serving", worth=True, overrides=stated)
    assert f"with {domain} 4: no plan fits" in found.worth


def test_more_nodes_share_the_work_of_a_transformer(whatif_main):
    code, out, error = whatif_main("scale", "llama_training", "--format", "csv")
    assert code == 0
    rows = [line.split(",") for line in out.splitlines()[1:]]
    assert {row[0] for row in rows} == {"strong"}
    assert "only strong scaling is shown" in error
    found = whatif.compare(["llama_training"], ["dgx_h100"], within={"llama_training": "total_time <= 3 h"})
    assert found.required["llama_training"]["dgx_h100"] == 16
