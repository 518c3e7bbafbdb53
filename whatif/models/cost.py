"""Cost of jobs: nodes, bought or rented, and energy. All money is in one currency."""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import Count, FloatArray, Fraction, Joules, Seconds, model

_SOURCE = "definition: linear write-off over the time in use"


@model("N T", "definition")
def node_time(nodes_needed: Count, total_time: Seconds) -> Seconds:
    """Total node time of a run in s (its node-hours). Elementwise."""
    return nodes_needed * total_time


@model("price of the machine / its nodes", "definition: everything bought with the nodes is shared equally")
def node_price(machine_price: FloatArray, node_count: Count) -> FloatArray:
    """Price of one node, in the currency of `machine_price`. Elementwise; `node_count` ≥ 1."""
    return machine_price / node_count


@model("N T · price / (lifetime · utilisation)", _SOURCE)
def capital_cost(node_time: Seconds, node_price: FloatArray, lifetime: Seconds, utilisation: Fraction) -> FloatArray:
    """Capital cost of a run, in the currency of `node_price`.

    Without interest; the energy of idle nodes is not charged to any job. Elementwise; `lifetime` > 0,
    0 < `utilisation` ≤ 1.
    """
    return node_time * (node_price / (lifetime * utilisation))


@model("N T · rent", "definition")
def rent_cost(node_time: Seconds, node_rate: FloatArray) -> FloatArray:
    """Rent of the nodes of a run; `node_rate` is money per second and node. Elementwise."""
    return node_time * node_rate


@model("E · price", "definition")
def energy_cost(total_energy: Joules, energy_price: FloatArray) -> FloatArray:
    """Cost of the energy of a run; `energy_price` is money per joule. Elementwise."""
    return total_energy * energy_price


@model("Σ of the costs", "definition")
def total_cost(*costs: FloatArray) -> FloatArray:
    """Total cost of a run: its nodes, and its energy if paid separately. All in one currency."""
    return np.asarray(sum(costs[1:], start=costs[0]))


@model("cost · lifetime · utilisation / (N T)", "definition")
def owned_cost(total_cost: FloatArray, node_time: Seconds, lifetime: Seconds, utilisation: Fraction) -> FloatArray:
    """Cost of owning one node over its lifetime, if it runs only such jobs while in use.

    Sums capital or rent, and energy at the mean power of the job. Elementwise; `node_time` > 0, `lifetime` > 0.
    """
    return total_cost / node_time * (lifetime * utilisation)
