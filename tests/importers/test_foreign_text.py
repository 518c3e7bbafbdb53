"""Files of every format whose names hold control characters: none of them reaches the terminal."""

from __future__ import annotations

import json
import re
import sqlite3

import pytest

from tests.fuzz.targets import TARGETS
from whatif.visible_text import is_visible

HOSTILE = "\x1b]0;PWNED\x07\u202e\x9b2J"
DATABASES = {
    "nvprof": "UPDATE StringTable SET value = value || ?",
    "nsight-systems": "UPDATE StringIds SET value = value || ?",
}
FORMATS = ("table", "markdown", "csv")
JSON = ("thicket", "kineto", "model", "gpuroofperf-kernels")
TEXTS = [name for name, target in TARGETS.items() if target.verb and name not in ("dumpi-binary", "goal-binary")]


def damaged(content, name):
    """Texts with the hostile one after every word, in a line of its own, and after some words alone."""
    text = content.decode("utf-8", "replace")
    hostile = json.dumps(HOSTILE)[1:-1] if name in JSON else HOSTILE
    words = list(re.finditer(r"[A-Za-z_]{3,}", text[:5000]))
    yield re.sub(r"[A-Za-z_]{4,}", lambda found: found[0] + hostile, text)
    yield f"{hostile}\n{text}"
    for word in words[:: len(words) // 6 + 1]:
        yield text[: word.end()] + hostile + text[word.end() :]


def shown(whatif_main, target, path, *options):
    """What is printed in each format, none of which holds a control character."""
    forms = (
        [()] if target.verb[0] in ("check", "hpl") else [("--format", form) for form in ("table", "markdown", "csv")]
    )
    printed = ""
    for form in forms:
        _, out, err = whatif_main(*target.verb, path, *options, *form)
        assert is_visible(re.sub(r"[\n\t]", "", out + err)), repr(out + err)
        printed += out + err
    return printed


@pytest.mark.parametrize("name", TEXTS)
def test_names_with_control_characters_are_shown_as_text(name, whatif_main, tmp_path):
    target = TARGETS[name]
    path = tmp_path / target.name
    for content in list(target.contents())[:2]:
        if b"\0" in content[:1024] or content.startswith(b"\x1f\x8b"):
            continue
        for text in damaged(content, name):
            path.write_text(text, encoding="utf-8", newline="")
            shown(whatif_main, target, path)


@pytest.mark.parametrize("name", sorted(DATABASES))
def test_names_of_databases_are_shown_as_text(name, whatif_main, tmp_path):
    target = TARGETS[name]
    path = tmp_path / target.name
    path.write_bytes(next(target.contents()))
    with sqlite3.connect(path) as connection:
        connection.execute(DATABASES[name], (HOSTILE,))
    connection.close()
    assert "PWNED" in shown(whatif_main, target, path, "--table", "kernels")


def test_names_of_files_are_shown_as_text(whatif_main, tmp_path):
    path = tmp_path / f"{HOSTILE.replace('/', '')}.csv"
    path.write_text("ranks,time\n1,\n")
    for given in (path, tmp_path / f"none{HOSTILE}"):
        code, out, err = whatif_main("import", "runs", given)
        assert (code, is_visible(re.sub(r"\n", "", out + err))) == (code, True), repr(out + err)


@pytest.mark.parametrize("suffix", [".csv", ".md", ".html", ".json", ".txt"])
def test_written_files_hold_no_control_character(suffix, whatif_main, tmp_path):
    (tmp_path / "runs.csv").write_text(f"name,gpu,time\n{HOSTILE}a,{HOSTILE}red,1\nb,=1+1,2\n")
    code, _, _ = whatif_main("import", "runs", "runs.csv", "-o", f"out{suffix}")
    text = (tmp_path / f"out{suffix}").read_text()
    assert code == 0
    assert "PWNED" in text
    assert is_visible(text.replace("\n", ""))
