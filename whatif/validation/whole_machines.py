"""HPL on whole machines, predicted from their data sheets and compared with the rates on TOP500 lists.

What a list does not state follows by rule: a process on each GPU, or on each node without GPUs; the most processes with
a grid P ≤ Q ≤ 2 P; N fills 80 % of the memory; NB = 512; panels are factored on the GPUs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.linpack.machine import NUMBERS, WORDS
from whatif.linpack.predictions import HPLRuns
from whatif.linpack.scenario_writer import HPLPlacement, hpl_scenario_of
from whatif.linpack.simulation.configuration import Configuration
from whatif.linpack.simulation.simulator import HPLOutcome, Progress
from whatif.linpack.threads import Share, all_in_threads, silent
from whatif.linpack.tuning import factorisations
from whatif.models.quantities import FloatArray
from whatif.schema.load import load_platform
from whatif.units import FLOP_PER_SECOND, ONE, Dimension
from whatif.validation.measured_kinds import ErrorTable, Row, mean_error, summarised_table

FILLED: Final = 0.8
"""Share of the memory that a matrix of unknown size fills."""
_BLOCK_SIZE: Final = 512
_RECURSION_MINIMUM: Final = 32
"""NBMIN, as in the input of rocHPL."""
_COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "machine": None, "list": None, "nodes": ONE, "N": ONE, "N_from": None, "published": FLOP_PER_SECOND,
    "predicted": FLOP_PER_SECOND, "error": ONE, "held_out_error": ONE, "doubt": None,
}  # fmt: skip


def whole_machines(rows: Sequence[Row], progress: Share = silent) -> ErrorTable:
    """Rates of HPL, published and predicted, with errors as they are and with one factor learnt on other machines.

    The title has the mean of all rows, and that of the rows whose publication does not contradict itself.
    """
    outcomes = all_in_threads(predicted_run, rows, progress)
    published = np.array([1e15 * float(row["Rmax_Pflop/s"]) for row in rows])
    rates = np.array([outcome.rate for outcome in outcomes])
    errors = rates / published - 1
    held_out = held_out_errors([row["platform"] for row in rows], published, rates)
    table = [
        (load_platform(row["platform"])[0].name, row["list"], row["nodes"], outcome.configuration.matrix_size,
         "list" if row["matrix_size"] else f"{FILLED:.0%} of memory", *numbers, row["doubt"])
        for row, outcome, *numbers in zip(rows, outcomes, published, rates, errors, held_out, strict=True)
    ]  # fmt: skip
    consistent = errors[[not row["doubt"] for row in rows]]
    kinds = {"all": errors, "without rows in doubt": consistent, "one factor learnt on the other machines": held_out}
    means = [mean_error(kind, each) for kind, each in kinds.items()]
    return summarised_table(_COLUMNS, table, "HPL on whole machines, compared with TOP500", means, "machines")


def held_out_errors(machines: Sequence[str], published: FloatArray, predicted: FloatArray) -> FloatArray:
    """Errors of rates times the geometric mean of published over predicted ones of all other machines."""
    logarithms, names = np.log(published / predicted), np.array(machines)
    factors = np.array([np.exp(logarithms[names != name].mean()) for name in machines])
    errors: FloatArray = predicted * factors / published - 1
    return errors


def predicted_run(row: Row, progress: Progress | None = None) -> HPLOutcome:
    """Outcome of the run of a row. Raise `UsageError` if the matrix or the processes do not fit the machine."""
    has_gpu = load_platform(row["platform"])[0].node.gpu is not None
    placement = HPLPlacement(ranks_per_node=None if has_gpu else 1)
    example = Configuration(1, _BLOCK_SIZE, 1, 1, recursion_minimum=_RECURSION_MINIMUM)
    overrides = {"application.matrix_on": row["matrix_on"]}
    runs = HPLRuns(hpl_scenario_of(example, row["platform"], (), overrides, placement)[0].program)
    configuration = _configuration(row, example, int(row["nodes"]) * runs.ranks_per_node)
    if not row["matrix_size"]:
        largest = int(runs.largest_matrix(configuration, FILLED))
        configuration = replace(
            configuration, matrix_size=largest // configuration.block_size * configuration.block_size
        )
    refusal = runs.refusal(configuration)
    if refusal is not None:
        raise UsageError(f"{row['platform']}: {refusal.message}")
    return runs.run(configuration, runs.seed, progress)


def _configuration(row: Row, example: Configuration, rank_count: int) -> Configuration:
    """Configuration with what a row states of it, and the largest grid that is about square."""
    stated: dict[str, Any] = {NUMBERS[key]: int(row[key]) for key in NUMBERS if row.get(key)}
    stated |= {field: kind[row[key].upper()] for key, (field, kind) in WORDS.items() if row.get(key)}
    rows, columns = about_square(rank_count)
    return replace(example, **{"process_rows": rows, "process_columns": columns} | stated)


def about_square(rank_count: int) -> tuple[int, int]:
    """P and Q with the most processes up to a number, with P ≤ Q ≤ 2 P."""
    for count in range(rank_count, 0, -1):
        rows, columns = factorisations(count)[0]
        if columns <= 2 * rows:
            return rows, columns
    raise AssertionError
