"""`whatif check`: problems of files, and results that differ from stored ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.echo import echo
from whatif.cli.options import platforms_option, show_notes
from whatif.cli.values import FilePath


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE..")
@platforms_option
@click.option("--against", type=FilePath(path_type=Path, dir_okay=False), metavar="JSON",
              help="Exit with 5 if a result of a scenario differs from this file.")  # fmt: skip
@click.option("--tolerance", metavar="SHARE",
              help="Share by which a result may differ: `1 %` or 0.01.  [default: 0.1 %]")  # fmt: skip
@click.option("--update", is_flag=True, help="Write the present results into the file of --against.")
def command(files: tuple[str, ...], **options: Any) -> None:
    """Check FILE.., each a scenario, a platform or a part, by path or name.

    Exit with 3 if any is invalid, with 4 if a scenario is infeasible: it can never be run.
    """
    from whatif.api.scenarios import check

    checks = check(*files, **options)
    for file in checks.files:
        if not file.problems:
            echo(f"{file.name}: ok ({file.kind})")
    for line in checks.moved:
        echo(line)
    show_notes(checks.notes)
    checks.raise_for_problems()
