"""GPU measurements and kernel profiles: real files, synthetic ones, and broken ones."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tomli
from numpy.testing import assert_allclose

from tests.paths import ROOT, SHARED
from whatif.axes import Grid
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError, UsageError
from whatif.importers.babelstream import parse_babelstream
from whatif.importers.gpu_benchmarks import read_gpu, read_kernels
from whatif.importers.gpuroofperf import GPU_RATES, parse_gpu_rates
from whatif.importers.kernel_anchors import anchors_of, with_anchors
from whatif.importers.kernel_phases import KERNEL_COLUMNS, kernels_toml
from whatif.importers.mixbench import parse_mixbench
from whatif.importers.nsight_kernels import kernel_metrics
from whatif.importers.rows import joined
from whatif.schema.gpu import GPU
from whatif.schema.kernel_phase import KernelPhase
from whatif.schema.load import load_part
from whatif.schema.shipped import shipped_folder
from whatif.schema.toml import parse_document
from whatif.table import Table

HERE = ROOT / "tests"
GPUROOFPERF = HERE / "data" / "gpuroofperf"
MINIFE = GPUROOFPERF / "kernel_params" / "miniFE" / "weak-rcb" / "rcb-P2.json"
V100 = GPUROOFPERF / "gpu_params" / "tesla_v100.csv"
BABELSTREAM = HERE / "data" / "importers" / "gpu" / "babelstream"
HEAD = 'platform = "summit"\n[application]\nname = "t"\nrank_count = 1\niteration_count = 1\n'

MIXBENCH = """mixbench-cuda (v0.04-9-gabcdef0)
Use "-h" argument to see available options
------------------------ Device specifications ------------------------
Device:              Imaginary 9000
Compute throughput:  4000.00 GFlops (theoretical single precision FMAs)
Memory bandwidth:    500.00 GB/sec
-----------------------------------------------------------------------
----------------------------- CSV data -----------------------------
Experiment ID, Single Precision ops,,,,              Double precision ops,,,,              Integer operations,,, 
Compute iters, Flops/byte, ex.time,  GFLOPS, GB/sec, Flops/byte, ex.time,  GFLOPS, GB/sec, Iops/byte, ex.time,   GIOPS, GB/sec
            0,      0.250,    0.32,  100.00, 400.00,      0.125,    0.00,     inf,    inf,     0.250,    0.32,  102.00, 408.00
            1,      0.750,    0.32,  300.00, 400.00,      0.375,    0.00,     inf,    inf,     0.750,    0.32,  306.00, 408.00
