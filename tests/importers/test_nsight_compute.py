"""Outputs of Nsight Compute in their three forms, and the kernel phases made of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli
from numpy.testing import assert_allclose

from whatif.axes import Grid
from whatif.core.result import run_whole
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError
from whatif.importers.gpu_benchmarks import read_kernels
from whatif.importers.kernel_phases import kernels_toml
from whatif.importers.nsight_compute import METRICS, kernel_metrics, parse_nsight_compute
from whatif.schema.toml import parse_document
from whatif.table import Table

HEAD = 'platform = "summit"\n[application]\nname = "t"\nrank_count = 1\niteration_count = 1\n'
COUNTS = {
    "waxpby": {"dadd": 0, "dmul": 8e6, "dfma": 8e6, "integer": 5e6, "memory": 24e6},
    "pack": {"dadd": 0, "dmul": 0, "dfma": 0, "integer": 64e3, "memory": 1e3},
}


def ncu_metrics(name: str) -> dict[str, tuple[str, str]]:
    """What ncu prints for one launch, with its scaled units and thousands separators."""
    counts = {f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum": n for op, n in COUNTS[name].items()}
    counts |= {f"smsp__sass_thread_inst_executed_op_f{op}_pred_on.sum": 0 for op in ("add", "mul", "fma")}
    counts["smsp__inst_executed.sum"] = 5_250_000
    printed = {metric: ("inst", f"{count:,.0f}") for metric, count in counts.items()}
    return printed | {
        "gpu__time_duration.sum": ("usecond", "1,250.50"),
        "dram__bytes_read.sum": ("Mbyte", "128.25"),
        "dram__bytes_write.sum": ("Kbyte", "64,000.00"),
        "lts__t_bytes.sum": ("byte", "200,000,000"),
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "n/a"),
    }


LAUNCHES = [("0", "void mini::waxpby<double, int>(int, double*)", "waxpby"), ("1", "pack(double*)", "pack")]
LAUNCHES += [("2", "void mini::waxpby<double, int>(int, double*)", "waxpby")]


def quoted(*cells: str) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


def long_form() -> str:
    lines = ["==PROF== Connected to process 77 (/home/a.out)", "the program's own words"]
    lines += [quoted("ID", "Kernel Name", "Context", "Section Name", "Metric Name", "Metric Unit", "Metric Value")]
    for number, kernel, name in LAUNCHES:
        for metric, (unit, value) in ncu_metrics(name).items():
            lines.append(quoted(number, kernel, "1", "Command line profiler metrics", metric, unit, value))
    return "\n".join([*lines, "==PROF== Disconnected from process 77", ""])


def raw_page() -> str:
    units = {metric: unit for metric, (unit, _) in ncu_metrics("pack").items()}
    lines = ["==PROF== Connected to process 77", quoted("ID", "Kernel Name", "device__attribute_display_name", *units)]
    lines.append(quoted("", "", "", *units.values()))
    for number, kernel, name in LAUNCHES:
        lines.append(quoted(number, kernel, "NVIDIA H100", *(value for _, value in ncu_metrics(name).values())))
    return "\n".join([*lines, ""])


def summary() -> str:
    lines = [quoted("Kernel Name", "Invocations", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average")]
    for (_, kernel, name), count in zip(LAUNCHES, ("2", "1"), strict=False):
        for metric, (unit, value) in ncu_metrics(name).items():
            lines.append(quoted(kernel, count, metric, unit, "n/a", "n/a", value))
    return "\n".join([*lines, ""])


def row_of(table: Table, **chosen: object) -> dict[str, object]:
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows()]
    return next(row for row in rows if chosen.items() <= row.items())


@pytest.mark.parametrize("text", [long_form(), raw_page(), summary()], ids=["long", "raw", "summary"])
def test_all_forms_of_nsight_compute_give_the_same_metrics(text: str):
    """By hand: 8e6 multiplications and 8e6 fused multiply-adds are 24e6 operations in 16e6 of 32 * 5.25e6 lanes."""
    table = kernel_metrics(parse_nsight_compute(text))
    waxpby = row_of(table, kernel=LAUNCHES[0][1])
    expected = {"operations": 24e6, "dram_size": 192.25e6, "l2_size": 200e6, "operation_efficiency": 0.75}
    expected |= {"compute_fraction": 16e6 / 168e6, "load_store_fraction": 24e6 / 168e6, "reference_time": 1250.5e-6}
    assert_allclose([waxpby[key] for key in expected], list(expected.values()), rtol=1e-14, atol=0)
    assert (waxpby["profiled_launch_count"], waxpby["metrics_per"]) == (2, "launch")
    assert waxpby["dominant_operation"] == "fp_64"
    pack = row_of(table, kernel="pack(double*)")
    assert (pack["dominant_operation"], pack["operations"], pack["operation_efficiency"]) == ("integer", 64e3, 0.5)


def test_nsight_compute_kernels_become_phases_that_run():
    """By hand: 192.25 MB at Summit's 779.4108 GB/s."""
    text = kernels_toml(kernel_metrics(parse_nsight_compute(raw_page(), "h100.csv")))
    assert text.startswith("# tool Nsight Compute, file h100.csv, device NVIDIA H100\n")
    point = run_whole(Scenario(parse_document(HEAD + text, "t.toml")), Grid())
    assert_allclose(float(point.terms["waxpby"]), 192.25e6 / 779.4108e9, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("void cub::DeviceReduceKernel<cub::Policy<double, int>::P600, double*>(T2, T3)", "DeviceReduceKernel"),
        ("(anonymous namespace)::k-1(int)", "k_1"),
        ("_Z12unpackKernelPdS_S_i", "unpackKernel"),
        ("_ZN6Kokkos4Impl33cuda_parallel_launch_local_memoryINS0_1EEEvT_", "cuda_parallel_launch_local_memory"),
        ("<<<>>>\n[x", "kernel"),
    ],
)
def test_phases_are_named_like_their_kernels(kernel: str, name: str):
    text = raw_page().replace("pack(double*)", kernel.replace("\n", ""))
    assert name in tomli.loads(kernels_toml(kernel_metrics(parse_nsight_compute(text))))["application"]["phases"]


