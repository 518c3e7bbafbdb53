"""Form: fields with their values, units and help, each checked as it is typed, taken all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import Reactive
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Static

from whatif.studies.phase_form import FormField
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.widgets.key_bar import KeyBar
from whatif.tui.widgets.prompt import PromptInput
from whatif.tui.widgets.unchanged import KeptStatic

Texts = Mapping[str, str]
"""Texts of a form, by the path of the field."""
_CHANGED, _CHOICE = "●", "◂ ▸"


class FormInput(PromptInput):
    """Line of one field."""

    def __init__(self, field: FormField) -> None:
        default = f"default: {field.default}" if field.default else "" if field.required else "not stated"
        super().__init__(field.text, placeholder=default, compact=True)
        self.field = field


class ChoiceInput(FormInput):
    """Line of a field with fixed choices: the arrows go to the next one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", "change", key_display="◂▸", id="form.previous"),
        Binding("right", "turn(1)", "Next choice", show=False, id="form.next"),
        Binding("f4", "list", "list", key_display="F4", id="form.list"),
    ]

    def action_turn(self, steps: int) -> None:
        """Go to another choice."""
        names = [name for name, _ in self.field.choices]
        present = self.value or self.field.default
        at = names.index(present) + steps if present in names else 0
        self._take(names[at % len(names)])

    def action_list(self) -> None:
        """Pick a choice from a list."""
        self.app.push_screen(PickList(self.field.label, self.field.choices, self.value), self._take)

    def _take(self, name: str | None) -> None:
        if name is not None:
            self.value = name
            self.cursor_position = len(name)


class FormLine(Vertical):
    """One field: its label, line and unit, and below them its help, or what is wrong."""

    DEFAULT_CSS = """
    FormLine { height: 2; }
    FormLine Horizontal { height: 1; }
    FormLine .label { width: 26; max-width: 45%; }
    FormLine:focus-within .label { text-style: bold; }
    FormLine Input { width: 1fr; background: $boost; }
    FormLine .unit { width: 9; padding: 0 1; color: $text-muted; }
    FormLine .help { height: 1; padding: 0 2; color: $text-muted; text-overflow: ellipsis; text-wrap: nowrap; }
    FormLine:ansi .help { text-style: dim; }
    FormLine.-wrong .help, FormLine.-wrong .label { color: $text-error; }
    FormLine.-changed .label { color: $text-warning; }
    """

    def __init__(self, field: FormField) -> None:
        super().__init__()
        self.field = field
        self.problem = ""
        self.input = ChoiceInput(field) if field.choices else FormInput(field)
        self._words = KeptStatic(self._label(changed=False), classes="label", markup=False)
        self._help = KeptStatic(field.help, classes="help", markup=False)

    def compose(self) -> ComposeResult:
        """The line, and the words below it."""
        unit = _CHOICE if self.field.choices else self.field.unit
        with Horizontal():
            yield self._words
            yield self.input
            yield Static(unit, classes="unit", markup=False)
        yield self._help

    def _label(self, *, changed: bool) -> str:
        return f"{_CHANGED if changed else ' '} {self.field.label}"

    def show(self, problem: str) -> None:
        """Show the error in place of the help, and whether the text has changed."""
        self.problem = problem
        changed = self.input.value.strip() != self.field.text
        self.update_classes({"-wrong": bool(problem), "-changed": changed})
        self._words.update(self._label(changed=changed))
        self._help.update(problem or self.field.help)


class FormScreen(ModalScreen[Texts | None]):
    """Fields to fill in; the result are the texts of all fields, or None after escape.

    `check` gives what is wrong with some texts, by the path of the field; under an empty path what concerns no field.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,shift+tab", "move(-1)", "field", key_display="↑↓", priority=True, id="form.up"),
        Binding("down,tab", "move(1)", "Down", show=False, priority=True, id="form.down"),
        Binding("pageup", "move(-5)", "Page up", show=False, priority=True, id="form.page_up"),
        Binding("pagedown", "move(5)", "Page down", show=False, priority=True, id="form.page_down"),
        Binding("f10", "accept", "Accept", show=False, priority=True, id="form.accept"),
        Binding("escape", "dismiss(None)", "leave", key_display="esc", id="form.leave"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-few"), (14, "-tall")]  # noqa: RUF012 - declared without ClassVar by Textual
    # The fields draw the focus: to paint the screen is to paint the main screen below it too.
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    def __init__(self, title: str, fields: tuple[FormField, ...], check: Callable[[Texts], Mapping[str, str]]) -> None:
        super().__init__()
        self._heading, self._check = title, check
        self.lines = [FormLine(field) for field in fields]

    def compose(self) -> ComposeResult:
        """The fields in a window that scrolls, and more about the one with the cursor."""
        with Vertical(id="window") as window:
            window.border_title = Content(self._heading)
            with VerticalScroll(id="fields", can_focus=False):
                yield from self.lines
            yield KeptStatic(id="about", markup=False)
        yield KeyBar()

    @property
    def texts(self) -> dict[str, str]:
        """The texts as they are typed, by path."""
        return {line.field.path: line.input.value.strip() for line in self.lines}

    def on_mount(self) -> None:
        """Begin at the first field."""
        self.lines[0].input.focus()

    def on_resize(self) -> None:
        """The window is as high as its fields, as far as there is room."""
        about = 0 if self.has_class("-few") else 4
        self.query_one("#fields").styles.max_height = max(2, self.size.height - 3 - about)

    @property
    def _present(self) -> int:
        # Not `has_focus`: a line keeps it while a list is open above the form.
        return next((at for at, line in enumerate(self.lines) if line.input is self.focused), 0)

    def action_move(self, steps: int) -> None:
        """Go to another field."""
        lines = self.lines
        self._go(lines[min(max(self._present + steps, 0), len(lines) - 1)])

    def _go(self, line: FormLine) -> None:
        # At once: keys that were typed fast belong to the new field.
        self.set_focus(line.input)
        self.query_one("#fields").scroll_to_widget(line, animate=False)

    def on_descendant_focus(self) -> None:
        """Show help and allowed values of the field, or its error."""
        self._tell()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._judge()

    def _judge(self) -> Mapping[str, str]:
        """Show what is wrong at each field, and return it."""
        problems = self._check(self.texts)
        for line in self.lines:
            line.show(problems.get(line.field.path, ""))
        self._tell(problems.get("", ""))
        return problems

    def _tell(self, problem: str = "") -> None:
        line = self.lines[self._present]
        words = problem or line.problem
        about = self.query_one("#about", KeptStatic)
        about.set_class(bool(words), "-wrong")
        about.update(words or f"{line.field.help}\n{line.field.allowed}".strip())

    @on(Input.Submitted)
    def action_accept(self) -> None:
        """Take the texts; where one is wrong, go there."""
        problems = self._judge()
        wrong = [line for line in self.lines if line.field.path in problems]
        if not problems:
            self.dismiss(self.texts)
        elif wrong:
            self._go(wrong[0])
