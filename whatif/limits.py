"""Limits that a front must know before it loads the engine."""

from typing import Final

DEFAULT_MAXIMUM_POINTS: Final = 10_000_000
"""Points of a grid that are evaluated without being asked twice."""
MOST_POINTS: Final = 10**9
"""Points that can be asked for at all."""
FORMATS: Final = ("table", "json", "csv", "markdown", "parquet")
"""What results can be written as."""
TABLE_FORMATS: Final = ("table", "json", "csv", "markdown", "html")
"""What tables of measurements and of fitted parameters can be written as."""
MAXIMUM_ARCHIVE_SIZE = 20_000_000
"""Bytes of the TOML files of a git revision beside a scenario."""
PICTURES: Final = (".svg", ".png", ".pdf")
"""What plots can be written as."""
VALIDATION_TOPICS: Final = ("schedules", "links", "counts", "transfers", "hpl", "power", "power_caps")
"""Comparisons with measurements and other simulators."""
LISTED: Final = ("platforms", "parts", "scenarios", "parameters")
"""What can be listed."""
REGRESSION_TABLES: Final = (
    "coefficients", "models", "prediction", "validation", "folds", "comparison", "collinearity", "influence", "runs",
)  # fmt: skip
"""Tables of a regression."""
