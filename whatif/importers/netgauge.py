"""Output of Netgauge's patterns one_one (ping-pong) and loggp.

one_one prints a row `A - B .. (F G) - H I J K (L M) - N .. Q` for each message size: A bytes, H to K least, average,
median and greatest half round trip in us, O average throughput in Mbit/s. loggp prints size, n, PRTT(1,0,s) and
LogGP parameters: PRTT(1,0,s) is a round trip in us. Source: T. Hoefler et al., Netgauge, HPCC 2007; LogGP in theory
and practice, 2009.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from whatif.importers.numbers import RowReader, Section, table_of
from whatif.importers.text import pieces_of
from whatif.table import Table

_BANNER = re.compile(r"## Netgauge v(\S+).*")
_IGNORED: Final = ("", 1.0)
_ONE_ONE: Final = (
    ("message_size", 1.0), *[_IGNORED] * 6,
    ("minimum_time", 1e-6), ("time", 1e-6), _IGNORED, ("maximum_time", 1e-6), *[_IGNORED] * 3,
    ("bandwidth", 1.25e5), *[_IGNORED] * 2,
)  # fmt: skip
_LOGGP: Final = (("message_size", 1.0), _IGNORED, ("time", 0.5e-6), *[_IGNORED] * 8)


def read_netgauge(source: str | Path, file: str = "<text>") -> Table:
    """Netgauge output as ping-pong measurements (see `whatif.importers.message_tables`), times one way.

    Of one_one `time` is the average; of loggp it is PRTT(1,0,s) / 2, and the other parameters are not read. Raise
    `InvalidFileError` for a row with other words than numbers, and for a text without results.
    """
    texts, file = pieces_of(source, file)
    rows = RowReader(file, _read_line).read(_plain(texts))
    names = ("message_size", "time", "minimum_time", "maximum_time", "bandwidth")
    columns = {name: rows.column(name) for name in names}
    constants = {"test": "ping_pong", "pair_count": 1.0, "process_count": 2.0, "window_size": 1.0}
    return table_of(rows, columns | constants)


def _plain(texts: Iterable[str]) -> Iterator[str]:
    """Rows without the hyphens and brackets that group their numbers."""
    for text in texts:
        yield "\n".join(
            line if line.startswith("#") else line.replace(" - ", "   ").replace("(", " ").replace(")", " ")
            for line in text.split("\n")
        )


def _read_line(section: Section, line: str) -> Section:
    if banner := _BANNER.fullmatch(line):
        return section.having(tool="Netgauge", version=banner[1])
    if re.match(r"## A\s+-\s+B", line):
        return Section(_ONE_ONE, section.constants)
    if re.match(r"#\s*size n PRTT\(1,0,s\)", line):
        return Section(_LOGGP, section.having(tool="Netgauge").constants)
    return section
