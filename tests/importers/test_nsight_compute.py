"""Outputs of Nsight Compute in their three forms, and the kernel phases made of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli
from numpy.testing import assert_allclose

from tests.paths import DATA, ROOT
from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.errors import InvalidFileError
from whatif.importers.gpu_benchmarks import read_kernels
from whatif.importers.kernel_anchors import COMPARED, part_of_device, with_anchors
from whatif.importers.kernel_phases import kernels_toml
from whatif.importers.nsight_compute import parse_nsight_compute
from whatif.importers.nsight_kernels import METRICS, kernel_metrics
from whatif.importers.text import read_text
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


@pytest.mark.parametrize(
    "text",
    [long_form(), raw_page(), summary(), raw_page().replace("\n", "  \n")],
    ids=["long", "raw", "summary", "trailing blanks"],
)
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
    assert_allclose(float(point.terms["waxpby"]), 192.25e6 / 779.4108e9 + 2e-6, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("void cub::DeviceReduceKernel<cub::Policy<double, int>::P600, double*>(T2, T3)", "DeviceReduceKernel"),
        ("(anonymous namespace)::k-1(int)", "k_1"),
        ("_Z12unpackKernelPdS_S_i", "unpackKernel"),
        ("_ZN6Kokkos4Impl33cuda_parallel_launch_local_memoryINS0_1EEEvT_", "cuda_parallel_launch_local_memory"),
        (
            "_ZN6Kokkos4Impl33cuda_parallel_launch_local_memoryINS0_11ParallelForI9IntegrateNS_11RangePolicyIJNS3_17"
            "TagFinalIntegrateEEEENS_4CudaEEEEEvT_",
            "FinalIntegrate",
        ),
        (
            "_ZN6Kokkos4Impl36cuda_parallel_launch_constant_memoryINS0_11ParallelForI7ForceLJNS_11RangePolicyIJEEE",
            "ForceLJ",
        ),
        (
            "void Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::ParallelFor<Heat::Step, "
            "Kokkos::RangePolicy<Kokkos::Cuda>>>(T1)",
            "Heat",
        ),
        ("<<<>>>\n[x", "kernel"),
    ],
)
def test_phases_are_named_like_their_kernels(kernel: str, name: str):
    text = raw_page().replace("pack(double*)", kernel.replace("\n", ""))
    assert name in tomli.loads(kernels_toml(kernel_metrics(parse_nsight_compute(text))))["application"]["phases"]


def without(*words: str) -> str:
    """The long form without the rows of some metrics."""
    return "\n".join(line for line in long_form().split("\n") if not any(word in line for word in words))


@pytest.mark.parametrize(
    ("left_out", "effect", "names", "key", "roof"),
    [
        (["dram__"], "no roof of DRAM", "`dram__bytes.sum` is", "dram_size", "operations"),
        (["lts__"], "no roof of L2", "`lts__t_bytes.sum` is", "l2_size", "dram_size"),
        (["dadd", "fadd"], "no roof of compute", "`smsp__sass_thread_inst_executed_op_dadd_pred_on.sum` is",
         "operations", "dram_size"),
        (["inst_executed.sum", "memory_pred_on"], "the mix of instructions does not lower the roof of compute",
         "`smsp__inst_executed.sum`, `smsp__sass_thread_inst_executed_op_memory_pred_on.sum` are", "compute_fraction",
         "operations"),
        (["gpu__time"], "no measured time", "`gpu__time_duration.sum` is", "reference_time", "dram_size"),
    ],
)  # fmt: skip
def test_a_missing_metric_costs_one_roof_and_is_named(left_out, effect, names, key, roof):
    table = kernel_metrics(parse_nsight_compute(without(*left_out), "a.csv"))
    assert f"a.csv: {effect}: {names} not in the file\n" in table.notes["warnings"] + "\n"
    row = row_of(table, kernel=LAUNCHES[0][1])
    assert row[key] is None
    assert row[roof] is not None
    point = run_whole(Scenario(parse_document(HEAD + kernels_toml(table), "t.toml")), Grid())
    assert float(point.terms["waxpby"]) > 0


def test_a_metric_that_some_kernels_lack_is_reported_for_them():
    text = raw_page().replace('"64,000.00"', '"n/a"', 1)
    warnings = kernel_metrics(parse_nsight_compute(text.replace('"64,000.00"', '"n/a"', 1), "a.csv")).notes["warnings"]
    assert "no roof of DRAM: `dram__bytes.sum` is not in the file for pack(double*)" in warnings


def test_a_kernel_with_traffic_of_l2_alone_is_limited_by_it():
    """By hand: 200 MB at 2878.6151 GB/s of the second-level cache of Summit's V100."""
    text = kernels_toml(kernel_metrics(parse_nsight_compute(without("dram__", "op_d", "op_f"))))
    point = run_whole(Scenario(parse_document(HEAD + text, "t.toml")), Grid())
    assert_allclose(float(point.terms["waxpby"]), 200e6 / 2878.6151e9 + 2e-6, rtol=1e-14, atol=0)


