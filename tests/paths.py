"""Folders that tests read: the checkout, its test data, and the shared data beside it where there is any."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
