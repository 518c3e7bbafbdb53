"""Overrides: values by dotted path that replace those of the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from whatif.errors import InvalidFileError, UsageError
from whatif.schema.toml import MAXIMUM_DEPTH


def checked_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides as plain Python values. Raise `UsageError` for a path that no value can have, and for `platform`."""
    for path in overrides:
        if path == "platform":
            raise UsageError("--set platform=..: use --platform NAME")
        if path.count(".") > MAXIMUM_DEPTH:
            raise UsageError(f"--set {path[:60]}..: no value lies more than {MAXIMUM_DEPTH} tables deep")
    return {path: value.item() if isinstance(value, np.generic) else value for path, value in overrides.items()}


@contextmanager
def option_named(option: str, paths: Iterable[str]) -> Iterator[None]:
    """Errors of files name the option whose values are tried, such as `--sweep`, in place of --platform and --set."""
    own = ("--platform", *(f"--set {path}=" for path in paths))
    try:
        yield
    except InvalidFileError as error:
        problems = [
            replace(item, file=f"{option}{item.file.removeprefix('--platform').removeprefix('--set')}")
            if item.file.startswith(own) else item
            for item in error.problems
        ]  # fmt: skip
        raise InvalidFileError(problems) from None
