"""Pageable copies on a machine without measurements: the staging rate from the data sheet of the host memory.

Three constants were chosen knowing the copies measured on Titan and Summit (docs/validation.md, projection of
profiles): `CORE_SHARE`, `COMMAND_BANDWIDTH`, and the three passes of copies to the device on Titan.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.models.quantities import Bytes, BytesPerSecond, Count, Fraction, model

CORE_SHARE: Final = 0.156
"""Share of a socket's peak memory bandwidth achieved by the one core that fills and empties the driver's buffers."""
PASS_COUNT: Final = 2.0
"""Times that a staged byte crosses the host memory bus unless stated otherwise: one read and one write."""
CHUNK_SIZE: Final = 2.0**20
"""Size of one of the driver's two buffers in B, the same on every machine measured."""
COMMAND_SIZE: Final = 2.0**16
"""Largest pageable copy to the device, in B, that is sent inside the command buffer."""
COMMAND_BANDWIDTH: Final = 10.7e9
"""Rate in B/s at which a device reads data from its command buffer: 8 B per clock, measured on V100 (1.33 GHz).

On K20X it would be 5.85 GB/s (8 B at 732 MHz), which equals the rate of its link."""


@model("B_s = σ Memory_BW / p", "docs/validation.md, projection of profiles")
def core_copy_bandwidth(memory_bandwidth: BytesPerSecond, core_share: Fraction, pass_count: Count) -> BytesPerSecond:
    """Rate at which one core copies between pageable memory and the driver's buffers: `σ · Memory_BW / p`.

    `memory_bandwidth` is the peak of one socket, `core_share` (σ) the share achieved by one core, `pass_count` (p) the
    number of times a byte crosses the memory bus: 2 for a read and a write, 3 if the cache fetches each line before it
    is overwritten. Elementwise over any broadcastable shapes; valid for arguments > 0. With σ = `CORE_SHARE`, p = 2 (3
    on Titan to the device) and L + O measured on the same machine: 2.7 and 9.7 % weighted mean error on Titan, 9.2 and
    13.8 % on Summit, to device and to host; on Perlmutter, which was not used to choose σ, 12 and 17 % (250 MiB).
    """
    return core_share * memory_bandwidth / pass_count


@model("BW = min(BW_eff, BW_c) for n ≤ 64 KiB, else BW_eff", "docs/validation.md, projection of profiles")
def commanded_bandwidth(message_size: Bytes, effective_bandwidth: BytesPerSecond) -> BytesPerSecond:
    """Bandwidth of a link for pageable copies to the device; the driver sends the smallest with its commands.

    Up to `COMMAND_SIZE` the device reads at most `COMMAND_BANDWIDTH` from the command buffer. Replaces BW_eff in
    `staged_read_time`: a copy of one chunk takes L + O + n / BW. On Summit this reduces the weighted error of copies
    up to 64 KiB from 28 to 0.3 %. Elementwise over any broadcastable shapes; valid for `message_size` ≥ 0,
    `effective_bandwidth` > 0.
    """
    return np.where(
        message_size <= COMMAND_SIZE, np.minimum(effective_bandwidth, COMMAND_BANDWIDTH), effective_bandwidth
    )
