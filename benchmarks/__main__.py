"""`python -m benchmarks`: run every benchmark and print one table."""

from __future__ import annotations

from benchmarks.calibration import calibrating
from benchmarks.collectives import grouped_collectives
from benchmarks.explorer import first_frame, typing
from benchmarks.fitting import fitting
from benchmarks.flows import sharing
from benchmarks.hpl import high_performance_linpack
from benchmarks.importers import reading
from benchmarks.long_session import large_library, long_session
from benchmarks.measure import Row
from benchmarks.model import decisions, edit_of_a_parameter, million_congested_points, million_points, million_ranks
from benchmarks.normal_form import searching
from benchmarks.patterns import patterns
from benchmarks.procurement import studying
from benchmarks.regression import regressing
from benchmarks.scale_out import ten_million_points
from benchmarks.scaling import scaling
from benchmarks.screen import key_to_picture, start
from benchmarks.simulation import replaying
from benchmarks.transformers import training_steps

MODEL = (
    million_points, million_congested_points, grouped_collectives, edit_of_a_parameter, million_ranks, decisions,
    ten_million_points, studying, training_steps,
)  # fmt: skip
EXPLORER = (key_to_picture, typing, start, first_frame, large_library, long_session)
MEASUREMENTS = (reading, calibrating, fitting, regressing, scaling, searching)
SIMULATION = (replaying, patterns, sharing, high_performance_linpack)


def main() -> None:
    """Print the table."""
    print(f"{'benchmark':58} {'whatif':>14} {'alternative':>14} {'ratio':>10}  alternative is")
    for benchmark in (*MODEL, *EXPLORER, *MEASUREMENTS, *SIMULATION):
        for row in benchmark():
            print(_line(row))


def _line(row: Row) -> str:
    ratio = f"{row.ratio:,.1f} x" if row.alternative else ""
    return f"{row.what:58} {row.this:>14} {row.other:>14} {ratio:>10}  {row.alternative}"


if __name__ == "__main__":
    main()
