"""Words that the project does not use, and where they remain; `python -m tests.docs.vocabulary` stores the counts anew.

Counts are per package and may only fall; a package that reaches 0 stays there. `--show PACKAGE` lists the places.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.paths import ROOT

STORED: Final = ROOT / "tests" / "docs" / "vocabulary.json"
_WORDS: Final = {
    "parameter": r"\bleaf\b|\b(?:the|of|its|all|more|these|some|new|numeric|structural) leaves\b",
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
    "a relative clause": r"\bof which\b|\bto be had\b",
}
"""The word to write, and the pattern of those to avoid."""
_PATTERNS: Final = {word: re.compile(pattern, re.IGNORECASE) for word, pattern in _WORDS.items()}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of the first line of every docstring, and of every other string with a space."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = set()
    for node in ast.walk(tree):
        for statement in getattr(node, "body", ()) if isinstance(getattr(node, "body", ()), list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                docstrings.add(statement.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value.split("\n")[0] if node in docstrings else node.value


def places() -> Iterator[tuple[str, str]]:
    """Package and description of each place where a word should be replaced."""
    for path in sorted((ROOT / "whatif").rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        package = parts[1] if len(parts) > 2 else "modules"
        for line, text in texts(path):
            for word, pattern in _PATTERNS.items():
                for found in pattern.finditer(text):
                    yield package, f"{'/'.join(parts)}:{line}: `{found[0]}`, better: {word}"


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
