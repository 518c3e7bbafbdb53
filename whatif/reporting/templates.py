"""Templates of pages: escaped texts, colours in light and dark, versions and date.

The texts of files are data: the templates escape all but the pictures that are drawn here, and show control characters.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whatif import __version__
from whatif.errors import UsageError
from whatif.extras import install_command
from whatif.plotting.picture import build_time, check_library, colour_variables
from whatif.visible_text import visible

if TYPE_CHECKING:
    from markupsafe import Markup


def check_libraries() -> None:
    """Raise `UsageError` if the extra `report` is not installed."""
    check_library()
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise UsageError(f"reports need Jinja2 (extra `report`): {install_command('report')}") from None


def rendered(template: str, parts: Mapping[str, Any]) -> str:
    """HTML of a template with the parts of its page, and with the date and versions that every page states."""
    check_libraries()
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    environment.filters |= {"breakable": _breakable, "with_indices": _with_indices}
    light, dark = colour_variables(dark=False), colour_variables(dark=True)
    stated = {"light": light, "dark": dark, "versions": _versions(), "date": _date()}
    return environment.get_template(template).render(stated | dict(parts))


def _finalized(item: Any) -> Any:
    """Text with visible control characters; markup and numbers as they are."""
    return visible(item) if type(item) is str else item


def _breakable(text: str) -> Markup:
    """Path that can break across lines after any of its words."""
    from markupsafe import Markup, escape

    # Escaped before it is marked up.
    return Markup(re.sub(r"(?<=\w)([._])(?=[A-Za-z])", r"\1<wbr>", str(escape(visible(text)))))  # noqa: S704


def _with_indices(text: str) -> Markup:
    """Formula whose index `_a` and powers are set as such."""
    from markupsafe import Markup, escape

    raised = re.sub(r"\^(\w_a|\w)", r"<sup>\1</sup>", str(escape(visible(text))))
    return Markup(re.sub(r"_a\b", "<sub>a</sub>", raised))  # noqa: S704


def _versions() -> str:
    import matplotlib

    python = platform.python_version()
    return f"whatif {__version__}, Python {python}, numpy {np.__version__}, matplotlib {matplotlib.__version__}"


def _date() -> str:
    """Time of the page, or that of a reproducible build."""
    moment = build_time() or datetime.now(UTC)
    return moment.strftime("%Y-%m-%d %H:%M UTC")
