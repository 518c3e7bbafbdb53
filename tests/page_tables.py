"""Tables of documentation pages that tests compute; `WHATIF_WRITE_MACHINES=1` writes them."""

from __future__ import annotations

import os
from pathlib import Path


def assert_shown(page: Path, name: str, table: str) -> None:
    """Fail unless the page has the table between its marks `<!-- name -->` and `<!-- end of name -->`."""
    shown = page.read_text(encoding="utf-8")
    before, start, rest = shown.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    written = f"{before}{start}\n{table}\n{end}{after}"
    if os.environ.get("WHATIF_WRITE_MACHINES") == "1":
        page.write_text(written, encoding="utf-8")
    else:
        assert shown == written
