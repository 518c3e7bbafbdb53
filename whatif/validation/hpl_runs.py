"""Comparison of HPL with the emulator and real runs: the runs of the files `validation/hpl_*.csv`, simulated.

Three comparisons (docs/validation.md has the source of every number):

- emulator: the real program on SimGrid/SMPI 3.32, on ideal networks (a switch with one rank a node, kernels with a
  linear cost) and on Dahu's;
- Dahu: the emulator and real runs over matrix size, by the letter of Cornebize et al. 2019: A linear dgemm, B the same
  with noise, C polynomial dgemm, D the same with noise; `_het`: a model for each processor;
- what-ifs: 512 processes on a fat tree, its bandwidth, latency and speed times and divided by ten, or few links.

No number here was chosen or changed by a look at a time of HPL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.linpack.simulation.configuration import Broadcast, Configuration, Looking, RowSwap
from whatif.linpack.simulation.costs import KERNELS, RENDEZVOUS, WHEN_RECEIVED, PieceColumn
from whatif.linpack.simulation.simulator import HPLMachine, Progress, simulate
from whatif.linpack.threads import Share, all_in_threads, silent
from whatif.models.quantities import FloatArray
from whatif.schema.toml import parse_document
from whatif.units import ONE, SECOND, Dimension
from whatif.validation.measured_kinds import Row

COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "reference": None,
    "run": None,
    "reference_time": SECOND,
    "time": SECOND,
    "error": ONE,
    "emulator_error": ONE,
}
MEASURED: Final = "2019-03"
_EAGER: Final = 65536.0
_DTRSM: Final = KERNELS.index("dtrsm")


class RunComparison(NamedTuple):
    """Comparison of a run, or of all runs of a kind; NaN for a missing number."""

    reference: str
    run: str
    reference_time: float
    time: float
    error: float
    """Error of the time; for a what-if, of its ratio to the default."""
    emulator_error: float = np.nan
    """Error of the emulator's time for the same model, if the reference is a measurement."""


class Play(NamedTuple):
    """Run to simulate."""

    configuration: Configuration
    machine: HPLMachine
    noisy: bool = False


Rows = Sequence[Row]


def compared(emulator: Rows, dahu: Rows, what_ifs: Rows, trees: Rows, progress: Share = silent) -> list[RunComparison]:
    """Comparisons of all rows of the four files; each file is a quarter of the progress."""
    sizes = sorted(int(row["matrix_size"]) for row in dahu if row["origin"] == MEASURED)
    parts: list[Callable[[Share], list[RunComparison]]] = [
        lambda share: emulator_runs(emulator, share),
        lambda share: dahu_runs(dahu, LETTERS, sizes, share),
        lambda share: what_if_runs(what_ifs, share),
        lambda share: tree_runs(trees, share),
    ]
    return [run for done, part in enumerate(parts) for run in part(_quarter(progress, done))]


def _quarter(progress: Share, done: int) -> Share:
    return lambda share: progress((done + share) / 4)


def times(plays: Sequence[Play], progress: Share = silent) -> list[float]:
    """Simulated times in s."""

    def simulated(play: Play, step_done: Progress) -> float:
        return simulate(*play[:2], noisy=play.noisy, progress=step_done).time

    return all_in_threads(simulated, plays, progress)


# ---- the emulator's runs on a switch

# Latency of a message in s and bandwidth of a link in B/s; a message crosses two links of half the latency.
_SWITCHES: Final = {"ideal": (2e-6, 12.5e9), "slow": (10e-6, 1.25e9)}
_LINEAR_COST: Final = 1.029e-11


def emulator_runs(rows: Rows, progress: Share = silent) -> list[RunComparison]:
    """Comparisons with the runs of `hpl_emulator.csv`, and mean errors of each kind."""
    ours = times([Play(configuration_of(row), _emulated_machine(row)) for row in rows], progress)
    found = [
        RunComparison(f"emulator, {row['network']}, {row['origin']}", name_of(row), float(row["time_s"]), time, np.nan)
        for row, time in zip(rows, ours, strict=True)
    ]
    found = [run._replace(error=run.time / run.reference_time - 1) for run in found]
    return [*found, *summaries(found)]


_BESIDE_CONFIGURATION: Final = ("origin", "network", "ranks_per_node", "time_s")


def configuration_of(row: Row) -> Configuration:
    """Configuration of a row of `hpl_emulator.csv`; choices are numbered as in HPL.dat."""
    numbers = {name: int(value) for name, value in row.items() if name not in _BESIDE_CONFIGURATION}
    kinds = {
        "broadcast": Broadcast,
        "swap": RowSwap,
        "panel_factorisation": Looking,
        "recursive_factorisation": Looking,
    }
    choices: dict[str, Any] = {name: kind(numbers[name]) for name, kind in kinds.items()}
    return Configuration(**numbers | choices)


