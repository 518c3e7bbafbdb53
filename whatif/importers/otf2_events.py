"""Programs of the ranks of an OTF2 archive, from its events; read in a worker process.

The OTF2 library writes its errors to the terminal and may crash on a damaged file, which must not affect the caller.
Run as a program, this module writes the operations, or the error, to its output; see `otf2_archive`.
"""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from whatif.errors import InvalidFileError
from whatif.importers.mpi_names import COLLECTIVE_KINDS, is_local, is_outside
from whatif.importers.operations import LARGEST_TAG, MOST_OPERATIONS, Operations, valid_size
from whatif.importers.text import refuse
from whatif.schema.toml import shown_path
from whatif.simulation.rank_programs import Kind

Read = tuple[list[Operations], list[list[int]], list[str]]
"""The operations of each rank, the members of each communicator, the warnings."""

_EVENTS_AT_A_TIME: Final = 10_000
_EXCHANGES: Final = ("MPI_Sendrecv", "MPI_Sendrecv_replace")
_UNKNOWN_ROOT: Final = 2**32 - 1
_COLLECTIVES: Final = {name.removeprefix("MPI_").upper(): kind for name, kind in COLLECTIVE_KINDS.items()}


def _name(choice: Any) -> str:
    """Name of a value of the package's enumerations, which are not `enum.Enum`."""
    return str(choice).rpartition(".")[2]


def contribution(operation: str, sent: float, received: float, count: int) -> float:
    """Contribution of one rank to a collective of `count` ranks in B, from the sizes that Score-P counts.

    Score-P counts a block for each partner, the own rank included: N n on both sides for all-to-all and allreduce,
    n received in a broadcast, n sent in a reduction. At the root, what is in place is not counted.
    Source: Score-P, `scorep_mpi_coll.inc.c`.
    """
    others = max(count - 1, 1)
    if operation in ("BCAST", "SCATTER", "SCATTERV"):
        return received or sent / others
    if operation in ("REDUCE", "GATHER", "GATHERV"):
        return sent or received / others
    if operation == "SCAN":
        return (sent + received) / (count + 1)
    return (sent + received) / others if operation == "EXSCAN" else sent / count


class _Archive:
    """The definitions of an archive, and its ranks as their events are read."""

    def __init__(self, file: str, definitions: Any) -> None:
        self.file = file
        self.warnings = Counter[str]()
        self.resolution = int(definitions.clock_properties.timer_resolution)
        if self.resolution <= 0:
            raise refuse(file, "its clock has no resolution")
        self.locations = self._rank_locations(definitions)
        self.rank_of = {location._ref: rank for rank, location in enumerate(self.locations)}
        self.members: list[list[int]] = [list(range(len(self.locations)))]
        self._communicators: dict[int, int | None] = {}

    def _rank_locations(self, definitions: Any) -> list[Any]:
        """The location of each rank of the world."""
        from otf2.enums import GroupType, Paradigm

        for group in definitions.groups:
            if group.group_type == GroupType.COMM_LOCATIONS and group.paradigm == Paradigm.MPI and group.members:
                return list(group.members)
        raise refuse(self.file, "not an MPI program: the archive does not define the locations of its ranks")

    def communicator(self, communicator: Any) -> int | None:
        """The index of a communicator, None for one of the own rank only."""
        if communicator._ref not in self._communicators:
            self._communicators[communicator._ref] = self._added(communicator)
        return self._communicators[communicator._ref]

    def _added(self, communicator: Any) -> int | None:
        group = getattr(communicator, "group", None)
        if group is None:
            raise refuse(self.file, "messages between two communicators (an intercommunicator) cannot be read")
        members = [self.rank_of.get(getattr(location, "_ref", None), -1) for location in group.members]
        if -1 in members:
            raise refuse(self.file, f"the communicator `{communicator.name}` has members that are not ranks")
        if members == self.members[0]:
            return 0
        if len(members) < 2:
            return None
        self.members.append(members)
        return len(self.members) - 1


