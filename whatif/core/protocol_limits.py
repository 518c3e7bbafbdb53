"""Protocol limits of a text, as the command line and the explorer read them."""

from __future__ import annotations

from whatif.errors import UsageError
from whatif.units import BYTE, UnitError, parse_quantity


def parse_limits(text: str) -> tuple[float, float]:
    """Short and eager limit in B, of a text such as `128 B, 64 KiB`. Raise `UsageError` for another text."""
    try:
        sizes = [parse_quantity(part) for part in text.split(",")]
    except UnitError as error:
        raise UsageError(f"protocol limits `{text}`: {error}") from None
    unknown = any(size.value and size.dimension != BYTE for size in sizes)
    if unknown or len(sizes) != 2 or sizes[0].value > sizes[1].value:
        expected = "expected two sizes, the smaller one first, such as `128 B, 64 KiB`"
        raise UsageError(f"protocol limits `{text}`: {expected}")
    return sizes[0].value, sizes[1].value
