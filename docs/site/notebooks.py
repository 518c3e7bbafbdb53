"""Notebooks as pages: their text, code and stored output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_SHOWN: Final = ("text/html", "image/png", "text/plain")
"""Forms of an output, the preferred ones first."""


def notebook_page(path: Path) -> str:
    """Markdown of a notebook, with a link to the file."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title, *rest = [part for cell in cells for part in _parts(cell)]
    return "\n\n".join([title, f"[Notebook to download]({path.name})", *rest])


def _parts(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source.replace("<details>", '<details markdown="1">')
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield _shown(output)


def _shown(output: Mapping[str, Any]) -> str:
    if "text" in output:
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    form = next(form for form in _SHOWN if form in output["data"])
    content = "".join(output["data"][form]).strip()
    if form == "image/png":
        return f"![Output of the code above](data:image/png;base64,{content.replace(chr(10), '')})"
    return f"```text\n{content}\n```" if form == "text/plain" else _without_style(content)


def _without_style(html: str) -> str:
    """Table without the style that pandas puts before it, on lines without indentation, so that it stays HTML."""
    table = html[html.index("<thead") : html.index("</table>")]
    return "<table>\n" + "\n".join(line.strip() for line in table.splitlines()) + "</table>"
