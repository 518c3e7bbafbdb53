"""Pageable copies on a machine that nobody has measured: the rate of staging from the host memory's data sheet.

Three figures were chosen with the copies on Titan and Summit in sight (docs/validation.md, projection of profiles):
`CORE_SHARE`, `COMMAND_BANDWIDTH`, and the three passes of Titan's copies to the device.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.models.quantities import Bytes, BytesPerSecond, Count, Fraction, model

CORE_SHARE: Final = 0.156
"""Share of a socket's peak memory bandwidth that the one core moves that fills and empties the driver's buffers."""
PASS_COUNT: Final = 2.0
"""Times that a staged byte crosses the bus of host memory where nothing else is known: read, and written."""
CHUNK_SIZE: Final = 2.0**20
"""Bytes of one of the driver's two buffers, the same on every machine measured."""
COMMAND_SIZE: Final = 2.0**16
"""Largest pageable copy to the device that travels inside the command buffer."""
COMMAND_BANDWIDTH: Final = 10.7e9
"""Bytes a second in which a device takes data from commands: 8 a clock, measured on V100 (1.33 GHz).

A K20X takes 5.85 GB/s (8 at 732 MHz), which is the rate of its link anyway."""


@model("B_s = σ Memory_BW / p", "docs/validation.md, projection of profiles")
def core_copy_bandwidth(memory_bandwidth: BytesPerSecond, core_share: Fraction, pass_count: Count) -> BytesPerSecond:
    """Rate at which one core copies between pageable memory and the driver's buffers: `σ · Memory_BW / p`.

    `memory_bandwidth` is the peak of one socket, `core_share` (σ) what one core gets of it, `pass_count` (p) how often
    a byte crosses the memory's bus: 2 where it is read and written, 3 where the cache fetches each line before it is
    overwritten. Elementwise over any broadcastable shapes; valid for arguments > 0. With σ = `CORE_SHARE`, p = 2 (3 on
    Titan to the device) and L + O measured on the machine itself: 2.7 and 9.7 % weighted mean error on Titan, 9.2 and
    13.8 % on Summit, to device and to host; on Perlmutter, which was not used to choose σ, 12 and 17 % (250 MiB).
    """
    return core_share * memory_bandwidth / pass_count


@model("BW = min(BW_eff, BW_c) for n ≤ 64 KiB, else BW_eff", "docs/validation.md, projection of profiles")
def commanded_bandwidth(message_size: Bytes, effective_bandwidth: BytesPerSecond) -> BytesPerSecond:
    """Bandwidth of a link for pageable copies to the device, of which the driver sends small ones with its commands.

    Up to `COMMAND_SIZE` the device takes no more than `COMMAND_BANDWIDTH` from the command buffer. Into
    `staged_read_time` in place of BW_eff: a copy of one chunk takes L + O + n / BW. On Summit copies of up to 64 KiB
    are then 0.3 % off (weighted), not 28 %. Elementwise over any broadcastable shapes; valid for `message_size` ≥ 0,
    `effective_bandwidth` > 0.
    """
    return np.where(
        message_size <= COMMAND_SIZE, np.minimum(effective_bandwidth, COMMAND_BANDWIDTH), effective_bandwidth
    )
