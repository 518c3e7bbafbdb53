"""Options of workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from whatif.errors import UsageError

if TYPE_CHECKING:
    from whatif.core.executors import Place


on_option = click.option(
    "--on", metavar="WHERE",
    help="Evaluate in parallel: `threads`, `processes`, `local` (a dask.distributed cluster on this machine) or the "
         "address of a scheduler, `tcp://HOST:8786`.",
)  # fmt: skip
workers_option = click.option(
    "--workers", type=click.IntRange(1, 4096), metavar="N", help="With --on: number of workers, by default one a core."
)


@dataclass(frozen=True, slots=True)
class ParallelOptions:
    """Values of `--on` and `--workers`; without `on` this process works alone."""

    on: str | None
    workers: int | None

    def __post_init__(self) -> None:
        if self.on is None and self.workers is not None:
            raise UsageError("--workers and --part-points go with --on")

    @contextmanager
    def place(self) -> Iterator[Place | None]:
        """Workers, for as long as they are needed; None where this process works alone."""
        if self.on is None:
            yield None
            return
        from whatif.core.executors import opened

        with opened(self.on, self.workers) as place:
            if not place.count():
                click.echo(f"{self.on} has no workers yet; waiting for the first", err=True)
            yield place
