"""Tables on narrow terminals, and what people read in them."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

from whatif.table import Column, Table
from whatif.table_writers import column_rows, csv_rows, narrowed, omission, shown_rows
from whatif.tui.widgets.data_table import table_rows
from whatif.units import JOULE, ONE, SECOND, format_quantity

TABLE = Table(
    {
        "name": Column(np.array(["first", "second"], dtype=object)),
        "wide_one": Column(np.array(["x" * 20, ""], dtype=object)),
        "now": Column(np.array([1.0, 2.0]), ONE),
        "then": Column(np.array([10.0, 20.0]), ONE),
    }
)


@pytest.mark.parametrize(
    ("width", "kept"),
    [
        (80, ["name", "wide_one", "now", "then"]),
        (39, ["name", "wide_one", "now", "then"]),
        (38, ["name", "now", "then"]),
        (16, ["name"]),
        (1, ["name"]),
    ],
)
def test_optional_columns_are_removed_in_order_until_the_table_fits(width, kept):
    found = narrowed(TABLE, width, [["wide_one", "not_there"], ["now", "then"]])
    assert list(found.columns) == kept
    out = io.StringIO()
    column_rows(found, out)
    assert max(map(len, out.getvalue().splitlines())) <= max(width, len("second"))


def test_table_without_rows_is_its_heading():
    out = io.StringIO()
    column_rows(Table.of_rows({"name": None, "now": ONE}, []), out)
    assert out.getvalue() == "name  now\n"


def test_long_paths_are_cut_at_their_start():
    table = Table(
        {"path": Column(np.array(["platform.node.gpu.memory", "short"], dtype=object)), "now": TABLE.columns["now"]}
    )
    assert list(narrowed(table, 23, []).columns["path"].values) == ["...node.gpu.memory", "short"]


def test_the_longest_texts_are_cut_until_the_table_fits():
    columns = {
        "value": ["platform.node.gpu.dram_bandwidth", "total_time"],
        "A": ["a machine of many words, " * 3, "3.3 ms"],
        "B": ["Frontier", "1.2 ms"],
    }
    whole = Table({name: Column(np.array(texts, dtype=object)) for name, texts in columns.items()})
    shown = narrowed(whole, 60, [])
    assert [list(row) for row in shown.rows()] == [
        ["..ode.gpu.dram_bandwidth", "a machine of many word..", "Frontier"],
        ["total_time", "3.3 ms", "1.2 ms"],
    ]
    assert omission(whole, shown, 60) == "texts cut at a width of 60; --format csv has all"
    assert omission(whole, narrowed(whole, 200, []), 200) == ""


def test_shares_are_read_in_per_cent_by_people_and_as_numbers_by_programs():
    shares = [0.41393, -0.0099455, 0.00031572, 0.0, 12.5, np.nan]
    table = Table.of_rows({"share_left": ONE}, [[share] for share in shares], shares=("share_left",))
    assert [cell for (cell,) in shown_rows(table)] == ["+41.4%", "-0.995%", "+0.0316%", "0%", "+1250%", "-"]
    assert [cell.text for (cell,) in table_rows(table.head(2)).cells] == ["+41.4%", "-0.995%"]
    assert [cell for (cell,) in shown_rows(table.head(1))] == ["41.4%"]
    assert [row["share_left"] for row in table.to_dict()["rows"]] == [*shares[:5], None]
    out = io.StringIO()
    csv_rows(table, out)
    assert out.getvalue().startswith("share_left\n0.41393\n-0.0099455\n")


def test_energies_of_a_column_have_the_unit_of_the_smallest():
    mixed, large = Column(np.array([6.8e5, np.nan, 0.0, 4.08e6]), JOULE), Column(np.array([4.08e6, 7.2e6]), JOULE)
    assert [mixed.text(value) for value in mixed.values] == ["680 kJ", "nan", "0 J", "4.08 MJ"]
    assert [large.text(value) for value in large.values] == ["1.1333 kWh", "2 kWh"]
    assert Column(np.array([1.0, 1e9]), SECOND).text(1e9) == format_quantity(1e9, SECOND, 5)


def test_shares_among_results_are_percent_at_one_point_in_a_sweep_and_in_a_report(whatif_main, tmp_path):
    point = whatif_main("run", "llama_training", "--point")[1]
    assert re.search(r"^model_utilisation +37\.4%$", point, re.MULTILINE)
    head, first = whatif_main("run", "llama_training")[1].splitlines()[:2]
    assert dict(zip(head.split(), re.split(r" {2,}", first.strip()), strict=True))["model_utilisation"] == "37.4%"
    whatif_main("report", "llama_training", "-o", str(tmp_path / "page.html"))
    assert re.search("utilisation</td><td[^>]*>37.4%<", (tmp_path / "page.html").read_text("utf-8"))
