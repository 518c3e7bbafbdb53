"""Text of a new study: bids, a mix of applications and limits, with comments."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from whatif.atomic import write_text
from whatif.errors import UsageError

_TEMPLATE: Final = Path(__file__).with_name("templates") / "study.toml"


def study_template() -> str:
    """Text of a study that runs as it is."""
    return _TEMPLATE.read_text(encoding="utf-8")


def write_study_template(path: Path) -> None:
    """Write a new study. Raise `UsageError` for a file that exists."""
    if path.exists():
        raise UsageError(f"{path}: exists already, and is not overwritten; choose another name")
    write_text(path, study_template())
