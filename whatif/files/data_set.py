"""Data set: a folder with a Parquet file for each part of a grid, computed by workers until it is complete.

`part-00.parquet`, .. hold the points in order. `_whatif.jsonl`, which readers of data sets skip, holds the fingerprint
of the inputs and a line for each complete part (see `resumable_lines`).
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from whatif.atomic import atomic_file, writable
from whatif.core.executors import Place
from whatif.core.partition import GridTask, fingerprint, parts_of
from whatif.core.result_summary import Counted, Tally
from whatif.core.scenario import EvaluationRequest
from whatif.errors import UsageError
from whatif.files.result_writers import write_parquet
from whatif.files.resumable_lines import KeptLines
from whatif.importers.text import refuse
from whatif.schema.toml import shown_path

MANIFEST: Final = "_whatif.jsonl"
_MOST_PARTS: Final = 100_000


class DataSet:
    """Parts of the grid of one request; `known` are the complete ones."""

    def __init__(self, folder: Path, request: EvaluationRequest, points: int) -> None:
        """Open a data set to continue, or create it, with at most `points` points per part.

        Raise `UsageError` for a folder of other inputs or files, or one that cannot be written.
        """
        grid = request.grid
        if grid.size > _MOST_PARTS * points:
            raise UsageError(f"parts of {points:,} points are more than {_MOST_PARTS:,}; let them be larger")
        self.folder = folder
        self.count = sum(1 for _ in grid.chunks(points))
        self._request = request.compiled()
        self._points = points
        self._make_folder()
        manifest = folder / MANIFEST
        self._lines = KeptLines(manifest, fingerprint(self._request, points), "whatif run --on")
        lines = (_line(found, shown_path(manifest), number) for number, found in self._lines.found.items())
        self.known = {part: tally for part, size, tally in lines if self._is_there(part, size)}

    def fill(self, place: Place) -> Iterator[Tally]:
        """Tallies of the missing parts, as each is computed and written. Raise `UsageError` as workers do."""
        numbered = enumerate(self._request.grid.chunks(self._points))
        missing = ((number, part) for number, part in numbered if number not in self.known)
        parts = parts_of(self._request, missing)
        tasks = ((part, self.path(part.number).absolute() if place.writes else None) for part in parts)
        for (part, path), (content, size, tally) in place.outcomes(parquet_of, tasks, ordered=False):
            if path is None:
                _write(content, self.path(part.number))
            self._lines.add({"part": part.number, "size": size, **asdict(tally)})
            self.known[part.number] = tally
            yield tally

    def path(self, part: int) -> Path:
        """Path of the file of a part."""
        return self.folder / f"part-{part:0{len(str(self.count - 1))}d}.parquet"

    def _make_folder(self) -> None:
        with writable(self.folder):
            self.folder.mkdir(exist_ok=True)
            others = any(self.folder.iterdir()) and not (self.folder / MANIFEST).exists()
        if others:
            raise UsageError(f"{self.folder}: holds other files, and no data set of `whatif run --on`; name another")
        # Temporary files of a process that was killed while it wrote.
        for path in self.folder.glob(".part-*"):
            path.unlink(missing_ok=True)

    def _is_there(self, part: int, size: int) -> bool:
        path = self.path(part)
        return path.is_file() and path.stat().st_size == size


def parquet_of(task: tuple[GridTask, Path | None]) -> tuple[bytes, int, Tally]:
    """Parquet file of a part, its size and tally; with a path, the file is written there and not returned."""
    part, path = task
    results, file = Counted(part.results()), io.BytesIO()
    write_parquet(results, file)
    content = file.getvalue()
    if path is not None:
        _write(content, path)
    return b"" if path is not None else content, len(content), results.tally


def _write(content: bytes, path: Path) -> None:
    with atomic_file(path, keep=()) as temporary:
        temporary.write_bytes(content)


def _line(found: Mapping[str, Any], name: str, number: int) -> tuple[int, int, Tally]:
    try:
        reasons, extrapolated, grades, outside = (
            tuple(map(str, found[key])) for key in ("reasons", "extrapolated", "grades", "outside")
        )
        unanswered, added = float(found["unanswered"]), float(found["added"])
        sums = int(found["points"]), int(found["infeasible"])
        tally = Tally(*sums, reasons, extrapolated, grades, unanswered, outside, str(found["shortage"]), added)
        return int(found["part"]), int(found["size"]), tally
    except (KeyError, TypeError, ValueError, OverflowError):
        raise refuse(name, "no part of a data set: was the file changed by hand?", number) from None