class _RankEvents:
    """Operations of a rank from its events in order; between two calls of MPI it computes."""

    def __init__(self, archive: _Archive, rank: int) -> None:
        self.archive, self.rank = archive, rank
        self.operations = Operations()
        self.call = ""
        self.ended = False
        self._depth = 0
        self._last: int | None = None
        self._was_off = False
        self._requests: dict[int, int] = {}
        self._completed: list[int] = []
        self._unknown: set[int] = set()

    def enter(self, event: Any) -> None:
        name = event.region.name
        if not name.startswith("MPI_"):
            return
        self._depth += 1
        if self._depth > 1 or is_local(name):
            return
        self.call = name
        if is_outside(name):
            self.archive.warnings[f"{name}: one-sided and file operations are left out"] += 1
        self._compute_until(event.time)
        self.ended = self.ended or name == "MPI_Finalize"

    def leave(self, event: Any) -> None:
        name = event.region.name
        if not name.startswith("MPI_"):
            return
        self._depth = max(self._depth - 1, 0)
        if self._depth or is_local(name):
            return
        self._end_waiting()
        self.call = ""
        self._last = None if self.ended else event.time

    def switch(self, event: Any) -> None:
        """End the computation where recording was turned off, or restart it."""
        if _name(event.measurement_mode) == "OFF" and not self._depth:
            self._compute_until(event.time)
            self._was_off = self._last is not None
            self._last = None
        elif _name(event.measurement_mode) == "ON" and self._was_off:
            self._last = event.time

    def flush(self, event: Any) -> None:
        """Leave out the time in which the recorder wrote its buffer."""
        if self._last is not None and event.stop_time > event.time:
            self._last += event.stop_time - event.time

    def send(self, event: Any) -> None:
        kind = Kind.ISEND if self.call in _EXCHANGES else Kind.SEND
        index = self._message(kind, event.receiver, event)
        if kind == Kind.ISEND and index is not None:
            self._completed.append(index)

    def receive(self, event: Any) -> None:
        kind = Kind.IRECEIVE if self.call in _EXCHANGES else Kind.RECEIVE
        index = self._message(kind, event.sender, event)
        if kind == Kind.IRECEIVE and index is not None:
            self._completed.append(index)

    def start_send(self, event: Any) -> None:
        index = self._message(Kind.ISEND, event.receiver, event)
        if index is not None:
            self._requests[event.request_id] = index

    def start_receive(self, event: Any) -> None:
        """A receive; its other values are only known once it has completed."""
        index = self.operations.add(Kind.IRECEIVE)
        self._requests[event.request_id] = index
        self._unknown.add(index)

    def complete_receive(self, event: Any) -> None:
        index = self.complete(event)
        if index is None:
            self.archive.warnings["receives that complete without having started: left out"] += 1
            return
        self._unknown.discard(index)
        described = self._described(event.sender, event)
        if described is None:
            self._completed.remove(index)
            self.operations.cancel(index)
            return
        operations = self.operations
        operations.peer[index], operations.size[index], operations.tag[index] = described[:3]
        operations.communicator[index] = described[3]

    def cancel(self, event: Any) -> None:
        index = self._requests.pop(event.request_id, None)
        if index is not None:
            self._unknown.discard(index)
            self.operations.cancel(index)

    def collective(self, event: Any) -> None:
        name = _name(event.collective_op)
        kind = _COLLECTIVES.get(name)
        communicator = self.archive.communicator(event.communicator)
        if communicator is None or kind is None:
            return  # alone, or one that makes communicators and windows
        members = self.archive.members[communicator]
        root = 0 if event.root == _UNKNOWN_ROOT else event.root
        if not 0 <= root < len(members):
            raise refuse(self.archive.file, f"rank {self.rank}: the root {root} of a collective is not a member")
        size = contribution(name, event.size_sent, event.size_received, len(members))
        size = valid_size(self.archive.file, 0, f"rank {self.rank}, {name}", size)
        self.operations.add(kind, members[root] if kind != Kind.BARRIER else 0, size, 0, communicator)

    def later_collective(self, event: Any) -> None:
        self.archive.warnings["collectives that do not block are taken as blocking where they complete"] += 1
        self.collective(event)

    def finish(self) -> None:
        """Leave out the receives that never completed."""
        self._end_waiting()
        for index in self._unknown:
            self.operations.cancel(index)
        if self._unknown:
            self.archive.warnings[f"rank {self.rank}: {len(self._unknown)} receives never completed: left out"] += 1
        if not self.ended:
            self.archive.warnings["ranks whose events end before MPI_Finalize: later events are missing"] += 1

    def complete(self, event: Any) -> int | None:
        index = self._requests.pop(event.request_id, None)
        if index is not None:
            self._completed.append(index)
            if not self.call:
                self._end_waiting()
        return index

    def _end_waiting(self) -> None:
        self.operations.wait(self._completed)
        self._completed = []

    def _compute_until(self, time: int) -> None:
        if self._last is not None:
            self.operations.compute(max(time - self._last, 0) / self.archive.resolution)

    def _message(self, kind: Kind, peer: int, event: Any) -> int | None:
        described = self._described(peer, event)
        return None if described is None else self.operations.add(kind, *described)

    def _described(self, peer: int, event: Any) -> tuple[int, float, int, int] | None:
        """Peer, size, tag and communicator of a message, None for one to itself alone."""
        communicator = self.archive.communicator(event.communicator)
        if communicator is None:
            return None
        members = self.archive.members[communicator]
        if not 0 <= peer < len(members) or not 0 <= event.msg_tag <= LARGEST_TAG:
            message = f"a message with rank {peer} of {len(members)} and tag {event.msg_tag}"
            raise refuse(self.archive.file, f"rank {self.rank}: {message}")
        size = valid_size(self.archive.file, 0, f"rank {self.rank}", float(event.msg_length))
        return members[peer], size, event.msg_tag, communicator


