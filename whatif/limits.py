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
PICTURES: Final = (".svg", ".png", ".pdf")
"""File extensions of pictures."""
