"""Definitions of the numbers of a study: the equations of `economics`, `study` and `tables`, in one place.

Symbols: n_a nodes and t_a time of a job of application a; h_a = n_a t_a its node time in s; N nodes of the machine;
w_a weight of the application, the share of the present machine's node time, with Σ w_a = 1. A prime marks the present
machine. All times are in s, power in W, energy in J, prices in one currency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Definition:
    """Number of a study: its name, its equation (empty without one), and what it means."""

    name: str
    equation: str
    meaning: str


DEFINITIONS: Final = (
    Definition(
        "symbols",
        "h_a = n_a t_a,  Σ w_a = 1",
        "A job of application a takes the time t_a on n_a nodes, so it costs the node time h_a. The weight w_a is "
        "the share of the present machine's node time that the application has. N are the nodes of a machine. A "
        "prime marks the present machine.",
    ),
    Definition(
        "expected time",
        "t_a = Σ r t_phase, or with runs t_a = m t_predicted,a / t′_predicted,a",
        "Predictions of the phases times r, the mean ratio of measured and predicted times of their models. With runs "
        "on the present machine, predictions are scaled so that those of the present machine agree with the mean m of "
        "its runs.",
    ),
    Definition(
        "nodes",
        "N = min ⌊limit / amount of one node⌋",
        "As many whole nodes as every limit allows: capital, cost over the lifetime, power, and the nodes offered. "
        "The limit with the smallest number binds.",
    ),
    Definition(
        "throughput of the mix",
        "S = (N / N′) / Σ w_a h_a / h′_a",
        "Work per day over that of the present machine: the time that the present machine takes for jobs in the "
        "proportions of its mix, over the time that the bid takes for the same jobs. That of one application alone "
        "is (N / N′) h′_a / h_a.",
    ),
    Definition(
        "figure of merit",
        "F = Π ((N / N′) h′_a / h_a)^w_a",
        "Weighted geometric mean of the throughputs of the applications, as the benchmark suites of CORAL-2 and "
        "JUPITER form one number of several.",
    ),
    Definition(
        "jobs per day",
        "J_a = w_a N′ S · 86,400 s / h′_a",
        "Jobs of one application that a machine completes in a day, if all applications run in the proportions of "
        "the mix.",
    ),
    Definition(
        "probability to be the best",
        "P = share of samples in which the bid has the largest criterion",
        "All bids are computed with the same samples of the uncertain values, so that errors which they share do "
        "not blur their order. Bids that tie share the sample.",
    ),
    Definition(
        "band",
        "from Q(1 − c) to Q(c)",
        "Interval between two quantiles Q of the samples, with the confidence c of the study. It contains the "
        "error of the models and the uncertainty of the inputs.",
    ),
    Definition(
        "commitment",
        "time Q(c) of t_a, jobs per day Q(1 − c) of J_a",
        "Values that a bid meets with the confidence c: a time that the job does not exceed, and jobs per day that the "
        "machine does not fall below.",
    ),
    Definition(
        "cost over the lifetime",
        "C = price + N u L e Σ_a s_a p̄_a",
        "Price of the machine, or its rent, and the energy of its jobs over the lifetime L at utilisation u and "
        "the price e of energy. p̄_a is the mean power of a node that runs application a, with cooling, and s_a "
        "the share of the node time that the application has on that machine.",
    ),
    Definition(
        "power",
        "N max_a p_a",
        "Power of all nodes under load, with cooling, while they run the application that draws most.",
    ),
    Definition(
        "energy and carbon for a day's work",
        "E = N Σ_a s_a p̄_a · 86,400 s / S",
        "Energy for the work that the present machine does in a day, and the emissions of that energy: E times the "
        "carbon intensity of the site.",
    ),
    Definition(
        "equal nodes, money and power",
        "h′_a / h_a,  times c′ / c,  times p′_a / p_a",
        "Throughput of one application on as many nodes as the present machine, on nodes for as much money (c is "
        "the price of a node), and on nodes that draw as much power.",
    ),
)
"""Definitions in the order of the page for the committee."""
