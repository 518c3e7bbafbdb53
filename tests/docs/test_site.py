"""The documentation site is built without warnings and loads nothing from other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.paths import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.html")}


def test_pages_load_nothing_from_other_hosts(site):
    loaded = re.compile(r'<(?:script|img|iframe|link)[^>]*(?:src|href)="((?:https?:)?//[^"]+)"')
    assert {name: found for name, page in site.items() if (found := loaded.findall(page))} == {}


def test_blocks_of_code_are_blocks(site):
    # The architecture page quotes a fence.
    assert [
        name for name, page in site.items() if "```" in re.sub(r"<code>.*?</code>", "", page, flags=re.DOTALL)
    ] == []


def test_formulas_are_mathml(site):
    assert site["models/messages/index.html"].count('display="block"') > 10
    assert not [name for name, page in site.items() if 'class="arithmatex"' in page]


def test_reference_has_every_verb_function_and_key(site):
    import whatif
    from docs.site.reference import FILES
    from whatif.cli.main import VERBS

    verbs = site["reference/verbs/index.html"]
    assert [name for name in VERBS if f"whatif {name}" not in verbs] == []
    functions = site["reference/library/index.html"]
    assert [
        name for name in whatif.__all__ if not name.startswith("_") and f'id="whatif.{name}"' not in functions
    ] == []
    for kind, table in FILES.items():
        page = site[f"reference/{kind}/index.html"]
        assert [name for name in table.model_fields if f"<code>{name}</code>" not in page] == []