def test_metrics_that_were_not_recorded_are_named_with_the_command_that_records_them():
    lines = [line for line in long_form().split("\n") if "dram__" not in line and "memory_pred_on" not in line]
    with pytest.raises(InvalidFileError) as error:
        kernel_metrics(parse_nsight_compute("\n".join(lines), "a.csv"))
    message = str(error.value)
    assert "not recorded: dram__bytes.sum, smsp__sass_thread_inst_executed_op_memory_pred_on.sum;" in message
    assert f"--metrics {','.join(METRICS)}" in message


def test_without_levels_and_times_a_kernel_still_is_a_phase():
    lines = [line for line in long_form().split("\n") if "lts__" not in line and "gpu__time" not in line]
    text = kernels_toml(kernel_metrics(parse_nsight_compute("\n".join(lines))))
    assert "l2_size" not in text
    assert "measured" not in text


def test_half_precision_and_tensor_cores_are_warnings():
    half = raw_page().replace("op_dmul", "op_hmul").replace("op_dadd", "op_hadd").replace("op_dfma", "op_hfma")
    half = half.replace("sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm__inst_executed_pipe_tensor.sum")
    table = kernel_metrics(parse_nsight_compute(half.replace('"n/a"', '"77"').replace('"%"', '"inst"')))
    assert table.columns["kernel"].values.tolist() == ["pack(double*)"]
    assert "half-precision operations dominate: void mini::waxpby" in table.notes["warnings"]
    assert "tensor cores is not in these counts: pack(double*)" in table.notes["warnings"]
    assert "fp_64 operations were not recorded" in table.notes["warnings"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"1,250.50"', '"1250,50"', ":4:1: gpu__time_duration.sum: `1250,50` is not a number"),
        ('"usecond"', '"fortnight"', "unexpected unit `fortnight`"),
        ('"usecond"', '""', "--print-units base"),
        ('"1,250.50"', '"-1,250.50"', ":4:1: gpu__time_duration.sum: `-1,250.50` is negative"),
        ('"8,000,000"', '"-8,000,000"', "`-8,000,000` is negative"),
        ('"Kernel Name"', '"Function Name"', 'no heading with "Kernel Name"'),
    ],
)
def test_errors_in_files_of_nsight_compute_name_the_line(old: str, new: str, message: str):
    with pytest.raises(InvalidFileError, match=re.escape(message)):
        parse_nsight_compute(raw_page().replace(old, new), "a.csv")


def test_a_long_form_without_units_is_refused():
    with pytest.raises(InvalidFileError, match=r"a\.csv:3:1: no column `Metric Unit`"):
        parse_nsight_compute(long_form().replace("Metric Unit", "Unit"), "a.csv")


def test_errors_of_nsight_compute_are_passed_on(tmp_path: Path):
    path = tmp_path / "ncu.csv"
    path.write_text("==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - no permission\n")
    with pytest.raises(InvalidFileError, match="error of ncu: ==ERROR== ERR_NVGPUCTRPERM"):
        read_kernels(path)


@pytest.mark.parametrize("text", [raw_page(), long_form()], ids=["raw", "long"])
def test_an_output_cut_off_anywhere_is_read_or_refused(text: str, tmp_path: Path):
    path = tmp_path / "cut.txt"
    for end in range(0, len(text), max(1, len(text) // 60)):
        path.write_text(text[:end])
        try:
            assert len(read_kernels(path))
        except InvalidFileError as error:
            assert str(error).startswith(str(path))  # noqa: PT017
