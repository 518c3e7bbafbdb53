"""Programs on processors that they were not measured on (docs/processors.md).

`WHATIF_WRITE_MACHINES=1 pytest tests/validation/test_cpu_programs.py` writes the tables of the page.
"""

from __future__ import annotations

import csv
from functools import cache

import pytest

import whatif
from tests.page_tables import assert_shown
from tests.paths import DATA, ROOT, SHARED
from whatif.schema.load import load_part
from whatif.validation.cpu_programs import cpu_programs
from whatif.validation.tables import TABLES, rows_of

PAGE = ROOT / "docs" / "processors.md"
SERIES = SHARED / "runs" / "strong_scaling"
XEONS = ("xeon-e5-2699v4", "xeon-gold-6148", "xeon-platinum-8176")
ARM = "thunderx2-32c"
MACHINES = dict(zip((*XEONS, ARM), ("bdw22-swan", "skl20-swan", "skl28-swan", "tx2-isambard"), strict=True))
PROGRAMS = {"cloverleaf": "CloverLeaf", "opensbli": "OpenSBLI"}


def words_of_page():
    return " ".join(PAGE.read_text(encoding="utf-8").split())


@cache
def compared():
    return TABLES["cpu_programs"]().to_pandas()


def groups(program, runs):
    """Rows of a program by processor that is predicted and those that it was measured on."""
    own = runs[runs.program == program]
    between = own[(own.measured_on != ARM) & (own.processor != ARM)]
    for name in XEONS:
        yield load_part(name).name, "other Xeons", between[between.processor == name]
    yield "ThunderX2", "Xeons", own[own.processor == ARM]
    yield "Xeons", "ThunderX2", own[own.measured_on == ARM]


def lines(runs):
    for program, title in PROGRAMS.items():
        for processor, known, rows in groups(program, runs):
            mean = rows[["error", "by_triads", "by_perfect_scaling"]].abs().mean()
            largest = rows.error.abs().max()
            yield (
                f"| {title} | {processor} | {known} | {len(rows)} | {mean.error:.1%} | {rows.error.mean():+.1%} "
                f"| {largest:.1%} | {mean.by_triads:.1%} | {mean.by_perfect_scaling:.1%} |\n"
            )


def lines_by_nodes(runs):
    xeons = (runs.measured_on != ARM) & (runs.processor != ARM)
    columns = [
        runs[(runs.program == program) & chosen] for program in PROGRAMS for chosen in (xeons, runs.processor == ARM)
    ]
    for nodes in sorted(set(runs.nodes)):
        errors = [rows[rows.nodes == nodes].error for rows in columns]
        cells = [f"{it.abs().mean():.1%} ({it.mean():+.1%})" if len(it) else "-" for it in errors]
        yield f"| {nodes:.0f} | {' | '.join(cells)} |\n"


def tables():
    head = "| program | predicted on | measured on | runs | mean error | bias | largest | triads | perfect scaling |\n"
    by_nodes = "| nodes | CloverLeaf, Xeons | CloverLeaf, to ThunderX2 | OpenSBLI, Xeons | OpenSBLI, to ThunderX2 |\n"
    first = f"{head}|---|---|---|{'---:|' * 6}\n" + "".join(lines(compared()))
    return f"{first}\n{by_nodes}|{'---:|' * 5}\n" + "".join(lines_by_nodes(compared()))


def test_the_tables_of_the_page_are_those_of_the_runs():
    assert_shown(PAGE, "cpu programs", tables())


def test_mean_errors_are_within_their_bounds():
    assert "beyond" not in TABLES["cpu_programs"]().notes


def test_no_run_on_the_other_processor_is_used():
    rows = rows_of("cpu_programs.csv")
    changed = [row | {"time_s": "1"} if row["processor"] == ARM else row for row in rows]
    to_arm = compared().processor == ARM
    assert cpu_programs(changed).to_pandas().predicted[to_arm].tolist() == compared().predicted[to_arm].tolist()


