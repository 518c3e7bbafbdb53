"""Remarks on sampled steps, before a run, a sweep or a search is simulated."""

from __future__ import annotations

import pytest

from whatif.api.evaluation import sweep_parts
from whatif.api.linpack import TuningObserver, tune_hpl
from whatif.linpack.scenario_writer import HPLPlacement, hpl_scenario_of
from whatif.linpack.simulation.configuration import Configuration

REMARK = "windows of steps are simulated"
LARGE = 40_000_000 // 64 * 64


def notes_of(*axes: str, n: int = 64_000) -> str:
    scenario = hpl_scenario_of(Configuration(n, 64, 8, 8), "frontier", (), {}, HPLPlacement())[0]
    return "\n".join(sweep_parts(scenario, *axes).notes)


def test_a_long_run_is_said_to_be_sampled():
    assert REMARK in notes_of(n=LARGE)
    assert REMARK not in notes_of()


@pytest.mark.parametrize(("axis", "sampled"), [(f"64000, {LARGE}", True), ("64000, 128000", False)])
def test_a_sweep_is_said_to_be_sampled_where_one_point_is(axis, sampled):
    assert (REMARK in notes_of(f"application.matrix_size={axis}")) is sampled


class Interrupting(TuningObserver):
    """Observer that ends the search before anything is simulated."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def simulating(self, count: int):
        raise KeyboardInterrupt


@pytest.mark.parametrize(("n", "sampled"), [(20_000_000, True), (10_000, False)])
def test_a_search_is_said_to_be_sampled(n, sampled):
    observer = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        tune_hpl(platform="frontier", grids=["256x256"], matrix_sizes=[n], block_sizes=[512], overrides=None,
                 observer=observer)  # fmt: skip
    assert any(REMARK in note for note in observer.notes) is sampled
