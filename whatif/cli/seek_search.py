"""What `whatif seek` prints of a search over several parameters, and of a Pareto front."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from whatif.cli.options import Draw, print_table
from whatif.errors import ImpossiblePointError, UsageError

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.studies.population import Objective, Wish
    from whatif.studies.search import Optimum
    from whatif.studies.search_space import Varied
    from whatif.studies.threshold import Target
    from whatif.table import Table
    from whatif.units import Dimension

_PATIENCE: Final = 1.0
"""Seconds after which progress is told, on a terminal."""


class SearchProgress:
    """Tells on a terminal how many points are evaluated, where that takes its time."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _PATIENCE
        self._shown = False

    def __call__(self, text: str) -> None:
        """So far."""
        now = time.monotonic()
        if now >= self._next and sys.stderr.isatty():
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)
            self._next, self._shown = now + 0.1, True

    def clear(self) -> None:
        """Leave the line empty."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._shown = False


@contextmanager
def progress() -> Iterator[SearchProgress]:
    """Progress whose line is empty at the end."""
    told = SearchProgress()
    try:
        yield told
    finally:
        told.clear()


def show_search(
    question: Scenario, varied: Sequence[Varied], targets: tuple[Target, ...], objective: Objective | None, seed: int,
    points: int | None, file_format: str,
) -> None:  # fmt: skip
    """The best answer as a table, the others in words; raise `ImpossiblePointError` where there is none."""
    from whatif.studies.population import Wish
    from whatif.studies.search import Optimum, ranked, search

    wish, answers, empty = Wish(targets, objective), list[Optimum](), []
    with progress() as told:
        for found in search(
            question, varied, wish, seed, points, lambda at, count: told(f"{str(at) or 'search'}: {count:,} points")
        ):
            if isinstance(found, Optimum):
                answers.append(found)
            else:
                empty.append(found)
    for combination in empty:
        click.echo(f"{combination}: impossible: {combination.reason}", err=True)
    if not answers:
        raise ImpossiblePointError("impossible: no combination of these choices can exist")
    best, *others = ranked(answers, wish, question)
    for answer in others:
        click.echo(_in_words(answer, wish, question), err=True)
    count = sum(answer.points for answer in answers)
    click.echo(f"{count:,} points in {len(answers)} search{'es' * (len(answers) > 1)}; seed {seed}", err=True)
    if best.is_met:
        print_table(_table(best, wish, question, file_format), file_format, [["factor"], ["now"]])
    if not all(answer.ended for answer in answers):
        sys.stdout.flush()
        raise KeyboardInterrupt(f"interrupted; {'this is' if best.is_met else 'nothing met the targets as'} "
                                f"the best of the first {count:,} points")  # fmt: skip
    if not best.is_met:
        raise ImpossiblePointError(_in_the_way(best, wish, question))


def _dimensions(question: Scenario, names: Iterable[str]) -> dict[str, Dimension]:
    from whatif.studies.search_space import quantity_named

    return {name: quantity_named(name, question.program)[1] for name in names}


def _written(answer: Optimum) -> str:
    """The values of an answer, and its choices, in one line."""
    from whatif.units import format_quantity

    parameters = {
        span.path: format_quantity(answer.values[span.path], span.parameter.dimension, 4) for span in answer.spans
    }
    return ", ".join(f"{path}={text}" for path, text in {**answer.combination.choices, **parameters}.items())


def _results(answer: Optimum, question: Scenario) -> str:
    from whatif.units import format_quantity

    dimensions = _dimensions(question, answer.then)
    return ", ".join(f"{name} is {format_quantity(answer.then[name], dimensions[name], 4)}" for name in answer.then)


def _in_words(answer: Optimum, wish: Wish, question: Scenario) -> str:
    missed = " and ".join(str(target) for target in wish.targets if answer.misses(target))
    said = f"misses {missed}, at best {_results(answer, question)}" if missed else _results(answer, question)
    return f"{_written(answer)}: {said}"


def _in_the_way(answer: Optimum, wish: Wish, question: Scenario) -> str:
    from whatif.studies.threshold import longest

    wanted = " and ".join(map(str, wish.targets))
    if not all(math.isfinite(number) for number in answer.then.values()):
        why = f": {answer.reason}" if answer.reason else ""
        return f"impossible: no point of these ranges has a number for {' and '.join(answer.then)}{why}"
    where = _written(answer)
    return (
        f"nothing in these ranges meets {wanted}: at best {_results(answer, question)}"
        f"{f', at {where}' if where else ''}; what stands in the way: {longest(answer.phases)}"
    )


def _table(answer: Optimum, wish: Wish, question: Scenario, file_format: str) -> Table:
    """One row a choice, a parameter, a result: what it is now, what is sought, the factor, and what holds it there."""
    from whatif.core.evaluate import parameter_values
    from whatif.studies.search import present_choice
    from whatif.table import Table
    from whatif.units import ONE, format_quantity

    readable = file_format in ("table", "markdown")
    dimensions = _dimensions(question, answer.then)
    rows: list[list[Any]] = []
    present = {path: float(array) for path, array in parameter_values(question.program).items()}

    def add(name: str, now: float, then: float, dimension: Dimension, note: str) -> None:
        cells = [_cell(number, dimension, readable) for number in (now, then)]
        factor = then / now if now and math.isfinite(now) else math.nan
        rows.append([name, *([] if readable else [str(dimension)]), *cells, factor, note])

    for path, text in answer.combination.choices.items():
        rows.append([path, *([] if readable else [""]), present_choice(question, path), text, math.nan, ""])
    for span in answer.spans:
        end = answer.at_end(span.path)
        said = [*([f"at its {end} end"] if end else []), *_notes(answer, wish, span.path)]
        add(
            span.path,
            present.get(span.path, math.nan),
            answer.values[span.path],
            span.parameter.dimension,
            "; ".join(said),
        )
    for name in (name for name in answer.then if name not in answer.values):
        add(name, answer.before[name], answer.then[name], dimensions[name], "; ".join(_notes(answer, wish, name)))
    unit = {} if readable else {"unit": None}
    columns = {"name": None, **unit, "now": None, "sought": None, "factor": ONE, "note": None}
    notes = {"change": format_quantity(answer.change, ONE, 6), "points": str(answer.points)}
    return Table.of_rows(columns, rows, notes)


def _cell(number: float, dimension: Dimension, readable: bool) -> str | float | None:
    from whatif.units import format_quantity

    if not math.isfinite(number):
        return None
    return format_quantity(number, dimension, 5) if readable else number


def _notes(answer: Optimum, wish: Wish, name: str) -> list[str]:
    said = [f"{target}{', binds' * answer.binds(target)}" for target in wish.targets if target.result == name]
    said = [text.removeprefix(f"{name} ") for text in said]
    if wish.objective is not None and wish.objective.name == name:
        said.append("minimised" if wish.objective.least else "maximised")
    return said


def show_front(
    question: Scenario, varied: Sequence[Varied], pareto: str, targets: Sequence[Target], points: int | None,
    within: float, draw: Draw | None, file_format: str,
) -> None:  # fmt: skip
    """The front as a table, or drawn; raise `ImpossiblePointError` where no point is on it."""
    from whatif.studies.pareto import front
    from whatif.studies.scaling_tables import front_picture, front_table, operating_range
    from whatif.studies.search_space import quantity_named

    objectives = [_aim(text) for text in pareto.split(",")]
    for item in objectives:
        quantity_named(item.name, question.program)
    with progress() as told:
        found = front(question, varied, objectives, targets, points, lambda count: told(f"{count:,} points"))
    for combination in found.impossible:
        click.echo(f"{combination}: impossible: {combination.reason}", err=True)
    missing = f"; {found.missing:,} have no number" if found.missing else ""
    click.echo(f"{len(found.choices):,} of {found.points:,} points are on the front{missing}", err=True)
    if not found.choices:
        met = f" meets {' and '.join(map(str, targets))}" if targets else " has a number"
        raise ImpossiblePointError(f"impossible: none of {found.points:,} points{met}")
    for line in operating_range(found, question, objectives, within):
        click.echo(line, err=True)
    if draw is not None:
        draw(front_picture(found, question))
    else:
        print_table(front_table(found, question, short=file_format == "table"), file_format)
    if not found.ended:
        sys.stdout.flush()
        raise KeyboardInterrupt(f"interrupted; this is the front of the first {found.points:,} points")


def _aim(text: str) -> Objective:
    from whatif.studies.population import Objective

    words = text.split()
    if not words or len(words) > 2 or (len(words) == 2 and words[0] not in ("max", "min")):
        raise UsageError(f"--pareto: `{text.strip()}`: expected RESULT, or max RESULT, with commas between")
    return Objective(words[-1], least=words[0] != "max")
