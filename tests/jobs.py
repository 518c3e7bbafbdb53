"""What tests ask of a helping process, which imports this module and nothing else for it."""

from __future__ import annotations

import os
import signal
import time

from whatif.errors import UsageError
from whatif.tui.commands.explorer_commands import Edit


def sleepy(seconds):
    time.sleep(seconds)
    return seconds


def dying():
    os.kill(os.getpid(), signal.SIGKILL)


def refusing():
    raise UsageError("not today")


class Slow(Edit):
    """An edit that takes its time."""

    def apply(self, study):
        time.sleep(0.6)
        return super().apply(study)
