"""Copies between host and device memory over PCIe or NVLink (AHEAD).

A link moves n̂ bytes for n bytes of payload. The chain is: link bandwidth, transferred size n̂, effective
bandwidth, time. The constants of the authors' tool differ from the text: 30 B for a read or a write request
and 20 B for a completion (8 or 12 B in the text), RCB = 64 B, MPS = 128 B. By the PCI Express specification a
request with a 64-bit address has 24 B (framing 2, sequence number 2, header 16, checksum 4) and a completion 20 B.
"""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import Bytes, BytesPerSecond, Count, Seconds, model

# By generation, from 1; element 0 is for generations that do not exist.
# Raw rate of a lane in transfers (of one bit) per second: AHEAD, Table II; PCIe 5.0 and 6.0 specifications.
_LANE_RATES = np.array([np.nan, 2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9])
# Generations 1, 2: 8b/10b; 3 to 5: 128b/130b; 6: 242 of a 256 B flit, the rest being 8 B CRC and 6 B FEC.
_ENCODINGS = np.array([np.nan, 8 / 10, 8 / 10, 128 / 130, 128 / 130, 128 / 130, 242 / 256])
_LANE_BANDWIDTHS = _LANE_RATES / 8 * _ENCODINGS


@model("Link_BW = lanes · Lane_BW · η", "Abdelhafez et al. (AHEAD), Eq. 3 and Table II")
def pcie_bandwidth(lane_count: Count, generation: Count) -> BytesPerSecond:
    """Bandwidth of a PCIe link in one direction after line encoding: `lanes · rate / 8 · η`.

    Elementwise over any broadcastable shapes; valid for `lane_count` ≥ 0 and `generation` 1, 2, 3, 4, 5 or 6;
    any other generation gives NaN. Lane_BW is the raw rate / 8; the lane bandwidths that Table II prints include
    η already. Source: Abdelhafez et al., "AHEAD", Eq. 3 and the raw rates of Table II (generations 1 to 4); the PCIe
    specifications for 5 (rate doubled) and 6 (PAM4, flits in place of a line code).
    """
    known = np.isin(generation, np.arange(1, len(_LANE_BANDWIDTHS)))
    lane_bandwidth: BytesPerSecond = _LANE_BANDWIDTHS[np.where(known, generation, 0).astype(np.intp)]
    return lane_count * lane_bandwidth


@model("BW = links · lanes · Lane_BW", "Abdelhafez et al. (AHEAD), Eq. 8")
def nvlink_bandwidth(link_count: Count, lane_count: Count, lane_bandwidth: BytesPerSecond) -> BytesPerSecond:
    """Bandwidth of a bundle of NVLinks in one direction: `links · lanes · Lane_BW`.

    `lane_count` is the lanes of one link, one way: 8 of 25 Gbit/s for NVLink 2, 25 GB/s a link. Elementwise
    over any broadcastable shapes; valid for counts ≥ 0. Source: Abdelhafez et al., Eq. 8 and the sentence
    after it.
    """
    return link_count * lane_count * lane_bandwidth


@model("n̂ = MRd_O + MRRS + ⌈n / RCB⌉ CplD_O + n", "Abdelhafez et al. (AHEAD), Eq. 4")
def pcie_read_size(
    message_size: Bytes,
    read_request_size: Bytes,
    completion_boundary_size: Bytes,
    request_header_size: Bytes,
    completion_header_size: Bytes,
) -> Bytes:
    """Bytes on a PCIe link while the device reads n bytes of host memory (a copy host to device).

    `read_request_size` is MRRS, `completion_boundary_size` is RCB, the headers are MRd_O and CplD_O. Only the
    first request takes time: later ones travel while data arrives. The tool uses `min(MRRS, n)` where the text
    has MRRS; this function follows the text. Elementwise over any broadcastable shapes; valid for
    `message_size` ≥ 0 (0 bytes send nothing), `completion_boundary_size` > 0. Source: Abdelhafez et al., Eq. 4.
    """
    completion_count = np.ceil(message_size / completion_boundary_size)
    read_size = request_header_size + read_request_size + completion_count * completion_header_size + message_size
    return np.where(message_size > 0, read_size, 0.0)


@model("n̂ = ⌈n / MPS⌉ MWr_O + n", "Abdelhafez et al. (AHEAD), Eq. 5")
def pcie_write_size(message_size: Bytes, payload_size: Bytes, write_header_size: Bytes) -> Bytes:
    """Bytes on a PCIe link while the device writes n bytes to host memory (a copy device to host).

    `payload_size` is MPS, the largest payload of a packet, `write_header_size` is MWr_O. Elementwise over any
    broadcastable shapes; valid for `message_size` ≥ 0, `payload_size` > 0. Source: Abdelhafez et al., Eq. 5.
    """
    packet_count: Count = np.ceil(message_size / payload_size)
    return packet_count * write_header_size + message_size


