"""`whatif` in a process that sends itself a signal at a known place: no test depends on when a signal arrives."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = """
import itertools, signal, sys
number, count, written, renamed = signal.Signals(int(sys.argv[1])), int(sys.argv[2]), sys.argv[3], sys.argv[4]
hits = itertools.count(1)
if number == signal.SIGINT:
    # A shell starts programs in the background with SIGINT ignored, and Python leaves that as it is.
    signal.signal(number, signal.default_int_handler)

def hit():
    if next(hits) == count:
        signal.raise_signal(number)

def watch(stream):
    write = stream.write
    def watched(text):
        done = write(text)
        stream.flush()
        if written and written in text:
            hit()
        return done
    stream.write = watched

def on_event(event, arguments):
    if renamed and event == "os.rename" and renamed in str(arguments[1]):
        hit()

for stream in (sys.stdout, sys.stderr):
    watch(stream)
sys.addaudithook(on_event)
sys.argv = ["whatif", *sys.argv[5:]]
from whatif.cli.main import main
main()
"""


def ended_process(
    number: signal.Signals,
    folder: Path,
    arguments: Sequence[str],
    *,
    count: int = 1,
    written: str = "",
    renamed: str = "",
) -> subprocess.CompletedProcess[str]:
    """`whatif` signalled once a text was written, or a file renamed to a name with a text, for the `count`-th time."""
    command = [sys.executable, "-c", _SCRIPT, str(int(number)), str(count), written, renamed, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
