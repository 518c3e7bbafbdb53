"""Cost of jobs: nodes that were bought, or rented, and energy. Money is in one currency, whichever it is."""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import Count, FloatArray, Fraction, Joules, Seconds, model

_SOURCE = "definition: linear write-off over the time in which the machine is used"


@model("N T", "definition")
def node_time(nodes_needed: Count, total_time: Seconds) -> Seconds:
    """Time of all nodes of a run together in s: its node-hours. Elementwise."""
    return nodes_needed * total_time


@model("price of the machine / its nodes", "definition: what is bought with the nodes is shared by them")
def node_price(machine_price: FloatArray, node_count: Count) -> FloatArray:
    """Capital of one node, in the currency of the price. Elementwise; `node_count` ≥ 1."""
    return machine_price / node_count


@model("N T · price / (lifetime · utilisation)", _SOURCE)
def capital_cost(node_time: Seconds, node_price: FloatArray, lifetime: Seconds, utilisation: Fraction) -> FloatArray:
    """A run's share of the capital, in its currency. Elementwise; `lifetime` > 0, `utilisation` from 0 to 1, not 0.

    No interest; what nodes draw while no job runs on them is not charged to any job.
    """
    return node_time * (node_price / (lifetime * utilisation))


@model("N T · rent", "definition")
def rent_cost(node_time: Seconds, node_rate: FloatArray) -> FloatArray:
    """Rent of the nodes of a run, in its currency; `node_rate` is money per second and node. Elementwise."""
    return node_time * node_rate


@model("E · price", "definition")
def energy_cost(total_energy: Joules, energy_price: FloatArray) -> FloatArray:
    """Price of a run's energy, in its currency; `energy_price` is money per joule. Elementwise."""
    return total_energy * energy_price


@model("Σ", "definition")
def total_cost(*costs: FloatArray) -> FloatArray:
    """What a run costs: its nodes, and its energy where that is paid separately. All in one currency."""
    return np.asarray(sum(costs[1:], start=costs[0]))


@model("cost · lifetime · utilisation / (N T)", "definition")
def owned_cost(total_cost: FloatArray, node_time: Seconds, lifetime: Seconds, utilisation: Fraction) -> FloatArray:
    """What a node costs over its lifetime if it runs such jobs all the time that it is used, in their currency.

    Capital or rent, and energy at the mean power of the job. Elementwise; `node_time` > 0, `lifetime` > 0.
    """
    return total_cost / node_time * (lifetime * utilisation)
