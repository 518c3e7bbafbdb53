"""Message charges: the times for which a simulated message occupies processors, adapters and links.

A charge is linear in the message size and is given by its values at two sizes, 0 B and `LONG`, along the axis "size".
The axis "charge" lists the sender's processor, the sending side, the flight, the receiver's processor and the
receiving side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import numpy as np

from whatif import units
from whatif.models.quantities import BytesPerSecond, Core, FloatArray, Seconds, model

Charges = Annotated[FloatArray, units.SECOND, Core("charge", "size")]
ProtocolCharges = Annotated[FloatArray, units.SECOND, Core("protocol", "charge", "size")]
SharedRates = Annotated[FloatArray, units.BYTE_PER_SECOND, Core("protocol", "rate")]
"""Bandwidths of max-rate messages between nodes by protocol: of the first one, of each further one, and the largest."""

LONG: Final = 2.0**20
"""Second of the two sizes, in B; the first is 0 B."""
SEND_OVERHEAD, SEND_GAP, FLIGHT, RECEIVE_OVERHEAD, RECEIVE_GAP = range(5)


@model("sending side and flight: T(n)", "simulator of Choi et al. 2020: the sends of a rank follow one another")
def serial_charges(empty_time: Seconds, long_time: Seconds) -> Charges:
    """Charges of a message that occupies the sending side until it has arrived, and no processor.

    Fits any linear model `T(n)`: `empty_time` is T(0), `long_time` T(1 MiB). Elementwise over any broadcastable shapes;
    the result has two more axes, [..., charge, size].
    """
    times = np.stack(np.broadcast_arrays(empty_time, long_time), axis=-1)
    charges = np.zeros((*times.shape[:-1], 5, 2))
    charges[..., SEND_GAP, :] = times
    charges[..., FLIGHT, :] = times
    return charges


@model(
    "processors: o + (n − 1) O, receiving o + (n − 1) max(O, G); sides: g + (n − 1) G; flight: o + L",
    "Hoefler, Schneider and Lumsdaine 2010 (LogGOPSim)",
)
def loggops_charges(
    latency: Seconds,
    overhead_time: Seconds,
    bandwidth: BytesPerSecond,
    gap_time: Seconds,
    processing_bandwidth: BytesPerSecond,
) -> Charges:
    """Charges of a message in LogGOPS, from L, o, 1/G, g and 1/O (infinite for LogGPS).

    Elementwise over any broadcastable shapes; the result has two more axes, [..., charge, size]. Sizes count n - 1, so
    a message of 0 B is charged like one of 1 B. Source: Hoefler, Schneider and Lumsdaine, "LogGOPSim: simulating
    large-scale applications in the LogGOPS model", HPDC 2010.
    """
    per_byte, handling = 1 / bandwidth, 1 / processing_bandwidth
    lines = {
        SEND_OVERHEAD: (overhead_time, handling),
        SEND_GAP: (gap_time, per_byte),
        FLIGHT: (overhead_time + latency, 0.0 * per_byte),
        RECEIVE_OVERHEAD: (overhead_time, np.maximum(handling, per_byte)),
        RECEIVE_GAP: (gap_time, per_byte),
    }
    return _charges(lines)


@model(
    "sender: o_s + n / B_s, receiver: o_r + n / B_r; side: sender + n / B; flight: side + L",
    "SimGrid's os, or, lat-factor and bw-factor; Cornebize et al. 2019 (HPL, messages in pieces)",
)
def piece_charges(
    latency: Seconds,
    bandwidth: BytesPerSecond,
    send_overhead: Seconds,
    send_bandwidth: BytesPerSecond,
    receive_overhead: Seconds,
    receive_bandwidth: BytesPerSecond,
) -> Charges:
    """Charges of an eager message of one piece of a calibration; infinite bandwidths for overheads of empty messages.

    The overhead of the sender precedes the message, that of the receiver follows it. Elementwise over
    any broadcastable shapes; the result has two more axes, [..., charge, size]. Source: SimGrid, options
    smpi/os, or, lat-factor and bw-factor; Cornebize, Legrand and Heinrich 2019, hal-02096571v1, section 6.2.
    """
    sending, receiving, wire = 1 / send_bandwidth, 1 / receive_bandwidth, 1 / bandwidth
    lines = {
        SEND_OVERHEAD: (send_overhead, sending),
        SEND_GAP: (send_overhead, sending + wire),
        FLIGHT: (send_overhead + latency, sending + wire),
        RECEIVE_OVERHEAD: (receive_overhead, receiving),
        RECEIVE_GAP: (receive_overhead, receiving),
    }
    return _charges(lines)


def _charges(lines: Mapping[int, tuple[FloatArray, FloatArray]]) -> Charges:
    """Charges in the order of `lines`, each from the time of an empty message and the time per byte."""
    rows = [np.stack(np.broadcast_arrays(empty, empty + LONG * slope), axis=-1) for empty, slope in lines.values()]
    return np.stack(np.broadcast_arrays(*rows), axis=-2)


def by_protocol_charges(*charges: Charges) -> ProtocolCharges:
    """Charges of all distances and protocols along the axis "protocol", protocols fastest."""
    return np.stack(np.broadcast_arrays(*charges), axis=-3)


def by_protocol_rates(*rates: BytesPerSecond) -> SharedRates:
    """Three rates of each protocol along the axes "protocol" and "rate", rates fastest."""
    joined = np.stack(np.broadcast_arrays(*rates), axis=-1)
    return joined.reshape(*joined.shape[:-1], -1, 3)
