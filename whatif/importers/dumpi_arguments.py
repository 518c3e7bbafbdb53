"""Arguments of one MPI call of a DUMPI trace by name, from its text or from its binary record."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property

from whatif.importers.operations import valid_size
from whatif.importers.text import refuse

_ARGUMENT = re.compile(r"^\w+ ([\w.]+)(?:\[-?\d+\])*=(.*)$", re.MULTILINE)
_NUMBER = re.compile(r"(?<!\d)-?\d{1,18}(?!\d)", re.ASCII)
_BEYOND = 2**31


class Arguments(ABC):
    """The arguments of one call: whole numbers by name, none of them for an argument that was ignored."""

    def __init__(self, file: str, call: str, line: int = 0) -> None:
        self.file, self.call, self.line = file, call, line

    @abstractmethod
    def stated(self, name: str) -> Sequence[int] | None:
        """Numbers of an argument, None if the call has no argument of this name."""

    @abstractmethod
    def description(self) -> Hashable:
        """All that describes a message, without its request: equal for messages that repeat."""

    def request(self) -> int:
        """Request of a message."""
        return self.number("request")

    def place(self) -> str:
        """The call as errors name it."""
        return self.call

    def refuse(self, message: str) -> Exception:
        """Error about this call."""
        return refuse(self.file, f"{self.place()}: {message}", self.line)

    def valid_size(self, size: float) -> float:
        """A size in B; raise `InvalidFileError` for one without sense."""
        return valid_size(self.file, self.line, self.place(), size)

    def has(self, name: str) -> bool:
        """Whether an argument is stated."""
        return self.stated(name) is not None

    def numbers(self, *names: str) -> Sequence[int]:
        """Whole numbers of the first argument that is stated."""
        for name in names:
            found = self.stated(name)
            if found is not None:
                return found
        raise self.refuse(f"the argument `{names[0]}` is missing")

    def number(self, *names: str) -> int:
        """A whole number."""
        values = self.numbers(*names)
        if len(values) != 1:
            raise self.refuse(f"the argument `{names[0]}` is not a number")
        return values[0]

    def integer(self, *names: str) -> int:
        """A rank or a tag, which has 32 bits."""
        value = self.number(*names)
        if not -_BEYOND <= value < _BEYOND:
            raise self.refuse(f"the argument `{names[0]}` has more than 32 bits")
        return value


class TextArguments(Arguments):
    """Arguments as `dumpi2ascii` prints them, one on a line."""

    def __init__(self, file: str, call: str, line: int, text: str) -> None:
        super().__init__(file, call, line)
        self._text = text

    @cached_property
    def _words(self) -> dict[str, str]:
        return dict(_ARGUMENT.findall(self._text))

    def stated(self, name: str) -> list[int] | None:
        """Numbers of an argument, None if the call has no argument of this name."""
        word = self._words.get(name)
        return None if word is None else [int(number) for number in _NUMBER.findall(word.partition(" (")[0])]

    def description(self) -> str:
        """The text before the request."""
        return self._text.rpartition("MPI_Request ")[0] or self._text

    def request(self) -> int:
        """Request of a message, without a look at the lines before."""
        line = "MPI_Request " + self._text.rpartition("MPI_Request ")[2]
        return TextArguments(self.file, self.call, self.line, line).number("request")


class RecordArguments(Arguments):
    """Arguments of a binary record: its first byte, its bytes, and the numbers that were read from them."""

    def __init__(self, file: str, call: str, byte: int, record: bytes, values: Mapping[str, Sequence[int]]) -> None:
        super().__init__(file, call)
        self._byte, self._record, self._values = byte, record, values

    def place(self) -> str:
        """The call and its first byte in the file."""
        return f"{self.call} at byte {self._byte:,}"

    def stated(self, name: str) -> Sequence[int] | None:
        """Numbers of an argument, None if the record has no argument of this name."""
        return self._values.get(name)

    def description(self) -> bytes:
        """The bytes before the request, which is the last number of a message."""
        return self._record[:-4] if "request" in self._values else self._record
