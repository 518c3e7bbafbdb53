"""`python -m benchmarks.validation_hpl`: HPL against the emulator and real runs, as the Markdown of docs/validation.md.

Simulates every matrix size with every model letter: about ten minutes on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from whatif.validation.hpl_runs import (
    LETTERS,
    MEASURED,
    Play,
    RunComparison,
    dahu_configuration,
    dahu_machine,
    emulator_runs,
    times,
    tree_runs,
    what_if_runs,
)
from whatif.validation.hpl_settings import geometry_runs, settings_runs
from whatif.validation.tables import rows_of

Times = Mapping[tuple[str, int], float]


def emulator_table(runs: Sequence[RunComparison]) -> Iterator[str]:
    """Table of the mean and the largest error by network and origin."""
    yield "| emulator's runs | runs | mean | largest | the run of the largest |"
    yield "|---|---:|---:|---:|---|"
    for reference in dict.fromkeys(run.reference for run in runs):
        of_it = [run for run in runs if run.reference == reference and run.time > 0]
        errors = np.abs([run.error for run in of_it])
        worst = of_it[int(errors.argmax())].run
        yield f"| {reference} | {len(of_it)} | {errors.mean():.2%} | {errors.max():.2%} | {worst} |"


def references() -> dict[tuple[str, int], float]:
    """Times by origin and matrix size."""
    return {(row["origin"], int(row["matrix_size"])): float(row["time_s"]) for row in rows_of("hpl_dahu.csv")}


def dahu_table(ours: Times) -> Iterator[str]:
    """Table of our times by size and letter, with their errors against the emulator with the same letter."""
    reference = references()
    letters = [letter for letter in LETTERS if any(model == letter for model, _ in ours)]
    yield f"| N | measured | {' | '.join(letters)} |"
    yield f"|---:|---:|{'---:|' * len(letters)}"
    for size in sorted({size for _, size in ours}):
        cells = (_cell(ours.get((letter, size)), reference.get((letter, size))) for letter in letters)
        yield f"| {size:,} | {reference[MEASURED, size]:.2f} | {' | '.join(cells)} |"
    for title, reported, against in (
        ("ours against the emulator", ours, reference),
        ("ours against measured", ours, _measured(reference)),
        ("emulator's against measured", reference, _measured(reference)),
    ):
        means = [_mean_error(reported, against, letter, ours) for letter in letters]
        cells = ("–" if np.isnan(mean) else f"**{mean:.1%}**" for mean in means)
        yield f"| mean absolute error, {title} | | {' | '.join(cells)} |"


def _cell(time: float | None, reference: float | None) -> str:
    if time is None:
        return "–"
    return f"{time:.2f}" if reference is None else f"{time:.2f} ({time / reference - 1:+.1%})"


def _measured(reference: Times) -> Times:
    return {(letter, size): time for letter in LETTERS for (name, size), time in reference.items() if name == MEASURED}


def _mean_error(reported: Times, against: Times, letter: str, ours: Times) -> float:
    """Mean absolute error over the sizes that we simulated and both sources have."""
    at = [key for key in ours if key[0] == letter and key in reported and key in against]
    return float(np.mean([abs(reported[key] / against[key] - 1) for key in at])) if at else float("nan")


def what_if_table(runs: Sequence[RunComparison]) -> Iterator[str]:
    """Table of times and effects; an effect is a time divided by that of the default."""
    yield "| N, change | emulator | ours | effect, emulator | effect, ours | difference |"
    yield "|---|---:|---:|---:|---:|---:|"
    for run in runs:
        if "absolute" in run.run:
            continue
        if "default" in run.run:
            default = run
        effects = run.reference_time / default.reference_time, run.time / default.time
        reported = f"{effects[0]:.3f} | {effects[1]:.3f} | {effects[1] / effects[0] - 1:+.1%}"
        yield f"| {run.run.split(',')[0]} | {run.reference_time:.1f} | {run.time:.1f} | {reported} |"


def tree_table(runs: Sequence[RunComparison]) -> Iterator[str]:
    """Table of emulated and simulated times and effects with few links between switches."""
    yield "| emulated, links upwards of a switch | emulator | ours | difference of the effects |"
    yield "|---|---:|---:|---:|"
    for run in runs:
        if run.time > 0:
            what = f"{run.reference.split(', ')[1]}, {run.run.replace(' links upwards', '')}"
            yield f"| {what} | {run.reference_time:.0f} | {run.time:.0f} | {run.error:+.1%} |"


def settings_table(runs: Sequence[RunComparison]) -> Iterator[str]:
    """Table of measured runs on Dahu with the errors of ours and of the emulator."""
    yield "| run | measured | ours | error | emulator's error |"
    yield "|---|---:|---:|---:|---:|"
    for run in runs:
        times = f"{run.reference_time:.1f} | {run.time:.1f}" if run.time > 0 else " | "
        yield f"| {run.run} | {times} | {run.error:+.1%} | {run.emulator_error:+.1%} |"


def simulated(letters: Sequence[str], sizes: Sequence[int]) -> Times:
    """Simulated times on Dahu."""
    inputs = [(letter, size) for size in sizes for letter in letters]
    plays = [Play(dahu_configuration(size), dahu_machine(letter), letter[0] in "BD") for letter, size in inputs]
    return dict(zip(inputs, times(plays), strict=True))


if __name__ == "__main__":
    sizes = sorted({size for origin, size in references() if origin == MEASURED})
    for table in (
        emulator_table(emulator_runs(rows_of("hpl_emulator.csv"))),
        dahu_table(simulated(LETTERS, sizes)),
        what_if_table(what_if_runs(rows_of("hpl_what_if.csv"))),
        tree_table(tree_runs(rows_of("hpl_trees.csv"))),
        settings_table(geometry_runs(rows_of("hpl_geometry.csv"))),
        settings_table(settings_runs(rows_of("hpl_settings.csv"))),
    ):
        print("\n".join(table), end="\n\n")