def name_of(row: Row) -> str:
    """Displayed configuration of a row."""
    run = configuration_of(row)
    grid = f"{run.matrix_size} {run.block_size} {run.process_rows}x{run.process_columns}"
    words = f"{run.broadcast.name} depth {run.depth} {run.swap.name}".lower().replace("_", " ")
    if int(row["ranks_per_node"]) > 1:
        words += f", {row['ranks_per_node']} a node"
    panel = f"pfact {run.panel_factorisation} nbmin {run.recursion_minimum} ndiv {run.recursion_divisions}"
    usual = (run.panel_factorisation, run.recursion_minimum) == (Looking.CROUT, 2)
    return f"{grid} {words}" if usual else f"{grid} {words} {panel}"


def _emulated_machine(row: Row) -> HPLMachine:
    ranks = int(row["process_rows"]) * int(row["process_columns"])
    if row["network"] == "dahu":
        return dahu_machine("C1", ranks, int(row["ranks_per_node"]))
    latency, bandwidth = _SWITCHES[row["network"]]
    pieces = _pieces([(0.0, latency, 1 / bandwidth)])
    kernels = _kernels(_LINEAR_COST, _LINEAR_COST)
    return HPLMachine(kernels, np.stack([pieces, pieces]), np.arange(ranks), np.ones(ranks))


def _kernels(dgemm: float, dtrsm: float) -> FloatArray:
    """Kernels of M N K and of S; all others free."""
    kernels = np.zeros((len(KERNELS), 5))
    kernels[4] = np.inf
    kernels[0, 1], kernels[_DTRSM, 1] = dgemm, dtrsm
    return kernels


def _pieces(ranges: Sequence[tuple[float, float, float]]) -> FloatArray:
    """[piece, column] for ranges of (least size, latency, time per byte); SMPI's senders wait from 64 KiB on."""
    table = np.zeros((len(ranges) + 1, len(PieceColumn)))
    table[:-1, : PieceColumn.PER_BYTE + 1] = ranges
    table[-1] = table[-2]
    table[-1, PieceColumn.SMALLEST_SIZE] = _EAGER
    table[:, PieceColumn.PROTOCOL] = np.where(table[:, PieceColumn.SMALLEST_SIZE] < _EAGER, WHEN_RECEIVED, RENDEZVOUS)
    return table


# ---- Dahu over matrix size


class Dgemm(NamedTuple):
    """Model of dgemm of one letter: time and deviation as coefficients of (1, M N K, M N, M K, N K)."""

    time: tuple[float, ...]
    deviation: tuple[float, ...]


# Ezibenroc/hpl, branch homogeneous_dgemm; the linear one is the authors' patch to it (Ezibenroc/peanut), which leaves
# the deviation as it is.
_POLYNOMIAL: Final = (2.8447e-07, 6.317136e-11, 1.489053e-10, 2.107985e-09, 3.332944e-09)
_LINEAR: Final = (1e-6, 6.484604e-11, 0.0, 0.0, 0.0)
_DEVIATION: Final = (1.087202e-07, 2.976703e-12, 8.365868e-12, 1.528598e-10, 9.931248e-11)
# Mean of dgemm_calibration.csv (docs/hpl_platforms.md, b), whose factors are those of the platform dahu_2020.
_WINTER: Final = Dgemm((2.40373e-06, 7.38228e-11, 0.0, 0.0, 0.0), (3.87682e-07, 2.78301e-12, 0.0, 0.0, 0.0))
DGEMM: Final[Mapping[str, tuple[str, Dgemm | None]]] = {
    "A1": ("dahu", Dgemm(_LINEAR, _DEVIATION)),
    "B1": ("dahu", Dgemm(_LINEAR, _DEVIATION)),
    "C1": ("dahu", Dgemm(_POLYNOMIAL, _DEVIATION)),
    "D1": ("dahu", Dgemm(_POLYNOMIAL, _DEVIATION)),
    "A1_het": ("dahu_2020", _WINTER),
    "B1_het": ("dahu_2020", _WINTER),
    "C1_het": ("dahu", None),
    "D1_het": ("dahu", None),
    "D2_het": ("dahu", None),
    "2020_het": ("dahu_2020", None),
}
"""By letter, the platform, and its dgemm unless that is the platform's own; the last two are not of the paper."""
LETTERS: Final = tuple(DGEMM)[:-1]
_LARGE: Final = 6e6
"""Bytes from which the emulator of the paper took messages for as fast as smaller ones."""
_OF_PROCESSORS: Final = ("platform.kernels.processors.", "platform.kernels.deviations.")
_SCENARIO: Final = """
[application]
kind = "hpl"
matrix_size = 1000
block_size = 128
process_rows = 32
process_columns = 32
ranks_per_node = 32
binding = "by_socket"
"""


