"""Words that the project does not use, and where they remain; `python -m tests.docs.vocabulary` stores the counts anew.

Docstrings, messages and help texts of the program are read, and the pages of the documentation. Counts are per package
and may only fall; a package that reaches 0 stays there. `--show PACKAGE` lists the places.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.paths import ROOT

STORED: Final = ROOT / "tests" / "docs" / "vocabulary.json"
_WORDS: Final = {
    "parameter": r"\bleaf\b(?! of\b)|\b(?:the|of|its|all|more|these|some|new|numeric|structural) leaves\b",
    "reported": r"\b(?:is|are|was|were|be|been) told\b|\btold\b(?= (?:of|by|the|as|with|once|that)\b)",
    "simulate": r"\bplayed\b|\bplays?\b|\bplaying\b",
    "in a worker process, next to": r"\bbeside\b",
    "infeasible": r"\b(?:cannot|can|could|may) exist\b",
    "no effect, not used": r"\breach(?:es)? no term\b",
    "a noun": r"\bwhat is (?:\w+ )?(?:of|in|from|to) (?:it|them|a|the)\b|\b(?:that is|where there is|there is) none\b",
    "lowest grade": r"\bworst grade\b",
    "undo, reset": r"\btakes? (?:the last change|all edits|it) back\b|\btake back\b|\bwhat was undone\b",
    "restore, discard changes": r"\bdrop them\b|\bbring them back\b",
    "quit": r"\bends? the program\b",
    "baseline": r"\bpresent (?:values|model) from now on\b",
    "loading, evaluating": r"\bgives? it up\b|\basking the other\b",
    "RMS error": r"\(root mean square\)",
    "per day": r"\bjobs a day\b",
    "than is available": r"\bthan there is\b",
    "not scaled": r"\bstay as they are\b",
    "analytic model": r"\bclosed forms? of the scenario\b",
    "cumulative idealisation": r"\bwith a part ideal\b",
    "used by": r"\bgoes into\b",
    "not used in this scenario": r"\bmatter here\b",
    "an instruction with a verb": r"\bsays? what the columns\b|\bout or in\b|\benter takes it\b",
    "a relative clause": r"(?<!, )\bof which\b|\bto be had\b",
    "user": r"\b(?:a|the) person\b|\bperson's\b",
    "if, without": r"\bwhere there (?:is|are)\b|\b(?:empty|None) where\b|\braise `\w+` where\b",
    "at present, the present": r"\bas (?:they|it) stands?\b",
    "visible": r"\b(?:in|out of) sight\b",
    "distinguish, report": (
        r"\btells? .{0,40}\bapart\b|\btold apart\b|\bwhat to tell\b|\btells? (?:most|none|nothing)\b"
    ),
    "continue": r"\b(?:go|goes|going|went) on (?:with|from)\b|\b(?:can|may|to) go on\b",
    "cancel, stop": r"\bgiv(?:e|es|en|ing) (?:it )?up\b|\bgave up\b",
    "the reverse": r"\bother way round\b",
    "a number of, by a factor": r"\bso many\b",
    "hide, replace": r"\b(?:give|gives|giving) way\b",
    "focus": r"\bwants? the keys\b",
    "identical": r"\b(?:all|are) alike\b",
    "exists, missing": r"\b(?:is|are) (?:not |no longer |already )?there(?! (?:is|are)\b)\b",
    "known about, accuracy of": r"\b(?:say|says) (?:nothing )?of\b|\bsaid so\b",
    "means, is in": r"\bstands? (?:for|in)\b",
    "fails, is impossible": r"\bthat cannot be\b(?=[.,;:)]|$)",
    "least": r"\bfrom which on\b",
    "rename": r"\bcolumns? otherwise\b",
    "infinity": r"\bno end\b",
    "is not a": r"(?<!there )\bis no (?:column|count|file|kind|number|row|share|size|table|term|value|word)\b",
}
"""The word to write, and the pattern of those to avoid."""
_PATTERNS: Final = {word: re.compile(pattern, re.IGNORECASE) for word, pattern in _WORDS.items()}
_PARAPHRASE: Final = re.compile(r"(?:What(?! if)|Of|Those|Where|How (?:many|much|often|far|well))\b")
"""Beginning of a docstring that paraphrases a thing instead of naming it."""
_CODE: Final = re.compile(r"^( *)```.*?^\1```$|`[^`\n]*`|\]\([^)\n]*\)|^    .*?$", re.MULTILINE | re.DOTALL)
"""Code and addresses in Markdown."""
_RELEASES: Final = re.compile(r"^## .*$", re.MULTILINE)


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[ast.Constant]:
    """Docstrings of modules, classes and functions, and strings below attributes."""
    for node in nodes:
        body = getattr(node, "body", ())
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield statement.value


def in_code(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, word and better word of each place in the docstrings and other texts of a module."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    for text in docstrings(nodes):
        if isinstance(text.value, str) and (found := _PARAPHRASE.match(text.value)):
            yield text.lineno, found[0], "the noun"
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from avoided(node.lineno, node.value)


def in_prose(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, word and better word of each place in a page, without code; of a changelog only in its unreleased part."""
    text = path.read_text(encoding="utf-8")
    if path.name == "CHANGELOG.md":
        text = "".join(_RELEASES.split(text)[:2])
    yield from avoided(1, _CODE.sub(lambda found: "\n" * found[0].count("\n"), text))


def avoided(first: int, text: str) -> Iterator[tuple[int, str, str]]:
    """Line, word and better word of each avoided word of a text that begins in some line."""
    for word, pattern in _PATTERNS.items():
        for found in pattern.finditer(text):
            yield first + text[: found.start()].count("\n"), found[0], word


def places() -> Iterator[tuple[str, str]]:
    """Package, or `pages`, and description of each place where a word should be replaced."""
    for path in sorted((ROOT / "whatif").rglob("*.py")):
        parts = path.relative_to(ROOT / "whatif").parts
        yield from described(parts[0] if len(parts) > 1 else "modules", path, in_code(path))
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))):
        yield from described("pages", path, in_prose(path))


def described(package: str, path: Path, found: Iterable[tuple[int, str, str]]) -> Iterator[tuple[str, str]]:
    """Package and description of places in a file."""
    for line, text, word in found:
        yield package, f"{path.relative_to(ROOT)}:{line}: `{text}`, better: {word}"


def counts() -> dict[str, int]:
    """Number of places in each package that has any."""
    return dict(sorted(Counter(package for package, _ in places()).items()))


def main() -> None:
    """Store the counts, or list the places of a package."""
    if sys.argv[1:2] == ["--show"]:
        print("\n".join(text for package, text in places() if package in sys.argv[2:]))
    else:
        STORED.write_text(json.dumps(counts(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
