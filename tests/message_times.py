"""Times of messages with known parameters and limits, as tables of measurements."""

from __future__ import annotations

import numpy as np

from whatif.importers.message_tables import measurements
from whatif.models.max_rate import max_rate, max_rate_injection, max_rate_short
from whatif.models.postal import postal

SIZES = 2.0 ** np.arange(0, 23)
LATENCIES = np.array([1.2e-6, 2.9e-6, 8.8e-6])
BANDWIDTHS = np.array([8.4e8, 6.6e9, 1.4e10])
LIMITS = (128.0, 65536.0)
KINDS = "are these one distance, one machine, one library"


def place(size, limits=LIMITS):
    return np.where(size <= limits[0], 0, np.where(size <= limits[1], 1, 2))


def table(size, time, count=1.0, test="ping_pong", **columns):
    return measurements({"test": test, "message_size": size, "time": time, "pair_count": count, **columns}, {})


def postal_times(size, limits=LIMITS):
    at = place(size, limits)
    return postal(size, LATENCIES[at], BANDWIDTHS[at])


def shared(model, counts=(1.0, 2, 3, 4, 6)):
    size, count = (values.ravel() for values in np.meshgrid(SIZES, counts))
    at = place(size)
    if model == "injection":
        return size, count, max_rate_injection(size, count, LATENCIES[at], BANDWIDTHS[at], 2.5 * BANDWIDTHS[at])
    whole = max_rate(size, count, LATENCIES[at], BANDWIDTHS[at], 0.3 * BANDWIDTHS[at])
    return size, count, np.where(at == 0, max_rate_short(size, count, LATENCIES[0], BANDWIDTHS[0]), whole)
