"""Loader of kernels: without numba, or with a changed one, everything is computed in Python, with equal numbers."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from tests.simulation.test_replay import EXAMPLE, halo, loggops, replay_result
from whatif.core.message_simulation import costs_of
from whatif.models.charges import by_protocol_charges, piece_charges
from whatif.models.patterns import GridPattern
from whatif.simulation import jit, posted, posted_kernel, round_kernel, rounds, steps
from whatif.simulation import replay as replay_module
from whatif.simulation.flows import replay_flows
from whatif.simulation.jit import CompilerError, jitted, jitted_or_plain
from whatif.simulation.schedule import Places
from whatif.simulation.topology import star


class NotCaughtError(Exception):
    """In place of the error after which a kernel runs in Python."""


def pieces():
    """Costs of two pieces at each distance, an eager limit between them."""
    lines = [piece_charges(*map(np.array, (latency, 1e9, 1e-6, 1e10, 1e-6, 1e10))) for latency in (1e-6, 2e-6)]
    return costs_of(by_protocol_charges(*lines * 3), np.array([[0.0, 500.0, 800.0]] * 3), "pieces")


@pytest.mark.parametrize("costs", [loggops(*EXAMPLE), pieces()], ids=["protocols", "pieces"])
def test_kernels_are_compiled_not_silently_run_in_python(monkeypatch, costs):
    schedule = halo(4, 4, 1000.0, 3, 1e-6, periodic=True)
    ranks = np.arange(schedule.rank_count, dtype=np.int32)
    places = Places(ranks, ranks)
    monkeypatch.setattr(replay_module, "SMALL", 0)
    monkeypatch.setattr(replay_module, "CompilerError", NotCaughtError)
    end = replay_module.replay(schedule, places, costs).end
    monkeypatch.setattr(replay_module._Replayed, "operations", 0)
    monkeypatch.setattr(replay_module, "SMALL", len(end))
    assert (replay_module.replay(schedule, places, costs).end == end).all()
    monkeypatch.setattr("whatif.simulation.flows.listed", None)
    switch = star(schedule.rank_count, 1e10, 0.0)
    assert replay_flows(schedule, places, costs, switch, compiled_loop=True).run_time > 0


def test_only_entries_become_machine_code(monkeypatch, tmp_path):
    from numba.core.codegen import JITCodeLibrary

    (tmp_path / "doubling.py").write_text("def add(x):\n    return x + x\n\n\ndef double(x):\n    return add(x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    emitted, emit = [], JITCodeLibrary._finalize_specific
    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", lambda it: [emitted.append(it.name), emit(it)])
    (double,) = jitted((importlib.import_module("doubling"),), ("double",))
    assert double(3.0) == 6.0
    # The first compilation of a process also makes the code that counts references.
    assert [name.partition("_")[0] for name in emitted if name != "nrt"] == ["double"]


@pytest.fixture(params=["numba is missing", "numba has changed"])
def disable_numba(request, monkeypatch):
    """Function after which nothing can be compiled any more."""
    yield lambda: disable(request.param, monkeypatch)
    jitted.cache_clear()


def disable(reason, monkeypatch):
    """Make the import of numba fail, or what is called of it."""
    jitted.cache_clear()
    if reason == "numba is missing":
        for name in [name for name in sys.modules if name.partition(".")[0] == "numba"]:
            monkeypatch.setitem(sys.modules, name, None)
    else:

        def changed(*_, **__):
            raise AttributeError("numba has no attribute `get_call_template`")

        monkeypatch.setattr(jit, "_jitted", changed)


def replayed(monkeypatch):
    """Times of a halo of 48 ranks, by the replay for many operations."""
    monkeypatch.setattr(replay_module, "SMALL", 0)
    found = replay_result(halo(6, 8, 8, 2, 1e-6, 1), loggops(*EXAMPLE))
    return np.stack([found.start, found.end])


def collectives(monkeypatch):
    """Times of a broadcast, and of a halo in which ranks are simulated one by one."""
    monkeypatch.setattr(steps, "COMPILED_FROM", 0)
    monkeypatch.setattr(posted, "COMPILED_FROM", 0)
    costs, node = loggops(*EXAMPLE), np.arange(24, dtype=np.int32) // 6
    arrival = np.arange(24) * 1e-7
    pattern = GridPattern((4, 6), 6, 3, periodic=True)
    return np.stack(
        [
            rounds.broadcast_times(24, 1024.0, Places(node, node), costs, arrival),
            posted.halo_times(pattern, 1024.0, costs, arrival),
        ]
    )


def flows(monkeypatch):
    """Times of a halo over a switch, by the loop for many operations."""
    schedule = halo(6, 8, 8, 2, 1e-6, 1)
    node = np.arange(schedule.rank_count, dtype=np.int32) // 6
    network = star(int(node[-1]) + 1, 12.5e9, 1e-6)
    found = replay_flows(schedule, Places(node, node), loggops(*EXAMPLE), network, compiled_loop=True)
    return np.stack([found.start, found.end])


@pytest.mark.parametrize("simulated", [replayed, collectives, flows])
def test_times_without_numba_are_equal(simulated, monkeypatch, disable_numba):
    expected = simulated(monkeypatch)
    disable_numba()
    np.testing.assert_array_equal(simulated(monkeypatch), expected)


def test_compiler_error_names_the_cause(disable_numba):
    disable_numba()
    with pytest.raises(CompilerError, match="numba"):
        jitted((round_kernel,), ("broadcast",))


def test_plain_functions_replace_compiled_ones(disable_numba):
    disable_numba()
    assert jitted_or_plain((posted_kernel,), ("settle",)) == (posted_kernel.settle,)


def test_error_of_the_first_call_falls_back_to_python(monkeypatch):
    def broken(*_):
        raise CompilerError("the lowering of `State` failed")

    monkeypatch.setattr(jit, "jitted", lambda *_, **__: (broken,))
    (settle,) = jitted_or_plain((sys.modules[__name__],), ("twice",))
    assert settle(21) == 42


def twice(number):
    return 2 * number
