"""`whatif fit regression`: measured runs to a model with intervals, and to a phase of a scenario."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from whatif.cli.fit import command, tell
from whatif.cli.options import share_of
from whatif.cli.run_options import ModelFile, runs_options
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.fitting.least_squares import Predicted, RunsFit
    from whatif.fitting.pmnf import Search
    from whatif.models.quantities import FloatArray
    from whatif.table import Table

SHOWN = (
    "coefficients", "models", "prediction", "validation", "folds", "comparison", "collinearity", "influence", "runs",
)  # fmt: skip


@dataclass(frozen=True)
class Held:
    """Runs that a model is checked on, and how."""

    file: Path | None
    count: int
    seed: int
    level: float
    interval: Literal["prediction", "confidence"]

    def __post_init__(self) -> None:
        if self.file is not None and self.count:
            raise UsageError("--held-out names the runs to predict, --hold-out draws them: give one of the two")
        if self.level == 1:
            raise UsageError("--level 100%: an interval that holds every run has no ends")


@command.command("regression", short_help="Any measured runs: a formula to coefficients with intervals.")
@runs_options
@click.option("--formula", metavar="'TIME ~ TERMS'", help="As R writes it: `time ~ (x1 + I(x1**2)) * x2`.")
@click.option(
    "--search", "sought", metavar="'TIME ~ NAMES'", help="Instead: the best terms of these columns, `time ~ p + n`."
)
@click.option("--compare", "others", multiple=True, metavar="FORMULA", help="Another model of the same runs, by ANOVA.")
@click.option("--folds", type=int, metavar="K", help="Cross-validate with so many folds.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Cross-validations, each with other folds.",
)
@click.option("--held-out", type=click.Path(path_type=Path, exists=True), metavar="FILE", help="Runs to predict.")
@click.option("--hold-out", type=int, default=0, metavar="N", help="Predict N runs, drawn by --seed, by the others.")
@click.option("--level", default="95%", show_default=True, help="Probability of the intervals.")
@click.option(
    "--interval",
    type=click.Choice(["prediction", "confidence"]),
    default="prediction",
    show_default=True,
    help="Where one more run lies, or the mean of many.",
)
@click.option("--at", multiple=True, metavar="NAME=VALUE,..", help="Predict at these values, `nodes=512,size=8 GB`.")
@click.option("--second-opinion", is_flag=True, help="Fit an additive model of smooth curves beside it.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Of folds and held-out runs.")
@click.option("--show", type=click.Choice(SHOWN), help="The table on stdout; without it what the options ask for.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
def regression(
    read: Callable[..., Table], formula: str | None, sought: str | None, others: tuple[str, ...], folds: int | None,
    repeat: int, held_out: Path | None, hold_out: int, level: str, interval: Literal["prediction", "confidence"],
    at: tuple[str, ...], second_opinion: bool, seed: int, show: str | None, file_format: str, model: ModelFile,
) -> None:  # fmt: skip
    """Fit a linear model to measured runs, say how good it is, and predict with an interval.

    FILES are CSV or TSV with units in the headings (`time [ms]`), Extra-P's text, JSON and JSON lines, Caliper or
    Thicket profiles, logs of nvidia-smi. Terms: + - * : / ( ), I(x**2), log(x), log2(x), sqrt(x), poly(x, 2);
    `log(time) ~ ..` keeps predictions positive.
    """
    from whatif.fitting.least_squares import fit_runs
    from whatif.fitting.regression_tables import summary
    from whatif.table_writers import TABLE_WRITERS

    if (formula is None) == (sought is None):
        raise UsageError("--formula says what depends on what, such as `time ~ nodes + size`, or --search finds it")
    if repeat > 1 and folds is None:
        raise UsageError("--repeat needs --folds: how many are cross-validated")
    held = Held(held_out, hold_out, seed, share_of("--level", level), interval)
    table, validation = _split(read(), read, held)
    found = None if sought is None else _search(table, sought)
    formula = formula if found is None else found.best.formula(str(sought).partition("~")[0].strip())
    fits = [fit_runs(table, text) for text in (str(formula), *others)]
    tell([line for fit in fits for line in fit.warnings], "warning: ")
    for fit in fits:
        tell([f"{fit.formula.text}: {summary(fit)}"])
    if second_opinion:
        _tell_opinion(fits[0])
    asked = [show] if show else list(_asked(others, folds, validation, at)) or ["coefficients"]
    _refuse_shown(asked, file_format, fits, validation, at)
    # Before anything is written: a table that cannot be made is told first.
    tables = [
        _models(found) if name == "models" else _table(name, fits, held, validation, at, folds, repeat)
        for name in asked
    ]
    _write(fits[0], model)
    for number, shown in enumerate(tables):
        if number:
            click.echo()
        TABLE_WRITERS[file_format](shown, sys.stdout)


def _refuse_shown(
    asked: Sequence[str], file_format: str, fits: Sequence[RunsFit], validation: Table | None, at: Sequence[str]
) -> None:
    """Refuse tables of what was not asked, and several where a program reads one."""
    if "validation" in asked and validation is None:
        raise UsageError(
            "--show validation: nothing is held out; --held-out FILE or --hold-out N; --show runs: all runs"
        )
    if "comparison" in asked and len(fits) < 2:
        raise UsageError("--show comparison needs --compare FORMULA")
    if "prediction" in asked and not at:
        raise UsageError("--show prediction needs --at NAME=VALUE,..")
    if len(asked) > 1 and file_format in ("csv", "json"):
        raise UsageError(f"--format {file_format} is of one table: choose it by --show, one of {', '.join(asked)}")


def _split(table: Table, read: Callable[..., Table], held: Held) -> tuple[Table, Table | None]:
    """The runs that are fitted, and those that are only predicted."""
    import numpy as np

    if held.file is not None:
        return table, read([held.file])
    if not held.count:
        return table, None
    if not 0 < held.count < len(table):
        raise UsageError(f"--hold-out {held.count}: of {len(table)} runs some must be left to fit")
    order = np.random.default_rng(held.seed).permutation(len(table))
    return _rows(table, np.sort(order[held.count :])), _rows(table, np.sort(order[: held.count]))


def _rows(table: Table, rows: Any) -> Table:
    from dataclasses import replace

    columns = {name: replace(column, values=column.values[rows]) for name, column in table.columns.items()}
    return replace(table, columns=columns)


def _asked(
    others: Sequence[str], folds: int | None, validation: Table | None, at: Sequence[str]
) -> Iterator[str]:  # fmt: skip
    """The tables that options ask for, the most telling first."""
    if at:
        yield "prediction"
    if validation is not None:
        yield "validation"
    if folds is not None:
        yield "folds"
    if others:
        yield "comparison"


def _table(
    name: str, fits: Sequence[RunsFit], held: Held, validation: Table | None, at: Sequence[str],
    folds: int | None, repeat: int,
) -> Table:  # fmt: skip
    from whatif.fitting import regression_tables as runs_tables
    from whatif.fitting.model_checks import compare, cross_validate, diagnose

    fit = fits[0]
    if name == "comparison":
        return runs_tables.comparison_table(compare(fits))
    if name == "folds":
        found = {item.formula.text: cross_validate(item, folds or 10, repeat, held.seed) for item in fits}
        return runs_tables.cross_table(found, fit.unit)
    if name in ("validation", "runs"):
        return _validated(fit, fit.runs if validation is None or name == "runs" else validation, held)
    if name == "prediction":
        return _predicted(fit, at, held)
    if name in ("collinearity", "influence"):
        diagnostics = diagnose(fit)
        tell(runs_tables.told(fit, diagnostics))
        table = runs_tables.diagnostic_table if name == "collinearity" else runs_tables.influence_table
        return table(fit, diagnostics)
    return runs_tables.coefficient_table(fit)


def _validated(fit: RunsFit, runs: Table, held: Held) -> Table:
    """Runs as they were measured beside what the fit says of them."""
    import numpy as np

    from whatif.fitting.regression_tables import coverage, validation_table

    names = (fit.formula.response, *fit.formula.variables)
    file = runs.notes.get("file", "the held-out runs")
    for name in names:
        if name not in runs.columns or runs.columns[name].dimension is None:
            raise UsageError(f"{file}: there is no column of numbers `{name}`")
    table = _rows(runs, np.isfinite(np.stack([runs.columns[name].values for name in names])).all(axis=0))
    if not len(table):
        raise UsageError(f"{file}: no run has a number for each of {', '.join(names)}")
    columns = {name: _in_unit_of(fit, name, table.columns[name]) for name in names}
    found = fit.predict(columns, held.level, held.interval)
    measured = columns[fit.formula.response]
    _tell_beyond(fit, columns)
    _tell_negative(fit, found)
    tell([coverage(measured, found, held.level, held.interval)])
    return validation_table(fit, table, measured, found)


def _in_unit_of(fit: RunsFit, name: str, column: Any) -> FloatArray:
    """A column of other runs in the unit that the fitted ones were written in."""
    known = fit.runs.columns[name]
    if column.dimension != known.dimension:
        raise UsageError(f"`{name}` is in {column.unit or '1'}; the fitted runs have it in {known.unit or '1'}")
    values: FloatArray = column.values / known.size
    return values


def _predicted(fit: RunsFit, at: Sequence[str], held: Held) -> Table:
    """The response at given values, with its interval; what lies outside the runs is told."""
    import numpy as np

    from whatif.fitting.regression_tables import validation_table
    from whatif.table import Column, Table

    points = [dict(_values(fit, text)) for text in at]
    columns = {name: np.array([point[name] for point in points]) for name in fit.formula.variables}
    _tell_beyond(fit, columns)
    found = fit.predict(columns, held.level, held.interval)
    _tell_negative(fit, found)
    given = {}
    for name, values in columns.items():
        known = fit.runs.columns[name]
        given[name] = Column(values * known.size, known.dimension)
    table = validation_table(fit, Table(given), np.full(len(points), np.nan), found)
    return Table({name: column for name, column in table.columns.items() if name != "inside"})


def _tell_beyond(fit: RunsFit, columns: Mapping[str, FloatArray]) -> None:
    for name in fit.formula.variables:
        low, high, values = fit.columns[name].min(), fit.columns[name].max(), columns[name]
        if (beyond := values[(values < low) | (values > high)]).size:
            tell([f"`{name}` of {beyond[0]:g} lies outside the {low:g} to {high:g} of the runs"], "warning: ")


def _tell_negative(fit: RunsFit, found: Predicted) -> None:
    if fit.measured.min() > 0 and (found.lower < 0).any():
        wanted = f"a regression of log({fit.formula.response}) gives none"
        tell([f"{int((found.lower < 0).sum())} intervals reach below 0, where no run lies: {wanted}"], "note: ")


def _values(fit: RunsFit, text: str) -> Iterator[tuple[str, float]]:
    """The value of every variable that one --at gives, in the unit it was fitted in."""
    from whatif.errors import did_you_mean
    from whatif.importers.mapping import parse_mapping
    from whatif.units import ONE, UnitError, parse_quantity

    given: Mapping[str, str] = parse_mapping(text)
    for name in given:
        if name not in fit.formula.variables:
            known = fit.formula.variables
            raise UsageError(
                f"--at {name}: the formula does not read it{did_you_mean(name, known)}; {', '.join(known)}"
            )
    for name in fit.formula.variables:
        if name not in given:
            raise UsageError(f"--at {text}: the value of `{name}` is missing")
        column = fit.runs.columns[name]
        try:
            quantity = parse_quantity(given[name])
        except UnitError as error:
            raise UsageError(f"--at {name}={given[name]}: {error}") from None
        if quantity.dimension != (column.dimension or ONE):
            raise UsageError(f"--at {name}={given[name]}: the runs have it in {column.written or column.unit or '1'}")
        yield name, quantity.value / column.size


def _search(table: Table, text: str) -> Search:
    """The models of Extra-P's normal form that the runs speak for, best first."""
    import numpy as np

    from whatif.fitting.formula import parse_formula
    from whatif.fitting.pmnf import search
    from whatif.fitting.regression_tables import model_in_words

    named = {name: None if it.dimension is None else it.as_written() for name, it in table.columns.items()}
    asked = parse_formula(text, named)
    plain = all(term.text in ("1", *asked.variables) for term in asked.terms)
    if asked.link != "identity" or not plain or len(asked.terms) != len(asked.variables) + 1:
        raise UsageError(
            f"--search `{text}`: expected `RESPONSE ~ a + b`: the search finds powers and logarithms itself"
        )
    columns = {name: values for name in (asked.response, *asked.variables) if (values := named[name]) is not None}
    whole = np.isfinite(np.stack(list(columns.values()))).all(axis=0)
    response, variables = columns[asked.response][whole], {name: columns[name][whole] for name in asked.variables}
    found = search(variables, response)
    tell(found.warnings, "warning: ")
    tell([f"{found.tried:,} hypotheses over {found.point_count} points; the best: {model_in_words(found.best)}"])
    return found


def _models(found: Search | None) -> Table:
    from whatif.fitting.regression_tables import model_table

    if found is None:
        raise UsageError("--show models needs --search")
    return model_table(found.models)


def _tell_opinion(fit: RunsFit) -> None:
    from whatif.fitting.additive import additive
    from whatif.fitting.regression_tables import second_opinion

    tell([second_opinion(fit, additive(fit))])


def _write(fit: RunsFit, model: ModelFile) -> None:
    """Write the model, and the scenario that asks it."""
    from whatif.files.model_file import model_text, question_text, table_of

    table = table_of(fit)
    variable = next((f"{table}.variables.{name}" for name in fit.formula.variables), "")
    part = model_text(fit, model.source_of(fit.runs))
    model.write(part, "regression", lambda name: question_text(fit, name, model.platform), variable)
