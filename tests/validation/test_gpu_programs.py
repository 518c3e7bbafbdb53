"""Programs that were profiled on an H100 and measured on it and on an H200."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.paths import ROOT
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.importers.gpu_benchmarks import read_kernels
from whatif.importers.kernel_anchors import anchors_of
from whatif.schema.load import load_part
from whatif.validation import gpu_programs
from whatif.validation.gpu_programs import PROFILED, program_scenario
from whatif.validation.tables import rows_of


@pytest.fixture(scope="module")
def table(compared):
    return compared("programs").to_pandas()


def test_errors_of_filled_gpus_are_small_on_the_profiled_one_and_on_another(table, compared):
    assert "beyond" not in compared("programs").notes
    errors = table.groupby("kind")["error"]
    assert errors.size().to_dict() == {"H100": 51, "H200": 51, "partly filled": 54, "short": 32}


def test_times_of_launches_are_those_that_were_measured():
    """Hosts differ by a third; the part states those of the first."""
    gpu, found = load_part(PROFILED), {}
    for row in rows_of("gpu_programs/launches.csv"):
        if row["gpu"] == PROFILED:
            found.setdefault(row["program"], []).append(float(row["time_us"]) * 1e-6)
    median = {program: np.median(times) for program, times in found.items()}
    assert_allclose(gpu.launch_interval, median["empty"], rtol=0.25, atol=0)
    assert_allclose(gpu.synchronisation_time, median["wait"] - gpu.empty_kernel_time - 1.404e-6, rtol=0.25, atol=0)
    assert max(found["graph"]) < 0.6 * gpu.empty_kernel_time


HELD_OUT = ("fused16", "fused64", "fused128", "fused256", "stencil27", "lattice", "convolve", "transpose")
"""Programs that were measured after the exponent was chosen on the others."""


def test_roofs_that_slow_each_other_down_predict_the_second_gpu_better(monkeypatch):
    """At the profiled size, by the exponent of the profiles and by the highest roof."""

    def highest(name, gpu, anchored=True):
        found = program_scenario(name, gpu, anchored)
        table = read_kernels(ROOT / "validation" / "gpu_programs" / f"{name}.csv.gz")
        sets = {}
        for kernel, anchor in zip(table.columns["kernel"].values, anchors_of(table, load_part(PROFILED)), strict=True):
            phase = f"application.phases.{re.split('[<(]', kernel.removeprefix('void '))[0]}"
            factor = replace(anchor, exponent=math.nan).measured_factor
            sets |= {} if math.isnan(factor) else {f"{phase}.measured_factor": factor, f"{phase}.roof_exponent": 1e9}
        return Scenario(found.document, found.platform_name, {**found.overrides, **sets})

    sizes = {name: str(program.size) for name, program in gpu_programs._PROGRAMS.items()}
    rows = [row for row in rows_of("gpu_programs/times.csv") if row["size"] == sizes[row["program"]]]
    rows = [row for row in rows if row["gpu"] == "h200-sxm"]
    measured = np.array([float(row["time_us"]) * 1e-6 for row in rows])
    held_out = np.array([row["program"] in HELD_OUT for row in rows])
    joint = np.abs(gpu_programs.predictions(rows) / measured - 1)
    monkeypatch.setattr(gpu_programs, "program_scenario", highest)
    alone = np.abs(gpu_programs.predictions(rows) / measured - 1)
    assert len(rows) == 16
    shown = [f"{100 * errors[chosen].mean():.1f}" for chosen in (~held_out, held_out) for errors in (alone, joint)]
    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    assert "| programs that the exponent was chosen on | 8 | {} % | {} % |".format(*shown[:2]) in page
    assert "| programs measured later | 8 | {} % | {} % |".format(*shown[2:]) in page
    assert joint[held_out].mean() < 0.75 * alone[held_out].mean()


def test_launches_and_blocks_are_what_short_and_partly_filled_kernels_lacked(table, monkeypatch):
    """Errors of the page without them, on the same runs."""

    def full(name, gpu, anchored=True):
        found = program_scenario(name, gpu, anchored)
        kernels = [f"application.phases.{kernel}" for kernel in gpu_programs._PROGRAMS[name].launches]
        times = ("empty_kernel_time", "launch_interval", "synchronisation_time")
        sets = {f"platform.node.gpu.{key}": "0 s" for key in times}
        for key, value in (("block_count", "1e9"), ("blocks_follow", "nothing"), ("working_set", "1 TB")):
            sets |= {f"{kernel}.{key}": value for kernel in kernels}
        return Scenario(found.document, found.platform_name, {**found.overrides, **sets})

    rows = rows_of("gpu_programs/times.csv")
    monkeypatch.setattr(gpu_programs, "program_scenario", full)
    errors = (gpu_programs.predictions(rows) / table["measured"] - 1).abs().groupby(table["kind"]).mean()
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    shown = [round(100 * errors[kind]) for kind in ("H100", "H200", "short", "partly filled")]
    assert "the mean errors are {}, {}, {} and {} %.".format(*shown) in " ".join(page.split())


def test_a_profile_lowers_the_error_of_the_counted_work(table):
    filled = table[table["kind"].isin(["H100", "H200"])]
    plain = (filled["roofline"] / filled["measured"] - 1).abs().mean()
    assert filled["error"].abs().mean() < 0.6 * plain


def test_the_profiled_run_is_its_profile():
    """Kernel times of the profile, without the time between them."""
    program = program_scenario("heat", PROFILED).program
    (row,) = [
        r for r in rows_of("gpu_programs/times.csv") if (r["program"], r["size"], r["gpu"]) == ("heat", "512", PROFILED)
    ]
    assert_allclose(evaluate(program).values["iteration.time"], float(row["time_us"]) * 1e-6, rtol=0.01, atol=0)


def test_memory_of_the_h200_is_that_of_its_triad():
    """The product of conjugate gradients streams 340 B a row; its rate is that of the triad."""
    rows = [row for row in rows_of("gpu_programs/times.csv") if row["program"] == "cg" and row["size"] == "320"]
    size = 320**3 * (27 * 12 + 16 + 2 * 16 + 3 * 24)
    rates = {row["gpu"]: size / (float(row["time_us"]) * 1e-6) for row in rows}
    for gpu, rate in rates.items():
        assert_allclose(rate, load_part(gpu).number("dram_bandwidth"), rtol=0.05, atol=0)
    assert_allclose(rates["h200-sxm"] / rates[PROFILED], 4258 / 2970, rtol=0.02, atol=0)


def test_steps_of_decoding_are_predicted_within_a_tenth():
    whatif.comparisons("decoding").raise_if_beyond()
    errors = whatif.comparisons("decoding").table().columns["error"].values
    assert len(errors) == 10
    assert np.abs(errors).max() < 0.1


def test_numbers_of_the_page_are_those_of_the_comparisons(table):
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    for kind, runs in table.groupby("kind"):
        plain = (runs["roofline"] / runs["measured"] - 1).abs().mean()
        errors = f"{runs['error'].abs().mean():.1%} | {runs['error'].mean():+.1%} | {plain:.1%}"
        assert f"| {kind} | {len(runs)} | {errors} |" in page
    copies = whatif.comparisons("transfers").table().to_pandas().set_index(["source", "target", "direction", "memory"])
    for source, target, shown in (("titan", "h100", "Titan (PCIe 2)"), ("h100", "h200", "H100")):
        there, back = (copies.loc[(source, target, way, "pinned"), "projected_error"] for way in ("HtoD", "DtoH"))
        assert f"| {shown} | {target.upper()} | {100 * there:.1f} % | {100 * back:.1f} % |" in page


def test_numbers_of_transformers_on_one_gpu_are_those_of_the_comparisons(compared):
    serving, training = ((ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("serving", "transformers"))
    steps = whatif.comparisons("decoding").table().to_pandas()["error"]
    assert f"| decoding | {len(steps)} | {steps.abs().mean():.1%} | {steps.mean():+.1%} |" in serving
    tokens = whatif.comparisons("first_tokens").table().to_pandas()
    own = tokens[tokens["software"] == "torch 2.11"]["error"]
    assert f"with a mean error of {own.abs().mean():.1%}" in serving
    found = compared("training").to_pandas()
    errors = found[found["study"] == "torch"]["error"]
    assert f"{100 * errors.min():.0f} to +{100 * errors.max():.0f} %" in training