_HANDLERS: Final[dict[str, Callable[[_RankEvents, Any], object]]] = {
    "Enter": _RankEvents.enter,
    "Leave": _RankEvents.leave,
    "MeasurementOnOff": _RankEvents.switch,
    "BufferFlush": _RankEvents.flush,
    "MpiSend": _RankEvents.send,
    "MpiRecv": _RankEvents.receive,
    "MpiMrecv": _RankEvents.receive,
    "MpiIsend": _RankEvents.start_send,
    "MpiIsendComplete": _RankEvents.complete,
    "MpiIrecvRequest": _RankEvents.start_receive,
    "MpiIrecv": _RankEvents.complete_receive,
    "MpiRequestCancelled": _RankEvents.cancel,
    "MpiCollectiveEnd": _RankEvents.collective,
    "NonBlockingCollectiveComplete": _RankEvents.later_collective,
}


def read_events(path: Path) -> Read:
    """All ranks of the archive with an anchor file; raise `InvalidFileError` for what cannot be read."""
    import _otf2  # type: ignore[import-untyped]
    import otf2

    file = shown_path(path)
    try:
        with otf2.reader.open(str(path), batch_events=_EVENTS_AT_A_TIME) as reader:
            archive = _Archive(file, reader.definitions)
            _refuse_missing(path, archive)
            ranks = _ranks(archive, reader)
    except (_otf2.Error, otf2.error.TraceReaderError) as error:
        raise refuse(file, f"the archive is damaged or cut off: {error}") from None
    warnings = [
        f"{file}: {text} ({count} times)" if count > 1 else f"{file}: {text}"
        for text, count in archive.warnings.items()
    ]
    return [rank.operations for rank in ranks], archive.members, warnings


def _refuse_missing(path: Path, archive: _Archive) -> None:
    folder = path.with_suffix("")
    missing = [rank for rank, place in enumerate(archive.locations) if not (folder / f"{place._ref}.evt").is_file()]
    if folder.is_dir() and missing:
        name = f"{folder.name}/{archive.locations[missing[0]]._ref}.evt"
        raise refuse(
            archive.file, f"the events of {len(missing)} of {len(archive.locations)} ranks are missing: {name}, .."
        )
    if sum(location.number_of_events for location in archive.locations) > MOST_OPERATIONS:
        raise refuse(archive.file, f"more than {MOST_OPERATIONS:,} events")


def _ranks(archive: _Archive, reader: Any) -> Sequence[_RankEvents]:
    ranks = [_RankEvents(archive, rank) for rank in range(len(archive.locations))]
    for location, event in reader.events(archive.locations):
        handler = _HANDLERS.get(type(event).__name__)
        if handler:
            handler(ranks[archive.rank_of[location._ref]], event)
    for rank in ranks:
        rank.finish()
    return ranks


def main() -> None:
    """Write the operations of the archive at the path given as argument, or the error, pickled, to the output."""
    answer: Read | InvalidFileError
    try:
        answer = read_events(Path(sys.argv[1]))
    except InvalidFileError as error:
        answer = error
    sys.stdout.buffer.write(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    main()
