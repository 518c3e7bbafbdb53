"""Mean errors by topic: those of the rows of their tables, and as the command prints them."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import whatif
from whatif.limits import LONG_TOPICS, VALIDATION_TOPICS
from whatif.table_writers import column_lines, narrowed
from whatif.units import ONE
from whatif.validation import tables
from whatif.validation.hpl_runs import RunComparison
from whatif.validation.matrix_products import predicted_times
from whatif.validation.measured_kinds import error_table, joined, joined_by, mean_error, mean_errors
from whatif.validation.message_collectives import series_of, time_ratios
from whatif.validation.tables import rows_of

TOPICS = [topic for topic in VALIDATION_TOPICS if topic not in LONG_TOPICS]
BY_ROW = ["serving", "training", "first_tokens", "decoding", "power", "power_caps", "kernel_sizes", "programs",
          "cpu_programs", "shared_gpus"]  # fmt: skip
"""Topics with an error in each row, which each is of one kind."""


@pytest.fixture(scope="module")
def found():
    return whatif.comparisons()


def test_every_topic_has_mean_errors(found):
    rows = list(found.mean_errors().rows())
    assert list(dict.fromkeys(topic for topic, *_ in rows)) == TOPICS
    assert all(count > 0 and np.isfinite(error) for _, _, count, error, *_ in rows)
    assert [topic for topic, _, _, _, bias, _ in rows if bias is None] == ["transfers", "transfers"]
    assert all(abs(bias) <= error * (1 + 1e-9) for _, _, _, error, bias, _ in rows if bias is not None)


@pytest.mark.parametrize("topic", BY_ROW)
def test_errors_of_all_kinds_together_are_those_of_the_rows(found, topic):
    errors = found[topic].columns["error"].values
    counts, means, biases = np.array([(it.count, it.error, it.bias) for it in found[topic].means]).T
    assert counts.sum() == len(errors)
    assert np.average(means, weights=counts) == pytest.approx(np.abs(errors).mean())
    assert np.average(biases, weights=counts) == pytest.approx(errors.mean())


def test_errors_of_collectives_of_mpi_are_those_of_all_sizes_of_all_series(found):
    means = {it.kind: it for it in found["mpi_collectives"].means}
    for kind in ("allreduce, best", "alltoall, pairwise"):
        operation, algorithm = kind.split(", ")
        series = [its for its in series_of(rows_of("mpi_collectives.csv")) if its[0]["collective"] == operation]
        errors = np.concatenate([time_ratios(its, algorithm) for its in series]) - 1
        assert means[kind].count == len(errors)
        assert (means[kind].error, means[kind].bias) == pytest.approx((np.abs(errors).mean(), errors.mean()))


def test_errors_of_products_are_those_of_all_shapes(found):
    rows = [row for row in rows_of("gemm.csv") if row["use"] == "held out"]
    errors = []
    for row in rows:
        shape = {key: np.array(float(row[key])) for key in ("m", "n", "k")}
        measured = 2 * float(np.prod(list(shape.values()))) / (1e12 * float(row["rate_Tflop_s"]))
        errors.append(float(predicted_times(row["gpu"], row["precision"], shape)) / measured - 1)
    (mean,) = (it for it in found["gemm"].means if it.kind == "held out")
    assert mean.count == len(errors)
    assert (mean.error, mean.bias) == pytest.approx((np.abs(errors).mean(), np.mean(errors)))


def test_both_simulators_of_schedules_have_their_error(found):
    event, recurrence = found["schedules"].means
    assert (event.kind, event.error, recurrence.kind, recurrence.error) == ("event loop", 0, "recurrences", 0)
    times = found["schedules"].columns["recurrence_time"].values
    assert (event.count, recurrence.count) == (len(times), np.isfinite(times).sum())


def test_runs_of_hpl_with_a_reference_have_mean_errors_by_reference(monkeypatch):
    runs = [
        RunComparison("emulator", "one", 1.0, 1.1, 0.1),
        RunComparison("Dahu", "two", 2.0, 1.4, -0.3),
        RunComparison("emulator", "three", 1.0, 0.8, -0.2),
        RunComparison("emulator", "mean absolute error of 2", np.nan, np.nan, 0.15),
        RunComparison("emulator", "default of a what-if", 1.0, 1.0, np.nan),
    ]
    monkeypatch.setattr(tables, "compared", lambda *_: runs)
    table = tables.hpl()
    assert len(table) == len(runs)
    assert [(it.kind, it.count) for it in table.means] == [("emulator", 2), ("Dahu", 1)]
    assert [it.error for it in table.means] == pytest.approx([0.15, 0.3])
    assert [it.bias for it in table.means] == pytest.approx([-0.05, -0.3])


def test_kinds_are_apart():
    errors = np.array([0.1, -0.3, 0.5])
    means = mean_errors(np.array(["a", "a", "b"]), errors, {"a": np.nan, "b": 0.4})
    assert [(it.kind, it.count, it.error, it.bias) for it in means] == [
        ("a", 2, pytest.approx(0.2), pytest.approx(-0.1)),
        ("b", 1, 0.5, 0.5),
    ]
    assert [it.words("runs") for it in means] == [
        "a: 2 runs, mean error 20.0%, bias -10.0%",
        "b: 1 runs, mean error 50.0%, bias +50.0%",
    ]
    assert error_table({"x": ONE}, [[1.0]], "t", means).notes["beyond"] == "b: mean error 50.0%, bound 40%"
    assert "beyond" not in error_table({"x": ONE}, [[1.0]], "t", means[:1]).notes


def test_an_unknown_error_is_beyond_its_bound():
    table = error_table({"x": ONE}, [[1.0]], "t", [mean_error("a", np.array([np.nan]), 0.1)])
    assert table.notes["beyond"] == "a: mean error nan%, bound 10%"


def test_groups_count_by_their_rows_and_unknown_ones_do_not():
    mean = joined("a", np.array([1.0, 3.0, 9.0]), np.array([0.1, 0.3, np.nan]), np.array([-0.1, 0.3, np.nan]))
    assert (mean.count, mean.error, mean.bias) == (4, pytest.approx(0.25), pytest.approx(0.2))
    first, second = joined_by(["x", "y", "x"], [(1, 0.1, 0.0), (5, 0.2, 0.1), (1, 0.3, 0.2)])
    assert (first.kind, first.count, first.error) == ("x", 2, pytest.approx(0.2))
    assert (second.kind, second.count, second.error) == ("y", 5, pytest.approx(0.2))


def test_the_command_prints_mean_errors_of_all_topics_or_of_the_stated_ones(whatif_main, found):
    code, out, err = whatif_main("validate", "--format", "csv")
    rows = list(csv.reader(out.splitlines()))
    assert code == 0
    assert [row[0] for row in rows[1:]] == [topic for topic, *_ in found.mean_errors().rows()]
    assert "left out, as they take minutes: `whatif validate hpl top500`" in err
    code, some, _ = whatif_main("validate", "power", "counts", "--by", "result", "--format", "csv")
    assert (code, list(csv.reader(some.splitlines()))[1:]) == (
        0,
        [row for topic in ("power", "counts") for row in rows if row[0] == topic],
    )


def test_rows_of_several_topics_go_into_no_file(whatif_main, tmp_path):
    code, _, err = whatif_main("validate", "power", "counts", "-o", "x.csv")
    assert (code, err) == (2, "whatif: -o holds one table: name one TOPIC, or --by result\n")
    assert not (tmp_path / "x.csv").exists()
    assert whatif_main("validate", "power", "counts", "--by", "result", "-o", "x.csv")[0] == 0
    assert (tmp_path / "x.csv").read_text().startswith("topic,kind,rows,mean_absolute_error,bias,bound\n")


@pytest.mark.parametrize("topic", ["mpi_collectives", "collectives", "hpcg", "counts", "kernels"])
def test_rows_fit_a_narrow_terminal_with_the_first_error(found, topic):
    table = found[topic]
    shown = narrowed(table, 80, table.optional_columns)
    assert max(map(len, column_lines(shown))) <= 80
    assert {name for name, column in table.columns.items() if column.dimension is None} < shown.columns.keys()
    first = next((name for name, column in table.columns.items() if column.is_share), "")
    assert not first or first in shown.columns
