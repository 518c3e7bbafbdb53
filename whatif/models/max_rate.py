"""The max-rate model: the processes of a node share its injection bandwidth."""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import Bytes, BytesPerSecond, Count, Seconds, model


@model("T = α + k n / (R_Cb + (k − 1) R_Ci)", "Choi et al. 2020, Eq. 2")
def max_rate(
    message_size: Bytes,
    process_count: Count,
    latency: Seconds,
    base_bandwidth: BytesPerSecond,
    additional_bandwidth: BytesPerSecond,
) -> Seconds:
    """Time in which k processes of a node send `message_size` bytes each: `α + k n / (R_Cb + (k-1) R_Ci)`.

    `process_count` is k, `base_bandwidth` is R_Cb, what one process sustains alone, and
    `additional_bandwidth` is R_Ci, what each further process adds. Elementwise over any broadcastable shapes;
    valid for `message_size` ≥ 0, `process_count` ≥ 1 (fractions too, as the K-model needs), `base_bandwidth`
    > 0, `additional_bandwidth` ≥ 0. A least-squares fit can give R_Ci < 0, for which the time has a pole: use
    `max_rate_injection` there. One process is the postal model; an infinite bandwidth leaves the latency.
    Where R_Ci > R_Cb the time falls with k. Source: Choi et al., ICS 2020, Eq. 2 and Table 4, after Gropp,
    Olson and Samfass, EuroMPI 2016.
    """
    # A lone process adds nothing, even at an infinite R_Ci, where 0 · ∞ would be NaN.
    additional = np.where(process_count == 1, 0.0, additional_bandwidth)
    return latency + process_count * message_size / (base_bandwidth + (process_count - 1) * additional)


@model("R_Ci = (min(k R_Cb, C R_p) − R_Cb) / (k − 1)", "definition")
def port_additional_bandwidth(
    process_count: Count, base_bandwidth: BytesPerSecond, port_count: Count, port_bandwidth: BytesPerSecond
) -> BytesPerSecond:
    """R_Ci of `max_rate` for k processes on a node of C ports of rate R_p: together they reach min(k R_Cb, C R_p).

    Elementwise over any broadcastable shapes; 0 for k ≤ 1; valid for counts ≥ 0 and bandwidths > 0.
    """
    others = np.where(process_count > 1, process_count - 1, 1.0)
    together = np.minimum(process_count * base_bandwidth, port_count * port_bandwidth)
    return np.where(process_count > 1, np.maximum(together - base_bandwidth, 0.0) / others, 0.0)


@model("R_N = C R_p", "definition")
def node_bandwidth(port_count: Count, port_bandwidth: BytesPerSecond) -> BytesPerSecond:
    """Bandwidth of a node of C ports, each of rate R_p. Elementwise."""
    return port_count * port_bandwidth


@model("T = α + k n β", "Choi et al. 2020, Eq. 3")
def max_rate_short(message_size: Bytes, process_count: Count, latency: Seconds, bandwidth: BytesPerSecond) -> Seconds:
    """Time of `max_rate` for short messages, where k processes share one bandwidth 1/β: `T = α + k n β`.

    Elementwise over any broadcastable shapes; valid for `message_size` ≥ 0, `process_count` ≥ 0, `bandwidth`
    > 0 (an infinite bandwidth leaves the latency). It is `max_rate` with R_Ci = 0. The K-model (Eq. 5) is
    this with `process_count` from `k_model.k_factor`. Source: Choi et al., ICS 2020, Eq. 3 and Table 3.
    """
    return latency + process_count * message_size / bandwidth


@model("T = α + k n / min(R_N, k R_b)", "Gropp, Olson and Samfass 2016")
def max_rate_injection(
    message_size: Bytes,
    process_count: Count,
    latency: Seconds,
    process_bandwidth: BytesPerSecond,
    injection_bandwidth: BytesPerSecond,
) -> Seconds:
    """Time of k sending processes limited by themselves or by their node: `T = α + k n / min(R_N, k R_b)`.

    `process_bandwidth` is R_b, what one process achieves, and `injection_bandwidth` is R_N, what the node's
    network interface takes. Elementwise over any broadcastable shapes; valid for `message_size` ≥ 0,
    `process_count` > 0, bandwidths > 0. With R_N infinite it is the postal model at R_b for any k. Source:
    Gropp, Olson and Samfass, "Modeling MPI communication performance on SMP nodes: is it time to retire the
    ping pong test", EuroMPI 2016.
    """
    rate = np.minimum(injection_bandwidth, process_count * process_bandwidth)
    return latency + process_count * message_size / rate
