"""Tables of `[calibration]`: corrections of predicted times, learnt from measured runs.

Corrections of the application hold on every platform; those of a platform hold on it and on platforms that extend it.
"""

from __future__ import annotations

from whatif.schema.fields import Key, Number_, PositiveFactor, Seconds, StrictTable


class ApplicationCorrections(StrictTable):
    """Corrections of the application, on every platform."""

    kernel_factor: PositiveFactor | None = None
    """Factor on the time of all kernels without a factor of their own."""
    kernel_factors: dict[Key, PositiveFactor] = {}
    """Factor on the time of single kernel phases."""
    message_factor: PositiveFactor | None = None
    """Factor on the time of messages."""
    message_time: Seconds | None = None
    """Time added for each message of the rank with the most messages, or each round of a collective."""
    overhead_time: Seconds | None = None
    """Time added to each iteration."""
    doubling_time: Seconds | None = None
    """Time added to each iteration for each doubling of the nodes that it runs on: t log2 N."""


class PlatformCorrections(StrictTable):
    """Corrections of one platform."""

    sharing_factor: Number_ | None = None
    """Factor on the additional time of messages that share the adapter of a node."""
    congestion_factor: Number_ | None = None
    """Factor on the additional time of messages that share the links between nodes."""
    doubling_factor: Number_ | None = None
    """Share of the time of messages that is added for each doubling of the nodes: congestion."""


class CalibrationTable(StrictTable):
    """Corrections of predicted times, from measured runs."""

    application: ApplicationCorrections = ApplicationCorrections()
    platforms: dict[Key, PlatformCorrections] = {}
    """Corrections by the name of the platform's file."""
