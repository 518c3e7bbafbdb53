"""State of the explorer: a session, its variants and the view; every change makes a new state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from whatif.axes import Grid
from whatif.core.result import Result, has_column
from whatif.core.scenario import Scenario
from whatif.core.session import Session, SessionInputs, still_there
from whatif.core.sweep_figure import Y_COLUMN
from whatif.errors import UsageError, did_you_mean
from whatif.plotting.raster import MarkerName
from whatif.plugins import page_of
from whatif.schema.parameters import Parameter
from whatif.schema.phase_edits import edits_of
from whatif.tui.page_registry import FIRST_PAGE, page_named, screens
from whatif.tui.page_views import view_kind
from whatif.tui.variants.variant_set import (
    BASELINE,
    Variant,
    VariantCurve,
    Variants,
    compares,
    computed_curve,
    curve_of,
    grid_key,
    scenario_key,
)
from whatif.tui.view_entries import PageView, V, choices, entry, entry_names, from_text, to_text
from whatif.units import counted

ScaleChoice = Literal["auto", "linear", "log"]


@dataclass(frozen=True, slots=True)
class View:
    """View of a state: fields that several pages share, and the views of single pages by page name.

    In the journal a shared field is named `FIELD`, a field of a page `PAGE.FIELD`.
    """

    screen: str = FIRST_PAGE
    y: str = "iteration_time"
    """Result column or `terms.PHASE` that is drawn."""
    x_scale: ScaleChoice = "auto"
    y_scale: ScaleChoice = "auto"
    samples: int | None = entry(None, choices=(None, 1024, 256, 4096), none="off")
    """Number of samples for uncertainty bands; None for no bands."""
    spread: Literal["none", "assumed", "datasheet"] = "none"
    """Grades whose values vary although they state no distribution: assumed by 20 %, data sheets by 10 %."""
    picture: Literal["plot", "table"] = "plot"
    breakdown: Literal["phase", "category"] = "phase"
    marker: MarkerName = "braille"
    why: str = "iteration_time"
    """Result that is explained."""
    against: str = ""
    """Platform that others are compared with; empty for the current one."""
    pages: Mapping[str, PageView] = field(default_factory=dict)

    def of(self, kind: type[V]) -> V:
        """View of one page."""
        return cast("V", self.pages.get(kind.PAGE, kind()))

    def value(self, key: str) -> Any:
        """Value of a field; raise `UsageError` if it does not exist."""
        view, name = self._find(key)
        return getattr(view, name)

    def choices(self, key: str) -> tuple[object, ...]:
        """Values allowed for a field; empty if it is not a choice."""
        view, name = self._find(key)
        return _screen_names() if key == "screen" else choices(type(view), name)

    def next_of(self, key: str) -> object:
        """Choice that follows the current one."""
        allowed = self.choices(key)
        return allowed[(allowed.index(self.value(key)) + 1) % len(allowed)]

    def text(self, key: str, value: object) -> str:
        """Text of a value of a field, as the journal has it."""
        view, name = self._find(key)
        return to_text(type(view), name, value)

    def with_entry(self, key: str, text: str) -> View:
        """View with another value of a field; raise `UsageError` for an unknown field or a wrong value."""
        view, name = self._find(key)
        try:
            value = from_text(type(view), name, text)
        except UsageError as problem:
            raise UsageError(f"show {key}: {problem}") from None
        if key == "screen" and value not in _screen_names():
            near = did_you_mean(value, _screen_names())
            raise UsageError(f"show {key}: `{value}` is not one of {', '.join(_screen_names())}{near}")
        if isinstance(view, View):
            return replace(self, **{name: value})
        changed: PageView = replace(view, **{name: value})
        return replace(self, pages={**self.pages, view.PAGE: changed})

    def _find(self, key: str) -> tuple[View | PageView, str]:
        """View that has a field, and the name of the field there."""
        page, _, name = key.rpartition(".")
        if page and page_named(page) is None:
            known = [f"{item.name}.{name}" for item in screens()]
            raise UsageError(f"show {key}: there is no page `{page}`{did_you_mean(key, known)}")
        view = self.of(view_kind(page)) if page else self
        names = entry_names(type(view))
        if name not in names:
            near = did_you_mean(key, [f"{page}.{name}" if page else name for name in names])
            raise UsageError(f"show {key}: there is no such entry{near}")
        return view, name


def _screen_names() -> tuple[str, ...]:
    return tuple(page.name for page in screens())


@dataclass(frozen=True, slots=True, eq=False)
class UndoState:
    """State that undo restores, without the sweep's numbers: scenario and sweep, variants, view."""

    inputs: SessionInputs
    variants: Variants
    view: View

    @property
    def parts(self) -> tuple[object, ...]:
        """Immutable objects that the next state is likely to have too."""
        scenario, grid = self.inputs.scenario, self.inputs.grid
        own = (self.view, self.variants, *self.variants.items, grid, *grid.axes)
        return (*own, *scenario.parts, *self.inputs.program.parts)

    def uncompiled(self) -> UndoState:
        """The same state without its compiled program, which is compiled again where it is restored."""
        return replace(self, inputs=SessionInputs(self.inputs.scenario.uncompiled(), self.inputs.grid))

    def same_as(self, other: UndoState) -> bool:
        """Whether both ask, compare and show the same."""
        return self._key == other._key

    @property
    def _key(self) -> tuple[object, ...]:
        return self.view, scenario_key(self.inputs.scenario), grid_key(self.inputs.grid), self.variants.key


