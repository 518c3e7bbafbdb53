"""Types of values on the command line; their errors name the option, the value, and what was expected."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from whatif.errors import UsageError, did_you_mean
from whatif.paths import is_file, is_folder

_MOST_NEAR: Final = 1000
"""Most files of a folder whose names are compared with one that does not exist."""


class Whole(click.IntRange):
    """Whole number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; raise `UsageError` for another text, and for a number outside the range."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            raise UsageError(f"{_stated(value, param)}: expected a whole number {self._limits()}") from None

    def _limits(self) -> str:
        return f"of at least {self.min}" if self.max is None else f"from {self.min} to {self.max}"


class OneOf(click.Choice[str]):
    """One of several words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word; raise `UsageError` for another one."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            hint = did_you_mean(str(value), self.choices)
            message = f"{_stated(value, param)}: expected one of {', '.join(self.choices)}{hint}"
            raise UsageError(message) from None


class FilePath(click.Path):
    """Path of a file or folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; raise `UsageError` if it does not exist although it must, and for a folder in place of a file."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            raise UsageError(f"{_stated(value, param)}: {self._reason(str(value))}") from None

    def _reason(self, value: str) -> str:
        kind = "file" if self.file_okay else "folder"
        if is_folder(Path(value)) and not self.dir_okay:
            return "is a folder, not a file"
        if is_file(Path(value)) and not self.file_okay:
            return "is a file, not a folder"
        return "no permission to read it" if Path(value).exists() else f"no such {kind}{_near(value)}"


def _near(name: str) -> str:
    """Hint with the files next to a missing one that have similar names."""
    folder = Path(name).parent
    known = [str(path) for path in islice(folder.glob("*"), _MOST_NEAR)]
    return did_you_mean(str(Path(name)), known)


def _stated(value: Any, param: click.Parameter | None) -> str:
    """`--depth x` for the value of an option, `x` for an argument."""
    return f"{max(param.opts, key=len)} {value}" if isinstance(param, click.Option) else str(value)
