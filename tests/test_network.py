"""The program opens no connection, but where it is asked to."""

from __future__ import annotations

import ast
import socket

import pytest

from tests.paths import ROOT

NETWORK = {
    "aiohttp",
    "distributed",
    "ftplib",
    "http",
    "httpx",
    "requests",
    "smtplib",
    "socket",
    "ssl",
    "urllib",
    "urllib3",
}
ALLOWED = {"cli/serve.py": {"aiohttp", "socket"}, "core/executors.py": {"distributed"}}
"""Modules that listen, or that use a cluster."""
COMMANDS = [
    ("run", "jacobi2d"),
    ("run", "minife", "--sweep", "application.rank_count=2, 4", "-o", "minife.svg"),
    ("explain", "minimd"),
    ("validate", "minife"),
    ("compare", "jacobi2d", "minife", "--platform", "summit", "--platform", "frontier"),
    ("study", "successor"),
    ("simulate", "jacobi2d", "--ranks", "24"),
    ("report", "jacobi2d_strong", "-o", "report.html"),
    ("list", "platforms"),
    ("check", "summit"),
]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


def test_modules_for_the_network_are_imported_where_it_is_asked_for():
    package = ROOT / "whatif"
    found = {str(path.relative_to(package)): NETWORK & set(imported(path)) for path in package.rglob("*.py")}
    assert {name: modules for name, modules in found.items() if modules} == ALLOWED


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_verbs_open_no_connection(command, whatif_main, monkeypatch):
    def refuse(*arguments):
        raise AssertionError(f"a connection to {arguments[1:]}")

    for name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert whatif_main(*command)[0] == 0
