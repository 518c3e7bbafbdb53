"""`whatif check`: validate files and say everything that is wrong with them at once."""

from __future__ import annotations

from pathlib import Path

import click

from whatif.cli.options import platforms_option
from whatif.errors import InvalidFileError, Problem
from whatif.limits import DEFAULT_MAXIMUM_POINTS


@click.command("check", short_help="Validate scenario and platform files.")
@click.argument("files", nargs=-1, required=True, metavar="FILE..")
@platforms_option
def command(files: tuple[str, ...], folders: tuple[Path, ...]) -> None:
    """Validate FILE.., each a scenario or a platform, by path or name; exit with 3 if any is invalid."""
    problems: list[Problem] = []
    for name in files:
        try:
            kind = _check(name, folders)
        except InvalidFileError as error:
            problems.extend(error.problems)
        else:
            click.echo(f"{name}: ok ({kind})")
    if problems:
        raise InvalidFileError(problems)


def _check(name: str, folders: tuple[Path, ...]) -> str:
    from whatif.engine.result import Question
    from whatif.engine.sweep import file_axes, grid_of
    from whatif.schema.load import load_part, load_platform, open_document
    from whatif.schema.shipped import is_file, shipped_names

    if not is_file(Path(name)) and name in shipped_names("platforms"):
        load_platform(name, folders)
        return "platform"
    document = open_document(name, "scenarios", folders)
    if "part" in document.data:
        load_part(name, folders)
        return "part"
    if looks_like_platform(document.data):
        load_platform(name, folders)
        return "platform"
    question = Question(document, folders=folders)
    grid_of(file_axes(question.program, DEFAULT_MAXIMUM_POINTS), DEFAULT_MAXIMUM_POINTS)
    return "scenario"


def looks_like_platform(data: dict[str, object]) -> bool:
    """Whether a document describes a machine: it has parts of one, and none of a question."""
    machine = {"node", "network", "node_count", "name", "description", "fits"}
    return bool(data.keys() & machine) and not data.keys() & {"application", "platform"}
