"""Docstrings, help texts and messages use the words of the project; what remains of others may only become less."""

from __future__ import annotations

import json

import click

from tests.docs.vocabulary import STORED, counts, places
from whatif.cli.main import program

MOST_WORDS = 35


def help_texts(command, context, name):
    """Name and help of every option of a command and of those below it."""
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            yield f"{name} {option.opts[-1]}", option.help
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            yield from help_texts(command.get_command(context, below), context, f"{name} {below}")


def test_no_package_uses_more_avoided_words_than_before():
    stored, found = json.loads(STORED.read_text(encoding="utf-8")), counts()
    more = {package: count for package, count in found.items() if count > stored.get(package, 0)}
    assert not more, "\n".join(text for package, text in places() if package in more)


def test_help_of_every_option_is_one_or_two_sentences():
    long = [f"{name}: {text}" for name, text in help_texts(program, click.Context(program), "whatif")
            if len(text.split()) > MOST_WORDS or text.rstrip()[-1] not in ".)]"]  # fmt: skip
    assert not long, "\n".join(long)
