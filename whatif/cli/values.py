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


class _Value:
    """Part of all types, in front of one of click's."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Converted value. Raise `UsageError` for a wrong one."""
        try:
            return super().convert(value, param, ctx)  # type: ignore[misc] # click's
        except click.BadParameter:
            raise UsageError(f"{_stated(value, param)}: {self.reason(str(value))}") from None

    def reason(self, value: str) -> str:
        """Reason why a value is wrong."""
        raise NotImplementedError


class Whole(_Value, click.IntRange):
    """Whole number in a range."""

    name = "N"

    def reason(self, value: str) -> str:
        """Expected range."""
        limits = f"of at least {self.min}" if self.max is None else f"from {self.min} to {self.max}"
        return f"expected a whole number {limits}"


class OneOf(_Value, click.Choice[str]):
    """One of several words."""

    def reason(self, value: str) -> str:
        """Expected words, and the one that was probably meant."""
        return f"expected one of {', '.join(self.choices)}{did_you_mean(value, self.choices)}"


class FilePath(_Value, click.Path):
    """Path of a file or folder."""

    def reason(self, value: str) -> str:
        """Reason why a path cannot be used, with the file that was probably meant."""
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
