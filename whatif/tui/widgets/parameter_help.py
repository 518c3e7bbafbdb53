"""Help of the selected parameter: description, unit, allowed values, source of its value."""

from __future__ import annotations

from textual.content import Content

from whatif.core.parts_in_use import EXTENDS
from whatif.core.session import Session
from whatif.schema.expressions import Expression
from whatif.schema.parameters import Parameter
from whatif.tui.labels import MUTED, StyledText, grade_style
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.parameter_rows import matters
from whatif.tui.widgets.unchanged import KeptStatic


class ParameterHelp(KeptStatic):
    """Two lines about a parameter or a table, with its path in the border."""

    def show(self, state: ExplorerState, path: str) -> None:
        """Explain another parameter, or a table by what it holds."""
        self.border_title = Content(path)
        parameter = state.session.program.parameters.get(path)
        parts = (
            _table(state.session, path)
            if parameter is None
            else (*_meaning(parameter), ("\n", ""), *_origin(parameter, state))
        )
        self.update(Content.assemble(*parts))


def _table(session: Session, path: str) -> tuple[StyledText, ...]:
    table, what = path.removesuffix(EXTENDS), "the part that this table extends: " if path.endswith(EXTENDS) else ""
    parameters = [
        parameter for parameter in session.program.parameters.values() if parameter.path.startswith(f"{table}.")
    ]
    if not parameters:
        return (("no parameter matches", MUTED),)
    live = sum(matters(session.program, parameter) for parameter in parameters)
    return ((f"{what}{len(parameters)} parameters, {live} used in this scenario", MUTED),)


def _meaning(parameter: Parameter) -> tuple[StyledText, ...]:
    """Description and allowed values."""
    description = " ".join(parameter.description.split()) or parameter.path.rpartition(".")[2].replace("_", " ")
    return ((description, ""), ("  ", ""), (parameter.allowed, MUTED))


def _origin(parameter: Parameter, state: ExplorerState) -> tuple[StyledText, ...]:
    """Source and grade of its value; for an edited value, the previous one."""
    before = state.parameter_before(parameter.path)
    if before is not None:
        word = "edited" if parameter.path in state.session.scenario.overrides else "changed"
        return ((word, "$text-warning"), (f"  was {before.text()} ({before.grade}: {before.source})", MUTED))
    idle = () if matters(state.session.program, parameter) else (("  not used in this scenario", "$text-warning"),)
    written = f"{parameter.value.text}  " if isinstance(parameter.value, Expression) else ""
    return ((written, ""), (parameter.grade, grade_style(parameter.grade)), (f"  {parameter.source}", MUTED), *idle)
