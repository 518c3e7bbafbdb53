"""Shipped scenarios, and those that differ in more than their numbers."""

from __future__ import annotations

from whatif.schema.shipped import shipped_names

SCENARIOS = shipped_names("scenarios")
ALIKE = {"sedov", "sedov_k80", "sedov_distributed", "training_power_limit", "game_of_life"}
"""For tests that take long: `particle_tracking` holds regressions as these do, and `triton` is a structured grid."""
DIFFERENT = tuple(name for name in SCENARIOS if name not in ALIKE)
