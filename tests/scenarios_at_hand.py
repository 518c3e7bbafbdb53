"""Shipped scenarios, and few of them for tests that take long: one with each kind of phase."""

from __future__ import annotations

from whatif.schema.shipped import shipped_names

SCENARIOS = shipped_names("scenarios")
FEW = ("jacobi2d", "minife", "minimd", "particle_tracking", "triton")
"""Of the others `jacobi2d_strong` and those of MiniFE are as these; regressions are in `particle_tracking`."""