def test_the_page_of_a_real_program_counts_its_work():
    table = read_kernels(ROOT / "validation" / "gpu_programs" / "cg.csv.gz")
    kernels = {row[0].partition("(")[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows()}
    rows = 256**3
    # 27 values of 8 B and columns of 4 B, a vector read once and one written; two vectors; two read and one written.
    bytes_of = {"product": rows * (27 * 12 + 16), "dot": rows * 16, "update": rows * 24}
    for kernel, size in bytes_of.items():
        # A product of a vector with itself reads one vector, and caches keep a part.
        assert 0.65 < kernels[kernel]["dram_size"] / size < 1.04
    assert_allclose(kernels["product"]["operations"], rows * 27 * 2, rtol=1e-12, atol=0)
    assert kernels["product"]["dominant_operation"] == "fp_64"
    assert table.notes["device"] == "NVIDIA H100 80GB HBM3"
    assert part_of_device(table.notes["device"])[0] == "h100-sxm5-80gb"


def test_a_real_page_of_the_rooflines_has_rates_without_units():
    table = read_kernels(DATA / "profiles" / "ncu" / "roofline_h200.csv.gz")
    update, dot = (dict(zip(table.columns, row, strict=True)) for row in table.rows())
    assert_allclose(update["dram_size"], 128**3 * 24, rtol=0.4, atol=0)
    # One multiplication and one multiply-add for each element.
    assert_allclose(update["operations"], 3 * 128**3, rtol=0.01, atol=0)
    assert dot["operations"] > 0
    assert table.notes["device_memory"] == "150.11 GB"
    assert "tensor" not in table.notes.get("warnings", "")


def test_blocks_of_a_launch_and_their_threads_lower_the_roofs():
    """256 blocks are two on 124 of 132 multiprocessors; 64 of 128 threads are one third of the rate of 64."""
    text = read_text(ROOT / "validation" / "gpu_programs" / "bodies.csv.gz")
    fewer = text.replace('"(256, 1, 1)","(256, 1, 1)"', '"(128, 1, 1)","(2, 16, 2)"')
    table, few = (with_anchors(kernel_metrics(parse_nsight_compute(its))) for its in (text, fewer))
    assert list(table.columns["block_count"].values) == list(table.columns["block_size"].values) == [256, 256]
    assert list(few.columns["block_count"].values) == [64, 64]
    (_, whole), (_, part) = (its.columns["measured_factor"].values for its in (table, few))
    assert_allclose(whole / part, (256 / 264) / (64 / 132 / 3), rtol=1e-8, atol=0)
    assert 'block_count = 64                # of a launch; if other grids have as many: blocks_follow = "nothing"' in (
        kernels_toml(few)
    )


def test_launches_with_different_grids_have_a_whole_number_of_blocks_in_the_mean():
    """Four launches of forces with 256 blocks, of which one becomes 257."""
    text = read_text(ROOT / "validation" / "gpu_programs" / "bodies.csv.gz")
    head, mark, rest = text.partition('"forces(')
    assert mark
    changed = head + mark + rest.replace('"(256, 1, 1)","(256, 1, 1)"', '"(256, 1, 1)","(257, 1, 1)"', 1)
    table = kernel_metrics(parse_nsight_compute(changed))
    assert list(table.columns["block_count"].values) == [256, 256]
    assert Scenario(parse_document(HEAD + kernels_toml(table), "t.toml")).program


@pytest.mark.parametrize("memory", ["-5", "1e999", "0", "much", ""])
def test_a_memory_that_is_not_a_size_is_left_out(memory):
    text = read_text(ROOT / "validation" / "gpu_programs" / "bodies.csv.gz")
    changed = text.replace('"85,017,493,504"', f'"{memory}"')
    assert changed != text
    table = with_anchors(kernel_metrics(parse_nsight_compute(changed)))
    assert "device_memory" not in table.notes
    assert "h100-sxm5-80gb" in table.notes[COMPARED]


def test_a_grid_of_any_text_is_no_crash():
    text = read_text(ROOT / "validation" / "gpu_programs" / "bodies.csv.gz")
    grid = ", ".join(["9999999999"] * 500)
    assert kernel_metrics(
        parse_nsight_compute(text.replace('"(256, 1, 1)","(256, 1, 1)"', f'"(256, 1, 1)","({grid})"'))
    )


def test_without_any_roof_the_file_is_refused_with_the_command_that_records_all():
    with pytest.raises(InvalidFileError) as error:
        kernel_metrics(parse_nsight_compute(without("dram__", "op_d", "op_f", "lts__"), "a.csv"))
    assert "a.csv: no kernel that could be used:" in str(error.value)
    assert "no roof of L2: `lts__t_bytes.sum` is not in the file" in str(error.value)
    assert f"--metrics {','.join(METRICS)}" in str(error.value)


def test_rates_of_the_section_of_rooflines_become_sums():
    """By hand: 8e6 and 8e6 instructions and 192.25 MB in 1,250.5 us, at 1.4 GHz in 1.7507e6 cycles."""
    cycles = 1.4e9 * 1250.5e-6
    rates = {
        "gpu__time_duration.sum": ("us", "1,250.50"),
        "smsp__cycles_elapsed.avg.per_second": ("Ghz", "1.4"),
        "dram__bytes.sum.per_second": ("Gbyte/s", f"{192.25e6 / 1250.5e-6 / 1e9!r}"),
        "dram__bytes.sum.peak_sustained": ("Kbyte/cycle", "1.2"),
        "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained": ("inst/cycle", "2,560"),
    }
    for operation, count in (("dadd", 0), ("dmul", 8e6), ("dfma", 8e6)):
        metric = f"smsp__sass_thread_inst_executed_op_{operation}_pred_on.sum.per_cycle_elapsed"
        rates[metric] = ("inst/cycle", repr(count / cycles))
    lines = [quoted("Kernel Name", *rates), quoted("", *(unit for unit, _ in rates.values()))]
    lines.append(quoted("k", *(value for _, value in rates.values())))
    row = row_of(kernel_metrics(parse_nsight_compute("\n".join([*lines, ""]))), kernel="k")
    expected = {"operations": 24e6, "dram_size": 192.25e6, "operation_efficiency": 0.75, "reference_time": 1250.5e-6}
    assert_allclose([row[key] for key in expected], list(expected.values()), rtol=1e-12, atol=0)
    assert (row["compute_fraction"], row["dominant_operation"]) == (None, "fp_64")


def test_cycles_and_their_frequency_give_the_time_as_in_the_hierarchical_roofline():
    heads = ["Kernel Name", "sm__cycles_elapsed.avg", "sm__cycles_elapsed.avg.per_second", "dram__bytes.sum"]
    lines = [quoted(*heads), quoted("", "cycle", "cycle/nsecond", "Mbyte"), quoted("k", "2,800", "1.40", "8.00"), ""]
    row = row_of(kernel_metrics(parse_nsight_compute("\n".join(lines))), kernel="k")
    assert_allclose([row["reference_time"], row["dram_size"]], [2e-6, 8e6], rtol=1e-14, atol=0)


def test_titles_of_the_details_page_are_the_metrics_that_they_show():
    """By hand: 150 GB/s for 8,992 ns; a share in per cent is another metric of the same title."""
    rows = [
        ("GPU Speed Of Light", "Memory Throughput", "%", "46.47"),
        ("GPU Speed Of Light", "Duration", "nsecond", "8,992"),
        ("Memory Workload Analysis", "Memory Throughput", "Gbyte/second", "150.00"),
        ("Launch Statistics", "Registers Per Thread", "register/thread", "32"),
    ]
    head = quoted("ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value")
    text = "\n".join([head, *(quoted("0", "k(int)", *row) for row in rows), ""])
    row = row_of(kernel_metrics(parse_nsight_compute(text)), kernel="k(int)")
    assert_allclose([row["reference_time"], row["dram_size"]], [8992e-9, 150e9 * 8992e-9], rtol=1e-14, atol=0)


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
