"""`whatif explain`: the derivation of a result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from whatif.cli.options import scenario_options, show_notes
from whatif.cli.output import Output
from whatif.cli.values import FilePath, OneOf, Whole
from whatif.errors import UsageError
from whatif.limits import PICTURES
from whatif.visible_text import visible

if TYPE_CHECKING:
    from whatif.core.derivation import TermExplanation

_LEVELS: Final = 3
_DEEPER: Final = "the first levels; `whatif explain {} PHASE` shows all of one phase, --depth N more of the whole"
FORMATS: Final = ("table", "json", "markdown", "latex")


@click.command("explain")
@scenario_options
@click.argument("term", required=False)
@click.option(
    "--depth",
    type=Whole(0),
    metavar="N",
    help="Number of levels to show below TERM; without TERM 3, else all.",
)
@click.option("-o", "--output", type=FilePath(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write to this file (.txt, .json, .md, .tex).")  # fmt: skip
@click.option("--format", "file_format", type=OneOf(FORMATS),
              help="Output format; by default that of the file name, else table: the tree as text. The list in LaTeX "
                   "needs the package amsmath.")  # fmt: skip
def command(
    scenario: str, term: str | None, output: Path | None, file_format: str | None, depth: int | None, **options: Any,
) -> None:  # fmt: skip
    """Explain TERM (iteration_time) of SCENARIO, a result, phase, term or parameter: equation, inputs, sources, share
    of the iteration."""
    from whatif.api.evaluation import explain

    if output is not None and output.suffix.lower() in PICTURES:
        raise UsageError(f"{output}: an explanation has no picture")
    target = Output.of(file_format, output, formats=FORMATS, pictures=())
    cut = depth is None and term is None and target.file_format == "table"
    levels = _LEVELS if cut else depth
    explanation = explain(scenario, term or "iteration_time", depth=levels, **options)
    with target.opened() as out:
        out.write(_text(explanation, target.file_format) + "\n")
    show_notes((*explanation.notes, *[_DEEPER.format(scenario)] * cut))
    explanation.raise_if_infeasible()


def _text(explanation: TermExplanation, file_format: str) -> str:
    if file_format == "json":
        return explanation.to_json()
    if file_format == "markdown":
        return explanation.to_markdown()
    return explanation.to_latex() if file_format == "latex" else visible("\n".join(explanation.lines()))
