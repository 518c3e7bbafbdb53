"""Job that writes a report; imported in a worker process only."""

from __future__ import annotations

from pathlib import Path

from whatif.api.evaluation import report_of
from whatif.core.scenario import EvaluationRequest


def report(request: EvaluationRequest, path: Path) -> str:
    """Message about a report that is written, which takes a few seconds."""
    found = report_of(request, path)
    return "\n".join([f"written to {path}", *(f"left out: {text}" for text in found.left_out)])
