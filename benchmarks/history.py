"""Results of the benchmarks in a file, one JSON object a line, and their comparison with the last ones."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import Row

RESULTS: Final = Path(__file__).resolve().parents[1] / "build" / "bench" / "results.jsonl"
SLOWER: Final = 1.25
"""Factor beyond which a result is marked."""
_FACTORS: Final = {"M": 1e6, "G": 1e9, "k": 1e3, "m": 1e-3, "u": 1e-6, "": 1.0}
_VALUE: Final = re.compile(r"([\d.,]+(?:e[+-]?\d+)?) ?([MGkmu]?)( ?\w*/s|s|B)(?: CPU)?")
_SPREAD: Final = re.compile(r" \((?:worst|p95) [^)]*\)")


@dataclass(frozen=True)
class Run:
    """Circumstances of a run of the benchmarks."""

    date: str
    commit: str
    machine: str


def this_run() -> Run:
    """Date, commit and machine of now; `+` marks a commit with changes."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Run(date, _git("rev-parse", "--short", "HEAD") + "+" * bool(_git("status", "--porcelain")), machine_name())


def machine_name() -> str:
    """Name, processor and number of cores of this machine."""
    cores = Path("/proc/cpuinfo")
    text = cores.read_text(encoding="utf-8") if cores.is_file() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    name = model[1] if model else platform.processor() or platform.machine()
    return f"{name}, {text.count('processor	:') or 1} cores"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=RESULTS.parents[2], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def slowness(now: str, before: str) -> float | None:
    """Factor by which a result is worse than another: of times and memory their ratio, of rates the inverse one."""
    values = [_VALUE.fullmatch(text) for text in (now, before)]
    if None in values:
        return None
    new, old = (float(found[1].replace(",", "")) * _FACTORS[found[2]] for found in values if found)
    is_rate = now.removesuffix(" CPU").endswith("/s")
    divisor, amount = (new, old) if is_rate else (old, new)
    return amount / divisor if divisor else None


def last_results(path: Path, machine: str) -> dict[str, str]:
    """Last result on a machine, by benchmark."""
    if not path.is_file():
        return {}
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {row["what"]: row["this"] for row in rows if row["machine"] == machine}


def compared(row: Row, last: Mapping[str, str]) -> str:
    """`1.02 x the last` time, or of a rate its inverse; marked with `SLOWER` from a factor of 1.25 on."""
    before = last.get(_name(row))
    factor = slowness(row.this, before) if before else None
    if factor is None:
        return ""
    return f"{factor:.2f} x the last time" + "  SLOWER" * (factor > SLOWER)


def record(row: Row, run: Run) -> dict[str, Any]:
    """Entry of a result in the file."""
    entry = {"what": _name(row), "this": row.this, "other": row.other, "alternative": row.alternative}
    return {**vars(run), **entry}


def _name(row: Row) -> str:
    return _SPREAD.sub("", row.what)


def append(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Add entries to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)