def test_only_the_run_on_the_fewest_nodes_is_used():
    rows = rows_of("cpu_programs.csv")
    changed = [row if row["nodes"] in ("1", "4") else row | {"time_s": "1"} for row in rows if row["nodes"] != "8"]
    kept = compared().nodes != 8
    assert cpu_programs(changed).to_pandas().predicted.tolist() == compared().predicted[kept].tolist()


def test_verbs_of_the_page_give_the_prediction_of_the_table():
    """Within the weak prior of a calibration."""
    scenario, run = ROOT / "validation" / "cloverleaf.toml", DATA / "processors" / "cloverleaf_run.csv"
    with_processor = {"platform.node.cpu.extends": XEONS[0]}
    found = whatif.calibrate(scenario, runs=run, corrections=["kernels"], overrides=with_processor)
    factor = found.values["calibration.application.kernel_factor"]
    there = {"platform.node.cpu.extends": XEONS[2], "application.rank_count": "1792"}
    there["calibration.application.kernel_factor"] = str(factor)
    time = float(whatif.run(scenario, overrides=there)["total_time"])
    rows = compared()[(compared().measured_on == XEONS[0]) & (compared().processor == XEONS[2])]
    row = rows[(rows.program == "cloverleaf") & (rows.nodes == 32)].iloc[0]
    assert time == pytest.approx(row.predicted, rel=2e-3)
    assert f"total_time {time:.1f} s" in words_of_page()
    assert f"Measured were {row.measured:.1f} s." in words_of_page()


def test_the_run_of_the_page_is_that_of_the_comparison():
    with (DATA / "processors" / "cloverleaf_run.csv").open(encoding="utf-8") as file:
        (run,) = csv.DictReader(line for line in file if not line.startswith("#"))
    first = rows_of("cpu_programs.csv")[0]
    assert (first["processor"], first["nodes"]) == (XEONS[0], "1")
    assert (run["rank_count"], run["total_time [s]"]) == (first["ranks"], first["time_s"])
    assert f"took {float(first['time_s']):,.0f} s" in words_of_page()


def test_errors_named_beside_the_tables_are_those_of_the_tables():
    found = {(program, *names): rows for program in PROGRAMS for *names, rows in groups(program, compared())}
    gaps = {key: 100 * abs(rows.error.abs().mean() - rows.by_triads.abs().mean()) for key, rows in found.items()}
    from_arm = [gap for key, gap in gaps.items() if key[2] == "ThunderX2"]
    others = max(gap for key, gap in gaps.items() if key[2] != "ThunderX2")
    assert f"differs by up to {others:.0f} point, from the ThunderX2 by {max(from_arm):.0f}." in words_of_page()
    largest = max(rows.error.abs().max() for key, rows in found.items() if key[::2] == ("cloverleaf", "other Xeons"))
    assert f"**CloverLeaf between Xeons** is right within {100 * largest:.1f} %" in words_of_page()
    low = [
        -100 * found["opensbli", *key].error.mean()
        for key in (("ThunderX2", "Xeons"), ("Xeon Gold 6148", "other Xeons"))
    ]
    words = "bandwidth predicts it {:.0f} % too fast on the ThunderX2 and {:.0f} % on the Xeon Gold 6148".format(*low)
    assert words in words_of_page()


def test_errors_of_the_time_of_a_itself_are_those_of_the_page():
    runs = compared()
    times = {
        (row["program"], row["processor"], row["nodes"]): float(row["time_s"]) for row in rows_of("cpu_programs.csv")
    }
    there = [times[run.program, run.measured_on, f"{run.nodes:.0f}"] for run in runs.itertuples()]
    errors = (there / runs.measured - 1).abs()
    means = 100 * errors.groupby([runs.program, runs.measured_on, runs.processor]).mean()
    first = [mean for (_, *pair), mean in means.items() if XEONS[0] in pair]
    arm = [mean for (_, *pair), mean in means.items() if ARM in pair and XEONS[0] not in pair]
    assert f"is {min(first):.0f} to {max(first):.0f} % off (mean errors) if one of the two is" in words_of_page()
    assert f"ThunderX2 it is {min(arm):.0f} to {max(arm):.0f} % off" in words_of_page()


