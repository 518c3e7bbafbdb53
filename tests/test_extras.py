"""Commands that install extras."""

from __future__ import annotations

import shlex
import sys

import pytest
import tomli

from tests.paths import ROOT
from whatif import extras
from whatif.extras import install_command

STATED = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", sorted(STATED.keys() - {"test"}))
def test_the_packages_of_an_extra_are_named_and_never_the_program(extra):
    words = shlex.split(install_command(extra))
    assert words[:4] == [sys.executable, "-m", "pip", "install"]
    assert len(words) == 4 + len(STATED[extra])
    assert not any(word.startswith("whatif") for word in words)


def test_without_pip_the_installer_of_uv_is_named(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert shlex.split(install_command("otf2")) == ["uv", "pip", "install", "--python", sys.executable, "otf2>=3"]
