"""Program of one rank of a DUMPI trace, from its MPI calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from math import prod
from typing import Final

from whatif.importers.dumpi_arguments import Arguments
from whatif.importers.dumpi_communicators import ALONE, NONE, WORLD, Creation
from whatif.importers.mpi_names import COLLECTIVE_KINDS, DATATYPE_SIZES, is_local, is_outside
from whatif.importers.operations import LARGEST_TAG, Operations
from whatif.simulation.rank_programs import ANY, Kind
from whatif.units import NANOSECOND

_NULL_COMMUNICATOR, _WORLD, _SELF = 1, 2, 3
_DATATYPES: Final = dict(enumerate(DATATYPE_SIZES.values(), 1))
_MESSAGES: Final = {
    **{f"MPI_{word}": Kind.SEND for word in ("Send", "Bsend", "Ssend", "Rsend")},
    **{f"MPI_{word}": Kind.ISEND for word in ("Isend", "Ibsend", "Issend", "Irsend")},
    "MPI_Recv": Kind.RECEIVE,
    "MPI_Irecv": Kind.IRECEIVE,
}
_PERSISTENT: Final = {
    **{f"MPI_{word}_init": Kind.ISEND for word in ("Send", "Bsend", "Ssend", "Rsend")},
    "MPI_Recv_init": Kind.IRECEIVE,
}
_CREATIONS: Final = ("Comm_dup", "Comm_split", "Comm_create", "Cart_create", "Graph_create", "Cart_sub")
_Message = tuple[Kind, int, float, int, int]


class RankCalls:
    """Operations of one rank, from its calls in order.

    Between two calls the rank computes. A local call (`whatif.importers.mpi_names.is_local`) counts as computation.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.operations = Operations()
        self.calls = Counter[str]()
        self.creations: list[Creation] = []
        self.warnings = Counter[str]()
        self.rank: int | None = None
        self.rank_count: int | None = None
        self.ended = False
        self._last: int | None = None
        self._communicators = {_NULL_COMMUNICATOR: NONE, _WORLD: WORLD, _SELF: ALONE}
        self._next_communicator = ALONE + 1
        self._requests: dict[int, int] = {}
        self._persistent: dict[int, _Message] = {}
        self._datatypes: dict[int, int] = {}
        self._known: dict[tuple[str, Hashable], _Message] = {}

    def call(self, arguments: Arguments, entered: int, returned: int) -> None:
        """Take one call; times are in ns. Raise `InvalidFileError` for one without sense."""
        name = arguments.call
        self.calls[name] += 1
        handler = _HANDLERS.get(name)
        if handler is None:
            self._unknown(arguments, entered, returned)
            return
        self._compute_until(entered)
        handler(self, arguments)
        self._last = returned

    def warn_of_ignored(self, name: str, count: int) -> None:
        """Add a warning about the calls of a function that the trace only counts, if there are any."""
        if count:
            self.warnings[f"{self.file}: {count} calls of {name} were not recorded"] += 1

    def _unknown(self, arguments: Arguments, entered: int, returned: int) -> None:
        name = arguments.call
        if name.startswith("MPI_Type_") and arguments.has("newtype"):
            self._set_size(arguments.number("newtype"), self._made_size(arguments))
        elif name == "MPI_Type_free":
            self._set_size(arguments.number("datatype"), None)
        elif name in ("MPI_Type_size", "MPI_Comm_rank", "MPI_Comm_size"):
            self._learn(arguments)
        if is_local(name):
            return
        if is_outside(name):
            self.warnings[f"{name}: one-sided and file operations are left out"] += 1
        self._compute_until(entered)
        self._last = returned

    def _learn(self, arguments: Arguments) -> None:
        if arguments.call == "MPI_Type_size":
            self._set_size(arguments.number("datatype"), arguments.number("size"))
        elif arguments.number("comm") == _WORLD and arguments.call == "MPI_Comm_rank":
            self.rank = arguments.number("rank")
        elif arguments.number("comm") == _WORLD:
            self.rank_count = arguments.number("size")

    def _set_size(self, datatype: int, size: int | None) -> None:
        """Take the size of a datatype, None for one that was freed."""
        if self._datatypes.get(datatype) == size:
            return
        self._known.clear()  # numbers are given again, to datatypes of other sizes
        if size is None:
            del self._datatypes[datatype]
        else:
            self._datatypes[datatype] = size

    def _made_size(self, arguments: Arguments) -> int:
        """Size in B of a derived datatype, without the gaps between its parts."""
        if arguments.has("oldtypes"):
            parts = zip(arguments.numbers("lengths", "blocklengths"), arguments.numbers("oldtypes"), strict=False)
            return sum(length * self._datatype(arguments, number) for length, number in parts)
        size = self._datatype(arguments, arguments.number("oldtype"))
        if arguments.has("gsizes"):
            self.warnings[f"{arguments.call}: each rank is taken to have the mean part of the array"] += 1
            return size * prod(arguments.numbers("gsizes")) // max(arguments.number("size"), 1)
        for name, total in (("subsizes", prod), ("lengths", sum), ("blocklengths", sum)):
            if arguments.has(name):
                return size * total(arguments.numbers(name))
        for name in ("count", "blocklength", "blocklen"):
            size *= arguments.number(name) if arguments.has(name) else 1
        return size

    def _datatype(self, arguments: Arguments, number: int) -> int:
        size = self._datatypes.get(number, _DATATYPES.get(number))
        if size is None:
            raise arguments.refuse(f"the size of the datatype {number} is unknown: the trace does not state it")
        return size

    def _compute_until(self, entered: int) -> None:
        if self._last is None:
            return
        if entered < self._last:
            self.warnings["calls that start before the one before returned: no computation between them"] += 1
        self.operations.compute(max(entered - self._last, 0) * NANOSECOND)

    # Calls, each with its arguments.

    def _initialise(self, arguments: Arguments) -> None:
        self._last = None

    def _finalise(self, arguments: Arguments) -> None:
        self.ended = True

    def _message(self, arguments: Arguments) -> None:
        """Add a message; most repeat an earlier one, so that their description is kept."""
        key = arguments.call, arguments.description()
        message = self._known.get(key)
        if message is None:
            message = self._described(arguments, _MESSAGES[arguments.call], "")
            if len(self._known) < 10_000:
                self._known[key] = message
        index = self._add(message)
        if index is not None and message[0] in (Kind.ISEND, Kind.IRECEIVE):
            self._requests[arguments.request()] = index

    def _described(self, arguments: Arguments, kind: Kind, prefix: str) -> _Message:
        """Kind, peer, size, tag and communicator of a message; `prefix` is `send` or `recv` if there are both."""
        is_send = kind in (Kind.SEND, Kind.ISEND)
        peer = arguments.integer("dest" if is_send else "source")
        tag = arguments.integer(f"{prefix}tag", "tag")
        if peer >= 0 and not (0 if is_send else ANY) <= tag <= LARGEST_TAG:
            raise arguments.refuse(f"the tag {tag} is not possible")
        if (is_send and peer < 0) or peer < ANY:
            peer = ANY - 1
        size = self._size(arguments, f"{prefix}count", f"{prefix}type")
        return kind, peer, size, tag, self._communicator(arguments)

    def _size(self, arguments: Arguments, count: str, datatype: str) -> float:
        number = arguments.number(datatype, "datatype")
        size = arguments.number(count, "count") * self._datatype(arguments, number)
        return arguments.valid_size(float(size))

    def _communicator(self, arguments: Arguments, name: str = "comm") -> int:
        handle = arguments.number(name)
        number = self._communicators.get(handle, NONE)
        if number == NONE:
            raise arguments.refuse(f"the communicator {handle} was not created, or in a way that cannot be read")
        return number

    def _add(self, message: _Message) -> int | None:
        """Add a message, unless its peer is MPI_PROC_NULL, or the rank itself on MPI_COMM_SELF."""
        if message[1] < ANY or message[4] == ALONE:
            return None
        return self.operations.add(*message)

    def _exchange(self, arguments: Arguments) -> None:
        received = self._add(self._described(arguments, Kind.IRECEIVE, "recv"))
        sent = self._add(self._described(arguments, Kind.ISEND, "send"))
        self.operations.wait(index for index in (received, sent) if index is not None)

    def _prepare(self, arguments: Arguments) -> None:
        message = self._described(arguments, _PERSISTENT[arguments.call], "")
        self._persistent[arguments.number("request")] = message

    def _start(self, arguments: Arguments) -> None:
        for request in arguments.numbers("request", "requests"):
            if request not in self._persistent:
                raise arguments.refuse(f"the request {request} was not prepared")
            index = self._add(self._persistent[request])
            if index is not None:
                self._requests[request] = index

    def _release(self, arguments: Arguments) -> None:
        request = arguments.number("request")
        self._persistent.pop(request, None)
        index = self._requests.pop(request, None)
        if arguments.call == "MPI_Cancel" and index is not None:
            self.operations.cancel(index)

    def _wait(self, arguments: Arguments) -> None:
        """Wait for all requests, or for those that had finished; a test without a finished one is left out."""
        requests = arguments.numbers("request", "requests")
        if arguments.has("flag") and arguments.number("flag") == 0:
            return
        if arguments.has("index") or arguments.has("indices"):
            places = arguments.numbers("index", "indices")
            requests = [requests[place] for place in places if 0 <= place < len(requests)]
        # Requests of ignored messages, and completed ones, are not in the table.
        found = [self._requests.pop(request, None) for request in requests]
        self.operations.wait(index for index in found if index is not None)

    def _collective(self, arguments: Arguments) -> None:
        communicator = self._communicator(arguments)
        if communicator == ALONE:
            return
        root = arguments.integer("root") if arguments.has("root") else 0
        if root < 0:
            raise arguments.refuse("collectives between two communicators cannot be read")
        size = arguments.valid_size(self._contribution(arguments))
        self.operations.add(COLLECTIVE_KINDS[arguments.call], root, size, 0, communicator)

    def _contribution(self, arguments: Arguments) -> float:
        """Contribution of one rank in B, as `Program.size` defines it; for in-place buffers the other side counts."""
        call, side = arguments.call, "send"
        at_root = arguments.has("commrank") and arguments.number("commrank") == arguments.number("root")
        if call == "MPI_Barrier":
            return 0.0
        if call == "MPI_Alltoallw":
            pairs = zip(arguments.numbers("sendcounts"), arguments.numbers("sendtypes"), strict=False)
            total = float(sum(count * self._datatype(arguments, number) for count, number in pairs))
            return total / max(arguments.number("commsize"), 1)
        if call in ("MPI_Alltoallv", "MPI_Reduce_scatter"):
            return self._mean_size(arguments, "sendcounts" if call == "MPI_Alltoallv" else "recvcounts")
        if call in ("MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter_block"):
            side = "recv"
        elif call.startswith(("MPI_Gather", "MPI_Scatter")):
            side = "recv" if at_root == call.startswith("MPI_Gather") else "send"
        return self._own_size(arguments, side)

    def _mean_size(self, arguments: Arguments, counts: str) -> float:
        numbers = arguments.numbers(counts)
        datatype = arguments.number(counts.replace("counts", "type"), "datatype")
        return sum(numbers) * self._datatype(arguments, datatype) / max(len(numbers), 1)

    def _own_size(self, arguments: Arguments, side: str) -> float:
        """The block of this rank, at the root of one of several sizes."""
        if not arguments.has(f"{side}counts"):
            return self._size(arguments, f"{side}count", f"{side}type")
        counts, rank = arguments.numbers(f"{side}counts"), arguments.number("commrank")
        if not 0 <= rank < len(counts):
            return self._mean_size(arguments, f"{side}counts")
        return float(counts[rank] * self._datatype(arguments, arguments.number(f"{side}type")))

    def _create(self, arguments: Arguments) -> None:
        call = arguments.call.removeprefix("MPI_")
        parent = self._communicator(arguments, "oldcomm")
        handle = arguments.number("newcomm")
        self._known.clear()  # handles are given again
        if parent == ALONE:
            self._communicators[handle] = ALONE
            return
        number = NONE
        if handle != _NULL_COMMUNICATOR:
            number, self._next_communicator = self._next_communicator, self._next_communicator + 1
            self._communicators[handle] = number
        if arguments.has("reorder") and arguments.number("reorder"):
            self.warnings[f"{arguments.call} may reorder: the ranks are taken in the order that they had"] += 1
        if call == "Comm_create":
            self.warnings["MPI_Comm_create: the ranks of the group are taken in the order that they had"] += 1
        names = {"Comm_split": "color", "Cart_create": "dims", "Cart_sub": "remain_dims"}
        group = tuple(arguments.numbers(names[call])) if call in names else ()
        key = arguments.number("key") if call == "Comm_split" else 0
        self.creations.append(Creation(call, parent, number, group, key))

    def _free(self, arguments: Arguments) -> None:
        self._communicators.pop(arguments.number("comm"), None)
        self._known.clear()


_HANDLERS: Final[dict[str, Callable[[RankCalls, Arguments], None]]] = {
    **dict.fromkeys(_MESSAGES, RankCalls._message),
    **dict.fromkeys(_PERSISTENT, RankCalls._prepare),
    **dict.fromkeys(COLLECTIVE_KINDS, RankCalls._collective),
    **{f"MPI_{call}": RankCalls._create for call in _CREATIONS},
    **{f"MPI_{verb}{what}": RankCalls._wait for verb in ("Wait", "Test") for what in ("", "all", "any", "some")},
    "MPI_Init": RankCalls._initialise,
    "MPI_Init_thread": RankCalls._initialise,
    "MPI_Finalize": RankCalls._finalise,
    "MPI_Sendrecv": RankCalls._exchange,
    "MPI_Sendrecv_replace": RankCalls._exchange,
    "MPI_Start": RankCalls._start,
    "MPI_Startall": RankCalls._start,
    "MPI_Request_free": RankCalls._release,
    "MPI_Cancel": RankCalls._release,
    "MPI_Comm_free": RankCalls._free,
}
