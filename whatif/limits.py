"""Limits and formats, in a module that imports nothing else."""

from typing import Final

DEFAULT_MAXIMUM_POINTS: Final = 10_000_000
"""Most points of a grid that are evaluated without confirmation."""
MOST_POINTS: Final = 10**9
"""Most points that can be evaluated."""
FORMATS: Final = ("table", "json", "csv", "markdown", "parquet")
"""Formats of results."""
TABLE_FORMATS: Final = ("table", "json", "csv", "markdown", "html")
"""Formats of tables."""
MAXIMUM_ARCHIVE_SIZE = 20_000_000
"""Most bytes of TOML files read from a git revision."""
MOST_LANES: Final = 48
"""Most ranks of a picture of time lines."""
PICTURES: Final = (".svg", ".png", ".pdf")
"""File extensions of pictures."""
PAGES: Final = (".html", ".pdf")
"""File extensions of the page of a study."""
VALIDATION_TOPICS: Final = (
    "schedules", "links", "counts", "transfers", "hpl", "top500", "hpcg", "power", "power_caps", "kernels",
    "kernel_sizes", "programs", "cpu_programs", "shared_gpus", "gemm", "collectives", "mpi_collectives",
    "training", "serving", "first_tokens", "decoding",
)  # fmt: skip
"""Comparisons with measurements and other simulators."""
TOPIC_GROUPS: Final = {"transformers": ("training", "serving", "first_tokens", "decoding")}
"""Names of groups of comparisons."""
LONG_TOPICS: Final = ("hpl", "top500")
"""Topics that take minutes, validated only by name."""
LISTED: Final = ("platforms", "parts", "scenarios", "studies", "parameters")
"""Kinds of names that `whatif list` shows."""
REGRESSION_TABLES: Final = (
    "coefficients", "models", "prediction", "validation", "folds", "comparison", "collinearity", "influence", "runs",
)  # fmt: skip
"""Tables of a regression."""
CORRECTIONS: Final = ("kernels", "messages", "sharing", "congestion", "overhead")
"""Kinds of corrections of a calibration."""
SCALING_TABLES: Final = ("prediction", "held-out", "models")
"""Tables of a scaling fit."""
