"""A study of 4 bids and 6 applications with 1,024 samples, and 20 prices: `python -m benchmarks.procurement`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import whatif
from benchmarks.measure import Row, median_seconds
from whatif.core.evaluate import evaluate
from whatif.core.uncertainty import Sampling, sample_axis, sampled_program
from whatif.studies.procurement.study import Study

SAMPLES, TRIED = 1024, 16
_BIDS = {"a": "turin", "b": "mi300x_node", "c": "alps", "d": "jupiter"}
_MIX = {"heat": "jacobi2d", "strong": "jacobi2d_strong", "elements": "minife", "particles": "minimd"}
_PRICES = "90 kUSD .. 130 kUSD linear 20"


def studying() -> Iterator[Row]:
    """A study from its files, and the same with swept prices, against one evaluation for each sample."""
    with tempfile.TemporaryDirectory() as folder:
        path = _study(Path(folder))
        ours = median_seconds(lambda: whatif.study(path).table(), 3, time.process_time)
        swept = median_seconds(
            lambda: whatif.study(path, sweep={"bids.c.node_price": _PRICES}).table(), 3, time.process_time
        )
        theirs = _one_by_one(whatif.study(path))
    other = f"every sample evaluated alone, from {TRIED} of them, without reading files"
    what = f"study: 4 bids, 6 applications, {SAMPLES:,} samples"
    yield Row(what, f"{ours:.2f} s CPU", f"{theirs:.1f} s CPU", theirs / ours, other)
    other = "20 studies"
    yield Row("the same with 20 prices", f"{swept:.2f} s CPU", f"{20 * ours:.1f} s CPU", 20 * ours / swept, other)


def _study(folder: Path) -> Path:
    """Path of the study."""
    lines = ['question = "Which?"', "[present]", 'platform = "lassen"', "node_count = 792"]
    for name, platform in _BIDS.items():
        lines += [f"[bids.{name}]", f'platform = "{platform}"', 'node_price = "120 kUSD +- 6 kUSD"']
    sizes = {**dict.fromkeys(_MIX, 256), "elements_128": 128, "particles_128": 128}
    for name, ranks in sizes.items():
        scenario = _MIX[name.partition("_")[0]]
        lines += [f"[mix.{name}]", f'scenario = "{scenario}"', f"overrides.application.rank_count = {ranks}"]
    lines += ["[limits]", 'capital = "40 MUSD"', 'power = "3 MW"', 'lifetime = "5 years"']
    path = folder / "study.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _one_by_one(study: Study) -> float:
    """Processor time of evaluating every sample of every job alone."""
    programs = [item.program for its in study.jobs.scenarios.values() for item in its.values()]
    began = time.process_time()
    for program in programs:
        sampled = sampled_program(program, Sampling(SAMPLES))
        axis = sample_axis(sampled, Sampling(SAMPLES))
        for at in range(TRIED):
            evaluate(sampled, {} if axis is None else {path: its[at : at + 1] for path, its in axis.parameters.items()})
    return (time.process_time() - began) * SAMPLES / TRIED


if __name__ == "__main__":
    for row in studying():
        print(row)
