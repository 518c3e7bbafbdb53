"""`whatif study`: bids compared over a mix of applications within limits of money and power."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.arguments import pairs
from whatif.cli.options import show_written, values_by_name
from whatif.cli.output import Output, output_options
from whatif.cli.values import FilePath, OneOf
from whatif.errors import UsageError
from whatif.limits import PAGES
from whatif.vocabulary import STUDY_VIEWS

if TYPE_CHECKING:
    from whatif.vocabulary import StudyView


@click.command("study")
@click.argument("source", required=False, metavar="STUDY")
@click.option("--new", type=FilePath(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write a commented example study; an existing file is not overwritten.")  # fmt: skip
@click.option("--show", type=OneOf(STUDY_VIEWS),
              help="Bids; jobs of every application; values to commit to; turning points of the ranking; changes "
              "with which a bid wins; options of the study; questions to the vendors.  [default: bids]")  # fmt: skip
@click.option("--sweep", metavar="PATH=SPEC",
              help="Values of one parameter of the study, e.g. limits.power='2 MW .. 4 MW linear 9'.")  # fmt: skip
@click.option("--set", "overrides", multiple=True, callback=values_by_name("PATH=VALUE"), metavar="PATH=VALUE",
              help="Override a value of the study, e.g. --set limits.power='2.5 MW' (or x0.9).")  # fmt: skip
@output_options(plot="Draw the throughput of the mix of a --sweep.")
def command(
    source: str | None, new: Path | None, show: StudyView | None, sweep: str | None, overrides: dict[str, str],
    output: Output,
) -> None:  # fmt: skip
    """Rank the bids of STUDY, a file that states the present machine, bids, a mix of applications and limits.

    Shows how many nodes the limits allow, the throughput of the mix over that of the present machine, price, cost and
    power, and the probability of each bid to be the best. -o FILE.html writes the page for the committee, -o FILE.pdf
    the same for print. --set and --sweep take values of the study, e.g. --set limits.power='2.5 MW'.
    """
    from whatif.api.procurement import new_study, study, study_page

    if new is not None:
        given = {
            source: source,
            "--show": show,
            "--sweep": sweep,
            "--set": overrides,
            "-o, --format and --plot": output,
        }
        if ineffective := next((option for option, value in given.items() if value not in (None, {}, Output())), ""):
            raise UsageError(f"{ineffective}: no effect with --new")
        show_written(new_study(new))
        return
    if source is None:
        raise UsageError("name a STUDY, or write one with --new FILE")
    if sweep is None and output.path is not None and output.path.suffix.lower() in PAGES:
        if show not in (None, "bids"):
            raise UsageError(f"--show {show}: no effect on the page {output.path}; print the table, or write a .csv")
        output.finish(study_page(source, output.path, overrides=overrides), output.path)
        return
    if sweep is None:
        output.write(study(source, overrides=overrides, show=show or "bids"))
        return
    if show is not None:
        raise UsageError(f"--show {show}: no effect with --sweep")
    output.write(study(source, overrides=overrides, sweep=pairs("--sweep", [sweep], "PATH=SPEC")))