def dahu_runs(rows: Rows, models: Sequence[str], sizes: Sequence[int], progress: Share = silent) -> list[RunComparison]:
    """Comparisons of our times by model and matrix size with the emulator's for the same letter, and with real runs."""
    reference = {(row["origin"], int(row["matrix_size"])): float(row["time_s"]) for row in rows}
    runs = [(model, size) for model in models for size in sizes]
    ours = times([Play(dahu_configuration(n), dahu_machine(m), m[0] in "BD") for m, n in runs], progress)
    simulated = dict(zip(runs, ours, strict=True))
    emulated = [
        RunComparison(
            f"Dahu, emulator, {model}", f"{size}", time, simulated[model, size], simulated[model, size] / time - 1
        )
        for model, size in runs
        for time in [reference.get((model, size), np.nan)]
    ]
    real = [_against_reality(reference, model, size, simulated[model, size]) for model, size in runs]
    return [*emulated, *summaries(emulated), *real, *summaries(real)]


def _against_reality(reference: Mapping[tuple[str, int], float], model: str, size: int, time: float) -> RunComparison:
    measured = reference[MEASURED, size]
    emulated = reference.get((model, size), np.nan)
    errors = (time / measured - 1, emulated / measured - 1)
    return RunComparison(f"Dahu, {MEASURED}, {model}", f"{size}", measured, time, *errors)


def dahu_configuration(matrix_size: int) -> Configuration:
    """Configuration of the paper's Figure 9."""
    grid = (matrix_size, 128, 32, 32, Broadcast.TWO_RING, 1, RowSwap.BINARY_EXCHANGE)
    return Configuration(*grid, 64, Looking.CROUT, 2, 2, Looking.RIGHT)


@cache
def dahu_machine(model: str, rank_count: int = 1024, ranks_per_node: int = 32) -> HPLMachine:
    """Dahu with the kernels of a model letter and the paper's messages; rank r of a node is on its socket r mod 2.

    D2_het and 2020_het are the platforms `dahu` and `dahu_2020` as they are, with slower messages of more than 6 MB.
    """
    platform, dgemm = DGEMM[model]
    document = parse_document(f'platform = "{platform}"\n{_SCENARIO}', f"HPL on {platform}")
    program = Scenario(document).program
    plan: Any = program.terms["hpl.times"].options["plan"]
    values = evaluate(program, {"hpl.times": np.zeros(2)}).values
    parameters = {parameter: float(values[parameter]) for parameter in plan.parameters}
    if "_het" not in model:
        parameters |= {parameter: 1.0 for parameter in parameters if parameter.startswith(_OF_PROCESSORS)}
    machine: HPLMachine = plan.machine(parameters, rank_count, ranks_per_node, 2)
    if model not in ("D2_het", "2020_het"):
        machine.pieces[machine.pieces[:, :, PieceColumn.SMALLEST_SIZE] >= _LARGE] = np.inf
    if dgemm is None:
        return machine
    kernels = machine.kernels.copy()
    kernels[0], kernels[1] = dgemm
    return replace(machine, kernels=kernels)


# ---- what-ifs over bandwidth, latency and speed

_GRID: Final = (16, 32)
_NODES_PER_SWITCH: Final = 16
# By ranks; as many nodes share a switch where links are few.
_PROCESS_ROWS: Final = {512: 16, 64: 8}
_LINK_LATENCY: Final = 24e-6
_LINK_BANDWIDTH: Final = 1.25e9
_SLOW: Final = 0.001
# SimGrid lets every message take a twentieth of its rate on the way back, where others are under way.
_CROSS_TRAFFIC: Final = 1.05
# Seconds on a calibrating machine of 6.217956542969 Gflop/s, for nodes of 1 Gflop/s.
_DGEMM: Final = 1.742435e-10 * 6.217956542969
_DTRSM_COST: Final = 8.897459e-11 * 6.217956542969
# SimGrid's defaults: least size, factor of the latency, factor of the bandwidth.
_FACTORS: Final = (
    (0, 2.01467, 0.812084), (257, 1.95341, 0.338112), (732, 1.9503, 0.341987), (1426, 1.61075, 0.608902),
    (3484, 1.88101, 0.77493), (5776, 2.18796, 1.08739), (9376, 2.59299, 0.58729), (15424, 3.48845, 0.697866),
    (65472, 11.6436, 0.940694),
)  # fmt: skip


