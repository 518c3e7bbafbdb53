"""Folders that tests read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "data"
"""Data whose size or licence keeps it out of the project; only tests marked `shared_data` read it."""
