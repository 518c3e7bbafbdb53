"""Hooks of MkDocs: generated pages, files from outside `docs/`, equations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.site import reference
from docs.site.equations import with_equations, with_mathml
from docs.site.notebooks import notebook_page

ROOT: Final = Path(__file__).resolve().parents[2]
GENERATED: Final = {
    "reference/verbs.md": reference.verbs_page,
    "reference/library.md": reference.library_page,
    "reference/quantities.md": reference.quantities_page,
    **{f"reference/{kind}.md": lambda kind=kind: reference.keys_page(kind) for kind in reference.FILES},
}
"""Pages that are made from the code, by their path."""
_OUTSIDE: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Pages from documents at the root of the project"""
_SESSION: Final = re.compile(r"^```console.*$", re.MULTILINE)
_LINK: Final = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, the screenshots, and the documents at the root of the project."""
    for path, page in GENERATED.items():
        files.append(File.generated(config, path, content=page()))
    for name, path in _OUTSIDE.items():
        files.append(File.generated(config, path, content=_from_root((ROOT / name).read_text(encoding="utf-8"))))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=notebook_page(notebook)))
    for picture in sorted((ROOT / "screenshots").iterdir()):
        files.append(File.generated(config, f"screenshots/{picture.name}", abs_src_path=str(picture)))
    return files


def _from_root(text: str) -> str:
    """Document whose links are relative to `docs/`."""
    inside = re.sub(r"\]([(:] ?)docs/", r"]\1", text)
    return re.sub(r"\]\(([A-Z]+\.md)\)", lambda link: f"]({_OUTSIDE.get(link[1], link[1])})", inside)


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Fill in equations, show sessions as plain text, and point links to files at the root to their pages."""
    up = "../" * page.file.src_uri.count("/")
    names = {f"{up}../{name}": f"{up}{path}" for name, path in _OUTSIDE.items()}

    def target(link: re.Match[str]) -> str:
        path = names.get(link[1], link[1])
        return "](" + path.replace(f"{up}../screenshots/", f"{up}screenshots/")

    return with_equations(_LINK.sub(target, _SESSION.sub("```text", markdown)))


def on_page_content(html: str, **_: Any) -> str:
    """Write formulas as MathML."""
    return with_mathml(html)
