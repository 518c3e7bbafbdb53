"""Fixtures and hooks of all tests."""

from __future__ import annotations

import contextlib
import gc
import itertools
import pickle
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import whatif
import whatif.cli.main
import whatif.defects
from tests.paths import ROOT
from tests.preloaded_workers import PreloadedWorkers
from whatif.files import fitted_kernels
from whatif.limits import LONG_TOPICS
from whatif.studies.procurement import placing
from whatif.tui.jobs import worker
from whatif.validation.tables import TABLES

SLOW = [line for line in (ROOT / "tests" / "slow.txt").read_text().splitlines() if line and not line.startswith("#")]

OWN_WORKERS = ("test_state", "test_background", "test_graphics", "test_portability")
"""Tests whose worker processes are started as users' are."""

# A build must not fail on an example that no change in it caused, nor on a busy machine;
# `--hypothesis-profile default` has other examples.
settings.register_profile(
    "repeatable", derandomize=True, max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


@pytest.fixture
def signals_end_programs():
    """SIGINT and SIGHUP end started programs, also in the background of a shell or under `nohup`, which ignore them."""
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_addoption(parser):
    parser.addoption("--shared-data", action="store_true", help="Also compare with the full-size data in ../shared.")


def pytest_collection_modifyitems(config, items):
    """Mark slow tests; skip comparisons with data outside the project, whose code samples in tests/data cover."""
    slow = tuple(str(ROOT / name) for name in SLOW)
    for item in items:
        if str(item.path).startswith(slow):
            item.add_marker("slow")
    if config.getoption("--shared-data"):
        return
    shared = [item for item in items if item.get_closest_marker("shared_data")]
    config.hook.pytest_deselected(items=shared)
    items[:] = [item for item in items if item not in set(shared)]


def pytest_collection_finish():
    """Objects that exist when the tests begin are excluded from garbage collection: they stay to the end."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_sessionfinish():
    """Objects that exist when the tests end are not collected either: each worker would search them five times."""
    gc.freeze()


@contextlib.contextmanager
def only_one(path):
    """A lock among processes, also on Windows; the system releases it when the process ends, however it ends."""
    with contextlib.closing(sqlite3.connect(path, timeout=600, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        yield


@pytest.fixture(scope="session")
def _homes(tmp_path_factory):
    """Names of new folders, numbered: thousands of `mktemp` would each search the folders before."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _own_home(monkeypatch, _homes):
    """A test does not depend on the user's configuration, unsaved edits or terminal."""
    home = next(_homes)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("WHATIF_CONFIG", raising=False)


@pytest.fixture(scope="session", autouse=True)
def _styles_are_parsed_once():
    """Stylesheets are parsed once for the hundreds of explorers in one process."""
    from textual.css.model import RuleSet
    from textual.css.stylesheet import Stylesheet

    parse, parsed = Stylesheet._parse_rules, {}

    def parse_once(sheet, css, **where):
        key = (css, *where.items(), *sheet._variables.items())
        if key not in parsed:
            parsed[key] = parse(sheet, css, **where)
        return parsed[key]

    Stylesheet._parse_rules = parse_once
    # Its own one is the identity too, but each widget asks hundreds of rules for it, in Python.
    RuleSet.__hash__ = object.__hash__
    yield
    Stylesheet._parse_rules = parse


@pytest.fixture(scope="session")
def _preloaded_workers():
    """Where the explorers of this process get their worker processes."""
    workers = PreloadedWorkers()
    yield workers
    worker._end()
    workers.close()


@pytest.fixture(scope="module", autouse=True)
def _workers_are_forked(request, _preloaded_workers):
    """Worker processes are forked, but for `OWN_WORKERS`: most of a start is the import of the same modules."""
    if sys.platform != "linux":
        yield
        return
    if request.path.stem in OWN_WORKERS:
        # An idle process that was forked would be taken in place of one that is started.
        worker._end()
        yield
        return
    worker.subprocess = _preloaded_workers
    yield
    worker.subprocess = subprocess


@pytest.fixture(scope="session", autouse=True)
def _loops_are_compiled_once(request, tmp_path_factory):
    """A loop takes up to half a minute to compile: one worker compiles it, the others load it from numba's cache."""
    if not hasattr(request.config, "workerinput"):
        return
    from numba.core.dispatcher import Dispatcher

    compile_it, held = Dispatcher.compile, []
    shared = tmp_path_factory.getbasetemp().parent

    def compile_alone(dispatcher, signature):
        if held:  # One loop calls another.
            return compile_it(dispatcher, signature)
        with only_one(shared / f"{dispatcher.py_func.__name__}.lock"):
            held.append(dispatcher)
            try:
                return compile_it(dispatcher, signature)
            finally:
                held.clear()

    Dispatcher.compile = compile_alone


@pytest.fixture(scope="session")
def once(request, tmp_path_factory):
    """`once(name, compute)`: a result that takes seconds, computed by one worker and read by the others."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if hasattr(request.config, "workerinput") else folder

    def result(name, compute):
        file = shared / f"{name}.pickle"
        with only_one(file.with_suffix(".lock")):
            if not file.exists():
                file.write_bytes(pickle.dumps(compute()))
        return pickle.loads(file.read_bytes())  # noqa: S301 - written by these tests

    return result


@pytest.fixture(scope="session", autouse=True)
def _comparisons_are_computed_once(once):
    """Tables of `whatif validate TOPIC` take up to four seconds each, and several tests look at one."""
    quick = {topic: compute for topic, compute in TABLES.items() if topic not in LONG_TOPICS}
    TABLES.update({topic: partial(once, f"comparison_{topic}", compute) for topic, compute in quick.items()})


@pytest.fixture(scope="session", autouse=True)
def _runs_of_studies_are_compared_once(once):
    """Dozens of studies have the same applications with the same runs: their agreement is known by all that is read."""
    adjusted = placing._adjusted

    def adjusted_once(scenario, path):
        layers = [(item.document.name, item.document.text, item.at) for item in scenario.program.loaded.layers.items]
        key = repr((layers, scenario.overrides, str(path), path.is_file() and path.read_bytes()))
        return once(f"adjusted_{sha256(key.encode()).hexdigest()}", partial(adjusted, scenario, path))

    placing._adjusted = adjusted_once
    yield
    placing._adjusted = adjusted


@pytest.fixture(scope="session", autouse=True)
def _calibrations_are_fitted_once(once):
    """Dozens of measurements of a simulated machine have the same calls: their fit is known by all that is fitted."""
    fitted = fitted_kernels._fitted

    def fitted_once(*calls):
        return once(f"fit_{sha256(pickle.dumps(calls)).hexdigest()}", partial(fitted, *calls))

    fitted_kernels._fitted = fitted_once
    yield
    fitted_kernels._fitted = fitted


@pytest.fixture(scope="session")
def compared():
    """`compared(topic)`: the table of `whatif validate TOPIC`."""
    return lambda topic: whatif.comparisons(topic).table()


@pytest.fixture
def whatif_main(monkeypatch, capsys, tmp_path):
    """Run `whatif ARGUMENTS` in this process, in an empty folder: (exit code, stdout, stderr); never a traceback."""
    monkeypatch.chdir(tmp_path)

    def defect_message(error):
        raise error

    monkeypatch.setattr(whatif.defects, "defect_message", defect_message)

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


@pytest.fixture(scope="module", autouse=True)
def _hpl_is_compiled(request, tmp_path_factory):
    """The loops of HPL are compiled before a test that may start several processes which all need them."""
    config, stem = request.config, request.path.stem
    simulates = "linpack" in request.path.parts or stem in ("test_hpl", "test_hpl_runs", "test_readme")
    if not hasattr(config, "workerinput") or not simulates or getattr(config, "has_hpl", False):
        return
    from whatif.linpack.simulation.configuration import Configuration
    from whatif.linpack.simulation.simulator import HPLMachine, simulate

    with only_one(tmp_path_factory.getbasetemp().parent / "hpl.lock"):
        machine = HPLMachine(np.zeros((19, 5)), np.zeros((2, 1, 8)), np.zeros(4, dtype=np.int64), np.ones(4))
        simulate(Configuration(8, 2, 2, 2), machine)
    config.has_hpl = True
