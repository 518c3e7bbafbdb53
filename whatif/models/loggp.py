"""The LogGP model: latency, overhead on both sides and a gap per byte."""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import Bytes, BytesPerSecond, Seconds, model


@model("T = L + 2o + (n − 1) G,  G = 1/bandwidth", "Alexandrov et al. 1997")
def loggp(message_size: Bytes, latency: Seconds, overhead_time: Seconds, bandwidth: BytesPerSecond) -> Seconds:
    """Time of one message from the call of the sender to the return of the receiver: `T = L + 2o + (n-1) G`.

    `overhead_time` is o, paid once by the sender and once by the receiver, and `bandwidth` is 1/G.
    Elementwise over any broadcastable shapes; valid for `message_size` ≥ 0, `latency` ≥ 0, `overhead_time` ≥
    0, `bandwidth` > 0. A message of 0 bytes takes as long as one of 1 byte; an infinite bandwidth leaves L +
    2o. Source: Alexandrov, Ionescu, Schauser and Scheiman, "LogGP: incorporating long messages into the LogP
    model for parallel computation", Journal of Parallel and Distributed Computing 44(1), 1997.
    """
    return latency + 2 * overhead_time + np.maximum(message_size - 1, 0.0) / bandwidth
