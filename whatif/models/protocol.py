"""The message protocol (short, eager, rendezvous) that an MPI library selects by message size."""

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
    """Value for the protocol of a message: one of three times, or parameters with the same unit.

    The limits are the largest sizes sent as short and as eager messages; both are inclusive. Elementwise over
    any broadcastable shapes; valid for 0 ≤ `short_limit` ≤ `eager_limit`; equal limits disable the eager
    protocol, infinite ones the protocols above. A time may decrease where the protocol changes.
    Source: Choi et al., ICS 2020, Sec. 2.1 ("separate sets of parameters may be used for short, eager and
    rendezvous protocols") and Table 2.
    """
    return np.where(message_size <= short_limit, short, np.where(message_size <= eager_limit, eager, rendezvous))
