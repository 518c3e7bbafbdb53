"""Commands on variants as plain values: fork, go to, delete and rename one; each is a line of the journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from whatif.errors import UsageError, did_you_mean
from whatif.tui.state import ExplorerState


@dataclass(frozen=True, slots=True)
class Fork:
    """Keep the present values, and continue with a copy as a new variant."""

    name: str = ""

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State on the new variant."""
        return state.forked(self.name)

    def line(self) -> str:
        """`variant fork` or `variant fork = NAME`."""
        return f"variant fork = {self.name}" if self.name else "variant fork"


@dataclass(frozen=True, slots=True)
class Go:
    """Go to a variant by its letter or name."""

    variant: str

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State on the variant."""
        return state.at_variant(self.variant)

    def line(self) -> str:
        """`variant go = B`."""
        return f"variant go = {self.variant}"


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a variant; in place of the present one there is a draft with the values of the baseline."""

    variant: str

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State without the variant."""
        return state.without_variant(self.variant)

    def line(self) -> str:
        """`variant delete = B`."""
        return f"variant delete = {self.variant}"


@dataclass(frozen=True, slots=True)
class Rename:
    """Give a variant, by its letter, another name; an empty one takes its name away."""

    letter: str
    name: str

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with the name."""
        return state.renamed(self.letter, self.name)

    def line(self) -> str:
        """`variant rename = B NAME`."""
        return f"variant rename = {self.letter} {self.name}".rstrip()


VariantChange = Fork | Go | Delete | Rename


def _rename(text: str) -> Rename:
    letter, _, name = text.partition(" ")
    return Rename(letter, name.strip())


_ACTIONS: Final[dict[str, tuple[str, Callable[[str], VariantChange]]]] = {
    "fork": ("", Fork),
    "go": ("B", Go),
    "delete": ("B", Delete),
    "rename": ("B NAME", _rename),
}
"""By the word after `variant`: what it needs besides, and the command."""


def parse_variant(action: str, text: str) -> VariantChange:
    """Command of the words after `variant`; raise `UsageError` for others."""
    if action not in _ACTIONS:
        raise UsageError(f"variant {action}: expected one of {', '.join(_ACTIONS)}{did_you_mean(action, _ACTIONS)}")
    needs, make = _ACTIONS[action]
    if needs and not text:
        raise UsageError(f"variant {action}: expected `variant {action} = {needs}`")
    return make(text)