def communication_shares():
    for row in rows_of("cpu_programs.csv"):
        if row["nodes"] == "32":
            own = compared()[(compared().program == row["program"]) & (compared().processor == row["processor"])]
            predicted = own[own.nodes == 32].predicted.iloc[0]
            overrides = {"platform.node.cpu.extends": row["processor"], "application.rank_count": row["ranks"]}
            found = whatif.run(ROOT / "validation" / f"{row['program']}.toml", overrides=overrides)
            steps = 2955 if row["program"] == "cloverleaf" else 100
            yield steps * float(found["communication_time"]) / predicted


def test_shares_of_messages_are_those_of_the_page():
    shares = [100 * share for share in communication_shares()]
    assert f"take {min(shares):.0f} to {max(shares):.0f} % of the time on 32 nodes" in words_of_page()


def test_losses_on_32_nodes_are_those_of_the_page():
    times = {
        (row["program"], row["processor"], row["nodes"]): float(row["time_s"]) for row in rows_of("cpu_programs.csv")
    }
    losses = [100 * (32 * times["cloverleaf", name, "32"] / times["cloverleaf", name, "1"] - 1) for name in MACHINES]
    assert (
        f"32 nodes take {min(losses):.0f} to {max(losses):.0f} % longer than 1/32 of the time of one" in words_of_page()
    )


def rows_by(compiler):
    """Rows of the comparison from the published tables of a compiler, from the counts of all processors."""
    for program in PROGRAMS:
        for processor, machine in MACHINES.items():
            with (SERIES / f"{program}__{machine}_{compiler}__1.csv").open(encoding="utf-8") as file:
                for run in csv.DictReader(file):
                    names = {"program": program, "processor": processor, "nodes": run["nodes"]}
                    yield names | {"ranks": run["processes"], "time_s": run["total_time [s]"]}


@pytest.mark.shared_data
def test_quoted_times_are_those_of_the_published_tables():
    published = {(*run.values(),)[:4]: float(run["time_s"]) for run in rows_by("gcc-8.3")}
    for row in rows_of("cpu_programs.csv"):
        assert float(row["time_s"]) == pytest.approx(published[(*row.values(),)[:4]], rel=5e-5)


@pytest.mark.shared_data
def test_errors_with_another_compiler_are_those_of_the_page():
    runs = cpu_programs(list(rows_by("cce-9.0"))).to_pandas()
    arm = (runs.measured_on == ARM) | (runs.processor == ARM)
    means = [
        100 * runs[(runs.program == program) & chosen].error.abs().mean()
        for program in PROGRAMS
        for chosen in (~arm, runs.processor == ARM)
    ]
    words = "CloverLeaf {:.0f} and {:.0f} %, OpenSBLI {:.0f} and {:.0f} %".format(*means)
    assert words in words_of_page()


@pytest.mark.shared_data
def test_effects_of_the_compiler_are_those_of_the_page():
    times = [
        {tuple(row.values())[:3]: float(row["time_s"]) for row in rows_by(compiler)}
        for compiler in ("gcc-8.3", "cce-9.0")
    ]
    changes = []
    for processor in (ARM, XEONS[1]):
        keys = [key for key in times[1] if key in times[0] and key[:2] == ("cloverleaf", processor)]
        changes.append(100 * abs(sum(times[1][key] / times[0][key] for key in keys) / len(keys) - 1))
    words = "takes {:.0f} % less time on the ThunderX2 and {:.0f} % more on the Xeon Gold 6148".format(*changes)
    assert words in words_of_page()