--------------------------------------------------------------------
"""  # noqa: E501, W291


def row_of(table: Table, **chosen: object) -> dict[str, object]:
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows()]
    return next(row for row in rows if chosen.items() <= row.items())


def test_columns_are_parameters_of_the_schema():
    assert {parameter for parameter, _ in GPU_RATES.values()} < GPU.model_fields.keys()
    assert set(KERNEL_COLUMNS) - {"kernel", "reference_time"} < KernelPhase.model_fields.keys()


def test_the_v100_file_is_the_gpu_of_the_summit_platform():
    table = read_gpu(V100)
    stated = evaluate(Scenario.open("jacobi2d", platform="summit").program).values
    expected = {parameter: float(stated[f"platform.node.gpu.{parameter}"]) for parameter, _ in GPU_RATES.values()}
    assert row_of(table) == {"name": "Tesla V100-SXM2-16GB", **expected}
    assert table.notes["format"] == "gpuroofperf GPU parameters"


def test_the_minife_profile_gives_the_kernels_of_the_scenario():
    """The scenario names the same kernels otherwise and knows how often an iteration launches them."""
    table = read_kernels(MINIFE)
    phases = tomli.loads(kernels_toml(with_anchors(table)))["application"]["phases"]
    anchors = dict(zip(phases, anchors_of(table, load_part("v100-sxm2-16gb")), strict=True))
    shipped = tomli.loads((shipped_folder("scenarios") / "minife.toml").read_text())["application"]["phases"]
    names = {"dot_kernel": "dot", "waxpby_kernel": "waxpby"}
    names |= {"matvec_overlap_ell_kernel": "matvec_outer", "matvec_overlap_ell_kernel_2": "matvec_inner"}
    assert phases.keys() == names.keys()
    for made, theirs in names.items():
        expected = {key: value for key, value in shipped[theirs].items() if key not in ("profiled_cells", "follows")}
        # The scenario is that of the paper: the highest roof counts.
        assert (phases[made].pop("roof_exponent"), phases[made].pop("measured_factor") > 0) == (4, True)
        assert (phases[made].pop("model"), expected.pop("model")) == ("roofline_l2", "roofline")
        highest = replace(anchors[made], exponent=math.nan)
        assert_allclose(highest.measured_factor, expected.pop("measured_factor"), rtol=1e-4, atol=0)
        assert phases[made] == expected | {"launch_count": 1}


def test_kernels_of_a_profile_run_as_they_are():
    """By hand: waxpby is bound by memory; 602 launches moved 116,664,325,120 B, Summit's V100 moves 779.4108 GB/s."""
    text = HEAD + kernels_toml(read_kernels(MINIFE))
    point = run_whole(Scenario(parse_document(text, "t.toml")), Grid())
    assert_allclose(float(point.terms["waxpby_kernel"]), 116664325120 / 602 / 779.4108e9 + 2e-6, rtol=1e-14, atol=0)


def test_reference_times_are_seconds_of_the_whole_profile():
    table = read_kernels(MINIFE)
    dot = row_of(table, operations=6673465600.0)
    assert (dot["reference_time"], dot["profiled_launch_count"], dot["metrics_per"]) == (0.047044121, 400.0, "profile")
    assert table.notes["device"] == "Tesla V100-SXM2-16GB"
    assert table.notes["version"] == "0.9.0"


def test_mixbench_rows_are_in_base_units_and_a_missing_precision_has_none():
    table = parse_mixbench(MIXBENCH)
    assert list(table.rows()) == [
        ("single", 0.25, 0.32e-3, 100e9, 400e9),
        ("integer", 0.25, 0.32e-3, 102e9, 408e9),
        ("single", 0.75, 0.32e-3, 300e9, 400e9),
        ("integer", 0.75, 0.32e-3, 306e9, 408e9),
    ]
    assert table.notes["device"] == "Imaginary 9000"
    assert table.notes["version"] == "v0.04-9-gabcdef0"
    assert table.notes["datasheet.dram_bandwidth"] == "500.00 GB/s"
    assert "double" in table.notes["warnings"]


def test_mixbench_before_intensities_were_printed():
    """Version 0.01: `compute/memory` and three columns each; the last row moves nothing."""
    text = "Operations ratio,  Single Precision ops,,,   Integer operations,, \n"
    text += "  compute/memory,    Time,  GFLOPS, GB/sec,    Time,   GIOPS, GB/sec\n"
    text += "   1/31,  233.53,   10.00, 142.50,  233.47,   9.20, 142.57\n"
    text += "  32/ 0,   53.55, 1283.33,   0.00,  102.52, 670.32,   0.00"
    table = parse_mixbench(text)
    assert table.columns["precision"].values.tolist() == ["single", "integer"] * 2
    assert_allclose(
        table.columns["operational_intensity"].values, [10 / 142.5, 9.2 / 142.57, np.inf, np.inf], rtol=1e-12
    )


