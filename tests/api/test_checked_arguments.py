"""The library checks what the command line checks, and names what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.paths import DATA, ROOT
from whatif.api.fits import with_limits
from whatif.errors import InvalidFileError, UsageError
from whatif.files.run_machine import machine_text
from whatif.importers.measurement_files import row_filter
from whatif.studies.bottlenecks import ideal_parts
from whatif.studies.correction_candidates import without_corrections

EPOCHS = ROOT / "docs" / "examples" / "epoch_runs.csv"
GPUS = DATA / "importers" / "gpu" / "babelstream" / "v3.3-titanxp-cuda.txt"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": 0}, "--candidates 0: expected at least 1"),
        ({"ranks": 0}, "--ranks 0: expected at least 1"),
        ({"memory_fraction": -1}, "--memory-fraction -1: expected a share"),
        ({"memory_fraction": 2.0}, "--memory-fraction 2.0"),
        ({"depths": []}, "--depths: state at least one value"),
        ({"broadcasts": []}, "--broadcasts: state at least one name"),
        ({"overrides": {"platform": "x"}}, "--set platform=..: use --platform NAME"),
        ({"cluster": 4, "spread": "node=2%,node=5%"}, "--spread node=5%: node is given already, as 2%"),
        ({"cluster": 4, "spread": "node=x"}, "--spread node=x: expected LEVEL=SHARE"),
    ],
)
def test_a_search_of_hpl_refuses_wrong_values(arguments, message):
    with pytest.raises(UsageError) as problem:
        whatif.tune_hpl(
            platform="dahu", **{"matrix_sizes": [200], "grids": ["1x1"] * ("ranks" not in arguments)} | arguments
        )
    assert str(problem.value).startswith(message)


def test_scenarios_of_the_same_name_are_refused_and_named_by_a_mapping():
    scenarios = [whatif.load("jacobi2d"), whatif.load("jacobi2d", overrides={"platform.node.gpu_count": 4})]
    for verb in (whatif.compare, whatif.budget):
        with pytest.raises(UsageError, match="scenario `jacobi2d` is given twice; a mapping gives"):
            verb(scenarios, platforms=["summit"])
    ranking = whatif.compare(dict(zip("ab", scenarios, strict=True)), ["summit", "lassen"])
    assert set(ranking.references) == {"a", "b"}


def test_folds_of_a_regression_are_at_least_two():
    with pytest.raises(UsageError, match="folds"):
        whatif.fit_regression(EPOCHS, formula="time ~ power_limit", show="folds", folds=0)


def test_platforms_of_fits_are_names_paths_and_platforms(tmp_path):
    path = tmp_path / "half.toml"
    text = 'extends = "summit"\n[node.gpu]\npeak_double_rate = "= 0.5 * platform.node.gpu.peak_single_rate"\n'
    path.write_text(text)
    for platform in (path, str(path), whatif.Platform.open(path), "summit"):
        fit = whatif.fit_gpu(GPUS, platform=platform)
        assert list(fit.detail.values) == ["dram_bandwidth"]


def test_a_table_in_place_of_the_platform_replaces_the_one_of_the_tables():
    phases = {"sleep": {"kind": "overhead", "overhead_time": "2 ms"}}
    tables = {
        "platform": "summit",
        "application": {"name": "n", "rank_count": 6, "iteration_count": 1, "phases": phases},
    }
    for platform in ("frontier", {"extends": "frontier"}):
        assert whatif.Scenario.of(tables, platform=platform).program.loaded.scenario.platform.name == "Frontier"


def test_a_calibrated_scenario_is_not_written_without_the_file_of_its_platform(tmp_path):
    mine = whatif.Platform.of({"extends": "lassen"}, name="mine")
    runs = tmp_path / "runs.csv"
    runs.write_text((ROOT / "scenarios" / "minimd_runs.csv").read_text().replace("lassen", "mine"))
    calibration = whatif.calibrate("minimd", platform=mine, runs=runs)
    with pytest.raises(InvalidFileError, match="`mine`: platform not found"):
        calibration.write(tmp_path / "calibrated.toml")
    assert not (tmp_path / "calibrated.toml").exists()
    mine.write(tmp_path / "mine.toml")
    calibration.write(tmp_path / "calibrated.toml")
    assert whatif.load(tmp_path / "calibrated.toml").program.loaded.scenario.platform.name == "mine"


def test_the_plane_of_a_placement_exists():
    planes = whatif.placement("minimd").whole.part.plane_count
    assert planes > 1
    for plane in (-1, planes):
        with pytest.raises(UsageError, match=rf"^--plane {plane}: `exchange` has planes 0 to {planes - 1}$"):
            whatif.placement("minimd", plane=plane)
    with pytest.raises(UsageError, match=r"^--plane 1: `halo` has one plane$"):
        whatif.placement("jacobi2d", plane=1)


def test_corrections_are_neutral_whatever_a_kernel_is_called(tmp_path):
    text = (ROOT / "scenarios" / "minimd.toml").read_text()
    for name in ("fft_time", "message_time"):
        changed = text.replace("phases.force]", f"phases.{name}]").replace(".force", f".{name}")
        path = tmp_path / f"{name}.toml"
        path.write_text(f"{changed}\n[calibration.application]\nkernel_factors.{name} = 2\nmessage_time = '1 us'\n")
        scenario = whatif.load(path)
        neutral = whatif.run(without_corrections(scenario))["iteration_time"]
        path.write_text(changed)
        assert_allclose(neutral, whatif.run(path)["iteration_time"], rtol=1e-12, atol=0)
        assert not np.isclose(neutral, whatif.run(scenario)["iteration_time"], rtol=1e-3, atol=0)


def test_the_price_of_a_node_is_no_rate_to_make_infinite():
    program = whatif.load("jacobi2d", overrides={"platform.price.node_rate": "2 USD/h"}).program
    parts = ideal_parts(program, "total_cost")
    assert "platform.node.gpu.dram_bandwidth" in parts
    assert "platform.price.node_rate" not in parts


def test_other_limits_keep_the_warnings_of_the_files(tmp_path):
    file = tmp_path / "osu.txt"
    rows = "".join(f"{2**power:<10} {1.5 + 2**power * 1e-4:.3f}\n" for power in range(20))
    file.write_text(f"# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n{rows}1048576   10")
    found = whatif.fit_network(file)
    warning = next(note for note in found.notes if "cut off" in note)
    assert warning in with_limits(found, (512.0, 8192.0)).notes


def test_a_trace_on_a_machine_without_parameters_of_messages_is_refused(tmp_path):
    machine = tmp_path / "unknown.toml"
    machine.write_text(machine_text("runs.csv"))
    with pytest.raises(UsageError, match="has no parameters of messages between nodes"):
        whatif.import_trace(ROOT / "docs" / "examples" / "tree.goal", platform=machine).to_toml()


def test_a_row_filter_may_be_one_text():
    assert row_filter("GPU name=V100") == {"GPU name": "V100"}
    assert row_filter("GPU name=V100,ranks=8") == {"GPU name": "V100", "ranks": "8"}
    assert row_filter("gpu=a,b") == {"gpu": "a,b"}
    assert row_filter("") is None
    with pytest.raises(UsageError, match=r"^--where x: expected HEADING=VALUE$"):
        row_filter("x")
