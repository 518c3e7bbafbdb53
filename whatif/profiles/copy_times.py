"""Times of single copies and fills on a machine, from its data sheet and the latencies of a machine that was measured.

The approaches are those that Abdelhafez et al. (AHEAD, Sec. VI-D) compare: `projected` is theirs, with staging in
place of Eq. 9; `peak` is latency + n / peak bandwidth; `envelope` is n / peak bandwidth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from whatif.core.phases.host_transfer import LINK_BANDWIDTHS, LINK_SIZES
from whatif.errors import UsageError
from whatif.fitting.copies import WAYS
from whatif.models.quantities import FloatArray
from whatif.models.staging import CHUNK_SIZE, CORE_SHARE, PASS_COUNT, commanded_bandwidth, core_copy_bandwidth
from whatif.models.transfer import (
    device_copy_time,
    effective_bandwidth,
    pinned_time,
    staged_read_time,
    staged_write_time,
)
from whatif.profiles.characterisation import CLASS, groups
from whatif.profiles.profile_data import COPY, FILL, INSIDE, PEER, Profile
from whatif.schema.gpu import GPU
from whatif.schema.gpu_parts import gpu_part, same_gpu
from whatif.schema.load import load_part
from whatif.schema.platform_spec import NVLink, PCIe, PlatformSpec, Staging
from whatif.table import Table

APPROACHES: Final = ("projected", "peak", "envelope")
"""Approaches to the time of a copy, from the most careful to the roughest."""
RATES: Final = ("dram_bandwidth", "peak_single_rate", "peak_double_rate")
"""Bounds of a kernel: the two sides of the roofline."""
Link = PCIe | NVLink


@dataclass(frozen=True)
class CopyClass:
    """Class of operations with one price: `copy` or `fill`, and their direction and memory."""

    operation: str
    direction: str
    memory: str


@dataclass(frozen=True)
class Machines:
    """The machine whose latencies were measured, and the one whose data sheet is known."""

    source: PlatformSpec
    target: PlatformSpec

    def __hash__(self) -> int:
        """Hash of their names: platforms have no hash of their own."""
        return hash((self.source.name, self.target.name))

    def times(self, kind: CopyClass, approach: str, message_size: FloatArray) -> FloatArray:
        """Times in s of copies or fills of these sizes in B; sizes that are NaN give NaN.

        Memory that is managed or of unknown kind is priced as pinned, and a peer copy over the link to the host where
        the machine has none between devices. Raise `UsageError` for a parameter that is needed and not stated.
        """
        if kind.operation == FILL or kind.direction == INSIDE:
            return self._device_times(kind, approach, message_size)
        link, _ = _link(self.target, kind)
        if approach == "projected":
            return self._link_times(kind, link, message_size)
        latency = self._link_latency(kind) if approach == "peak" else np.zeros(())
        return pinned_time(message_size, latency, link_bandwidth(link))

    def _device_times(self, kind: CopyClass, approach: str, size: FloatArray) -> FloatArray:
        """A copy reads and writes device memory, a fill writes it; the peak approaches count a copy once, as AHEAD."""
        device = self.target.node.gpu
        bandwidth = _number(device and device.dram_bandwidth, "node.gpu.dram_bandwidth", self.target.name)
        if approach != "projected" and device is not None and isinstance(device.dram_peak_bandwidth, float):
            bandwidth = np.asarray(device.dram_peak_bandwidth)
        latency = np.zeros(()) if approach == "envelope" else self._device_latency()
        if approach == "projected" and kind.operation == COPY:
            return device_copy_time(size, latency, bandwidth)
        return pinned_time(size, latency, bandwidth)

    def _link_times(self, kind: CopyClass, link: Link, size: FloatArray) -> FloatArray:
        way = WAYS.get(kind.direction, "write")
        latency, bandwidth = self._link_latency(kind), link_effective_bandwidth(link, way, size)
        if kind.memory != "pageable":
            return pinned_time(size, latency, bandwidth)
        staging = self.staging_bandwidth(way), np.asarray(CHUNK_SIZE)
        if way == "read":
            return staged_read_time(size, latency, commanded_bandwidth(size, bandwidth), *staging)
        return staged_write_time(size, latency, bandwidth, *staging)

    def staging_bandwidth(self, way: str) -> FloatArray:
        """Rate in B/s at which the target's processor fills (`read`) or empties (`write`) the driver's buffers."""
        host = self.target.node.host
        memory = _number(host.memory_bandwidth, "node.host.memory_bandwidth", self.target.name)
        stated = getattr(host, f"staging_{way}_pass_count", None)
        passes = PASS_COUNT if stated is None else stated
        return core_copy_bandwidth(memory, np.asarray(CORE_SHARE), np.asarray(passes))

    def _link_latency(self, kind: CopyClass) -> FloatArray:
        link, key = _link(self.source, kind)
        memory = "pageable" if kind.memory == "pageable" else "pinned"
        parameter = f"{memory}_{WAYS.get(kind.direction, 'write')}_latency"
        return _number(getattr(link, parameter), f"{key}.{parameter}", self.source.name)

    def _device_latency(self) -> FloatArray:
        device = self.source.node.gpu
        return _number(device and device.copy_latency, "node.gpu.copy_latency", self.source.name)


def _link(platform: PlatformSpec, kind: CopyClass) -> tuple[Link, str]:
    """The link that copies take, and where it stands."""
    node = platform.node
    key = "peer_link" if kind.direction == PEER and node.peer_link is not None else "host_link"
    link = node.peer_link if key == "peer_link" else node.host_link
    if link is None:
        raise UsageError(f"{platform.name} does not state `node.{key}`, which these copies need")
    return link, f"node.{key}"


def link_effective_bandwidth(link: Link, way: str, message_size: FloatArray) -> FloatArray:
    """Bandwidth of a link for the payload of copies of these sizes; `way` is what the device does, `read`, `write`."""
    function, keys = LINK_SIZES[link.kind, way]
    inputs = {name: link_number(link, parameter) for name, parameter in keys.items()}
    return effective_bandwidth(message_size, function(message_size=message_size, **inputs), link_bandwidth(link))


def link_bandwidth(link: Link) -> FloatArray:
    """Bytes a second of a link in one direction, by its data sheet."""
    function, keys = LINK_BANDWIDTHS[link.kind]
    return np.asarray(function(**{parameter: link_number(link, parameter) for parameter in keys}), dtype=float)


def link_number(part: Link | Staging, parameter: str) -> FloatArray:
    """The number that a link or its staging states; raise `UsageError` if it states none, or an expression."""
    return _number(getattr(part, parameter), parameter, "the link")


def _number(value: object, path: str, owner: str) -> FloatArray:
    if value is None:
        raise UsageError(f"{owner} does not state `{path}`, which these operations need")
    if not isinstance(value, float):
        raise UsageError(f"`{path}` of {owner} is an expression; here its number is needed")
    return np.asarray(value)


def classes(operations: Table) -> Mapping[CopyClass, NDArray[np.intp]]:
    """The rows of each class of copies and fills, in the order of their first operations."""
    found = groups(operations, CLASS)
    return {CopyClass(*words): rows for words, rows in found if words[0] in {COPY, FILL}}


def device_rates(profile: Profile | None, platform: PlatformSpec | None) -> Mapping[str, float]:
    """`RATES` of the device of a profile: those of the platform where it is that device, else those in the profile,
    or of the shipped GPU of that name.

    Without a profile, the platform's; NaN for what is not known.
    """
    device = None if platform is None else platform.node.gpu
    if profile is None or (device is not None and is_profiled_on(profile, device.name)):
        return _stated_rates(device)
    recorded = {name: _first(profile.devices.columns[name].values) for name in RATES}
    profiled = _shipped_gpu(profile)
    # Profiles record the peak of the memory: the share of it that is sustained is taken from a data sheet.
    known = profiled or device
    recorded["dram_bandwidth"] *= 1.0 if known is None else known.sustained_share
    sheet = _stated_rates(profiled)
    return {name: recorded[name] if recorded[name] > 0 else sheet[name] for name in RATES}


def _stated_rates(device: GPU | None) -> dict[str, float]:
    stated = {name: getattr(device, name, np.nan) for name in RATES}
    return {name: value if isinstance(value, float) else np.nan for name, value in stated.items()}


def _shipped_gpu(profile: Profile) -> GPU | None:
    """Shipped GPU that the first device of a profile is; None if it is not known."""
    part = next(filter(None, map(gpu_part, profile.device_names)), None)
    return None if part is None else cast("GPU", load_part(part))


def is_profiled_on(profile: Profile, device: str) -> bool:
    """Whether one of the devices of a profile may be the GPU of this name."""
    return any(same_gpu(name, device) for name in profile.device_names)


def other_device(profile: Profile, platform: PlatformSpec) -> tuple[str, ...]:
    """Warning about a profile of another device than that of its stated platform."""
    names, device = profile.device_names, platform.node.gpu
    if device is None or not names or is_profiled_on(profile, device.name):
        return ()
    remark = f"the profile is of {', '.join(names)}, not of {platform.name}'s {device.name}"
    return (f"{remark}: its times are not those of {platform.name}",)


def _first(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known[0]) if len(known) else float("nan")
