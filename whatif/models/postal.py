"""The postal model: a start-up time and a time per byte."""

from __future__ import annotations

from whatif.models.quantities import Bytes, BytesPerSecond, Seconds, model


@model("T = α + n / R,  R = 1/β", "Choi et al. 2020, Eq. 1")
def postal(message_size: Bytes, latency: Seconds, bandwidth: BytesPerSecond) -> Seconds:
    """Time of one message on an idle path: `T = α + β n`, with `bandwidth` = 1/β.

    Elementwise over any broadcastable shapes; valid for `message_size` ≥ 0, `latency` ≥ 0, `bandwidth` > 0
    (an infinite bandwidth leaves the latency). Source: Choi et al., ICS 2020, Eq. 1 and Table 2, after
    Bar-Noy and Kipnis, SPAA 1992.
    """
    return latency + message_size / bandwidth