def test_mixbench_cut_off_after_a_whole_row_is_a_warning():
    assert "cut off" in parse_mixbench(MIXBENCH[: MIXBENCH.rindex("------")].rstrip("-\n") + "\n").notes["warnings"]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "rows", "precisions"),
    [
        ("rtx2070_cuda", 4 * 33, ["single", "double", "half", "integer"]),
        ("hip", 5 * 33, ["single", "packed single", "double", "half", "integer"]),
        ("sycl", 4 * 33, ["single", "double", "half", "integer"]),
    ],
)
def test_outputs_that_mixbench_prints_in_its_manual(name: str, rows: int, precisions: list[str]):
    table = read_gpu(SHARED / "gpu" / "mixbench" / f"{name}.txt")
    assert len(table) == rows
    assert list(dict.fromkeys(table.columns["precision"].values)) == precisions
    # Two columns of the file say the third, to their printed digits.
    columns = {key: column.values for key, column in table.columns.items()}
    assert_allclose(columns["rate"] / columns["bandwidth"], columns["operational_intensity"], rtol=3e-3, atol=0)


@pytest.mark.parametrize(
    ("name", "notes", "array_size", "function", "expected"),
    [
        # Version 0 prints MiB as MB, but also the number of doubles: 49,999,872.
        ("v0-k80-cuda", {"device": "Tesla K80"}, 399998976, "copy", (180192.706e6, 0.00448, 0.00444, 0.00497)),
        # 400.0 "MB" are MiB: 211,122.437 MB/s in 3.97 ms are twice 419 MB.
        ("v0.9-radeon7970-opencl", {"version": "0.9"}, 400 * 2**20, "mul", (212108.366e6, 0.00402, 0.00395, 0.00414)),
        ("v3.3-titanxp-cuda", {"driver": "9010"}, 268.4e6, "dot", (435969.304e6, 0.00124, 0.00123, 0.00125)),
        ("stream-knl", {"tool": "STREAM"}, 2**28, "mul", (414238.4e6, 0.001321, 0.001296, 0.001368)),
    ],
)
def test_babelstream_of_every_age(name: str, notes: dict[str, str], array_size: float, function: str, expected: tuple):
    table = read_gpu(BABELSTREAM / f"{name}.txt")
    assert notes.items() <= table.notes.items()
    row = row_of(table, function=function)
    assert_allclose([row["array_size"]], [array_size], rtol=1e-15, atol=0)
    measured = [row[key] for key in ("bandwidth", "time", "minimum_time", "maximum_time")]
    assert_allclose(measured, expected, rtol=1e-15, atol=0)
    assert "warnings" not in table.notes


@pytest.mark.parametrize(
    ("heading", "unit"), [("MBytes/sec", 1e6), ("MiBytes/sec", 2**20), ("GBytes/sec", 1e9), ("GiBytes/sec", 2**30)]
)
def test_the_unit_of_a_bandwidth_is_read_from_its_heading(heading: str, unit: float):
    text = (
        f"BabelStream\nVersion: 5.0\nFunction    {heading}  Min (sec)   Max         Average     \nCopy  1000.5  1 2 3\n"
    )
    assert parse_babelstream(text).columns["bandwidth"].values.tolist() == [1000.5 * unit]


@pytest.mark.parametrize("unit", [("mbytes", 1e6), ("mibytes", 2**20)])
def test_babelstream_as_csv(unit: tuple[str, float]):
    text = "Using CUDA device NVIDIA H100\nphase,n_elements,sizeof,max_mbytes_per_sec,runtime\nInit,1024,4,9,9\n"
    text += f"function,num_times,n_elements,sizeof,max_{unit[0]}_per_sec,min_runtime,max_runtime,avg_runtime\n"
    text += "Triad,100,33554432,4,3000000,0.000134,0.000150,0.000140\n"
    row = row_of(parse_babelstream(text))
    assert (row["array_size"], row["bandwidth"], row["time"]) == (2.0**27, 3e6 * unit[1], 0.000140)


def test_babelstream_with_triad_alone():
    text = "BabelStream\nVersion: 4.0\nRunning triad 100 times\nNumber of elements: 1000\nPrecision: float\n"
    row = row_of(parse_babelstream(text + "Runtime (seconds): 0.1\nBandwidth (GiB/s):  2.5\n"))
    assert (row["function"], row["array_size"], row["bandwidth"]) == ("triad", 4000.0, 2.5 * 2**30)