@dataclass(frozen=True, slots=True, eq=False)
class ExplorerState:
    """State of the explorer: the session is the edited variant; `curves` are the others over its sweep."""

    session: Session
    variants: Variants
    view: View = View()
    curves: Mapping[str, VariantCurve] = field(default_factory=dict)
    note: str = ""
    """Good news of the last command, such as the value that meets a target."""

    @classmethod
    def start(cls, session: Session, view: View = View()) -> ExplorerState:
        """State of a session in which nothing is changed yet."""
        return cls(session, Variants.start(session), view, {BASELINE: curve_of(session)})

    @property
    def undo_state(self) -> UndoState:
        """State without its numbers."""
        return UndoState(self.session.inputs, self.variants, self.view)

    @property
    def baseline(self) -> Session:
        """Baseline of the present values."""
        return self.session if self.variants.current == BASELINE else self.variants.baseline.session

    def at(self, state: UndoState) -> ExplorerState:
        """State restored from the history, with numbers for its sweep."""
        inputs = state.inputs
        inputs = replace(inputs, grid=still_there(inputs.grid, inputs.program))
        session = Session.of(inputs, self.session)
        return ExplorerState(session, state.variants, state.view, self._with_own_curve())._compared()

    def at_rest(self) -> ExplorerState:
        """State without the numbers of its sweep."""
        return replace(self, session=self.session.at_rest(), curves={})

    def with_session(self, session: Session) -> ExplorerState:
        """State with another session."""
        return replace(self, session=session)._compared()

    def pinned(self) -> ExplorerState:
        """State with its present values as the baseline."""
        baseline = replace(self.variants.baseline, session=self.session.at_rest())
        variants = replace(self.variants, items=(baseline, *self.variants.items[1:]))
        return replace(self, variants=variants, curves=self._with_own_curve(BASELINE))

    @property
    def variant_label(self) -> str:
        """Letter and name of the present variant."""
        present = self.variants.at(self.variants.current)
        return self.variants.current if present is None else present.label

    @property
    def has_variants(self) -> bool:
        """Whether there are more than the present values and a baseline that was only pinned."""
        return len(self.variants.items) > 1 or self.variants.current == BASELINE

    def next_variant(self) -> str:
        """Letter of the variant after the present one, in a circle; empty if there is no other."""
        letters = [item.letter for item in self.listed()]
        later = [letter for letter in letters if letter > self.variants.current]
        following = next(iter(later or letters))
        return following if len(letters) > 1 else ""

    def listed(self) -> tuple[Variant, ...]:
        """All variants with the values that they have now; without a draft that equals the baseline."""
        return self.variants.with_present(self.session, draft=self.changed).items

    def forked(self, name: str = "") -> ExplorerState:
        """State on a new variant with the present values; a draft without changes only gets the name."""
        drafted = self.variants.at(self.variants.current) is None
        kept = self.variants.with_present(self.session)
        letter = self.variants.current if drafted and not self.changed else kept.free_letter()
        forked = replace(kept, current=letter).with_present(self.session).renamed(letter, name)
        return replace(self, variants=forked, curves=self._with_own_curve())

    def renamed(self, text: str, name: str) -> ExplorerState:
        """State with another name of a variant; the present one may be a draft."""
        kept = self.variants.with_present(self.session, draft=self.changed or text.upper() == self.variants.current)
        return replace(self, variants=kept.renamed(kept.named(text).letter, name))

    def at_variant(self, text: str) -> ExplorerState:
        """State on another variant, over the same sweep as far as there is one."""
        kept = self.variants.with_present(self.session, draft=self.changed)
        target = kept.named(text)
        if target.letter == self.variants.current:
            return self
        session = _session_of(target, self.session.grid, self._with_own_curve())
        return ExplorerState(
            session, replace(kept, current=target.letter), self.view, self._with_own_curve()
        )._compared()

    def without_variant(self, text: str) -> ExplorerState:
        """State without a variant; where that is the present one, a draft with the values of the baseline."""
        kept = self.variants.with_present(self.session, draft=self.changed)
        gone = kept.named(text).letter
        left = kept.without(gone)
        if gone != self.variants.current:
            return replace(self, variants=left)._compared()
        session = _session_of(left.baseline, self.session.grid, self.curves)
        return replace(self, session=session, variants=replace(left, current=left.free_letter()))._compared()

    def has_curves(self, variants: Variants | None = None) -> bool:
        """Whether the curves of all variants are known over the present sweep."""
        known, wanted, grid = self._with_own_curve(), variants or self.variants, self.session.grid
        others = (item for item in wanted.items if item.letter != wanted.current)
        return not compares(grid) or all(_known(item, grid, known) is not None for item in others)

    def knows(self, text: str) -> bool:
        """Whether a variant can be shown without evaluating it."""
        item = self.variants.at(text.upper())
        curve = None if item is None else _known(item, self.session.grid, self.curves)
        return curve is not None and curve.result is not None

    def others(self) -> tuple[tuple[Variant, Result], ...]:
        """The other variants whose values differ from the present ones, with their results over its sweep."""
        present = scenario_key(self.session.scenario)
        found = (
            (item, self.curves[item.letter].result)
            for item in self.variants.items
            if item.letter != self.variants.current and item.letter in self.curves
        )
        return tuple(
            (item, result) for item, result in found if result is not None and scenario_key(item.scenario) != present
        )

    @property
    def light_curves(self) -> dict[str, VariantCurve]:
        """Curves without their numbers, for the process that computes the others."""
        return {letter: replace(curve, result=None) for letter, curve in self.curves.items()}

    @property
    def page(self) -> str:
        """The page that shows its screen."""
        application = self.session.program.loaded.scenario.application
        return page_of(self.view.screen, application)

    @property
    def explained(self) -> str:
        """The explained result: the requested one if it exists."""
        return self.view.why if has_column(self.session.point, self.view.why) else Y_COLUMN

    @property
    def changed(self) -> bool:
        """Whether the values differ from those of the baseline."""
        return scenario_key(self.session.scenario) != scenario_key(self.baseline.scenario)

    def _with_own_curve(self, letter: str = "") -> dict[str, VariantCurve]:
        """The curves, with that of the session under a letter: its own where it is to stay known."""
        own = self.session.result.grid is self.session.grid
        return {**self.curves, letter or self.variants.current: curve_of(self.session)} if own else dict(self.curves)

    def _compared(self) -> ExplorerState:
        """State with its other variants over the present sweep, where they are drawn."""
        session = self.session
        curves = {
            item.letter: _known(item, session.grid, self.curves) or computed_curve(item, session)
            for item in (self.variants.items if compares(session.grid) else ())
            if item.letter != self.variants.current
        }
        return replace(self, curves=curves)

    @property
    def platform_name(self) -> str | None:
        """The name of the platform's file; None if the scenario describes its machine itself."""
        return self.session.scenario.platform_name

    def unsaved(self) -> dict[str, str]:
        """Changes that the file on disk does not have: parameter path and text; `platform` for another machine, the
        words of its journal line for an edit of phases."""
        scenario = self.session.scenario
        named = {"platform": scenario.platform} if scenario.platform is not None else {}
        named |= {f"phase {edit.word} {edit.name}": edit.text for edit in edits_of(scenario.document)}
        return named | {path: str(text) for path, text in scenario.overrides.items()}

    def unsaved_views(self) -> tuple[PageView, ...]:
        """Views of pages with changes that these pages save, such as values of a study."""
        return tuple(view for view in self.view.pages.values() if view.unsaved())

    @property
    def edit_count(self) -> int:
        """Number of unsaved changes, those of pages among them."""
        return len(self.unsaved()) + sum(len(view.unsaved()) for view in self.unsaved_views())

    @property
    def undo_hint(self) -> str:
        """Sentence that names the key for the last change; empty without changes."""
        return "u undoes the last change." if self.changed or self.edit_count else ""

    def written(self) -> ExplorerState:
        """State after each variant was written to a file of its own."""
        items = tuple(replace(item, written=item.scenario) for item in self.listed())
        return replace(self, variants=replace(self.variants, items=items))

    def at_stake(self) -> dict[str, str]:
        """Unsaved changes: those of the present variant, and by label those of the others."""
        present = scenario_key(self.session.scenario)
        others = {
            f"variant {item.label}": counted(len(item.scenario.overrides), "value")
            for item in (self.variants.items if self.has_variants else ())
            if item.letter != self.variants.current and item.is_unwritten and scenario_key(item.scenario) != present
        }
        current = self.variants.at(self.variants.current)
        written = current is not None and not replace(current, session=self.session).is_unwritten
        return ({} if written else self.unsaved()) | others

    def parameter_before(self, path: str) -> Parameter | None:
        """The parameter of the baseline, where it differs from the present one."""
        now, before = self.session.program.parameters.get(path), self.baseline.program.parameters.get(path)
        return before if before is not None and now is not None and now.value != before.value else None

    def over(self, scenario: Scenario) -> ExplorerState:
        """State on another text of its file; its baseline stays."""
        reread = replace(self, variants=self.variants.reread(scenario))
        return reread.with_session(self.session.with_scenario(scenario))


def _known(variant: Variant, grid: Grid, curves: Mapping[str, VariantCurve]) -> VariantCurve | None:
    """Curve of a variant over a sweep; None if it is not known."""
    curve = curves.get(variant.letter)
    return curve if curve is not None and curve.answers(variant.scenario, grid) else None


def _session_of(variant: Variant, grid: Grid, curves: Mapping[str, VariantCurve]) -> Session:
    """A variant over a sweep, without its terms where its result is known."""
    inputs = replace(variant.session.inputs, grid=still_there(grid, variant.session.program))
    known = _known(variant, inputs.grid, curves)
    if known is not None and known.result is not None:
        return Session(inputs, None, known.result, variant.session.at)
    return Session.of(inputs)
