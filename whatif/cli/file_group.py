"""Groups of verbs that read files of other programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from whatif.cli.lazy_group import LazyGroup
from whatif.errors import WhatifError
from whatif.paths import is_file, is_folder

_ARGUMENTS: Final = "whatif.files"


class FileGroup(LazyGroup):
    """Group whose errors name the verb of `whatif import` that reads a file, if another one does.

    `kinds` are the verbs of `whatif import` that read the files of verbs of another name.
    """

    def __init__(self, *arguments: Any, kinds: Mapping[str, str] = {}, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.kinds = kinds

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Command that the first argument names."""
        ctx.meta[_ARGUMENTS] = args
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb; a file that it refuses may be one of another verb."""
        try:
            return super().invoke(ctx)
        except WhatifError as error:
            from whatif.api.file_kinds import with_reader

            verb, *words = ctx.meta.get(_ARGUMENTS, [""])
            files = [word for word in words if is_file(Path(word)) or is_folder(Path(word))]
            raise with_reader(error, files, self.kinds.get(verb, verb)) from None
