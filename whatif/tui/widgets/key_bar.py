"""The line of keys at the bottom of a screen."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Footer
from textual.widgets._footer import FooterKey  # It has no public name.

from whatif.tui.key_areas import ActiveKey, KeyArea, footer_keys


class KeyBar(Footer):
    """Keys of the page, of the widget with the focus and general ones, as many as there is room for.

    They are made anew only where they are others: not at every move of the focus, thrice at each.
    """

    def __init__(self, *, show_command_palette: bool = True) -> None:
        super().__init__(show_command_palette=show_command_palette, compact=True)
        self._made: tuple[ActiveKey, ...] | None = None

    def compose(self) -> ComposeResult:
        """The keys, and the key of the palette at the right edge."""
        if self._made is None:
            return
        for key in self._made:
            yield _entry(key)
        palette = self._palette()
        if palette is not None:
            yield _entry(palette, "-command-palette")

    async def recompose(self) -> None:
        """Make the keys anew if they have changed."""
        # As Textual has it: a screen that is cleared away loses its parts one by one.
        if not self._bindings_ready or not self.is_attached or self._pruning:
            return
        shown = self._shown()
        if shown != self._made:
            self._made = shown
            await super().recompose()

    def on_resize(self) -> None:
        """Show as many keys as fit."""
        self.call_after_refresh(self.recompose)

    def _shown(self) -> tuple[ActiveKey, ...]:
        palette = self._palette()
        # The palette has a line at its left in place of a gap at its right, and a cell at the edge.
        taken = 0 if palette is None else palette.width + 1
        return tuple(footer_keys(self.screen, self.app.size.width - taken))

    def _palette(self) -> ActiveKey | None:
        found = self.screen.active_bindings.get(self.app.COMMAND_PALETTE_BINDING)
        if found is None or not self.show_command_palette:
            return None
        return ActiveKey(KeyArea.GENERAL, found.binding, found.enabled, self.app.get_key_display(found.binding))


def _entry(key: ActiveKey, classes: str = "") -> FooterKey:
    """A key, narrow from the beginning: made narrow later, it would be styled twice."""
    binding = key.binding
    words = binding.tooltip or binding.description
    return FooterKey(
        binding.key,
        key.display,
        binding.description,
        binding.action,
        disabled=not key.enabled,
        tooltip=words,
        classes=f"-compact {classes}".strip(),
    )