def test_a_bandwidth_that_does_not_fit_its_time_is_a_warning():
    text = (BABELSTREAM / "v3.3-titanxp-cuda.txt").read_text().replace("433182.244", "533182.244")
    assert "do not agree for copy" in parse_babelstream(text).notes["warnings"]


def test_runs_of_babelstream_in_one_file_have_their_own_array_sizes():
    text = (BABELSTREAM / "v3.3-titanxp-cuda.txt").read_text()
    table = parse_babelstream(text + text.replace("268.4 MB", "134.2 MB").replace("TITAN Xp", "TITAN V"))
    assert table.columns["array_size"].values.tolist() == [268.4e6] * 5 + [134.2e6] * 5
    assert (table.notes["device"], table.notes["version"]) == ("TITAN Xp; TITAN V", "3.3")
    with pytest.raises(InvalidFileError, match=rf"a\.txt:{2 * text.count(chr(10))}:1: `435969\.3o4` is not a number"):
        parse_babelstream(text + text.replace("435969.304", "435969.3o4"), "a.txt")


@pytest.mark.parametrize(
    "line", ["Validation failed on c[]. Average error 0.1", "Failed Validation on array a[], AvgRelAbsErr > epsilon"]
)
def test_rates_of_wrong_results_are_a_warning(line):
    text = (BABELSTREAM / "v3.3-titanxp-cuda.txt").read_text()
    assert "warnings" not in parse_babelstream(text, "a.txt").notes
    (warning,) = parse_babelstream(f"{text}{line}\n", "a.txt").warnings
    assert warning.startswith(f"a.txt:{text.count(chr(10)) + 1}: rates of wrong results: `{line[:30]}")


