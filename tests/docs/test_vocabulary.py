"""Docstrings, help texts, messages and pages use the words of the project; counts of other words may only fall."""

from __future__ import annotations

import json

import click

from tests.docs.vocabulary import STORED, counts, in_code, in_prose, places
from whatif.cli.lazy_group import contexts_below
from whatif.cli.main import program

MOST_WORDS = 35


def help_texts():
    """Name and help of every option of the program and its verbs."""
    root = click.Context(program, info_name="whatif")
    for context in [root, *contexts_below(root)]:
        for option in context.command.params:
            if isinstance(option, click.Option) and option.help:
                yield f"{context.command_path} {option.opts[-1]}", option.help


def test_no_package_uses_more_avoided_words_than_before():
    stored, found = json.loads(STORED.read_text(encoding="utf-8")), counts()
    more = {package: count for package, count in found.items() if count > stored.get(package, 0)}
    assert not more, "\n".join(text for package, text in places() if package in more)


def test_help_of_every_option_is_one_or_two_sentences():
    long = [f"{name}: {text}" for name, text in help_texts()
            if len(text.split()) > MOST_WORDS or text.rstrip()[-1] not in ".)]"]  # fmt: skip
    assert not long, "\n".join(long)


def test_words_are_found_in_prose_but_not_in_code(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "A leaf.\n`leaf` and [link](leaf)\n```toml\nleaf\n```\n    leaf\nTwo\nleaves of the tree: the leaves.\n"
    )
    assert list(in_prose(page)) == [(1, "leaf", "parameter"), (8, "the leaves", "parameter")]


def test_only_the_unreleased_part_of_the_changelog_counts(tmp_path):
    page = tmp_path / "CHANGELOG.md"
    page.write_text("# Changelog\n\n## [Unreleased]\n\n- A leaf.\n\n## [1.0]\n\n- A leaf.\n")
    assert list(in_prose(page)) == [(5, "leaf", "parameter")]


def test_docstrings_name_their_thing(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        '"""What if."""\n\nX = 1\n"""Of the machine."""\nY = "Of all"\n\n'
        'def f():\n    """What is shown.\n\n    A leaf."""\n'
    )
    assert list(in_code(module)) == [(4, "Of", "the noun"), (8, "What", "the noun"), (10, "leaf", "parameter")]
