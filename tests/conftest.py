"""What several test files share."""

from __future__ import annotations

import fcntl
import gc
import itertools
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import whatif.cli.main

# A build must not fail on a case that no change in it caused: there the examples are always the same ones, and as
# many as there is time for.
settings.register_profile("ci", derandomize=True, max_examples=50)
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_collection_finish():
    """What is there when the tests begin stays to their end: it need not be searched for garbage again and again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory):
    """A folder that does not exist yet, one after another: thousands of `mktemp` would search those before them."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _own_home(monkeypatch, _homes):
    """What a person prefers, or left unsaved, must not decide a test; nor must what the terminal can do."""
    home = next(_homes)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("WHATIF_CONFIG", raising=False)


@pytest.fixture(scope="session", autouse=True)
def _styles_are_parsed_once():
    """Hundreds of explorers in one process have the same stylesheets."""
    from textual.css.stylesheet import Stylesheet

    parse, parsed = Stylesheet._parse_rules, {}

    def parse_once(sheet, css, **where):
        key = (css, *where.items(), *sheet._variables.items())
        if key not in parsed:
            parsed[key] = parse(sheet, css, **where)
        return parsed[key]

    Stylesheet._parse_rules = parse_once
    yield
    Stylesheet._parse_rules = parse


@pytest.fixture(scope="session", autouse=True)
def _loops_are_compiled_once(request, tmp_path_factory):
    """A loop takes up to half a minute to compile: one worker does it, and the others find it in numba's cache."""
    if not hasattr(request.config, "workerinput"):
        return
    from numba.core.dispatcher import Dispatcher

    compile_it, held = Dispatcher.compile, []
    shared = tmp_path_factory.getbasetemp().parent

    def compile_alone(dispatcher, signature):
        if held:  # One loop calls another.
            return compile_it(dispatcher, signature)
        with (shared / f"{dispatcher.py_func.__name__}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            held.append(lock)
            try:
                return compile_it(dispatcher, signature)
            finally:
                held.clear()

    Dispatcher.compile = compile_alone


@pytest.fixture
def whatif_main(monkeypatch, capsys, tmp_path):
    """Run `whatif ARGUMENTS` in this process, in an empty folder: (exit code, stdout, stderr); never a traceback."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["whatif", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            whatif.cli.main.main()
        captured = capsys.readouterr()
        code = caught.value.code
        assert "Traceback" not in captured.err
        assert code in (0, 2, 3, 4, 5)
        assert code == 0 or captured.err.strip()
        return code, captured.out, captured.err

    return run


def pytest_runtest_setup(item):
    """Tests of HPL may start processes that are given less time than its loops take to compile: they are there."""
    run = getattr(item.config, "workerinput", {}).get("testrunuid")
    plays = item.path.stem in ("test_tune", "test_readme", "test_page_hpl") or item.path.stem.startswith("test_hpl")
    if run is None or not plays or getattr(item.config, "has_hpl", False):
        return
    from whatif.linpack.simulation.configuration import Configuration
    from whatif.linpack.simulation.simulator import HPLMachine, simulate

    with (Path(tempfile.gettempdir()) / f"whatif-{run}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        machine = HPLMachine(np.zeros((19, 5)), np.zeros((2, 1, 8)), np.zeros(4, dtype=np.int64), np.ones(4))
        simulate(Configuration(8, 2, 2, 2), machine)
    item.config.has_hpl = True
