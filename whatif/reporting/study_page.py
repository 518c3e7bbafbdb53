"""Page for the committee of a procurement study: one HTML page without scripts or external files, or its PDF.

The PDF is made by WeasyPrint (extra `pdf`).
"""

from __future__ import annotations

import logging
import re
import shlex
from pathlib import Path
from typing import Any, Final

from whatif.atomic import atomic_file
from whatif.errors import UsageError
from whatif.extras import install_command
from whatif.files.scenario_edits import set_words
from whatif.limits import PAGES
from whatif.plotting.picture_style import LIGHT
from whatif.reporting import study_sections as parts
from whatif.reporting.provenance import hashes
from whatif.reporting.study_sections import questions
from whatif.reporting.study_words import question, recommendation
from whatif.reporting.templates import check_libraries, rendered
from whatif.schema.shipped import is_shipped
from whatif.schema.study_file import FOLDER
from whatif.studies.input_files import study_paths
from whatif.studies.procurement.definitions import DEFINITIONS
from whatif.studies.procurement.study import Study
from whatif.units import in_percent

_TEMPLATE: Final = "study.html.jinja"
_TITLES: Final = {
    "question": "The question",
    "recommendation": "Recommendation",
    "bids": "The bids",
    "commitments": "Commitments",
    "equal": "At equal nodes, money and power",
    "targets": "Targets",
    "sensitivity": "What would change the recommendation",
    "calibration": "What the runs say",
    "questions": "Questions to the vendors",
    "reading": "How to read this page",
    "files": "Files and versions",
}
_VARIABLE: Final = re.compile(r"var\(--([a-z0-9-]+)\)")


def check_page(path: Path) -> None:
    """Raise `UsageError` if the path does not end in .html or .pdf, or without the extras that its page needs."""
    if path.suffix.lower() not in PAGES:
        raise UsageError(f"{path}: the page of a study must end in {' or '.join(PAGES)}")
    check_libraries()
    if path.suffix.lower() == ".pdf":
        check_pdf()


def write_study_page(found: Study, path: Path) -> None:
    """Write the page of a study as HTML or PDF, whole or not at all. Raise `UsageError` as `check_page`."""
    check_page(path)
    found.check_output(path)
    page = study_html(found, study_command(found, path))
    with atomic_file(path) as temporary:
        if path.suffix.lower() == ".pdf":
            temporary.write_bytes(pdf_of(page))
        else:
            temporary.write_text(page, encoding="utf-8", errors="replace")


def study_html(found: Study, command: str) -> str:
    """HTML of the page; `command` is the command that writes it again."""
    sections: dict[str, Any] = {
        "question": question(found),
        "stated": parts.stated(found),
        "recommendation": recommendation(found),
        "bids": parts.bids(found),
        "commitments": parts.commitments(found),
        "equal": parts.equal(found),
        "targets": parts.targets(found),
        "sensitivity": parts.sensitivity(found),
        "calibration": parts.calibration(found),
        "questions": questions(found),
        "reading": DEFINITIONS,
        "files": hashes(study_paths(found)),
    }
    stated = {
        "title": found.file.spec.question or f"Bids of {Path(found.file.document.name).stem}",
        "study": found,
        "acceptance": parts.acceptance(found),
        "titles": {name: title for name, title in _TITLES.items() if sections[name]},
        "confidence": in_percent(found.confidence),
        "command": command,
    }
    return rendered(_TEMPLATE, stated | {"parts": sections})


def study_command(found: Study, path: Path) -> str:
    """Command line that writes the same page."""
    document = found.file.document
    name = Path(document.name).stem if is_shipped(document.folder, FOLDER) else document.name
    return shlex.join(["whatif", "study", name, *set_words(found.overrides), "-o", str(path)])


def check_pdf() -> None:
    """Raise `UsageError` if the extra `pdf`, or a library of the system that it needs, is not installed."""
    try:
        import weasyprint  # noqa: F401
    except (ImportError, OSError) as problem:
        # WeasyPrint raises OSError if Pango is missing.
        raise UsageError(
            f"a PDF needs WeasyPrint: {install_command('pdf')} ({str(problem).splitlines()[0]}); "
            "or write FILE.html and print it from a browser"
        ) from None


def pdf_of(page: str) -> bytes:
    """PDF of a page that loads nothing, in the colours of print. Raise `UsageError` without the extra `pdf`."""
    check_pdf()
    import weasyprint
    from weasyprint.urls import URLFetcher

    # It remarks on every property that SVG has and CSS has not.
    logging.getLogger("weasyprint").setLevel(logging.ERROR)
    # Pictures in a page do not know its variables there.
    coloured = _VARIABLE.sub(lambda found: LIGHT[found[1]], page)
    loads_nothing = URLFetcher(allowed_protocols=("data",), fail_on_errors=True)
    return bytes(weasyprint.HTML(string=coloured, url_fetcher=loads_nothing).write_pdf())
