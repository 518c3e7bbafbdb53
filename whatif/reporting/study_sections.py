"""Sections of the page of a study: the chart, the tables of `whatif study --show`, and questions to the vendors."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from whatif.core.uncertainty import commitment_name
from whatif.reporting.sections import ReportItem, ReportTable, Section, picture_of
from whatif.reporting.study_words import LIMITS
from whatif.schema.study_spec import PRESENT
from whatif.schema.toml import dotted, walk
from whatif.studies.procurement.placing import remarks
from whatif.studies.procurement.questions import STEP, Assumption, assumptions, other_questions
from whatif.studies.procurement.study import Study
from whatif.studies.procurement.study_tables import (
    bids_table,
    chance,
    changes_table,
    commitments_table,
    jobs_table,
    options_table,
    score_bars,
    turns_table,
)
from whatif.table import Table
from whatif.units import CARBON, DAY, JOULE, ONE, SECOND, WATT, Dimension, counted, format_quantity, in_percent

_MOST_COLUMNS: Final = 5
"""Most machines in one table, for the width of a printed page."""
_WARNING: Final = "warning: "
_STATED: Final = ("present", "bids", "mix", "site", "options")
Row = Mapping[str, Any]


sheet: Final = partial(ReportTable.of, named=True)
"""Table of texts whose first column names its rows."""
_LEAST: Final = 0.0005
"""Effect on the throughput below which it is shown as none."""
_PLATFORM: Final = "platform."


def number(value: Any, dimension: Dimension = ONE, digits: int = 4) -> str:
    """Number with its unit, a large one with separators; a dash for a missing one."""
    if value is None or not math.isfinite(value):
        return "-"
    is_large = dimension == ONE and abs(value) >= 1000
    return f"{value:,.0f}" if is_large else format_quantity(float(value), dimension, digits)


def _rows(table: Table) -> list[Row]:
    """Rows of a table; None in empty columns, which are omitted."""
    return [defaultdict(lambda: None, row) for row in table.to_dict()["rows"]]


def bids(found: Study) -> Section:
    """Section on the bids: a column per machine, and the chart."""
    columns = {row["machine"]: _machine(found, row) for row in _rows(bids_table(found))}
    names = list(columns)
    parts = [names[at : at + _MOST_COLUMNS] for at in range(0, len(names), _MOST_COLUMNS)]
    caption = (
        f"Work per day over that of the present machine (dashed line). Whiskers are bands, from the "
        f"{in_percent(round(1 - found.confidence, 6))} to the {in_percent(found.confidence)} quantile"
    )
    tables = (ReportItem(sheet=_side_by_side({name: columns[name] for name in some})) for some in parts)
    return (*tables, ReportItem(caption, picture_of(caption, score_bars(found))))


def _machine(found: Study, row: Row) -> dict[str, str]:
    """Numbers of one machine by title."""
    name, money = row["machine"], found.prices.dimension
    throughput, low, high = (row[key] for key in ("throughput", "low", "high"))
    # The energy for the work of the present machine in a day.
    energy = found.outcomes[name].mean_power[0] * DAY / throughput if throughput else math.nan
    return {
        "nodes": number(row["nodes"]),
        "limited by": "-" if name == PRESENT else LIMITS.get(row["limit"], "-"),
        "throughput of the mix": number(throughput),
        "band": f"{number(low)} to {number(high)}" if low is not None and low < high else "-",
        "probability to be the best": "-" if row["best"] is None else chance(row["best"]),
        "figure of merit": number(row["merit"]),
        "jobs per day": number(row["jobs per day"]),
        "price": number(row["price"], money),
        "rent": number(row["rent"], money / SECOND),
        "cost over the lifetime": number(row["cost"], money),
        "power under load": number(row["power"], WATT),
        "energy for a day's work": number(energy, JOULE),
        "carbon for a day's work": number(energy * found.terms.carbon_intensity, CARBON),
        "runs the mix": "no" if row["reason"] else "-",
    }


def _side_by_side(columns: Mapping[str, Mapping[str, str]]) -> ReportTable:
    titles = next(iter(columns.values()))
    rows = [(title, *(cells[title] for cells in columns.values())) for title in titles]
    return sheet(("", *columns), (row for row in rows if set(row[1:]) != {"-"}))


def commitments(found: Study) -> Section:
    """Section on commitments: a table per bid."""
    rows = _rows(commitments_table(found))
    time, jobs = (commitment_name(name, found.confidence) for name in ("time", "jobs per day"))
    heads = ("application", "nodes", "ranks", "expected time", "time to commit to", "jobs per day",
             "jobs per day to commit to", "grade", "remarks")  # fmt: skip
    shown = len(heads) - (not any(row["remarks"] for row in rows))
    tables = []
    for bid in found.bids:
        cells = [
            (row["application"], number(row["nodes"]), number(_count(found, bid, row["application"], "rank_count")),
             number(row["time"], SECOND), number(row[time], SECOND), number(row["jobs per day"]),
             number(row[jobs]), row["grade"] or "-", row["remarks"] or "")
            for row in rows if row["bid"] == bid
        ]  # fmt: skip
        tables.append(ReportItem(title=bid, sheet=sheet(heads[:shown], (row[:shown] for row in cells), heads[-2:])))
    return tuple(tables)


def _count(found: Study, machine: str, application: str, key: str) -> float:
    """Number of ranks or iterations of a job; NaN of one that cannot run."""
    if found.jobs.of(machine)[application].reason:
        return math.nan
    parameter = found.jobs.scenarios[machine][application].program.parameters.get(f"application.{key}")
    value = math.nan if parameter is None else parameter.value
    return float(value) if isinstance(value, float | int) else math.nan


def acceptance(found: Study) -> tuple[tuple[str, str], ...]:
    """Acceptance test of the commitment of each application."""
    items = []
    for name, part in found.file.spec.mix.items():
        iterations = number(_count(found, PRESENT, name, "iteration_count"))
        changed = " with the values that the study states" if part.overrides or part.on else ""
        text = f"one whole job of the scenario {part.scenario}{changed}, {iterations} iterations"
        items.append((name, text))
    return tuple(items)


def equal(found: Study) -> Section:
    """Section on throughputs at equal nodes, money and power."""
    kinds = ("equal nodes", "equal money", "equal power")
    rows = [
        (f"{row['machine']}: {row['application']}", *(number(row[kind]) for kind in kinds))
        for row in _rows(jobs_table(found))
        if row["machine"] != PRESENT
    ]
    return (ReportItem(sheet=sheet(("bid and application", *kinds), rows)),)


def targets(found: Study) -> Section:
    """Section on targets: the fewest nodes with which each machine meets them; empty without targets."""
    rows = [
        (f"{application}: {found.file.spec.mix[application].target}", machine,
         nodes if isinstance(nodes, str) else "; ".join(filter(None, (number(nodes.count), nodes.doubt))))
        for (machine, application), nodes in found.required.items()
    ]  # fmt: skip
    heads = ("target of one job", "machine", "fewest nodes")
    return (ReportItem(sheet=sheet(heads, rows, heads[1:2])),) if rows else ()


def sensitivity(found: Study) -> Section:
    """Section on what turns the ranking, what brings the other bids level, and what the options are worth."""
    if not found.winner:
        return ()
    return tuple(filter(None, (_turns(found), _changes(found), _options(found))))


def _turns(found: Study) -> ReportItem:
    rows = [
        (row["value"], row["present"], row["turns at"] or "none", row["best there"])
        for row in _rows(turns_table(found))
    ]
    heads = ("value", "present", "another bid leads at", "best there")
    title = (
        "The nearest value of one number at which another bid leads, from a tenth to ten times the present one; "
        "a weight gives its application a share of 0 to nearly 1"
    )
    return ReportItem(title=title, sheet=sheet(heads, rows, heads[-1:]))


def _changes(found: Study) -> ReportItem | None:
    rows = [
        (
            f"{row['bid']}: {row['change']}",
            row["remark"] or f"x {row['factor']:.3g}",
            row["from"] or "-",
            row["to"] or "-",
        )
        for row in _rows(changes_table(found))
    ]
    title = f"The least change of one number with which another bid is level with {found.winner}"
    return ReportItem(title=title, sheet=sheet(("bid and change", "needed", "from", "to"), rows)) if rows else None


def _options(found: Study) -> ReportItem | None:
    money = found.prices.dimension
    rows = [
        (f"{row['option']}: {row['bid']}", number(row["nodes"]), number(row["throughput"]), _percent(row["change"]),
         row["best"] or "-", number(row["worth a node"], money))
        for row in _rows(options_table(found))
    ]  # fmt: skip
    heads = ("option and bid", "nodes", "throughput", "change", "best with it", "worth a node")
    title = "Options of the study: what they change, and the price of one node that is worth as much"
    return ReportItem(title=title, sheet=sheet(heads, rows, heads[4:5])) if rows else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:+.1%}"


def stated(found: Study) -> Section:
    """Table of the values that the study states of machines, applications, site and options."""
    values = walk(found.file.layers.merged)
    rows = [(dotted(path), str(value)) for path, value in values if path[0] in _STATED]
    heads = ("value", "stated")
    return (ReportItem(title="What the study states", sheet=sheet(heads, rows, heads)),)


def calibration(found: Study) -> Section:
    """Section on the measured runs of each application, and predictions outside their ranges."""
    warnings = (note for note in found.remarks if note.startswith(_WARNING))
    rows = list(_named(dict.fromkeys([*remarks(found.jobs.adjustments), *warnings])))
    heads = ("application", "what its runs on the present machine determine")
    return (ReportItem(sheet=sheet(heads, rows, heads)),)


def _named(notes: Iterable[str]) -> Iterator[tuple[str, str]]:
    for note in notes:
        name, _, text = note.removeprefix(_WARNING).partition(": ")
        yield name, f"{_WARNING}{text}" if note.startswith(_WARNING) else text


@dataclass(frozen=True, slots=True)
class BidQuestions:
    """Questions to one vendor."""

    bid: str
    sentences: tuple[str, ...]
    section: Section


def questions(found: Study) -> tuple[BidQuestions, ...]:
    """Questions by bid."""
    known, others = assumptions(found), list(other_questions(found))
    items = [
        BidQuestions(
            bid,
            tuple(text for name, text in others if name == bid),
            _section([item for item in known if item.bid == bid]),
        )
        for bid in found.bids
    ]
    return tuple(item for item in items if item.sentences or item.section)


def _section(items: list[Assumption]) -> Section:
    telling = [item for item in items if item.weight >= _LEAST]
    rest = [item for item in items if item.weight < _LEAST]
    parts = []
    if telling:
        parts.append(ReportItem(title="Assumed values that the throughput of the mix follows", sheet=_telling(telling)))
    if rest:
        title = (
            f"{counted(len(rest), 'other assumed value')}: counts, values of 0, and values that change the "
            f"throughput by less than {_LEAST:.2%} if they are {STEP:.0%} lower or higher"
        )
        heads = ("value", "assumed", "meaning")
        rows = [(_path(item), item.text, _meaning(item)) for item in rest]
        parts.append(ReportItem(title=title, sheet=sheet(heads, rows, heads[-1:])))
    return tuple(parts)


def _telling(items: list[Assumption]) -> ReportTable:
    heads = ("value", "assumed", f"{STEP:.0%} lower", f"{STEP:.0%} higher", "meaning")
    rows = [(_path(item), item.text, _effect(item.lower), _effect(item.higher), _meaning(item)) for item in items]
    return sheet(heads, rows, heads[-1:])


def _path(item: Assumption) -> str:
    return item.parameter.path.removeprefix(_PLATFORM)


def _meaning(item: Assumption) -> str:
    return " ".join(item.parameter.description.split())


def _effect(change: float) -> str:
    """Change of the throughput of the mix."""
    return f"{change:+.1%}" if math.isfinite(change) else "-"
