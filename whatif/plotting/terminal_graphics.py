"""Pictures in the graphics protocols of terminals (extra `graphics`), for a process without a terminal of its own.

In one that has a terminal the import of `textual_image.renderable` asks it questions, and waits for the answers.
"""

from __future__ import annotations

import base64
import io
from importlib import import_module
from typing import Final, Literal, NamedTuple

from whatif.plotting.placed import PixelRequest

Protocol = Literal["kitty", "sixel"]
_CHUNK: Final = 4096
"""Most characters of data in one message to kitty."""


class DrawnPicture(NamedTuple):
    """Drawn picture: sequence for the terminal, and for kitty the lines of cells that it covers."""

    sequence: str
    lines: tuple[str, ...] = ()


def prepare() -> None:
    """Import what draws."""
    for name in ("whatif.plotting.pixels", "matplotlib.backends.backend_agg", "textual_image._sixel"):
        import_module(name)


def draw_picture(request: PixelRequest, protocol: Protocol, number: int) -> DrawnPicture:
    """Picture in a protocol; kitty knows it by its number."""
    from whatif.plotting.pixels import draw_pixels

    png = draw_pixels(request)
    if protocol == "sixel":
        return DrawnPicture(_sixel(png, request))
    return DrawnPicture(_kitty(png, number, request.columns, request.rows), _places(request.columns, request.rows))


def _kitty(png: bytes, number: int, columns: int, rows: int) -> str:
    """Messages that transmit a picture to be shown in place of cells; kitty is to answer nothing (q=2)."""
    data = base64.standard_b64encode(png).decode()
    chunks = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)]
    head = f"a=T,U=1,q=2,f=100,i={number},c={columns},r={rows},"
    return "".join(
        f"\x1b_G{head if at == 0 else ''}m={int(at < len(chunks) - 1)};{chunk}\x1b\\" for at, chunk in enumerate(chunks)
    )


def _places(columns: int, rows: int) -> tuple[str, ...]:
    """Lines of cells that each name their row and column of the picture; no cells beyond what can be named."""
    from textual_image.renderable.tgp import _NUMBER_TO_DIACRITIC, _PLACEHOLDER

    names, cell = [chr(code) for code in _NUMBER_TO_DIACRITIC], chr(_PLACEHOLDER)
    return tuple("".join(f"{cell}{row}{column}" for column in names[:columns]) for row in names[:rows])


def _sixel(png: bytes, request: PixelRequest) -> str:
    """Sixels of a picture in the size of its part of the screen."""
    from PIL import Image
    from textual_image._sixel import image_to_sixels

    size = request.columns * request.cell.width, request.rows * request.cell.height
    with Image.open(io.BytesIO(png)) as image:
        return image_to_sixels(image.convert("RGB").resize(size), None, None)