@model("n̂ = Flit_size + ⌈n / MaxPayload⌉ Flit_size + n", "Abdelhafez et al. (AHEAD), Eq. 6")
def nvlink_read_size(message_size: Bytes, payload_size: Bytes, flit_size: Bytes) -> Bytes:
    """Bytes on an NVLink while n bytes are read from the other side: one request flit and one header flit per packet.

    `payload_size` is MaxPayload (256 B, 16 flits), `flit_size` is 16 B. Elementwise over any broadcastable
    shapes; valid for `message_size` ≥ 0 (nothing is sent for 0 bytes), `payload_size` > 0. Source: Abdelhafez
    et al., Eq. 6.
    """
    read_size = flit_size + nvlink_write_size(message_size, payload_size, flit_size)
    return np.where(message_size > 0, read_size, 0.0)


@model("n̂ = ⌈n / MaxPayload⌉ Flit_size + n", "Abdelhafez et al. (AHEAD), Eq. 7")
def nvlink_write_size(message_size: Bytes, payload_size: Bytes, flit_size: Bytes) -> Bytes:
    """Bytes on an NVLink while n bytes are written to the other side: one header flit per packet.

    `payload_size` is MaxPayload (256 B, 16 flits), `flit_size` is 16 B. Elementwise over any broadcastable
    shapes; valid for `message_size` ≥ 0, `payload_size` > 0. Source: Abdelhafez et al., Eq. 7.
    """
    packet_count: Count = np.ceil(message_size / payload_size)
    return packet_count * flit_size + message_size


@model("BW_eff = n Link_BW / n̂", "Abdelhafez et al. (AHEAD), Eq. 2")
def effective_bandwidth(message_size: Bytes, transferred_size: Bytes, link_bandwidth: BytesPerSecond) -> BytesPerSecond:
    """Effective bandwidth of a link for its payload: `n / n̂ · Link_BW`.

    `transferred_size` is n̂, from one of the four functions above. Elementwise over any broadcastable shapes;
    valid for 0 ≤ `message_size` ≤ `transferred_size`. For n = 0 the result is the bandwidth of the link, so
    that Eqs. 9 and 10 leave the latency. Source: Abdelhafez et al., Eq. 2.
    """
    sent = message_size > 0
    return np.where(sent, message_size, 1.0) / np.where(sent, transferred_size, 1.0) * link_bandwidth


@model("T = L + O + n / BW_eff", "Abdelhafez et al. (AHEAD), Eq. 10")
def pinned_time(message_size: Bytes, latency: Seconds, effective_bandwidth: BytesPerSecond) -> Seconds:
    """Time of a copy from or to page-locked host memory: `L + O + n / BW_eff`.

    `latency` is L + O, measured together as the time of one byte. Elementwise over any broadcastable shapes;
    valid for `message_size` ≥ 0, `effective_bandwidth` > 0 (an infinite one leaves the latency). Within 0.3
    and 0.4 % on Summit, 1.6 and 0.3 % on Titan (to device and to host, weighted mean error over 1 B to 256
    MiB); with the tool's 30 B 3.6 % to host on Titan. Source: Abdelhafez et al., Eq. 10.
    """
    return latency + message_size / effective_bandwidth


@model("T = L + O + 2 n / Memory_BW + n / BW_eff", "Abdelhafez et al. (AHEAD), Eq. 9")
def pageable_time(
    message_size: Bytes,
    latency: Seconds,
    effective_bandwidth: BytesPerSecond,
    memory_bandwidth: BytesPerSecond,
) -> Seconds:
    """Time of a copy from or to pageable host memory: `L + O + 2n / Memory_BW + n / BW_eff`.

    `memory_bandwidth` is the peak of host memory, which the copy to a pinned buffer reads and writes.
    Elementwise over any broadcastable shapes; valid for `message_size` ≥ 0, bandwidths > 0; an infinite
    `memory_bandwidth` gives `pinned_time`. A rough estimate, as its authors note: weighted mean errors to device and
    to host of 58 and 56 % on Summit (170.6 GB/s), 47 and 32 % on Titan (51.2 GB/s); with the tool's 30 B, 30 % to host
    on Titan. `staged_read_time` and `staged_write_time` model the driver.
    Source: Abdelhafez et al., Eq. 9.
    """
    return pinned_time(message_size, latency, effective_bandwidth) + 2 * message_size / memory_bandwidth


@model("B_s = n / (min(n, S) / B_c + max(n − S, 0) / B_m)", "docs/validation.md, staged copies")
def staging_bandwidth(
    message_size: Bytes,
    cache_size: Bytes,
    cached_bandwidth: BytesPerSecond,
    uncached_bandwidth: BytesPerSecond,
) -> BytesPerSecond:
    """Rate at which the processor copies between pageable memory and the driver's buffers, over a whole copy.

    `cache_size` is S, the bytes held by the cache and copied at B_c; the others are copied at B_m. S = 0 gives B_m.
    Elementwise over any broadcastable shapes; valid for sizes ≥ 0, bandwidths > 0. Needed on Summit, where two
    POWER9 cores share 10 MiB of cache; not on Titan.
    """
    # An empty copy has the rate of the first byte, which avoids 0 / 0.
    size = np.maximum(message_size, 1.0)
    cached_size = np.minimum(size, cache_size)
    return size / (cached_size / cached_bandwidth + (size - cached_size) / uncached_bandwidth)


