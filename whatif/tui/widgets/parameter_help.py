"""What the selected leaf is: description, unit, allowed values, where its value comes from."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from whatif.core.session import Session
from whatif.schema.expressions import Expression
from whatif.schema.parameters import Parameter
from whatif.tui.labels import MUTED, grade_style
from whatif.tui.parameter_rows import matters
from whatif.tui.state import ExplorerState

Part = tuple[str, str]


class ParameterHelp(Static):
    """Two lines about a leaf or a table, with its path in the border."""

    def show(self, study: ExplorerState, path: str) -> None:
        """Explain another leaf, or a table by what it holds."""
        self.border_title = Content(path)
        leaf = study.session.program.leaves.get(path)
        parts = _table(study.session, path) if leaf is None else (*_meaning(leaf), ("\n", ""), *_origin(leaf, study))
        self.update(Content.assemble(*parts), layout=False)


def _table(session: Session, path: str) -> tuple[Part, ...]:
    leaves = [leaf for leaf in session.program.leaves.values() if leaf.path.startswith(f"{path}.")]
    if not leaves:
        return (("no leaf has all the words", MUTED),)
    live = sum(matters(session.program, leaf) for leaf in leaves)
    return ((f"{len(leaves)} values, {live} of them matter here", MUTED),)


def _meaning(leaf: Parameter) -> tuple[Part, ...]:
    """What it is and which values it may take."""
    description = " ".join(leaf.description.split()) or leaf.path.rpartition(".")[2].replace("_", " ")
    return ((description, ""), ("  ", ""), (allowed(leaf), MUTED))


def allowed(leaf: Parameter) -> str:
    """The values that a leaf accepts."""
    if leaf.field is not None:
        return leaf.field.domain.describe(leaf.dimension)
    return " | ".join(leaf.choices) if leaf.choices else "any text"


def _origin(leaf: Parameter, study: ExplorerState) -> tuple[Part, ...]:
    """Where its value comes from and how far to trust it; of an edited value, what it was."""
    before = study.leaf_before(leaf.path)
    if before is not None:
        word = "edited" if leaf.path in study.session.question.sets else "changed"
        return ((word, "$text-warning"), (f"  was {before.text()} ({before.grade}: {before.source})", MUTED))
    idle = () if matters(study.session.program, leaf) else (("  reaches no term here", "$text-warning"),)
    written = f"{leaf.value.text}  " if isinstance(leaf.value, Expression) else ""
    return ((written, ""), (leaf.grade, grade_style(leaf.grade)), (f"  {leaf.source}", MUTED), *idle)
