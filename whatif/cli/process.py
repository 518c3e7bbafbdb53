"""Streams and signals of the process."""

from __future__ import annotations

import io
import os
import signal
import sys
from types import FrameType
from typing import Final, NoReturn

_ENDING: Final = ("SIGTERM", "SIGHUP")
"""Signals of a batch system and of a closed terminal; Windows has no SIGHUP."""


class Ended(KeyboardInterrupt):
    """Signal that quits the program as Ctrl+C does: files being written are removed or kept to resume from."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.exit_code = 128 + number


class PipeClosed(Exception):  # noqa: N818 - it is no error: the reader has what it wants
    """Closed pipe at stdout, as by `| head`."""


def end_on_signals() -> None:
    """Raise `Ended` on the signals that ask for the end; one that is ignored, as under nohup, stays so."""
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise_ended)


def _raise_ended(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)
    raise Ended(number)


def open_streams() -> None:
    """Give closed streams a file: output to a closed stdout is an error, stderr is discarded.

    Otherwise Python has no stream there, and the next file that is opened would take its number.
    """
    for name, mode in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, mode)
            setattr(sys, name, os.fdopen(handle, "r" if name == "stdin" else "w", encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def silence() -> None:
    """Discard the rest of stdout's buffer: it could not be written, and would be tried again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
