"""Shipped scenarios, and those that differ in more than their numbers."""

from __future__ import annotations

from whatif.schema.shipped import shipped_names

SCENARIOS = shipped_names("scenarios")
ALIKE = {"sedov", "sedov_k80", "sedov_distributed", "training_power_limit", "game_of_life", "minife_gpus_per_node"}
"""For tests that take long: `particle_tracking` holds regressions as these do, and `triton` is a structured grid."""
DIFFERENT = tuple(name for name in SCENARIOS if name not in ALIKE)
FEW = tuple(name for name in DIFFERENT if name not in ("jacobi2d_strong", "minife_devices"))
"""One with each kind of phase: for pages, which take a second each."""
