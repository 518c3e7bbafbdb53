"""Report as one HTML page without scripts or external files, in light, dark and print styles.

It may compare another scenario, and states the command line that writes it again.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from whatif.atomic import atomic_file
from whatif.axes import Axis
from whatif.core.calibration_notes import model_notes
from whatif.core.derivation import shown
from whatif.core.platform import Platform
from whatif.core.scenario import EvaluationRequest, Scenario, named_platform
from whatif.core.sweep_figure import Y_COLUMN, headline
from whatif.errors import UsageError, did_you_mean
from whatif.files.scenario_edits import scenario_words, set_words, sweep_words
from whatif.plotting.picture_style import typographic
from whatif.reporting.contents import Findings, findings
from whatif.reporting.provenance import files_of, values_of
from whatif.reporting.sections import WHOLE_RUN, against, answer, phases, sensitivity, sweep
from whatif.reporting.templates import check_libraries, rendered
from whatif.schema.load import open_document
from whatif.schema.shipped import kind_of, names_in
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


def report_html(found: Findings, command: str, progress: Callable[[str], None] = lambda text: None) -> str:
    """HTML of the page; `command` is the command that writes it again."""
    parts = _said(found) | _shown(found, progress)
    contents = [(anchor, title) for anchor, title in _TITLES.items() if parts.get(anchor, True) or anchor == "answer"]
    return rendered(_TEMPLATE, parts | {"contents": contents, "titles": _TITLES, "command": command})


def write_report(
    request: EvaluationRequest,
    path: Path,
    command: str,
    other: Scenario | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Findings:
    """Contents of the page that is written on a scenario over a grid, whole or not at all.

    `progress` receives what is computed or drawn next. Raise `UsageError` if the path does not end in .html, or without
    the extra `report`.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        is_pdf = path.suffix.lower() == ".pdf"
        advice = "print that page from a browser" if is_pdf else "`whatif run -o` writes tables and pictures"
        raise UsageError(f"{path}: the report file must end in .html: -o {path.with_suffix('.html')}; {advice}")
    check_libraries()
    found = findings(request.scenario, request.grid, other, progress=progress)
    page = report_html(found, command, progress)
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


def _shown(found: Findings, progress: Callable[[str], None]) -> dict[str, Any]:
    """Sections with pictures."""
    sections: dict[str, Callable[[], Any]] = {
        "answer": lambda: answer(found),
        "phases": lambda: phases(found),
        "sweep": lambda: None if found.sweep is None else sweep(found, found.sweep),
        "sensitivity": lambda: sensitivity(found),
        "against": lambda: None if found.other is None else against(found, found.other),
    }
    parts: dict[str, Any] = {}
    for anchor, drawn in sections.items():
        progress(f"pictures: {_TITLES[anchor]}")
        parts[anchor] = drawn()
    return parts


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
            value = typographic(shown(name, found.at.masked_term(term), term.dimension, 4))
            known.setdefault((term.citation.equation, term.citation.source), []).append((name, value))
    return known


def other_scenario(against: str | Path | Scenario | Platform, scenario: Scenario) -> Scenario:
    """Scenario to compare with: the same one on another platform, or another one with the same overrides.

    Raise `UsageError` for a name that is neither a platform nor a scenario.
    """
    if isinstance(against, Scenario):
        return against
    if isinstance(against, Platform):
        return scenario.on(against)
    text = str(against)
    is_file = Path(text).is_file()
    kind = kind_of(open_document(text, "scenarios").data) if is_file else None
    name, searched = named_platform(text, scenario.folders)
    beside = (*searched, *scenario.search_folders)
    machines, scenarios = names_in(beside, "platforms"), names_in(searched, "scenarios")
    if kind == "platform" or (kind is None and name in machines):
        return scenario.on(text)
    if not is_file and text not in scenarios:
        hint = did_you_mean(text, [*machines, *scenarios])
        raise UsageError(f"--against {text}: no such platform, scenario or file{hint}")
    opened = Scenario.open(text, overrides=scenario.overrides, folders=scenario.folders)
    return replace(opened, platform=scenario.platform, built=scenario.built)


def report_words(
    scenario: str | Path | Scenario,
    output: Path,
    *,
    platform: object = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Mapping[str, Any] | None = None,
    axes: Sequence[Axis],
    against: object = None,
) -> str:
    """Command line that writes the same report, from the arguments of `whatif.report` and its axes."""
    words = ["whatif", "report", *(scenario_words(scenario) if isinstance(scenario, Scenario) else [str(scenario)])]
    words += ["--platform", _named(platform)] if platform is not None else []
    words += [word for folder in platform_dirs for word in ("--platform-dir", str(folder))]
    words += [*set_words(overrides or {}), *sweep_words(axes)]
    words += ["--against", _named(against)] if against is not None else []
    return shlex.join([*words, "-o", str(output)])


def _named(argument: object) -> str:
    if isinstance(argument, Scenario):
        return Path(argument.document.name).stem
    return argument.name if isinstance(argument, Platform) else str(argument)
