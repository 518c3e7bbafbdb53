"""Part of the explorer that knows what would be lost at its end, and writes variants to files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on, work
from textual.app import App

from whatif.errors import WhatifError
from whatif.tui.events import VariantFilesAsked
from whatif.tui.screens.dialogs import ChoicePrompt

if TYPE_CHECKING:
    from collections.abc import Callable

    from whatif.tui.background import BackgroundJobs
    from whatif.tui.command_runner import CommandRunner
    from whatif.tui.file_sync import FileSync


class VariantWriter(App[None]):
    """Base of the explorer."""

    file_sync: FileSync
    runner: CommandRunner
    jobs: BackgroundJobs

    def at_stake(self) -> dict[str, str]:
        """What would be lost at the end: changes that no file has, and jobs in the background."""
        return self.runner.state.at_stake() | {job.title: job.words for job in self.jobs.items if job.active}

    def _shown(self, error: str) -> None:
        raise NotImplementedError

    def _try(self, work: Callable[[], str]) -> None:
        raise NotImplementedError

    @on(VariantFilesAsked)
    @work
    async def _write_asked(self) -> None:
        await self.write_variants()

    async def write_variants(self) -> None:
        """Write each variant to a file of its own, once the commands before are done."""
        await self.runner.idle()
        try:
            existing = [path for path in self.file_sync.variant_files().values() if path.exists()]
        except WhatifError as problem:
            self._shown(str(problem))
            return
        text = f"What they say will be lost: {', '.join(str(path) for path in existing)}"
        if not existing or await self.push_screen_wait(ChoicePrompt(text, {"o": "overwrite"})) == "o":
            self._try(self.file_sync.save_variants)
