"""Writes a report beside the explorer; what it needs is loaded by whom it serves."""

from __future__ import annotations

from pathlib import Path

from whatif.core.scenario import EvaluationRequest
from whatif.reporting.html_page import report_command, write_report


def report(request: EvaluationRequest, path: Path) -> str:
    """Write a report, which takes a few seconds; what to tell."""
    found = write_report(request, path, report_command(request, path))
    return "\n".join([f"written to {path}", *(f"left out: {text}" for text in found.left_out)])
