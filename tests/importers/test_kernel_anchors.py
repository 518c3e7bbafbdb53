"""Measured kernels and the roofs of their GPU: by hand from the profile of MiniMD's authors, and on other devices."""

from __future__ import annotations

import numpy as np
import pytest

import whatif
from tests.paths import DATA

JACOBI = DATA / "gpuroofperf" / "kernel_params" / "jacobi2d" / "jacobi2d.json"
FORCE = {
    "dominant_op": "fp_64",
    "compute_ops": 11238073240,
    "dram_bytes": 6223763840,
    "l2_bytes": 60555488640,
    "opmix_efficiency": 0.622909300288858,
    "mix_compute": 0.2071424616709205,
    "mix_ldst": 0.09040844377436366,
    "reference_time": 29.463131,
    "count": 10,
}
PACK = FORCE | {
    "compute_ops": 36325560,
    "dram_bytes": 91159680,
    "l2_bytes": 188580480,
    "reference_time": 0.321469,
    "count": 60,
}


def profile(folder, **kernels):
    """File of kernels profiled on a V100."""
    import json

    path = folder / "profile.json"
    about = {"app": "miniMD", "invocation": "", "datetime": "", "driver": "", "platform": "", "version": "0.9.0"}
    path.write_text(json.dumps({**about, "device": "Tesla V100-SXM2-16GB", "data": kernels}))
    return path


def test_force_of_minimd_is_bound_by_the_second_level_cache(tmp_path):
    """8.0 ms by the roofline and 21.0 ms by the L2 roof of the 29.5 ms that its profile holds."""
    found = whatif.import_kernels(profile(tmp_path, force=FORCE))
    row = found.to_pandas().iloc[0]
    assert row["binding"] == "l2"
    # The roof of compute is not above that of DRAM, whose fourth power adds to that of L2.
    cached, memory = 60555488640 / 2878.6151e9, 6223763840 / 779.4108e9
    least, most = ((29.463131e-3 - 10 * 2e-6) / (cached**4 + count * memory**4) ** 0.25 for count in (2, 1))
    assert least < row["measured_factor"] < most
    assert row["roof_exponent"] == 4
    text = "measured 2.95 ms, roofline 799 us; highest roof l2, 2.1 ms; limited by l2; measured / roof = 1.4"
    assert f"force on v100-sxm2-16gb: {text}" in found.notes
    assert 'model = "roofline_l2"' in found.to_toml()


def test_small_kernel_is_bound_by_its_launch(tmp_path):
    row = whatif.import_kernels(profile(tmp_path, pack=PACK)).to_pandas().iloc[0]
    assert row["binding"] == "launch"
    assert np.isnan(row["measured_factor"])
    expected = (0.321469e-3 - 91159680 / 779.4108e9) / 60
    assert row["launch_time"] == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.parametrize("kernel", [FORCE | {"reference_time": 58.0}, PACK | {"l2_bytes": 518_000_000}])
def test_kernels_far_above_the_l2_roof_or_small_take_the_measured_time(tmp_path, kernel):
    """The model follows the highest roof, whatever limits the kernel."""
    found = whatif.import_kernels(profile(tmp_path, force=kernel))
    assert found.to_pandas()["highest_roof"].tolist() == ["l2"]
    assert found.to_pandas()["binding"].tolist() != ["l2"]
    head = 'platform = "lassen"\n[application]\nname = "m"\nrank_count = 4\niteration_count = 1\n'
    (tmp_path / "m.toml").write_text(head + found.to_toml())
    expected = kernel["reference_time"] * 1e-3 / kernel["count"]
    assert float(whatif.run(tmp_path / "m.toml")["terms.force"]) == pytest.approx(expected, rel=1e-5, abs=0)


