"""PDF of a page, through WeasyPrint (extra `pdf`)."""

from __future__ import annotations

import logging
import re
from typing import Final

from whatif.errors import UsageError
from whatif.extras import install_command
from whatif.plotting.picture_style import LIGHT

_VARIABLE: Final = re.compile(r"var\(--([a-z0-9-]+)\)")


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
