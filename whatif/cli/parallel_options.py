"""Options of workers."""

from __future__ import annotations

import click

on_option = click.option(
    "--on", metavar="WHERE",
    help="Evaluate in parallel: `threads`, `processes`, `local` (a dask.distributed cluster on this machine) or the "
         "address of a scheduler, `tcp://HOST:8786`.",
)  # fmt: skip
workers_option = click.option(
    "--workers",
    type=click.IntRange(1, 4096),
    metavar="N",
    help="With --on: number of workers, by default one per core.",
)
