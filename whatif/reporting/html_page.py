"""Report as one HTML page without scripts or external files, in light, dark and print styles."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from whatif.atomic import atomic_file
from whatif.core.calibration_notes import model_notes
from whatif.core.derivation import shown
from whatif.core.scenario import EvaluationRequest, Scenario
from whatif.core.sweep_figure import Y_COLUMN, headline
from whatif.errors import UsageError
from whatif.plotting.picture_style import typographic
from whatif.reporting.contents import Findings, findings
from whatif.reporting.provenance import files_of, values_of
from whatif.reporting.sections import WHOLE_RUN, against, answer, phases, sensitivity, sweep
from whatif.reporting.templates import check_libraries, rendered
from whatif.units import format_quantity

_TEMPLATE: Final = "report.html.jinja"
_TITLES: Final = {
    "answer": "The answer",
    "phases": "Where the time goes",
    "sweep": "The sweep",
    "sensitivity": "What it depends on",
    "against": "Why the other differs",
    "equations": "Equations",
    "values": "Values",
    "files": "Files and versions",
}


def report_html(found: Findings, command: str) -> str:
    """HTML of the page; `command` is the command that writes it again."""
    parts = _said(found) | _shown(found)
    contents = [(anchor, title) for anchor, title in _TITLES.items() if parts.get(anchor, True) or anchor == "answer"]
    return rendered(_TEMPLATE, parts | {"contents": contents, "titles": _TITLES, "command": command})


def write_report(request: EvaluationRequest, path: Path, command: str, other: Scenario | None = None) -> Findings:
    """Contents of the page that is written on a scenario over a grid, whole or not at all.

    Raise `UsageError` if the path does not end in .html, or without the extra `report`.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{path}: the report file must end in .html")
    check_libraries()
    found = findings(request.scenario, request.grid, other)
    page = report_html(found, command)
    with atomic_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="replace")
    return found


def _said(found: Findings) -> dict[str, Any]:
    """Texts of the page."""
    program = found.scenario.program
    loaded, values = program.loaded, values_of(program)
    grades = [row.grade for table in values.values() for row in table]
    swept = () if found.sweep is None else found.sweep.extrapolated
    return {
        "application": loaded.scenario.application.name,
        "machine": loaded.scenario.platform.name,
        "question": loaded.question,
        "infeasible": found.point.obstacle(),
        "headline": _headline(found),
        "grade": found.point.grade,
        "assumed": grades.count("assumed"),
        "value_count": len(grades),
        "extrapolated": tuple(dict.fromkeys((*found.point.extrapolated, *swept))),
        "left_out": found.left_out,
        "equations": _equations(found),
        "values": values,
        "files": files_of(found),
    }


def _shown(found: Findings) -> dict[str, Any]:
    """Sections with pictures."""
    return {
        "answer": answer(found),
        "phases": phases(found),
        "sweep": None if found.sweep is None else sweep(found, found.sweep),
        "sensitivity": sensitivity(found),
        "against": None if found.other is None else against(found, found.other),
    }


def _headline(found: Findings) -> list[tuple[str, str, str]]:
    """Main results: title, value, remark."""
    if found.point.reasons:
        return []
    program, now = found.scenario.program, headline(found.point)
    accuracy = "; ".join(model_notes(program))
    results = [
        (name.replace("_", " "), typographic(format_quantity(value, program.dimension_of(name))), remark)
        for name, value, remark in ((WHOLE_RUN[0], now.total_time, ""), (Y_COLUMN, now.iteration_time, accuracy))
    ]
    if not now.iteration_time > 0:
        return results
    longest = typographic(format_quantity(now.bottleneck_time, program.dimension_of(f"terms.{now.bottleneck}")))
    return [
        *results,
        ("longest phase", now.bottleneck, f"{longest}, {now.bottleneck_fraction:.0%} of an iteration"),
        ("communication", f"{now.communication_fraction:.1%}", "of an iteration"),
    ]


def _equations(found: Findings) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Terms with their values, by equation and source."""
    program = found.scenario.program
    constraints = {constraint.term for constraint in program.constraints}
    known: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, term in program.terms.items():
        if term.citation is not None and name not in constraints:
            value = typographic(shown(found.at.masked_term(term), term.dimension, 4))
            known.setdefault((term.citation.equation, term.citation.source), []).append((name, value))
    return known
