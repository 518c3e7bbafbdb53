"""Windows to pick a platform, a part or a value from, and the change that a choice makes."""

from __future__ import annotations

from whatif.core.parts_in_use import EXTENDS, parts_in_use
from whatif.core.session import Session
from whatif.tui.commands.explorer_commands import Change, Edit, EditAll
from whatif.tui.dialogs.pick_list import PickList


def pick_value(path: str, session: Session) -> PickList | None:
    """Window with the choices of a parameter or the parts of a table; None if any text or number may be typed."""
    from whatif.studies.choice_lists import part_choices, value_choices  # noqa: PLC0415 - not for the first frame

    if path.endswith(EXTENDS):
        used = parts_in_use(session.program.loaded)
        return PickList(path, part_choices(path, session.scenario), used.get(path, ""))
    parameter = session.program.parameters.get(path)
    if parameter is None or len(parameter.choices) < 2:
        return None
    return PickList(path, value_choices(parameter), parameter.text(), about=" ".join(parameter.description.split()))


def picked(path: str, name: str) -> Change:
    """Change that gives a parameter a value, or a table another part."""
    return EditAll(((path, name),)) if path.endswith(EXTENDS) else Edit(path, name)