def test_imported_kernels_take_the_measured_time_on_their_device_and_the_ratio_of_roofs_elsewhere(tmp_path):
    phases = whatif.import_kernels(profile(tmp_path, force=FORCE, pack=PACK)).to_toml()
    head = 'platform = "lassen"\n[application]\nname = "m"\nrank_count = 4\niteration_count = 1\n'
    path = tmp_path / "m.toml"
    path.write_text(head + phases)
    here = whatif.run(path)
    assert float(here["terms.force"]) == pytest.approx(2.9463131e-3, rel=1e-5, abs=0)
    assert float(here["terms.pack"]) == pytest.approx(0.321469e-3 / 60, rel=1e-5, abs=0)
    rates = ("l2_bandwidth", "dram_bandwidth", "peak_double_rate", "peak_add_rate", "peak_shared_rate")
    faster = whatif.run(path, overrides={f"platform.node.gpu.{rate}": "x2" for rate in rates})
    assert float(faster["terms.force"]) == pytest.approx((2.9463131e-3 + 2e-6) / 2, rel=1e-5, abs=0)


def test_gpu_is_stated_where_no_part_has_the_name_of_the_device(tmp_path, whatif_main):
    text = profile(tmp_path, force=FORCE).read_text().replace("Tesla V100-SXM2-16GB", "NVIDIA H42")
    (tmp_path / "other.json").write_text(text)
    assert "binding" not in whatif.import_kernels(tmp_path / "other.json").to_pandas()
    assert whatif.import_kernels(tmp_path / "other.json", gpu="v100-sxm2-16gb").to_pandas()["binding"][0] == "l2"
    code, _, err = whatif_main("import", "kernels", "other.json", "--gpu", "epyc-7763")
    assert (code, "--gpu epyc-7763: no GPU" in err) == (2, True)
    code, _, err = whatif_main("import", "kernels", "other.json", "--gpu", "v100")
    assert (code, "--gpu v100: no GPU; did you mean `v100-sxm2-16gb`" in err) == (2, True)


def test_measured_times_without_a_gpu_and_a_gpu_without_measured_times_are_told(tmp_path, whatif_main):
    text = profile(tmp_path, force=FORCE).read_text().replace("Tesla V100-SXM2-16GB", "NVIDIA H42")
    (tmp_path / "other.json").write_text(text)
    assert (
        "measured times are not used: no part is the GPU `NVIDIA H42`"
        in whatif_main("import", "kernels", "other.json")[2]
    )
    other = whatif.import_kernels(tmp_path / "other.json", gpu="v100-sxm2-16gb")
    assert other.notes[0].startswith(
        "warning: the times were measured on `NVIDIA H42`, the roofs are those of Tesla V1"
    )
    profile(tmp_path, force=FORCE | {"reference_time": 0.0})
    code, out, err = whatif_main("import", "kernels", "profile.json", "--gpu", "v100-sxm2-16gb")
    assert (code, out, "no kernel has a measured time" in err) == (2, "", True)


@pytest.mark.parametrize("name", ["jacobi2d", "minife", "minimd"])
def test_shipped_kernels_are_anchored(name):
    phases = whatif.load(name).program.loaded.scenario.application.phases.values()
    kernels = [phase for phase in phases if phase.kind == "kernel"]
    assert kernels
    assert all(phase.measured_factor is not None or phase.launch_time is not None for phase in kernels)


def test_jacobi2d_has_the_factors_of_its_profile():
    table = whatif.import_kernels(JACOBI).to_pandas()
    stencil = table[table["operations"] == 161061273600].iloc[0]
    stated = float(whatif.run("jacobi2d")["terms.stencil"])
    assert stencil["reference_time"] / 100 == pytest.approx(stated, rel=1e-4, abs=0)


def test_memory_bound_kernels_are_within_15_per_cent_between_v100_and_gh200():
    table = whatif.comparisons("kernels").table().to_pandas()
    pair = table["measured on"].isin(["V100", "GH200"]) & table["predicted on"].isin(["V100", "GH200"])
    bound = table[pair & (table["limit"] == "memory bandwidth")]
    assert bound["kernels"].tolist() == [34, 34]
    assert (bound["mean absolute error"] < 0.1).all()
    assert (table[~pair & (table["limit"] == "memory bandwidth")]["mean absolute error"] > 0.15).all()
