"""Table of measured facts in docs/architecture.md: `python docs/architecture_table.py` writes it anew.

`--time check` (or `test`) also runs that make target and records its duration.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final

import click

import whatif
from whatif.cli.main import VERBS, program

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "whatif"
DOCUMENT: Final = ROOT / "docs" / "architecture.md"
FRONT_ENDS: Final = ("open", "serve", "shell")
BEGIN, END = "<!-- measured -->\n", "<!-- end of measured -->\n"
_RENAMED: Final = {"list": "list_", "schema": "json_schema"}
"""Verbs whose name is a built-in or too general for a function."""


def sources() -> list[Path]:
    """Modules of the program."""
    return sorted(PACKAGE.rglob("*.py"))


@cache
def statements(path: Path) -> list[ast.stmt]:
    """Statements of a module, outside of classes and functions."""
    return ast.parse(path.read_text(encoding="utf-8")).body


def commands() -> dict[str, list[str]]:
    """Names of the library functions that each verb needs: one, or one for each of its sub-verbs."""
    context, found = click.Context(program), {}
    for verb in VERBS:
        if verb in FRONT_ENDS:
            continue
        command = program.get_command(context, verb)
        below = command.list_commands(context) if isinstance(command, click.Group) else []
        prefix = "" if verb == "show" else f"{verb}_"
        names = [f"{prefix}{name}".replace("-", "_") for name in below] or [_RENAMED.get(verb, verb)]
        found[verb] = names
    return found


def verbs_in_library() -> tuple[list[str], list[str]]:
    """Verbs whose functions all exist, and those of which one is missing."""
    needed = commands()
    complete = [verb for verb, names in needed.items() if set(names) <= set(whatif.__all__)]
    return complete, [verb for verb in needed if verb not in complete]


def repeated_stems() -> dict[str, int]:
    """File names that several packages use; verbs and pages have the names of their subjects."""
    named = (path for path in sources() if not path.stem.startswith("__") and not _is_front(path))
    counts = Counter(path.stem for path in named)
    return {stem: count for stem, count in counts.items() if count > 1}


def _is_front(path: Path) -> bool:
    """Whether a file is a verb of the command line or a page of the explorer."""
    return path.parent.name == "cli" or path.parts[-3:-1] == ("tui", "pages")


def repeated_classes() -> dict[str, int]:
    """Names of public classes that are defined more than once."""
    counts = Counter(
        node.name
        for path in sources()
        for node in statements(path)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return {name: count for name, count in counts.items() if count > 1}


def import_graph() -> dict[str, set[str]]:
    """Modules that each module imports when it is itself imported: not in functions, not for type checkers."""
    dotted = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources())
    names = dict(zip((name.removesuffix(".__init__") for name in dotted), sources(), strict=True))
    return {name: set(_imported(path, name, names)) - {name} for name, path in names.items()}


def _imported(path: Path, name: str, known: dict[str, Path]) -> Iterator[str]:
    pending = list(statements(path))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (module for module in below if module in known)
            if any(module not in known for module in below):
                yield node.module
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            pending += node.orelse
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def import_cycles() -> list[list[str]]:
    """Groups of modules that import each other."""
    graph = import_graph()
    reach = {name: _reached(graph, name) for name in graph}
    groups = {tuple(sorted({name} | {other for other in reach[name] if name in reach[other]})) for name in graph}
    return [list(group) for group in sorted(groups) if len(group) > 1]


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    pending = list(graph[start])
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += graph.get(name, ())
    return seen


def files_of_a_page() -> dict[str, int]:
    """Files of the explorer that a page takes: itself, and every one that imports it or holds its name."""
    explorer = PACKAGE / "tui"
    texts = {path: path.read_text(encoding="utf-8") for path in explorer.rglob("*.py")}
    found = {}
    for page in sorted((explorer / "pages").glob("*.py")):
        if page.stem not in ("__init__", "page"):
            named = re.compile(rf"""["']{page.stem}["']|\bpages\.{page.stem}\b""")
            found[page.stem] = sum(path == page or bool(named.search(text)) for path, text in texts.items())
    return found


def lines_of(folder: Path) -> int:
    """Lines of the Python files in a folder and below, or of one file."""
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def package_lines() -> dict[str, int]:
    """Lines of each package of the program, largest first, and of the modules outside packages."""
    packages = {path.name: lines_of(path) for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    packages["modules"] = sum(lines_of(path) for path in PACKAGE.glob("*.py"))
    return dict(sorted(packages.items(), key=lambda item: -item[1]))


@cache
def structure() -> dict[str, str]:
    """Facts of the structure, each with its goal where there is one."""
    complete, missing = verbs_in_library()
    stems, classes, cycles = repeated_stems(), repeated_classes(), import_cycles()
    return {
        "verbs in the library": f"{len(complete)} of {len(VERBS) - len(FRONT_ENDS)}{_named(missing, 'missing')}",
        "repeated file stems, without verbs and pages (fewer than 8)": f"{len(stems)}{_named(sorted(stems))}",
        "repeated public class names (0)": f"{len(classes)}{_named(sorted(classes))}",
        "import cycles (0)": f"{len(cycles)}{_named([' and '.join(cycle) for cycle in cycles])}",
        "files of the explorer that name a page, median (at most 3)": f"{median(files_of_a_page().values()):g}",
    }


def _named(items: list[str], heading: str = "") -> str:
    return f" ({heading}{': ' if heading else ''}{', '.join(items)})" if items else ""


def sizes() -> dict[str, int]:
    """Lines of Python in all, in the program and its packages, and in tests and benchmarks."""
    program_lines = package_lines()
    outside = {name: lines_of(ROOT / name) for name in ("tests", "benchmarks")}
    whole = {"all": sum(program_lines.values()) + sum(outside.values()), "whatif": sum(program_lines.values())}
    return whole | {f"whatif/{name}": lines for name, lines in program_lines.items()} | outside


def durations(document: str) -> dict[str, str]:
    """Durations that are recorded in the document."""
    return dict(re.findall(r"^\| `make (\w+)` \| (.*) \|$", document, re.MULTILINE))


def measured(target: str) -> str:
    """Duration of a make target, run now."""
    start = time.monotonic()
    subprocess.run(["make", target], cwd=ROOT, check=True)  # noqa: S603, S607
    return f"{time.monotonic() - start:.0f} s"


def table(recorded: dict[str, str]) -> str:
    """The part of the document that this script writes."""
    rows = ["| structure (goal) | measured |", "|---|---|"]
    rows += [f"| {name} | {value} |" for name, value in structure().items()]
    rows += ["", "| lines of Python | to the nearest hundred |", "|---|---|"]
    rows += [f"| {name} | {round(lines, -2):,} |" for name, lines in sizes().items()]
    rows += ["", "| duration | 2 cores |", "|---|---|"]
    rows += [f"| `make {target}` | {recorded.get(target, 'not recorded')} |" for target in ("check", "test")]
    return "\n".join(rows) + "\n"


def main() -> None:
    """Write the table into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time", action="append", default=[], choices=("check", "test"))
    targets = parser.parse_args().time
    document = DOCUMENT.read_text(encoding="utf-8")
    recorded = durations(document) | {target: measured(target) for target in targets}
    before, rest = document.split(BEGIN)
    DOCUMENT.write_text(before + BEGIN + table(recorded) + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