@model("T = L + O + t(c) + (k − 2) max(t(c), s(c)) + t(r) + max(s(r) − t(c), 0)", "docs/validation.md, staged copies")
def staged_read_time(
    message_size: Bytes,
    latency: Seconds,
    effective_bandwidth: BytesPerSecond,
    staging_bandwidth: BytesPerSecond,
    chunk_size: Bytes,
) -> Seconds:
    """Time of a copy from pageable host memory to the device through two pinned buffers of c = `chunk_size`.

    The copy has k = ⌈n / c⌉ chunks, the last of r bytes. While the link moves a chunk in `t(x) = x / BW_eff`,
    the processor copies the next one in `s(x) = x / B_s`; a chunk leaves when it is copied and the link free.
    One chunk takes `pinned_time`. The result is the time shown by a profiler, from the first byte on the link
    to the last: the processor has already copied the first chunk. Elementwise over any broadcastable shapes;
    valid for `message_size` ≥ 0, the others > 0; infinite `staging_bandwidth` gives `pinned_time`. With B_s
    fitted and c = 1 MiB: 0.1 % weighted mean error on Titan, 5.7 % on Summit, 1.2 % on an A100 with sizes that
    are not powers of two (6 % at worst beyond 1 MiB). Not valid up to 64 KiB on fast links: the driver puts
    such copies into its command buffer, on Summit at 10.7 GB/s, up to 2.8 times slower than this model.
    """
    count, rest = _chunks(message_size, chunk_size)
    wait = np.maximum(rest / staging_bandwidth - chunk_size / effective_bandwidth, 0.0)
    staged = staged_write_time(message_size, latency, effective_bandwidth, staging_bandwidth, chunk_size)
    return staged + np.where(count > 1, wait, 0.0)


@model("T = L + O + t(c) + (k − 2) max(t(c), s(c)) + t(r)", "docs/validation.md, staged copies")
def staged_write_time(
    message_size: Bytes,
    latency: Seconds,
    effective_bandwidth: BytesPerSecond,
    staging_bandwidth: BytesPerSecond,
    chunk_size: Bytes,
) -> Seconds:
    """Time of a copy from the device to pageable host memory through two pinned buffers of c = `chunk_size`.

    Terms as in `staged_read_time`. The link fills both buffers at once, so up to two chunks take `pinned_time`;
    after that each chunk waits until the processor has emptied a buffer. The result is the time shown by a
    profiler: the processor empties the last buffers afterwards. Elementwise over any broadcastable shapes;
    valid for `message_size` ≥ 0, the others > 0; infinite `staging_bandwidth` gives `pinned_time`. With B_s
    fitted and c = 1 MiB: 0.3 % weighted mean error on Titan, 12.3 % on Summit, where neighbouring sizes differ
    by as much (11.4 GB/s at 32 MiB, 18.0 at 64 MiB).
    """
    count, rest = _chunks(message_size, chunk_size)
    chunk_time = chunk_size / effective_bandwidth
    turn_time = np.maximum(chunk_time, chunk_size / staging_bandwidth)
    staged = latency + chunk_time + (count - 2) * turn_time + rest / effective_bandwidth
    return np.where(count > 1, staged, pinned_time(message_size, latency, effective_bandwidth))


def _chunks(message_size: Bytes, chunk_size: Bytes) -> tuple[Count, Bytes]:
    """Number of chunks of a copy, at least one, and size of the last."""
    count: Count = np.maximum(np.ceil(message_size / chunk_size), 1.0)
    return count, message_size - (count - 1) * chunk_size


@model("T = L + O + 2 n / Memory_BW", "Abdelhafez et al. (AHEAD), Sec. IV-C and released tool")
def device_copy_time(message_size: Bytes, latency: Seconds, memory_bandwidth: BytesPerSecond) -> Seconds:
    """Time of a copy within device memory, which reads and writes every byte: `L + O + 2n / Memory_BW`.

    `memory_bandwidth` is that of device memory, both directions together. The text has n / Memory_BW; the tool
    halves the bandwidth, in agreement with measurements: with the peak bandwidth 12.6 % (Summit) and 27.9 % (Titan)
    weighted mean error with the factor 2, 54.8 and 63.5 % without; 2.5 and 0.4 % with the sustained one. Elementwise;
    arguments broadcast. Valid for `message_size` ≥ 0 and `memory_bandwidth` > 0; without a limit of the bandwidth the
    time is the latency. Source: Abdelhafez et al., Sec. IV-C.
    """
    return latency + 2 * message_size / memory_bandwidth
