"""What a command imports: static contracts cannot see imports inside functions, a process of its own can."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "pydantic", "textual", "scipy", "pandas", "plotext", "pyarrow", "rich", "tomli")


def imported(code):
    """The heavy packages that a fresh Python has imported after running some code."""
    ending = f"\nimport sys; print('|', *[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    guarded = f"try:\n    exec({code!r})\nexcept SystemExit as end:\n    assert not end.code, end.code"
    done = subprocess.run([sys.executable, "-c", guarded + ending], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("|")[2].split())


def command(*arguments):
    return f"import sys; sys.argv = {['whatif', *arguments]!r}\nfrom whatif.cli.main import main\nmain()"


def test_help_imports_no_library_but_click():
    assert imported(command("--help")) == set()
    assert imported(command("--version")) == set()


@pytest.mark.parametrize("verb", ["run", "explain", "check", "list", "schema", "resolve", "open", "serve"])
def test_help_of_a_verb_imports_neither_numpy_nor_textual(verb):
    assert not imported(command(verb, "--help")) & {"numpy", "pydantic", "textual", "scipy", "pandas", "plotext"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "jacobi2d"),
        ("run", "jacobi2d", "--point", "--format", "json"),
        ("run", "jacobi2d", "--sweep", "platform=summit, lassen", "--format", "csv"),
        ("explain", "jacobi2d", "halo"),
        ("check", "jacobi2d", "summit"),
        ("list", "leaves"),
        ("resolve", "jacobi2d"),
    ],
)
def test_commands_import_no_terminal_and_no_plotting(arguments):
    found = imported(command(*arguments))
    assert {"numpy", "pydantic"} <= found, "the probe must see what is imported"
    assert not found & {"textual", "scipy", "pandas", "plotext", "pyarrow", "rich"}


def test_a_plot_imports_no_terminal():
    found = imported(command("run", "jacobi2d", "--sweep", "platform.node.gpu_count=1, 2, 4", "--plot"))
    assert not found & {"textual", "scipy", "pandas", "plotext", "rich"}


def test_schema_imports_no_terminal():
    assert not imported(command("schema", "scenario")) & {"textual", "scipy", "pandas", "plotext"}


@pytest.mark.parametrize("module", ["whatif.engine.session", "whatif.engine.result", "whatif.export.write"])
def test_engine_imports_no_terminal(module):
    found = imported(f"import {module}")
    assert "numpy" in found
    assert not found & {"textual", "scipy", "pandas", "plotext", "rich", "pyarrow"}


def test_models_import_numpy_only():
    found = imported("import whatif.models.placement, whatif.models.roofline, whatif.models.collectives")
    assert found == {"numpy"}


def test_units_import_the_standard_library_only():
    assert imported("import whatif.units, whatif.errors") == set()
