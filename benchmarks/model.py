"""Model core: points per second, one edit, counting the messages of a million ranks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from benchmarks.measure import Row, median_seconds
from whatif.axes import Grid
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.core.sweep import grid_of, parse_option
from whatif.core.term import Program
from whatif.core.uncertainty import Sampling, uncertain
from whatif.models.patterns import GridPattern, message_counts
from whatif.models.quantities import FloatArray
from whatif.simulation import link_loads
from whatif.simulation.topology import Topology, torus
from whatif.studies.attribution import attribute
from whatif.studies.elasticity import elasticities
from whatif.studies.sobol import sobol_indices

BANDWIDTH = "platform.network.inter_node.max_rate.rendezvous.base_bandwidth"
MEMORY = "platform.node.gpu.dram_bandwidth"
OVERHEAD = "application.phases.overhead.overhead_time"
AXES = (
    f"{BANDWIDTH} = 1 GB/s .. 100 GB/s log 100",
    f"{MEMORY} = 100 GB/s .. 3000 GB/s log 100",
    f"{OVERHEAD} = 0 us .. 1 ms linear 100",
)


def _sweep(scenario: Scenario, grid: Grid) -> None:
    for _ in run(scenario, grid):
        pass


def million_points() -> Iterator[Row]:
    """Rate of a sweep of Jacobi2D over three parameters, against validation and evaluation of each point."""
    scenario = Scenario.open("jacobi2d")
    grid = grid_of([parse_option(text, scenario.program, 10**7) for text in AXES], 10**7)
    seconds = median_seconds(lambda: _sweep(scenario, grid), 7)

    def one_point() -> None:
        evaluate(
            Scenario(scenario.document, overrides={BANDWIDTH: "12 GB/s", MEMORY: "800 GB/s", OVERHEAD: "1 us"}).program
        )

    each = median_seconds(one_point, 15)
    rate = grid.size / seconds
    yield Row(
        "sweep of 10^6 points, points per second",
        f"{rate / 1e6:.1f} M/s",
        f"{1 / each:.0f} /s",
        rate * each,
        "validate and evaluate point by point",
    )


def million_congested_points() -> Iterator[Row]:
    """Rate of the same sweep with congestion, for halos with 4 and 26 neighbours, against the one without."""
    for name in ("jacobi2d", "minife"):
        seconds = []
        for congestion in ("modelled", "none"):
            scenario = Scenario.open(name, overrides={"application.congestion": congestion})
            grid = grid_of([parse_option(text, scenario.program, 10**7) for text in AXES], 10**7)
            seconds.append(median_seconds(partial(_sweep, scenario, grid), 15))
        rates = [f"{1 / taken:.1f} M/s" for taken in seconds]
        yield Row(f"10^6 points of {name} with congestion", *rates, seconds[1] / seconds[0], "without congestion")


def edit_of_a_parameter() -> Iterator[Row]:
    """Time of one edit with a sweep of 10^4 points: only dependent terms are evaluated, against all terms."""
    start = Session.start(Scenario.open("jacobi2d")).sweep(BANDWIDTH, "1 GB/s .. 100 GB/s log 10000")
    for name, parameter in (
        ("memory bandwidth", MEMORY),
        ("network latency", "platform.network.inter_node.max_rate.rendezvous.latency"),
    ):
        session = start

        def edit(parameter: str = parameter) -> None:
            nonlocal session
            session = session.nudge(parameter, 1)

        def everything() -> None:
            evaluate(start.program, start.grid.arrays())
            evaluate(start.program)

        seconds = median_seconds(edit, 25, time.process_time)
        whole = median_seconds(everything, 25, time.process_time)
        yield Row(
            f"edit of {name} under a sweep of 10^4 points, CPU",
            f"{seconds * 1e3:.2f} ms",
            f"{whole * 1e3:.2f} ms",
            whole / seconds,
            "evaluate every term again",
        )


def million_ranks() -> Iterator[Row]:
    """Time to count a million ranks with 26 neighbours, against a Python loop (timed on 20^3 ranks, per rank)."""
    start = time.perf_counter()
    message_counts.__wrapped__(GridPattern((100, 100, 100), 6, 3, neighbours="all"))
    seconds = time.perf_counter() - start
    side = 20
    start = time.perf_counter()
    _counted_in_python(side, 6)
    each = (time.perf_counter() - start) / side**3
    yield Row(
        "count 10^6 ranks with 26 neighbours",
        f"{seconds:.2f} s",
        f"{each * 1e6:.0f} s",
        each * 1e6 / seconds,
        "a loop in Python",
    )


def loads_of_links() -> Iterator[Row]:
    """Time to count the messages on every link of a torus, ring by ring and along the route of each message."""
    fugaku = torus((24, 23, 24, 2, 3, 2), 6.8e9, 1e-7)
    pattern = GridPattern((96, 92, 72), 4, 4, neighbours="all")
    node = pattern.nodes()
    steps = [(node[sender], node[receiver], None) for _, sender, receiver in pattern.messages()]
    seconds = median_seconds(lambda: link_loads.link_loads(fugaku, steps, spread=False), 3)
    routed = median_seconds(lambda: _counted_along_routes(fugaku, steps), 1)
    yield Row(
        "loads of the links of Fugaku, halo of 636,000 ranks",
        f"{seconds:.2f} s",
        f"{routed:.2f} s",
        routed / seconds,
        "the route of each message",
    )


def _counted_along_routes(network: Topology, steps: list[link_loads.Step]) -> None:
    loads = np.zeros((len(steps), len(network.capacities)))
    for step, (source, destination, _) in enumerate(steps):
        for first in range(0, len(source), link_loads.MOST_AT_ONCE):
            own = slice(first, first + link_loads.MOST_AT_ONCE)
            loads[step] += np.bincount(network.routes(source[own], destination[own]).link, minlength=loads.shape[1])


def _counted_in_python(side: int, ranks_per_node: int) -> int:
    offsets = [offset for offset in product((-1, 0, 1), repeat=3) if any(offset)]
    nodes = np.zeros(side**3 // ranks_per_node + 1, dtype=int)
    for rank in range(side**3):
        x, y, z = rank // side**2, rank // side % side, rank % side
        for dx, dy, dz in offsets:
            if 0 <= x + dx < side and 0 <= y + dy < side and 0 <= z + dz < side:
                other = (x + dx) * side**2 + (y + dy) * side + z + dz
                nodes[rank // ranks_per_node] += other // ranks_per_node != rank // ranks_per_node
    return int(nodes.max())


def decisions() -> Iterator[Row]:
    """Time of all elasticities of MiniMD, and of the attribution to Frontier, against evaluating single points."""
    program, other = Scenario.open("minimd").program, Scenario.open("minimd", platform="frontier").program
    one = median_seconds(lambda: evaluate(program), 25, time.process_time)
    seconds = median_seconds(lambda: elasticities(program), 15, time.process_time)
    count = 2 * len(elasticities(program)) + 1
    alone = f"{count} points one by one"
    yield Row(
        "tornado of all values, CPU",
        f"{1e3 * seconds:.1f} ms",
        f"{1e3 * one * count:.0f} ms",
        one * count / seconds,
        alone,
    )
    seconds = median_seconds(lambda: attribute(program, other), 5, time.process_time)
    count = 2 ** len(attribute(program, other).changes)
    alone = f"{count} combinations one by one"
    yield Row(
        "why Frontier is faster, exact, CPU",
        f"{1e3 * seconds:.0f} ms",
        f"{one * count:.1f} s",
        one * count / seconds,
        alone,
    )
    yield _sobol(other)


def _sobol(program: Program) -> Row:
    """Time of Sobol' indices with many uncertain values; scipy evaluates every term for every exchanged value."""
    from scipy import stats

    sampling = Sampling(2**14, spreads={"assumed": 0.2, "datasheet": 0.1})
    known, term = uncertain(program, sampling), program.term_of("iteration_time")

    def times(values: FloatArray) -> FloatArray:
        return np.array(evaluate(program, dict(zip(known, values, strict=True))).numbers(term))

    distributions = [stats.lognorm(np.log(item.numbers[1]), scale=item.numbers[0]) for item in known.values()]
    seconds = median_seconds(lambda: sobol_indices(program, sampling), 3, time.process_time)
    other = median_seconds(
        lambda: stats.sobol_indices(func=times, n=sampling.count, dists=distributions, rng=0), 1, time.process_time
    )
    what = f"Sobol' indices of {len(known)} values, 2^14 samples, CPU"
    return Row(what, f"{seconds:.2f} s", f"{other:.1f} s", other / seconds, "scipy.stats.sobol_indices")
