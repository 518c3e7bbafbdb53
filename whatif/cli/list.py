"""`whatif list`: what there is to ask about."""

from __future__ import annotations

import click

from whatif.cli.options import open_question


@click.command("list", short_help="List platforms, their parts, scenarios, or the parameters of a scenario.")
@click.argument("what", type=click.Choice(["platforms", "parts", "scenarios", "parameters"]))
@click.argument("scenario", default="jacobi2d")
def command(what: str, scenario: str) -> None:
    """List what is shipped, or every parameter of SCENARIO (jacobi2d) with value, grade and source."""
    if what == "parameters":
        _parameters(scenario)
    elif what == "platforms":
        _platforms()
    elif what == "parts":
        _parts()
    else:
        _scenarios()


def _platforms() -> None:
    from whatif.schema.load import load_platform
    from whatif.schema.shipped import shipped_names

    for name in shipped_names("platforms"):
        platform, _ = load_platform(name)
        click.echo(f"{name}\t{platform.description or platform.name}")


def _parts() -> None:
    from whatif.schema.load import open_document
    from whatif.schema.shipped import shipped_names

    documents = {name: open_document(name, "parts") for name in shipped_names("parts")}
    for name, document in sorted(documents.items(), key=lambda item: (item[1].data["part"], item[0])):
        words = document.data.get("name") or _first_comment(document.text)
        click.echo(f"{name}\t{document.data['part']}\t{words}")


def _first_comment(text: str) -> str:
    """The first comment of a part."""
    return next((line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#")), "")


def _scenarios() -> None:
    from whatif.schema.load import open_document, question_of
    from whatif.schema.shipped import shipped_names

    for name in shipped_names("scenarios"):
        click.echo(f"{name}\t{question_of(open_document(name, 'scenarios').text)}")


def _parameters(scenario: str) -> None:
    program = open_question(scenario, None, (), ()).program
    for path, parameter in program.parameters.items():
        kind = "structural" if parameter.structural else "numeric" if path in program.reached else "not used"
        click.echo("\t".join((path, parameter.text(), kind, parameter.grade, parameter.source)))