def test_tables_of_several_files_have_a_column_for_the_file():
    one, other = (parse_gpu_rates(V100.read_text(), file) for file in ("a.csv", "b.csv"))
    assert "file" not in joined([one]).columns
    table = joined([one, other], ["c.csv: left out"])
    assert table.columns["file"].values.tolist() == ["a.csv", "b.csv"]
    assert table.notes["warnings"] == "c.csv: left out"
    with pytest.raises(UsageError, match="different kinds of measurements"):
        joined([one, parse_mixbench(MIXBENCH)])


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_gpu_rates, V100.read_text().replace("779.4108", "n/a"), "t:2:1: GBSEC - DRAM: `n/a` is not a number"),
        (
            parse_gpu_rates,
            V100.read_text().replace("GFLOPS - DP", "GFLOPS - PD"),
            "t:1:1: unknown heading `GFLOPS - PD`; did you mean",
        ),
        (parse_gpu_rates, V100.read_text()[:150], "t:2:1: 3 values under 8 headings; is the file cut off?"),
        (parse_mixbench, MIXBENCH.replace("306.00", "3O6.00"), "t:12:1: integer: `3O6.00` is not a number"),
        (parse_mixbench, MIXBENCH.replace("306.00", "3_06.00"), "t:12:1: integer: `3_06.00` is not a number"),
        (parse_mixbench, MIXBENCH[: MIXBENCH.index("102.00")], "t:11:1: 11 values under 12 headings"),
        (parse_mixbench, MIXBENCH.replace("GIOPS", "MIOPS"), "unknown column `miops`"),
        (
            parse_mixbench,
            MIXBENCH + MIXBENCH.replace("9000", "8000"),
            "different devices: Imaginary 9000, Imaginary 8000",
        ),
        (parse_babelstream, "Function    kB/sec  Min (sec)  Max  Average\nCopy 1 2 3 4\n", "unknown unit `kB/sec`"),
        (parse_babelstream, "Function    MBytes/sec  Min (sec)  Max  Average\nCopy 1 2 3\n", "3 values after `Copy`"),
        (
            parse_babelstream,
            "Function    MBytes/sec  Min (sec)  Max  Average\nCopy nan 2 3 4\n",
            "greater than 0, not nan",
        ),
    ],
)
def test_errors_name_file_and_line(parse, text: str, message: str):
    with pytest.raises(InvalidFileError, match=re.escape(message)):
        parse(text, "t")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("mix_compute", 1.5, "mix_compute: must be a number between 0 and 1, not 1.5"),
        ("dram_bytes", "many", "dram_bytes: must be a number of at least 0, not many"),
        ("dominant_op", "fp_8", "must be one of fp_32, fp_64, integer, not `fp_8`"),
        ("dominant_op", "fp_16", "no kernel that could be used"),
        ("count", None, "count: must be a number"),
        ("compute_ops", 10**400, "compute_ops: must be a number of at least 0, not 1000000"),
        ("l2_bytes", float("nan"), "l2_bytes: must be a number of at least 0, not nan"),
    ],
)
def test_a_mistake_in_a_kernel_profile_names_kernel_and_key(key: str, value: object, message: str, tmp_path: Path):
    document = json.loads(MINIFE.read_text())
    name, kernel = next(iter(document["data"].items()))
    path = tmp_path / "k.json"
    path.write_text(json.dumps(document | {"data": {name: kernel | {key: value}}}))
    with pytest.raises(InvalidFileError, match=re.escape(message)):
        read_kernels(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"<!DOCTYPE html><html>404</html>", "web page"),
        (b"\x7fELF\0\0\0", "binary file"),
        (b"hello\n", "neither"),
        (b"[" * 100_000, "neither"),
        (b"{" * 100_000, "no"),
    ],
)
@pytest.mark.parametrize("read", [read_gpu, read_kernels])
def test_files_of_something_else_are_refused(read, content: bytes, message: str, tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    with pytest.raises(InvalidFileError, match=message):
        read(path)


def test_a_kernel_file_given_for_a_gpu_is_recognised():
    with pytest.raises(InvalidFileError, match="neither gpuroofperf GPU parameters nor mixbench"):
        read_gpu(MINIFE)
    with pytest.raises(UsageError, match="not a table of profiled kernels"):
        kernels_toml(read_gpu(V100))
    with pytest.raises(UsageError, match="not a table of kernel launches"):
        kernel_metrics(read_gpu(BABELSTREAM / "stream-knl.txt"))


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_gpu, V100.read_text()),
        (read_gpu, MIXBENCH),
        (read_gpu, (BABELSTREAM / "v3.3-titanxp-cuda.txt").read_text()),
        (read_kernels, MINIFE.read_text()),
    ],
    ids=["gpuroofperf", "mixbench", "babelstream", "kernels"],
)
def test_a_file_cut_off_anywhere_is_read_or_refused(read, text: str, tmp_path: Path):
    path = tmp_path / "cut.txt"
    for end in range(0, len(text), max(1, len(text) // 60)):
        path.write_text(text[:end])
        try:
            assert len(read(path))
        except InvalidFileError as error:
            assert str(error).startswith(str(path))  # noqa: PT017


def test_files_of_a_folder_that_are_no_benchmarks_are_warnings(whatif_main, tmp_path):
    code, out, err = whatif_main("import", "gpu", str(BABELSTREAM), "--format", "csv")
    assert code == 0
    assert "LICENSE: neither gpuroofperf GPU parameters nor mixbench" in err
    assert len(out.splitlines()) == 1 + sum(len(read_gpu(path)) for path in BABELSTREAM.glob("*.txt"))
    twice = whatif_main("import", "gpu", str(BABELSTREAM), str(next(BABELSTREAM.glob("*.txt"))), "--format", "csv")
    assert twice[1] == out
    (tmp_path / "notes").write_text("nothing measured\n")
    code, _, err = whatif_main("import", "gpu", str(tmp_path))
    assert code == 2
    assert "no measurements in this folder" in err
