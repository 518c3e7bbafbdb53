"""Coverage-guided random inputs for every reader: `python -m tests.fuzz [TARGET ..] [--seconds N]`, extra `fuzz`.

Nothing but a `WhatifError` may come out of a reader, within 10 s and 2 GB. Each target runs in a process of its own,
from the seeds of `targets.py`; an input that is a finding is kept in the folder `fuzz-findings`. An exception that
no reader foresaw is a finding, too, though a user sees an error about the file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click

FINDINGS = Path("fuzz-findings")
LONGEST = "10"
MOST_MEMORY = "2000"
_LAST = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+)")


@click.command()
@click.argument("names", nargs=-1)
@click.option("--seconds", default=8, show_default=True, help="Time of each target.")
def main(names: tuple[str, ...], seconds: int) -> None:
    """Run the targets one after the other, and print how many inputs each was given."""
    from tests.fuzz.targets import TARGETS

    FINDINGS.mkdir(exist_ok=True)
    total, bad = 0, []
    for name in names or TARGETS:
        runs, coverage, problem = _run(name, seconds)
        total += runs
        print(f"{name:20} {runs:>8} inputs  {coverage:>6} edges  {problem or 'ok'}", flush=True)
        bad += [name] if problem else []
    print(f"{total} inputs; findings in {', '.join(bad) or 'none'}")
    sys.exit(bool(bad))


def _run(name: str, seconds: int) -> tuple[int, int, str]:
    """Number of inputs, of covered edges, and what was found."""
    options = [f"-max_total_time={seconds}", f"-timeout={LONGEST}", f"-rss_limit_mb={MOST_MEMORY}", "-max_len=20000"]
    command = [sys.executable, "-m", "tests.fuzz.one", name, *options, f"-artifact_prefix={FINDINGS}/{name}-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    (FINDINGS / f"{name}.log").write_text(done.stderr + done.stdout)
    counts = _LAST.findall(done.stderr) or [("0", "0")]
    cause = re.search(r"^(\w[\w.]*(?:Error|Exception|Interrupt)\b.*)$", done.stdout + done.stderr, re.MULTILINE)
    problem = "" if done.returncode == 0 else (cause[1] if cause else f"exit code {done.returncode}")[:150]
    return int(counts[-1][0]), int(counts[-1][1]), problem


if __name__ == "__main__":
    main()
