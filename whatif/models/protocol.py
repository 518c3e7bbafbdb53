"""The protocol by which an MPI library sends a message depends on its size."""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import Bytes, FloatArray, model


@model("short if n ≤ n_short, else eager if n ≤ n_eager, else rendezvous", "Choi et al. 2020, Sec. 2.1")
def by_protocol(
    message_size: Bytes,
    short_limit: Bytes,
    eager_limit: Bytes,
    short: FloatArray,
    eager: FloatArray,
    rendezvous: FloatArray,
) -> FloatArray:
    """The one of three values, times or parameters of one unit, that belongs to the protocol of the message.

    The limits are the largest sizes still sent as short and as eager messages; both are inclusive.
    Elementwise over any broadcastable shapes; valid for 0 ≤ `short_limit` ≤ `eager_limit`; equal limits leave
    out the eager protocol, infinite ones leave out those above. A time may fall where the protocol changes.
    Source: Choi et al., ICS 2020, Sec. 2.1 ("separate sets of parameters may be used for short, eager and
    rendezvous protocols") and Table 2.
    """
    return np.where(message_size <= short_limit, short, np.where(message_size <= eager_limit, eager, rendezvous))
