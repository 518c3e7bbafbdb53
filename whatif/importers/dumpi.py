"""DUMPI traces, one file for each rank: binary (`dumpi_binary`), or as `dumpi2ascii` writes them, `PREFIX-0000.txt`, ..

    MPI_Isend entering at walltime 1131670.479006880, cputime 0.142411026 seconds in thread 0.
    int count=16384
    MPI_Datatype datatype=14 (MPI_DOUBLE)
    int dest=0
    ..
    MPI_Isend returning at walltime 1131670.479026524, cputime 0.142430676 seconds in thread 0.

A rank computes from the return of one call to the entry of the next (walltime), between MPI_Init and MPI_Finalize; the
calls themselves take no time. Source: sst-dumpi, `dumpi2ascii`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from glob import escape
from pathlib import Path
from typing import Final

from whatif.importers.dumpi_arguments import TextArguments
from whatif.importers.dumpi_binary import BINARY_START, read_binary_rank
from whatif.importers.dumpi_calls import RankCalls
from whatif.importers.dumpi_communicators import Communicators
from whatif.importers.operations import MOST_OPERATIONS, refuse_missing_ranks, rows, sequential_trace
from whatif.importers.text import chunks, open_unpacked, read_text, readable, refuse
from whatif.schema.toml import shown_path
from whatif.simulation.rank_programs import Trace

LONGEST_CALL: Final = 8 * 2**20
"""Characters of a call with its arguments."""

_TIME = r"walltime (\d{1,10})\.(\d{9}),[^\n]*"
_CALL = re.compile(
    rf"^(\w+) entering at {_TIME}\n((?:(?!\w+ (?:entering|returning) at walltime).*\n)*)\1 returning at {_TIME}\n",
    re.MULTILINE,
)
_ENTERED = re.compile(r"^(\w+) (?:entering|returning) at walltime", re.MULTILINE)
_ELSE = re.compile(r"(?:Perfcounters: .*|\w+=.*|Total keyvals: .*|\w+ called \d+ times and ignored \d+ times|\s*)\n?")
_IGNORED = re.compile(r"^(\w+) called \d+ times and ignored ([1-9]\d*) times", re.MULTILINE)
_NUMBER_OF_RANKS = re.compile(r"^numprocs=(\d{1,9})$", re.MULTILINE)
_NAME = re.compile(r"(?s)(.*?)(\d+)(\.\w+(?:\.gz)?)?")


def is_dumpi(head: str) -> bool:
    """Whether a text starts as one of `dumpi2ascii` does."""
    return _ENTERED.search(head) is not None


def read_dumpi(path: Path) -> Trace:
    """Trace at a path: its folder, any one of its files, or its `.meta` file.

    Sizes follow from the datatypes, derived ones included. Peers are ranks of the world, whatever the communicator.
    If a file is cut off, the calls before are kept, with a warning.
    Raise `InvalidFileError` for a rank without a file, ranks that disagree, or a damaged file.
    """
    with readable(path):
        files = _rank_files(path)
    refuse_missing_ranks(shown_path(path), files, max(files) + 1, "the numbers of the files")
    stated = _NUMBER_OF_RANKS.search(read_text(path)) if path.suffix == ".meta" else None
    if stated:
        refuse_missing_ranks(shown_path(path), files, int(stated[1]), "numprocs")
    ranks = [_rank(files[number]) for number in sorted(files)]
    _refuse_others(path, ranks)
    communicators = Communicators(shown_path(path), [rank.creations for rank in ranks])
    for number, rank in enumerate(ranks):
        communicators.resolve(number, rank.operations)
    warnings = Counter(text for rank in ranks for text in rank.warnings.elements())
    repeated = [f"{text} ({count} times)" if count > 1 else text for text, count in warnings.items()]
    notes = {"tool": "DUMPI", "file": shown_path(path)}
    return sequential_trace([rank.operations for rank in ranks], communicators.members, notes, repeated)


def _rank_files(path: Path) -> dict[int, Path]:
    """The file of each rank."""
    named = next(meta_files(path), path) if path.suffix == ".meta" else path
    own = None if path.is_dir() else _set_of(named)
    sets: dict[tuple[str, str], dict[int, Path]] = {}
    for file in sorted(path.iterdir() if path.is_dir() else path.parent.iterdir()):
        name, kind = _NAME.fullmatch(file.name), _set_of(file)
        if name is None or own not in (None, kind) or (own is None and not _is_rank(file)):
            continue
        files = sets.setdefault(kind, {})
        if files.setdefault(int(name[2]), file) != file:
            raise refuse(shown_path(file), f"a second file of rank {int(name[2])}, after {files[int(name[2])].name}")
    if len(sets) > 1:
        names = ", ".join(f"{start}*{end}" for start, end in sets)
        raise refuse(shown_path(path), f"several traces: {names}; name a file of the one that is meant")
    return next(iter(sets.values()), {0: path})


def _set_of(path: Path) -> tuple[str, str]:
    """Common start and end of the file names of one trace."""
    name = _NAME.fullmatch(path.name)
    return (name[1], name[3] or "") if name else (path.name, "")


def meta_files(path: Path) -> Iterator[Path]:
    """Files of the ranks next to a `.meta` file, binary ones first: the texts are made from them."""
    for ending in ("bin", "bin.gz", "txt", "txt.gz"):
        yield from sorted(path.parent.glob(f"{escape(path.stem)}-*.{ending}"))


def _is_rank(file: Path) -> bool:
    return file.is_file() and (_is_binary(file) or is_dumpi(_start(file, 2**16).decode("utf-8", "replace")))


def _is_binary(file: Path) -> bool:
    return _start(file, len(BINARY_START)) == BINARY_START


def _start(file: Path, size: int) -> bytes:
    with open_unpacked(file) as opened:
        return opened.read(size)


def _refuse_others(path: Path, ranks: Sequence[RankCalls]) -> None:
    """Raise `InvalidFileError` if a file states another rank than its name, or more ranks."""
    for number, rank in enumerate(ranks):
        if rank.rank not in (None, number):
            raise refuse(rank.file, f"the file of rank {number}, by its name, but MPI_Comm_rank says {rank.rank}")
    counts = {rank.rank_count: rank.file for rank in ranks if rank.rank_count is not None}
    if len(counts) > 1:
        stated = " and ".join(f"{count} in {file}" for count, file in counts.items())
        raise refuse(shown_path(path), f"the ranks disagree on their number: {stated}")
    for count, file in counts.items():
        refuse_missing_ranks(shown_path(path), range(len(ranks)), count, f"MPI_Comm_size in {file}")
        if count < len(ranks):
            raise refuse(shown_path(path), f"{len(ranks)} files, but {count} ranks (MPI_Comm_size in {file})")


def _rank(path: Path) -> RankCalls:
    """The calls of the rank of one file."""
    if _is_binary(path):
        return read_binary_rank(path)
    rank, text, line = RankCalls(shown_path(path)), "", 1
    for piece in chunks(path):
        text += piece
        end, line = _take(rank, text, line)
        text = text[end:]
        if len(text) > LONGEST_CALL or len(rank.operations) > MOST_OPERATIONS:
            raise refuse(rank.file, "too large: a call without an end, or too many calls", line)
    _end(rank, text, line)
    return rank


def _take(rank: RankCalls, text: str, line: int) -> tuple[int, int]:
    """Position and line after the whole calls at the start of a text, which are added to the rank."""
    end = 0
    for match in _CALL.finditer(text):
        if match.start() > end:
            line = _between(rank, text[end : match.start()], line)
        name, second, nanosecond, arguments, last_second, last_nanosecond = match.groups()
        entered, returned = int(second + nanosecond), int(last_second + last_nanosecond)
        rank.call(TextArguments(rank.file, name, line, arguments), entered, returned)
        end = match.end()
        line += 2 + arguments.count("\n")
    return end, line


def _between(rank: RankCalls, text: str, line: int) -> int:
    """Number of the line after the text between two calls; raise `InvalidFileError` for a damaged call."""
    for row, _ in rows(text):
        if _ELSE.fullmatch(row) is None:
            cut = _ENTERED.match(row)
            message = (
                f"{cut[1]} is damaged: its `returning` does not follow"
                if cut
                else f"`{row[:60]}` is not part of a call"
            )
            raise refuse(rank.file, message, line)
        line += 1
    return line


def _end(rank: RankCalls, text: str, line: int) -> None:
    """Add warnings about the text after the last whole call: ignored calls, or a call that was cut off."""
    cut = _ENTERED.search(text)
    if not rank.calls:
        raise refuse(rank.file, "no whole call of `dumpi2ascii` in it", line if cut else 0)
    if cut:
        line += text.count("\n", 0, cut.start())
        rank.warnings[f"{rank.file}:{line}: cut off within {cut[1]}, which is left out with all that followed"] += 1
    elif not rank.ended:
        rank.warnings[f"{rank.file}: ends before MPI_Finalize: what followed is missing"] += 1
    for name, count in _IGNORED.findall(text):
        rank.warn_of_ignored(name, int(count))
