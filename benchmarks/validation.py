"""`python -m benchmarks.validation`: predicted and measured halo times of Jacobi2D, as Markdown.

The measured times are single numbers quoted from minitu/jacobi2d @5c2380e0 (no licence): for each scale, the mean over
iterations of the halo time of the slowest rank. No model is fitted to them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option

MODELS = ("postal", "max_rate", "k_model", "node_aware")
MEASURED_US = {
    "summit": {
        2: 25.9, 4: 52.73, 6: 74.27, 12: 95.63, 24: 153.79, 48: 216.67, 96: 197.66, 192: 198.7, 384: 210.61,
        768: 216.05, 1536: 211.44,
    },
    "lassen": {
        4: 59.52, 8: 97.51, 16: 119.0, 32: 115.19, 64: 125.97, 128: 140.73, 256: 147.73, 512: 153.36, 1024: 167.9,
    },
}  # fmt: skip


def predicted_us(platform: str, model: str) -> dict[int, float]:
    """Predicted halo times of the shipped scenario at every measured scale, in µs."""
    scenario = Scenario.open(
        "jacobi2d",
        platform=platform,
        overrides={"application.phases.halo.model": model, "application.congestion": "none"},
    )
    ranks = list(MEASURED_US[platform])
    axis = parse_option(f"application.rank_count={', '.join(map(str, ranks))}", scenario.program, 100)
    result = run_whole(scenario, grid_of([axis], 100))
    return dict(zip(ranks, (result.columns["communication_time"] * 1e6).tolist(), strict=True))


def errors(platform: str, model: str) -> dict[int, float]:
    """Relative errors at every scale."""
    ours = predicted_us(platform, model)
    return {ranks: ours[ranks] / measured - 1 for ranks, measured in MEASURED_US[platform].items()}


def mean_error(model: str) -> float:
    """Mean absolute relative error over all scales of both machines."""
    return float(np.mean([abs(error) for platform in MEASURED_US for error in errors(platform, model).values()]))


def table() -> Iterator[str]:
    """Table of docs/validation.md."""
    yield f"| machine | ranks | measured | {' | '.join(MODELS)} |"
    yield f"|---|---:|---:|{'---:|' * len(MODELS)}"
    for platform, measured in MEASURED_US.items():
        ours = {model: predicted_us(platform, model) for model in MODELS}
        for ranks, time in measured.items():
            cells = (f"{ours[model][ranks]:.0f} ({ours[model][ranks] / time - 1:+.0%})" for model in MODELS)
            yield f"| {platform.capitalize()} | {ranks} | {time:.0f} | {' | '.join(cells)} |"
    yield f"| mean absolute error | | | {' | '.join(f'**{mean_error(model):.1%}**' for model in MODELS)} |"


if __name__ == "__main__":
    print("\n".join(table()))
