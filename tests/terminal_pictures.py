"""Pictures that a program wrote to a terminal, decoded: the protocols of kitty and sixel."""

import base64
import io
import re
from typing import NamedTuple

import numpy as np
from PIL import Image

_SIXEL = re.compile(r"!(\d+)(.)|#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|([$-])|([?-~])")


class KittyPicture(NamedTuple):
    keys: dict[str, str]
    image: Image.Image


def kitty_pictures(text: str) -> list[KittyPicture]:
    """Pictures of kitty, each put together from its messages."""
    found, keys, data = [], {}, ""
    for head, part in re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", text):
        message = dict(pair.split("=") for pair in head.split(","))
        keys, data = keys or message, data + part
        if message["m"] == "0":
            image = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
            image.load()
            found.append(KittyPicture(keys, image.convert("RGB")))
            keys, data = {}, ""
    return found


def sixel_pictures(text: str) -> list[Image.Image]:
    """Pictures of sixels."""
    return [_sixel(body) for body in re.findall(r"\x1bP[\d;]*q([^\x1b]*)\x1b\\", text)]


def _sixel(body: str) -> Image.Image:
    raster = re.match(r'"(\d+);(\d+);(\d+);(\d+)', body)
    assert raster, body[:40]
    width, height = int(raster[3]), int(raster[4])
    pixels = np.zeros((-(-height // 6) * 6, width, 3), dtype=np.uint8)
    colours, colour, x, y, end = {}, 0, 0, 0, raster.end()
    for token in _SIXEL.finditer(body, end):
        assert token.start() == end, body[end : end + 20]
        end = token.end()
        count, sign, number, *parts, chosen, move, single = token.groups()
        if number is not None:
            colours[int(number)] = [round(int(part) * 255 / 100) for part in parts]
            colour = int(number)
        elif chosen is not None:
            colour = int(chosen)
        elif move is not None:
            x, y = 0, y + 6 * (move == "-")
        else:
            times, bits = int(count or 1), ord(sign or single) - 63
            rows = [y + bit for bit in range(6) if bits >> bit & 1]
            if rows:
                pixels[rows, x : x + times] = colours[colour]
            x += times
    assert end == len(body), body[end : end + 20]
    return Image.fromarray(pixels[:height])