def what_if_runs(rows: Rows, progress: Share = silent) -> list[RunComparison]:
    """Comparisons of the effects of a faster or slower part: the time over that of the default."""
    ours = times([Play(_what_if_configuration(row), what_if_machine(**_change(row))) for row in rows], progress)
    played = [(row, float(row["time_s"]), time) for row, time in zip(rows, ours, strict=True)]
    defaults = {row["matrix_size"]: (emulated, time) for row, emulated, time in played if not row["changed"]}
    found = []
    for row, emulated, time in played:
        was, ours_was = defaults[row["matrix_size"]] if row["changed"] else (1.0, 1.0)
        what = f"{row['changed']} x {row['factor']}" if row["changed"] else "default, the time itself"
        error = (time / ours_was) / (emulated / was) - 1
        found.append(RunComparison("what-if, fat tree", f"{row['matrix_size']} {what}", emulated, time, error))
    return [*found, *summaries([run for run in found if "default" not in run.run])]


def _change(row: Row) -> dict[str, Any]:
    return {row["changed"]: float(row["factor"])} if row["changed"] else {}


def _what_if_configuration(row: Row) -> Configuration:
    """Configuration of the first run of the authors' HPL.dat."""
    size = int(row["matrix_size"])
    return Configuration(size, 120, *_GRID, Broadcast.RING, 0, RowSwap.MIX, 64, Looking.LEFT, 2, 2, Looking.LEFT)


def tree_runs(rows: Rows, progress: Share = silent) -> list[RunComparison]:
    """Comparisons of the effects of few links of 10 Mbit/s between switches, over the time with one link a node."""
    ours = times([Play(_tree_configuration(row), _tree_machine(row)) for row in rows], progress)
    played = {tuple(row.values())[:-1]: (float(row["time_s"]), time) for row, time in zip(rows, ours, strict=True)}
    found = []
    for (origin, count, size, depth, roots, shuffled), (reference, time) in played.items():
        was, ours_was = played[origin, count, size, depth, str(_PROCESS_ROWS[int(count)]), "0"]
        words = f"{count} ranks, N {size}, depth {depth}, {roots} links upwards{', shuffled' * (shuffled == '1')}"
        error = (time / ours_was) / (reference / was) - 1
        found.append(RunComparison(f"few links between switches, {origin}", words, reference, time, error))
    return [*found, *summaries([run for run in found if run.error])]


def _tree_configuration(row: Row) -> Configuration:
    rank_count = int(row["rank_count"])
    p = _PROCESS_ROWS[rank_count]
    grid, depth = (p, rank_count // p), int(row["depth"])
    return replace(_what_if_configuration(row), process_rows=grid[0], process_columns=grid[1], depth=depth)


def _tree_machine(row: Row) -> HPLMachine:
    """Machine where messages share the links of their switches; shuffled: with its nodes in random order."""
    factors = _FACTORS if row["origin"] == "published" else ((0, 1.0, 1.0),)
    ranks = np.arange(int(row["rank_count"]))
    places = np.random.default_rng(0).permutation(ranks) if row["shuffled"] == "1" else ranks
    switch, gap = places // _PROCESS_ROWS[len(ranks)], _CROSS_TRAFFIC / (_SLOW * _LINK_BANDWIDTH)
    machine = what_if_machine(bandwidth=_SLOW, rank_count=len(ranks), factors=factors)
    return replace(machine, nodes=switch, groups=switch, links=places % int(row["roots"]), adapter_gap=gap)


def what_if_machine(
    bandwidth: float = 1.0,
    latency: float = 1.0,
    speed: float = 1.0,
    rank_count: int = _GRID[0] * _GRID[1],
    factors: Sequence[tuple[float, float, float]] = _FACTORS,
) -> HPLMachine:
    """Machine of one-rank nodes on a fat tree of two levels, with links and nodes scaled in speed (latency: in time).

    A message crosses two links below the same switch, and four otherwise; links are not shared.
    """
    sides = [
        _pieces([(size, links * latency * _LINK_LATENCY * slower, 1 / (bandwidth * _LINK_BANDWIDTH * share))
                 for size, slower, share in factors])
        for links in (2, 4)
    ]  # fmt: skip
    ranks = np.arange(rank_count)
    return HPLMachine(
        _kernels(_DGEMM / speed, _DTRSM_COST / speed),
        np.stack(sides),
        ranks // _NODES_PER_SWITCH,
        np.ones(len(ranks)),
    )


# ---- results


def summaries(runs: Sequence[RunComparison]) -> Iterator[RunComparison]:
    """Mean and largest absolute error by reference, in order."""
    for reference in dict.fromkeys(run.reference for run in runs):
        ours = _absolute([run.error for run in runs if run.reference == reference])
        theirs = _absolute([run.emulator_error for run in runs if run.reference == reference])
        for name, function in (("mean", np.mean), ("largest", np.max)):
            both = [float(function(errors)) if len(errors) else np.nan for errors in (ours, theirs)]
            yield RunComparison(reference, f"{name} absolute error of {len(ours)}", np.nan, np.nan, *both)


def _absolute(errors: Sequence[float]) -> FloatArray:
    known: FloatArray = np.abs(errors)
    return known[~np.isnan(known)]
