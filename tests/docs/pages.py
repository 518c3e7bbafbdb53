"""Pages of the documentation as sessions: files that a page shows, commands, and what they print.

A block ```` ```toml title="mine.toml" ```` is a file of the reader. A block ```` ```console ```` is a session: lines
that begin with `$ ` are commands, the others their output: its first `lines=N` (12) and its last `last=N` (0) lines.
`exit=N` is the exit code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.paths import ROOT

DOCS: Final = ROOT / "docs"
EXAMPLES: Final = DOCS / "examples"
"""Files that the reader of a page downloads."""
CUT: Final = "…"
_BLOCK: Final = re.compile(r"^```(?P<kind>\w+)(?P<options>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN: Final = 12
_PATIENCE: Final = re.compile(r"simulating; the loops are compiled")
"""Lines that appear on a slow machine only."""

Main = Callable[..., tuple[int, str, str]]


@dataclass(frozen=True)
class Block:
    """Block of code of a page."""

    kind: str
    options: dict[str, str]
    text: str

    @property
    def commands(self) -> list[str]:
        """Commands of a session, those that go on over several lines joined."""
        joined = re.sub(r"\\\n> ?", "", self.text)
        return [line.removeprefix("$ ") for line in joined.splitlines() if line.startswith("$ ")]


def block_of(found: re.Match[str]) -> Block:
    """Block at a place of a page."""
    return Block(found["kind"], dict(re.findall(r'(\w+)="?([^"\s]*)"?', found["options"])), found["text"])


def sessions() -> list[Path]:
    """Pages with sessions, and the README."""
    return [
        path for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if "```console" in path.read_text("utf-8")
    ]


def replayed(page: str, main: Main, folder: Path) -> str:
    """Page with the output that its commands print now; files that it shows are written on the way."""

    def renewed(found: re.Match[str]) -> str:
        block = block_of(found)
        if "title" in block.options:
            (folder / block.options["title"]).write_text(block.text, encoding="utf-8")
        if block.kind != "console":
            return found[0]
        printed = "".join(_printed(command, block, main, folder) for command in _typed(block.text))
        return f"```console{found['options']}\n{printed}```"

    return _BLOCK.sub(renewed, page)


def _typed(text: str) -> Iterator[str]:
    """Commands as they are typed, with the lines on which they go on."""
    for found in re.finditer(r"^\$ (?:.*\\\n)*.*$", text, re.MULTILINE):
        yield found[0]


def _printed(typed: str, block: Block, main: Main, folder: Path) -> str:
    words = shlex.split(re.sub(r"\\\n> ?", "", typed.removeprefix("$ ")), comments=True)
    if words[0] == "cat":
        lines = (folder / words[1]).read_text(encoding="utf-8").splitlines()
    else:
        assert words[0] == "whatif", f"{typed}: sessions run whatif"
        code, out, err = main(*words[1:])
        assert code == int(block.options.get("exit", 0)), f"{typed}: exit code {code}\n{err}"
        printed = (out + err).replace(f"{folder}/", "").replace(f"{ROOT}/", "")
        lines = [line.rstrip() for line in printed.splitlines() if not _PATIENCE.match(line)]
    first, last = int(block.options.get("lines", _SHOWN)), int(block.options.get("last", 0))
    left_out = len(lines) > first + last
    return "\n".join([typed, *([*lines[:first], CUT, *lines[len(lines) - last :]] if left_out else lines), ""])
