"""What the fits to measured runs have in common on the command line: the files they read, the model they write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from whatif.cli.fit import tell
from whatif.errors import UsageError

if TYPE_CHECKING:
    from whatif.table import Table

_PLATFORM = "summit"
_Command = TypeVar("_Command", bound=Callable[..., None])


@dataclass(frozen=True)
class ModelFile:
    """Where a fitted model is written, and the scenario that asks it."""

    output: Path | None
    scenario: Path | None
    source: str | None
    platform: str

    def __post_init__(self) -> None:
        if self.scenario is not None and self.output is None:
            raise UsageError("--scenario needs -o MODEL.toml: the scenario's phase extends that file")
        if self.source is not None and self.output is None:
            raise UsageError("--source needs -o MODEL.toml: that file says it")
        if self.platform != _PLATFORM and self.scenario is None:
            raise UsageError("--platform needs --scenario: it is the scenario's")

    def source_of(self, runs: Table) -> str:
        """What `[sources]` says of the model."""
        return self.source or f"fitted to {runs.notes.get('file', 'runs')} ({len(runs)} runs)"

    def write(self, part: str, kind: str, question: Callable[[str], str], variable: str = "") -> None:
        """Write the texts of the model and, for its name, of the scenario; `variable` is a parameter to predict at."""
        from whatif.files.part_file import refuse_part, refuse_question, write_part, write_question

        if self.output is None:
            return
        # Both or none: a new part beside an old scenario would answer the old question.
        refuse_part(self.output, kind)
        text = "" if self.scenario is None else question(self.output.stem)
        if self.scenario is not None:
            refuse_question(self.scenario, text, self.output)
        write_part(self.output, part, kind)
        tell([f"written: {self.output}"])
        if self.scenario is not None:
            write_question(self.scenario, text, self.output)
            value = f" --set {variable}=VALUE" if variable else ""
            said = f"`whatif run {self.scenario} --point{value} --samples 1024` predicts with a band"
            tell([f"written: {self.scenario}; {said}"])


def runs_options(command: _Command) -> _Command:
    """FILE.. and how runs are read from them, `read`; and what becomes of the model, `model`."""

    @wraps(command)
    def with_runs(
        files: tuple[Path, ...], columns: str | None, where: tuple[str, ...], long: str | None, output: Path | None,
        scenario: Path | None, source: str | None, platform: str, **given: Any,
    ) -> None:  # fmt: skip
        model = ModelFile(output, scenario, source, platform)
        command(read=lambda paths=files: _read(paths, columns, where, long), model=model, **given)

    file = click.Path(path_type=Path, dir_okay=False)
    options = (
        click.argument("files", nargs=-1, required=True, metavar="FILE..",
                       type=click.Path(path_type=Path, exists=True)),
        click.option("--columns", metavar="NAME=HEADING,..", help="Columns of a CSV file: `time=Wall time [ms]`."),
        click.option("--where", multiple=True, metavar="HEADING=VALUE", help="Only rows with this."),
        click.option("--long", metavar="METRIC=VALUE", help="Headings of metric names and of their values."),
        click.option("-o", "--output", type=file, metavar="MODEL.toml", help="Write a part that a phase extends."),
        click.option("--scenario", type=file, metavar="SCENARIO.toml", help="With -o: a scenario that asks the model."),
        click.option("--source", metavar="TEXT", help="What the model's [sources] say, instead of the files."),
        click.option("--platform", default=_PLATFORM, show_default=True, help="Of the scenario; runs know no machine."),
    )  # fmt: skip
    decorated: Any = with_runs
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _read(paths: Sequence[Path], columns: str | None, where: Sequence[str], long: str | None) -> Table:
    """The runs of some files; what their importer warns of is told."""
    from whatif.cli.measurement_files import read_run_files

    table = read_run_files(paths, columns, where, long)
    tell(table.notes.get("warnings", "").splitlines(), "warning: ")
    return table
