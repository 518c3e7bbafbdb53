"""Kernels of the RAJA Performance Suite on one core, by its roofline (docs/processors.md).

`WHATIF_WRITE_MACHINES=1 pytest tests/validation/test_processor_kernels.py` writes the table of the page.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.page_tables import assert_shown
from tests.paths import ROOT
from tests.validation.test_processor_triads import TRIADS
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.schema.gpu import GPU
from whatif.schema.load import load_part
from whatif.schema.toml import parse_document
from whatif.validation.kernel_sizes import times_of
from whatif.validation.measured_kinds import numbers
from whatif.validation.tables import rows_of

PAGE = ROOT / "docs" / "processors.md"
SCENARIO = parse_document(
    """
[application]
name = "kernel"
rank_count = 1
ranks_per_node = 1
threads_per_rank = 1
iteration_count = 1
runs_on = "cpu"
[application.phases.kernel]
kind = "kernel"
model = "roofline"
dominant_operation = "fp_64"
metrics_per = "rank"
operations = "1 flop"
dram_size = "1 B"
""",
    "kernel on a core",
)
FEWEST, *_, FULL = TRIADS["Xeon E5-2695 v4 (CTS-1)"]
# The peak is 16 flop a clock of 2.1 GHz on each of 18 cores; the bandwidths are those of the triads on CTS-1.
CORES = {
    "core_count": "18",
    "peak_double_rate": "604.8 Gflop/s",
    "core_bandwidth": f"{FEWEST['bandwidth [GB/s]']} GB/s",
    "memory_bandwidth": f"{float(FULL['bandwidth [GB/s]']) / 2} GB/s",
}
SIZES = ("1048576", "2097152")


def measured(device, elements):
    """Rows of a device with one number of elements, by kernel."""
    rows = [row for row in rows_of("rajaperf_sizes.csv") if (row["device"], row["elements"]) == (device, elements)]
    return {row["kernel"]: row for row in rows if row["block_size"] in ("", "256")}


def roofline(rows):
    """Predicted times of rows on one core."""
    scenario = Scenario(SCENARIO, "dahu", {f"platform.node.cpu.{key}": value for key, value in CORES.items()})
    work = {"operations": numbers(rows, "operations_flop"), "dram_size": numbers(rows, "bytes_B")}
    values = {f"application.phases.kernel.{key}": value for key, value in work.items()}
    return evaluate(scenario.program, values).values["iteration.time"]


@pytest.fixture(scope="module")
def factors():
    """Measured over predicted times of the kernels on the core and, by roofline, on the V100, by number of elements."""
    gpu, found = load_part("v100-sxm2-16gb"), {}
    assert isinstance(gpu, GPU)
    for elements in SIZES:
        there = measured("V100", elements)
        core = [row for row in measured("Xeon E5-2695 v4", elements).values() if row["kernel"] in there]
        rows = [there[row["kernel"]] for row in core]
        roofs = [("operations_flop", "peak_double_rate"), ("bytes_B", "dram_bandwidth")]
        roof = np.max([numbers(rows, key) / gpu.number(rate) for key, rate in roofs], axis=0)
        found[elements] = times_of(core) / roofline(core), times_of(rows) / roof
    return found


def row(elements, core, gpu):
    errors, logs = 1 / core - 1, np.log(core)
    shown = f"{np.abs(errors).mean():.0%} | {errors.mean():+.0%} | {np.median(core):.2f} | {logs.std():.2f}"
    both = f"{np.log(core / gpu).std():.2f} | {np.corrcoef(logs, np.log(gpu))[0, 1]:.2f}"
    return f"| 2^{int(elements).bit_length() - 1} | {len(core)} | {shown} | {both} |\n"


def test_the_table_of_the_page_is_that_of_the_data(factors):
    head = "| elements | kernels | mean error | bias | median | scatter | with the ratio | correlation |\n"
    rows = "".join(row(elements, *found) for elements, found in factors.items())
    assert_shown(PAGE, "kernels", f"{head}|---|{'---:|' * 7}\n{rows}")


@pytest.mark.parametrize("elements", SIZES)
def test_the_ratio_of_a_gpu_says_little_about_a_core(factors, elements):
    core, gpu = factors[elements]
    assert np.log(core / gpu).std() > 0.95 * np.log(core).std()
    assert 0.85 < np.median(core) < 1.1


def test_growth_of_kernels_by_their_work():
    """Twice the elements, from half of them: errors of the page, by elements and by the roofline."""
    rows = [list(measured("Xeon E5-2695 v4", elements).values()) for elements in SIZES]
    half, full = map(times_of, rows)
    small, large = map(roofline, rows)
    errors = [grown / full - 1 for grown in (2 * half, half * large / small)]
    words = [f"{100 * np.abs(found).mean():.0f} % ({100 * found.mean():+.0f} %)" for found in errors]
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{len(full)} kernels: {words[1]}, by the elements alone {words[0]}" in text
    assert np.abs(errors[1]).mean() < 0.9 * np.abs(errors[0]).mean()
