"""What a command imports: static contracts cannot see imports inside functions, a process of its own can."""

from __future__ import annotations

import subprocess
import sys

from tests.paths import ROOT

HEAVY = (
    "numpy", "pydantic", "textual", "scipy", "pandas", "plotext", "pyarrow", "rich", "tomli", "matplotlib", "jinja2",
)  # fmt: skip


def imported(*codes):
    """The heavy packages that a fresh Python has imported after running one code after the other: a set for each."""
    ending = f"\nimport sys; print('|', *[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    guarded = [
        f"try:\n    exec({code!r})\nexcept SystemExit as end:\n    assert not end.code, end.code" for code in codes
    ]
    script = "\n".join(code + ending for code in guarded)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [set(line[1:].split()) for line in done.stderr.splitlines() if line.startswith("|")]


def command(*arguments):
    return f"import sys; sys.argv = {['whatif', *arguments]!r}\nfrom whatif.cli.main import main\nmain()"


def test_help_imports_no_library_but_click():
    assert imported(command("--help"), command("--version")) == [set(), set()]


def test_help_of_a_verb_imports_neither_numpy_nor_textual():
    verbs = ["run", "explain", "check", "list", "schema", "resolve", "open", "serve", "report"]
    found = imported(*(command(verb, "--help") for verb in verbs))
    for verb, modules in zip(verbs, found, strict=True):
        assert not modules & {"numpy", "pydantic", "textual", "scipy", "pandas", "plotext", "matplotlib"}, verb


def test_commands_import_no_terminal_and_no_plotting():
    commands = [
        ("run", "jacobi2d"),
        ("run", "jacobi2d", "--point", "--format", "json"),
        ("run", "jacobi2d", "--sweep", "platform=summit, lassen", "--format", "csv"),
        ("explain", "jacobi2d", "halo"),
        ("check", "jacobi2d", "summit"),
        ("list", "parameters"),
        ("resolve", "jacobi2d"),
    ]
    found = imported(*(command(*arguments) for arguments in commands))
    for arguments, modules in zip(commands, found, strict=True):
        assert {"numpy", "pydantic"} <= modules, "the probe must see what is imported"
        assert not modules & {"textual", "scipy", "pandas", "plotext", "pyarrow", "rich", "matplotlib"}, arguments


def test_a_plot_imports_no_terminal():
    # The second scenario has measured runs.
    for scenario in ("jacobi2d_strong", "jacobi2d"):
        (found,) = imported(command("run", scenario, "--sweep", "platform.node.gpu_count=1, 2, 4", "--plot"))
        assert not found & {"textual", "scipy", "pandas", "plotext", "rich"}, scenario


def test_jobs_of_worker_processes_import_no_terminal():
    jobs = (path.stem for path in (ROOT / "whatif" / "tui" / "jobs").glob("*.py"))
    names = [f"whatif.tui.jobs.{name}" for name in jobs if name not in ("__init__", "latest_only")]
    (found,) = imported(f"import whatif.tui.decisions.decision_job, whatif.tui.page_views, {', '.join(names)}")
    assert "numpy" in found
    assert not found & {"textual", "rich", "matplotlib", "plotext"}


def test_schema_imports_no_terminal():
    (found,) = imported(command("schema", "scenario"))
    assert not found & {"textual", "scipy", "pandas", "plotext"}


def test_engine_imports_no_terminal():
    modules = ("whatif.core.grid_run", "whatif.core.session", "whatif.files.result_writers")
    for module, found in zip(modules, imported(*(f"import {module}" for module in modules)), strict=True):
        assert "numpy" in found
        assert not found & {"textual", "scipy", "pandas", "plotext", "rich", "pyarrow"}, module


def test_models_import_numpy_only():
    assert imported("import whatif.models.placement, whatif.models.roofline, whatif.models.collectives") == [{"numpy"}]


def test_units_import_the_standard_library_only():
    assert imported("import whatif.units, whatif.errors") == [set()]
