"""Arithmetic of reductions in scenarios: closed form, simulation, memory, caches, GPUs, and what leaves it out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.core.test_domains import collective as without_arithmetic
from tests.core.test_domains import scenario, time
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.request_notes import request_notes
from whatif.core.scenario import EvaluationRequest, Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.errors import UsageError
from whatif.studies.scenario_sources import ScenarioSource
from whatif.studies.simulation_run import simulate_source
from whatif.vocabulary import IN_NETWORK, MESSAGE_ALGORITHMS

REDUCTIONS = [
    (operation, algorithm)
    for operation in ("allreduce", "reduce_scatter", "reduce")
    for algorithm in MESSAGE_ALGORITHMS[operation]
    if algorithm not in IN_NETWORK
]
ARITHMETIC = "application__phases__phase__arithmetic"
CPU = "platform.node.cpu."


def collective(algorithm: str, size: str, model: str) -> str:
    return without_arithmetic(algorithm, size, model).replace('arithmetic = "none"\n', "")


def fugaku(algorithm: str, size: str = "8 MiB", ranks: int = 16, more: str = "", head: str = "") -> Scenario:
    return scenario("fugaku", ranks, collective(algorithm, size, "postal") + more, head)


def single(algorithm: str, size: str = "8 MiB", ranks: int = 16, more: str = "") -> Scenario:
    """One rank on a node, so that all messages are alike."""
    return fugaku(algorithm, size, ranks, more, "ranks_per_node = 1")


def values(question: Scenario) -> dict[str, float]:
    found = evaluate(question.program).values
    return {name: np.ravel(found[name])[0].item() for name in found if np.size(found[name]) == 1}


@pytest.mark.parametrize(("operation", "algorithm"), REDUCTIONS)
@pytest.mark.parametrize("ranks", [8, 16])
def test_simulated_reductions_take_the_modelled_time_with_their_arithmetic(
    operation: str, algorithm: str, ranks: int
) -> None:
    question = single(algorithm, ranks=ranks, more=f'operation = "{operation}"\n')
    numbers = values(question)
    added = time(question) - time(question, **{ARITHMETIC: "none"})
    assert_allclose(added, numbers["phase.reduction_time"], rtol=1e-9, atol=0)
    simulated = time(question, application__communication="simulated")
    assert_allclose(simulated, time(question), rtol=1e-9, atol=0)
    without = time(question, application__communication="simulated", **{ARITHMETIC: "none"})
    assert_allclose(simulated - without, added, rtol=1e-6, atol=0)


@pytest.mark.parametrize("algorithm", ["rabenseifner", "recursive_doubling", "recursive_halving"])
def test_ranks_beyond_a_power_of_two_combine_once_more(algorithm: str) -> None:
    question = single(algorithm, ranks=12)
    assert_allclose(time(question, application__communication="simulated"), time(question), rtol=1e-9, atol=0)


@pytest.mark.parametrize("algorithm", ["ring", "hierarchical", "recursive_halving"])
def test_groups_of_ranks_combine_at_the_same_time(algorithm: str) -> None:
    more = 'group = "near"\n[application.groups]\nnear = { size = 4 }\n'
    question = single(algorithm, more=more)
    simulated = time(question, application__communication="simulated")
    assert_allclose(simulated, time(question), rtol=1e-9, atol=0)
    assert_allclose(values(question)["phase.reduction_time"], _traffic(question, 1 - 1 / 4), rtol=1e-12, atol=0)


def _traffic(question: Scenario, share: float, size: float = 8 * 2**20) -> float:
    return 3 * share * size / values(question)["phase.reducing_bandwidth"]


@pytest.mark.parametrize("distance", ["", 'distance = "inter_node"\n'])
@pytest.mark.parametrize("ranks", [12, 16])
def test_the_stated_distance_has_the_arithmetic_of_placed_ranks(distance: str, ranks: int) -> None:
    found = values(single("rabenseifner", ranks=ranks, more=distance))["phase.reduction_time"]
    surplus, below = ranks == 12, 8 if ranks == 12 else 16
    expected = _traffic(single("rabenseifner", ranks=ranks), 1 - 1 / below + surplus)
    assert_allclose(found, expected, rtol=1e-12, atol=0)


def test_one_core_of_each_rank_combines_while_the_others_do() -> None:
    """A64FX: a rank alone in its memory has the bandwidth of a core, twelve of them share that of the memory."""
    alone, full = (values(fugaku("ring", ranks=2 * on, head=f"ranks_per_node = {on}")) for on in (4, 48))
    stated = evaluate(fugaku("ring").program).values
    assert_allclose(alone["phase.reducing_bandwidth"], float(stated[f"{CPU}core_bandwidth"]), rtol=1e-12, atol=0)
    expected = float(stated[f"{CPU}memory_bandwidth"]) / 48
    assert_allclose(full["phase.reducing_bandwidth"], expected, rtol=1e-12, atol=0)


def test_small_buffers_are_in_the_cache_of_a_core_and_larger_ones_in_a_shared_one() -> None:
    """Two Xeon Platinum 8160, 96 GB/s each, an eighth of it for one core."""
    sets = {f"{CPU}cache_size": "33 MB", f"{CPU}cache_bandwidth": "480 GB/s"}

    def rate(size: str, **overrides: str) -> float:
        question = scenario("stampede2_skx", 96, collective("ring", size, "postal"), "ranks_per_node = 48")
        return values(question.changed(overrides))["phase.reducing_bandwidth"]

    found = [rate(size) for size in ("128 KiB", "129 KiB")]
    assert_allclose(found, [96e9 / 8, 96e9 / 24], rtol=1e-12, atol=0)
    found = [rate(size, **sets) for size in ("129 KiB", "0.6875 MB", "0.69 MB")]
    assert_allclose(found, [480e9 / 24, 480e9 / 24, 96e9 / 24], rtol=1e-12, atol=0)


def test_ranks_of_a_gpu_combine_in_its_memory() -> None:
    text = collective("ring", "64 MiB", "max_rate") + "channel_count = 1\n"
    for ranks_per_gpu in (1, 2):
        question = scenario("perlmutter", 16, text, f"ranks_per_gpu = {ranks_per_gpu}")
        numbers = values(question)
        bandwidth = numbers["platform.node.gpu.dram_bandwidth"] / ranks_per_gpu
        expected = 3 * 64 * 2**20 * 15 / 16 / bandwidth
        assert_allclose(numbers["phase.reduction_time"], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("ring", 'arithmetic = "none"\n'),
        ("ring_allgather", ""),
        ("binomial_tree", ""),
        ("binomial_tree", 'operation = "broadcast"\n'),
        ("linear_gather", ""),
        ("pairwise", ""),
        ("best", 'operation = "alltoall"\n'),
    ],
)
def test_no_arithmetic_where_nothing_is_reduced_or_none_is_wanted(algorithm: str, more: str) -> None:
    program = single(algorithm, more=more).program
    assert not any("reduc" in term for term in program.terms)


def test_a_platform_without_memory_bandwidth_has_no_arithmetic_and_says_so() -> None:
    question = scenario("lassen", 16, collective("ring", "1 MiB", "postal"))
    notes = request_notes(EvaluationRequest(question, grid_of([], 1), None))
    assert (
        "phase: the time to combine the numbers is left out, as the platform does not state platform.node.cpu" in notes
    )
    assert time(question) == time(question, **{ARITHMETIC: "none"})
    assert not [
        note for note in request_notes(EvaluationRequest(fugaku("ring"), grid_of([], 1), None)) if "arith" in note
    ]


@pytest.mark.parametrize(
    "axis",
    [
        "application.phases.phase.message_size = 8 B, 100 KiB, 1 MiB, 64 MiB",
        "application.rank_count = 48, 96, 384",
        "application.ranks_per_node = 1, 4, 12, 48",
        "platform.node.cpu.memory_bandwidth = 100 GB/s, 803 GB/s",
    ],
)
@pytest.mark.parametrize("algorithm", ["best", "rabenseifner"])
def test_a_sweep_equals_its_points(axis: str, algorithm: str) -> None:
    question = fugaku(algorithm, ranks=96, head="ranks_per_node = 48")
    path, _, points = axis.partition(" = ")
    swept = run_whole(question, grid_of([parse_option(axis, question.program, 9)], 9)).columns["iteration_time"]
    alone = [time(question, **{path.replace(".", "__"): point}) for point in points.split(", ")]
    assert_array_equal(swept, alone)


SUMS = """
[application.phases.second]
kind = "collective"
algorithm = "{algorithm}"
model = "postal"
message_size = "8 MiB"
"""


def test_one_simulation_of_all_phases_has_the_arithmetic_of_each() -> None:
    question = single("ring", more=SUMS.format(algorithm="recursive_halving"))
    found = simulate_source(ScenarioSource(question, "scenario"))
    assert_allclose(found.activity.run_time, time(question), rtol=1e-9, atol=0)
    arithmetic = values(question)["phase.reduction_time"]
    assert arithmetic > 0.01 * found.activity.run_time
    none = single("ring", more='arithmetic = "none"\n' + SUMS.format(algorithm="recursive_halving"))
    with pytest.raises(UsageError, match="phase and second combine at different rates"):
        simulate_source(ScenarioSource(none, "scenario"))
