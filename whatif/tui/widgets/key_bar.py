"""The line of keys at the bottom of a screen."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Footer

_Shown = list[tuple[Binding, bool, str]]


class KeyBar(Footer):
    """Textual's footer, made anew only where its keys are others: not at every move of the focus, thrice at each."""

    def __init__(self, *, show_command_palette: bool = True) -> None:
        super().__init__(show_command_palette=show_command_palette, compact=True)
        self._made: _Shown | None = None

    def compose(self) -> ComposeResult:
        """The keys, narrow from the beginning: made narrow later, each would be styled twice."""
        for key in super().compose():
            key.add_class("-compact", update=False)
            yield key

    async def recompose(self) -> None:
        """Make the keys anew if they have changed."""
        # As Textual has it: a screen that is cleared away loses its parts one by one.
        if not self.is_attached or self._pruning:
            return
        shown = self._shown()
        if shown != self._made:
            self._made = shown
            await super().recompose()

    def _shown(self) -> _Shown:
        palette = self.app.COMMAND_PALETTE_BINDING
        active = self.screen.active_bindings.items()
        return [(b, on, tip) for key, (_, b, on, tip) in active if b.show or key == palette]
