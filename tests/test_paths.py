"""Paths that no file can have are missing files, not errors."""

from pathlib import Path

import pytest

from whatif.errors import UsageError
from whatif.paths import exists, is_file, toml_path, user_path

LONG = 300 * "a"


@pytest.mark.parametrize("text", [LONG, "a\0b", "~no-such-user/file"])
def test_an_impossible_path_is_no_file(text):
    path = user_path(text)
    assert not exists(path)
    assert not is_file(path)
    assert str(path) == text


@pytest.mark.parametrize("text", ["", ".", "/", ".."])
def test_a_text_without_a_name_is_not_that_of_a_file(text):
    with pytest.raises(UsageError, match="expected the name of a file"):
        toml_path(text)


def test_a_name_gets_its_ending():
    assert (toml_path("a"), toml_path("b/a.toml")) == (Path("a.toml"), Path("b/a.toml"))


def test_home_folder_is_found(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_path("~/mine.toml") == tmp_path / "mine.toml"
    (tmp_path / "mine.toml").touch()
    assert is_file(user_path(Path("~") / "mine.toml"))
    assert exists("~") is False
