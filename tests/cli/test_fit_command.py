"""`whatif fit` and `whatif import`: from files of measurements to a platform file and a prediction on it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import tomli

import whatif
from tests.paths import DATA, ROOT
from whatif.cli.main import VERBS
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.schema.load import load_platform
from whatif.schema.parameters import parameter_table
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.status import _message
from whatif.units import parse_quantity

FUGAKU = DATA / "importers" / "network" / "fugaku" / "riken_imb_pingpong.csv"
COLUMNS = "message_size=size (bytes),time=time (seconds)"
COPIES = DATA / "ahead" / "memcpy_sweep.csv"
MINE = """\
# Our machine: keep me.
extends = "perlmutter"
name = "Ours"

[network.inter_node]       # measured in May
short_limit = "64 B"       # by hand
eager_limit = "32 KiB"

[network.inter_node.postal]
short = { latency = "1 us", bandwidth = "1 GB/s" }   # guessed

[sources]
"network.inter_node" = { grade = "assumed", source = "a guess" }
"network.inter_node.postal.short.latency" = { grade = "assumed", source = "a worse guess" }
"""


def osu(time_of, sizes=tuple(2**n for n in range(23)), version="7.4"):
    rows = "".join(f"{size:<10}{time_of(size) * 1e6:18.6f}\n" for size in sizes)
    return f"# OSU MPI Latency Test v{version}\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n{rows}"


def three_protocols(size):
    if size <= 256:
        return 1.2e-6 + size / 2e9
    return 2.5e-6 + size / 6e9 if size <= 16384 else 7e-6 + size / 12e9


@pytest.fixture
def measured(tmp_path):
    folder = tmp_path / "osu"
    folder.mkdir()
    (folder / "latency.txt").write_text("srun: job 1 queued\n" + osu(three_protocols))
    (folder / "notes.md").write_text("# how we measured\n")
    return folder


def test_a_folder_of_outputs_becomes_a_machine_that_predicts(whatif_main, measured):
    """The parameters that made the times come back, and the prediction uses them."""
    code, out, err = whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen", "--format", "json")
    assert code == 0
    found = {row["parameter"]: row for row in json.loads(out)["rows"]}
    truth = {"short": (1.2e-6, 2e9), "eager": (2.5e-6, 6e9), "rendezvous": (7e-6, 12e9)}
    for protocol, (latency, bandwidth) in truth.items():
        path = f"network.inter_node.postal.{protocol}"
        assert found[f"{path}.latency"]["value"] == pytest.approx(latency, rel=2e-3)
        assert found[f"{path}.bandwidth"]["value"] == pytest.approx(bandwidth, rel=2e-3)
        assert found[f"{path}.bandwidth"]["unit"] == "B/s"
    assert "short 256 B, eager 16 KiB" in err
    assert "notes.md" in err
    assert "network.inter_node.max_rate was not fitted" in err
    model = "--set", "application.phases.halo.model=postal"
    code, out, err = whatif_main("run", "jacobi2d", "--platform", "ours", "--platform-dir", ".", "--point", *model)
    assert code == 0
    assert "platform ours" in err


def test_rates_of_a_node_fitted_onto_those_of_its_ports_are_told(whatif_main):
    """Of several processes, `additional_bandwidth` and `injection_bandwidth` are those of the node."""
    outputs = str(DATA / "importers" / "network" / "blue_waters" / "orig_max_rate1.txt")
    unused = "network.port_count remains, so that additional_bandwidth is not used"
    for machine, told in (("perlmutter", True), ("generic_cpu", True), ("blue_waters", False)):
        code, _, err = whatif_main("fit", "network", outputs, "-o", f"our_{machine}.toml", "--extends", machine)
        assert (code, unused in err) == (0, told)
    with Path("our_perlmutter.toml").open("a") as file:
        file.write('\n[network]\nport_count = "none"\n')
    code, _, err = whatif_main("fit", "network", outputs, "-o", "our_perlmutter.toml")
    assert (code, unused in err) == (0, False)


CSCS = DATA / "importers" / "network" / "cscs" / "mpich_02.txt"


@pytest.mark.parametrize(
    ("machine", "distance", "told"),
    [
        ("perlmutter", "inter-node", None),
        (
            "fugaku",
            "inter-node",
            "links of network.topology carry 6.8 GB/s: rendezvous messages between nodes take",
        ),
        ("dgx_h100", "intra-socket", "those between GPUs take node.peer_link"),
        ("lassen", "intra-socket", None),
        ("generic_cpu", "intra-socket", None),
        ("generic_cpu", "inter-socket", "network.inter_socket is not used: node.socket_count is 1"),
    ],
)
def test_values_that_a_platform_does_not_use_or_limits_are_told(whatif_main, machine, distance, told):
    """24 GB/s between nodes are more than a link of Fugaku carries; GPUs with links send over these."""
    options = ("--distance", distance, "-o", "ours.toml", "--extends", machine)
    code, _, err = whatif_main("fit", "network", str(CSCS), *options)
    warnings = [
        line for line in err.splitlines() if "links of network" in line or "take node" in line or "not used" in line
    ]
    assert code == 0
    assert [told in line for line in warnings] == ([] if told is None else [True])


def test_messages_in_a_node_of_a_new_machine_of_gpus_replace_none(whatif_main):
    """`whatif new` removes those of the generic server, as GPUs have links of their own."""
    whatif_main("new", "mine", "--gpu", "h100-sxm5-80gb", "--gpus-per-node", "8")
    code, _, err = whatif_main("fit", "network", str(CSCS), "--distance", "intra-socket", "-o", "mine_machine.toml")
    assert (code, "those between GPUs take node.peer_link" in err) == (0, True)
    network = load_platform(Path("mine_machine.toml"))[0].network
    assert network.intra_socket.postal.rendezvous.bandwidth == pytest.approx(24.3e9, rel=0.01)
    assert network.inter_socket is None


def test_messages_in_a_file_that_states_links_between_gpus_are_the_default_which_is_told(whatif_main):
    gpus = 'node.gpu.extends = "h100-sxm5-80gb"\nnode.gpu_count = 8\nnode.peer_link.extends = "nvlink4-18"\n'
    Path("mine.toml").write_text(f'extends = "turin"\nname = "M"\n{gpus}')
    fit = "fit", "network", str(CSCS), "--distance", "intra-socket", "-o"
    told = 'the default of application.buffers is "host"'
    assert told in whatif_main(*fit, "mine.toml")[2]
    assert told not in whatif_main(*fit, "ours.toml", "--extends", "lassen")[2]


def test_lone_messages_of_a_machine_take_the_times_they_were_fitted_to(whatif_main):
    """Two nodes that exchange one message each, from the file that was written, on machines with and without links."""
    for machine in ("lassen", "perlmutter", "dgx_h100"):
        whatif_main("fit", "network", str(FUGAKU), "--columns", COLUMNS, "-o", "ours.toml", "--extends", machine)
        fit = whatif.fit_network(FUGAKU, columns=COLUMNS).detail
        for size in (8, 4096, 4194304):
            assert _time_of_a_message(size) == pytest.approx(
                float(fit.curve("postal", np.array(float(size)))), rel=1e-5
            )
        Path("ours.toml").unlink()


def _time_of_a_message(size):
    grid = {"scaling": "weak", "cells": {"x": 9}, "decomposition": "balanced"}
    halo = {"kind": "halo", "model": "postal", "neighbours": "faces", "message_size": f"{size} B"}
    application = {"name": "A", "rank_count": 2, "ranks_per_node": 1, "iteration_count": 1, "buffers": "host"}
    tables = {**application, "grid": grid, "phases": {"halo": halo}}
    return float(whatif.run(Scenario.of(application=tables, platform=Path("ours.toml")))["iteration_time"])


@pytest.mark.parametrize("model", ["postal", "max_rate", "injection", "k_model", "node_aware"])
def test_a_lone_message_takes_the_fitted_time_by_every_model(whatif_main, measured, model):
    """Ping-pongs of one pair are also the latency and the bandwidth of one process where several would share."""
    for _ in range(2):
        whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "perlmutter")
    network = tomli.loads(Path("ours.toml").read_text())["network"]["inter_node"]
    assert network["max_rate"]["eager"] == {"latency": "2.5 us", "base_bandwidth": "6 GB/s"}
    grid = {"scaling": "weak", "cells": {"x": 1024, "y": 1024}}
    phase = {"kind": "halo", "model": model, "neighbours": "faces", "message_size": "8 KiB"}
    application = {"name": "A", "rank_count": 2, "ranks_per_node": 1, "iteration_count": 1, "buffers": "host"}
    application |= {"grid": grid, "phases": {"halo": phase}, "congestion": "none"}
    time = float(whatif.run(Scenario.of(application=application, platform=Path("ours.toml")))["iteration_time"])
    assert time == pytest.approx(2.5e-6 + 8192 / 6e9, rel=1e-3)


def test_fitted_values_are_in_the_platform_with_source_grade_and_error(whatif_main, measured):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    loaded = Scenario.open("jacobi2d", platform="ours", folders=[Path()]).program.loaded
    parameter = parameter_table(loaded)["platform.network.inter_node.postal.eager.bandwidth"]
    assert parameter.grade == "measured"
    assert re.fullmatch(r"fitted to .*latency\.txt.* \(OSU.* 7\.4\)|fitted to osu \(OSU.* 7\.4\)", parameter.source)
    assert parameter.fitted.standard_error == pytest.approx(0, abs=parameter.value * 1e-2)
    assert parameter.fitted.standard_error > 0
    assert parameter.fitted.ranges["message_size"] == (512, 16384)
    beside = parameter_table(loaded)["platform.network.inter_node.max_rate.eager.base_bandwidth"]
    assert beside.fitted is None
    assert beside.source.startswith("Choi")


def test_a_file_of_ones_own_keeps_its_comments_and_loses_its_guesses(whatif_main, measured):
    Path("mine.toml").write_text(MINE)
    code, _, _ = whatif_main("fit", "network", "osu", "-o", "mine.toml")
    assert code == 0
    text = Path("mine.toml").read_text()
    for comment in ("# Our machine: keep me.", "# measured in May", "# by hand", "# guessed"):
        assert comment in text
    loaded = Scenario.open("jacobi2d", platform="mine", folders=[Path()]).program.loaded
    parameters = parameter_table(loaded)
    assert parameters["platform.network.inter_node.short_limit"].value == 256
    fitted = [path for path in parameters if path.startswith("platform.network.inter_node.postal.")]
    assert len(fitted) == 6
    assert {parameters[path].grade for path in fitted} == {"measured"}
    assert "guess" not in "".join(parameters[path].source for path in fitted)


def test_fitting_twice_changes_nothing(whatif_main, measured):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    first = Path("ours.toml").read_text()
    whatif_main("fit", "network", "osu", "-o", "ours.toml")
    assert Path("ours.toml").read_text() == first


def test_sizes_of_a_protocol_whose_parameter_is_a_bound_are_within_the_fit(whatif_main):
    """R_Ci of rendezvous messages of Blue Waters ends at 0, without a range: 100 kB lie within those of the table."""
    outputs = str(DATA / "importers" / "network" / "blue_waters" / "orig_max_rate1.txt")
    whatif_main("fit", "network", outputs, "-o", "ours.toml", "--extends", "lassen")
    halo = "application.phases.halo"
    node_aware = "--point", "--set", f"{halo}.model=node_aware", "--set", "application.ranks_per_node=4"
    scenario = "run", "jacobi2d", "--platform", "ours", "--platform-dir", ".", *node_aware
    assert "lie outside" not in whatif_main(*scenario, "--set", f"{halo}.message_size=100 kB")[2]
    assert whatif_main(*scenario, "--set", f"{halo}.message_size=1 MB")[2].count("lie outside the 4 B to 256 KiB") == 1


def test_predictions_beyond_the_measured_sizes_are_warnings(whatif_main, measured):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    halo = "application.phases.halo"
    scenario = "run", "jacobi2d", "--platform", "ours", "--platform-dir", ".", "--set", f"{halo}.model=postal"
    text = "halo: sizes of 8 MiB lie outside the 1 B to 4 MiB that network.inter_node.postal was fitted to"
    assert text in whatif_main(*scenario, "--point", "--set", f"{halo}.message_size=8 MiB")[2]
    assert "lie outside" not in whatif_main(*scenario, "--point", "--set", f"{halo}.message_size=4 MiB")[2]
    sweep = "--set", f"{halo}.message_size=1 B", "--sweep", f"{halo}.message_size=1 MiB, 8 MiB, 16 MiB"
    assert "sizes of 8 MiB to 16 MiB lie" in whatif_main(*scenario, *sweep)[2]


def test_a_value_set_from_outside_is_no_longer_the_fitted_one(whatif_main, measured):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    path = "platform.network.inter_node.postal.eager.latency"
    scenario = Scenario.open("jacobi2d", platform="ours", folders=[Path()])
    assert scenario.program.parameters[path].fitted is not None
    assert scenario.changed({path: "1 us"}).moved("ours").program.parameters[path].fitted is None


def test_explain_shows_the_standard_error(whatif_main, measured):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    model = "--set", "application.phases.halo.model=postal"
    _, out, _ = whatif_main("explain", "jacobi2d", "halo", "--platform", "ours", "--platform-dir", ".", *model)
    assert re.search(r"postal\.eager\.latency: 2\.\d+ us ± [\d.]+ \w+  \(measured; fitted to", out)


def test_points_have_residuals(whatif_main, measured):
    code, out, _ = whatif_main("fit", "network", "osu", "--points", "--format", "json")
    assert code == 0
    rows = json.loads(out)["rows"]
    assert len(rows) == 23
    assert max(abs(row["fitted_time"] / row["time"] - 1 - row["residual"]) for row in rows) < 1e-12
    assert 0 < max(abs(row["residual"]) for row in rows) < 1e-3


def test_a_csv_file_with_named_columns_is_fitted(whatif_main):
    code, out, _ = whatif_main(
        "fit", "network", FUGAKU, "--columns", COLUMNS, "--limits", "16 B, 8 KiB", "--format", "csv"
    )
    assert code == 0
    assert out.splitlines()[0] == "parameter,value,standard_error,unit,points,rms_residual"
    assert len(out.splitlines()) == 7


def test_a_gpu_measured_by_two_tools_is_written_as_one(whatif_main):
    gpu = DATA / "gpuroofperf" / "gpu_params" / "tesla_v100.csv"
    stream = (DATA / "importers" / "gpu" / "babelstream" / "v3.3-titanxp-cuda.txt").read_text()
    Path("stream.txt").write_text(stream.replace("TITAN Xp", "V100-SXM2-16GB"))
    code, _, err = whatif_main("fit", "gpu", gpu, "stream.txt", "-o", "ours.toml", "--extends", "summit")
    assert code == 0
    assert "dram_bandwidth: measurements differ" in err
    before, after = load_platform("summit")[0].node.gpu, load_platform(Path("ours.toml"))[0].node.gpu
    assert after.peak_double_rate == pytest.approx(before.peak_double_rate, rel=1e-5)
    assert after.dram_bandwidth != before.dram_bandwidth
    assert after.name == before.name


def test_stated_rates_of_a_gpu_need_no_points(whatif_main):
    gpu = DATA / "gpuroofperf" / "gpu_params" / "tesla_v100.csv"
    code, out, _ = whatif_main("fit", "gpu", gpu, "--format", "csv")
    assert (code, out.splitlines()[1].split(",")[:2]) == (0, ["node.gpu.peak_single_rate", "13083722500000.0"])
    assert whatif_main("fit", "gpu", gpu, "--points")[0] == 0


def test_copies_are_fitted_against_the_link_of_the_platform(whatif_main):
    code, out, err = whatif_main(
        "fit", "transfer", COPIES, "--machine", "Titan", "--extends", "titan", "-o", "ours.toml"
    )
    assert code == 0
    assert 'node.host_link.staging is used by transfers with `pageable_model = "staged"` only' in err
    link = load_platform(Path("ours.toml"))[0].node.host_link
    assert link.staging.read_bandwidth == pytest.approx(2.59e9, rel=0.02)
    assert "node.host_link.pinned_read_latency" in out


def test_kernels_of_another_device_or_with_the_correction_of_others_are_told(whatif_main):
    calls, on_gpus, remains = (
        str(DATA / "kernels" / "two_cores_kernels.csv"),
        "those of the GPUs",
        "correction remains 1.2",
    )
    for machine, told in (("dgx_h100", True), ("fugaku", False)):
        err = whatif_main("fit", "kernel", calls, "-o", f"{machine}_of_mine.toml", "--extends", machine)[2]
        assert (on_gpus in err, remains in err) == (told, False)
    Path("corrected.toml").write_text('extends = "generic_cpu"\nname = "C"\nkernels.correction = 1.2\n')
    err = whatif_main("fit", "kernel", calls, "-o", "corrected.toml")[2]
    assert (on_gpus in err, remains in err) == (False, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["fit", "network", "osu", "-o", "new.toml"],
            "new.toml: no such file; a new one must extend a platform",
        ),
        (["fit", "network", "osu", "-o", "new.toml", "--extends", "lasen"], "did you mean `lassen`"),
        (["fit", "network", "osu", "--limits", "64 KiB, 128 B"], "expected two sizes, the smaller one first"),
        (["fit", "network", "osu", "--limits", "64, 128"], "expected two sizes"),
        (["fit", "network", "osu", "--limits", "64 Kb, 128 KB"], "unknown unit `Kb`"),
        (["fit", "network", "osu", "--where", "machine"], "expected HEADING=VALUE"),
        (["fit", "network", "nothing"], "nothing"),
        (["fit", "network", "osu", "-o", "new", "--extends", "lassen"], "call the file NAME.toml"),
        (["fit", "transfer", COPIES, "--machine", "Titan"], "the link that was measured is not known"),
        (["fit", "network", FUGAKU], "message_size=size [B],time=time [us]"),
    ],
)
def test_invalid_measurements_are_refused_and_nothing_is_written(whatif_main, measured, arguments, message):
    code, out, err = whatif_main(*arguments)
    assert code != 0
    assert out == ""
    assert message in err
    assert not Path("new.toml").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (osu(lambda size: 1e-6 / size), "go down"),
        (osu(three_protocols, sizes=(8,)), "size"),
        (osu(three_protocols, sizes=(8, 16)), "size"),
        ("", "empty"),
        ("<!DOCTYPE html><html><body>404</body></html>", "web page"),
        ("# OSU MPI Latency Test v7.4\n# Size Latency (us)\n1 1,5\n2 1,6\n", "1,5"),
        ("# OSU MPI Latency Test v7.4\n# Size Latency (us)\n", "no "),
    ],
)
def test_measurements_that_allow_no_fit_are_refused_with_the_reason(whatif_main, tmp_path, text, message):
    Path("bad.txt").write_text(text)
    code, out, err = whatif_main("fit", "network", "bad.txt", "-o", "new.toml", "--extends", "lassen")
    assert code in (2, 3)
    assert out == ""
    assert message in err
    assert not Path("new.toml").exists()


def test_a_shipped_platform_is_not_written_to(whatif_main, measured):
    root = ROOT / "platforms" / "lassen.toml"
    before = root.read_text()
    code, _, err = whatif_main("fit", "network", "osu", "-o", root)
    assert code == 2
    assert "shipped with the program" in err
    assert root.read_text() == before


@pytest.mark.parametrize("file_format", ["table", "csv", "json", "markdown"])
def test_import_prints_the_table_of_a_file(whatif_main, measured, file_format):
    code, out, _ = whatif_main("import", "network", "osu", "--format", file_format)
    assert code == 0
    assert "ping_pong" in out


def test_kernels_of_a_profile_become_phases_that_load(whatif_main):
    profile = next((DATA / "gpuroofperf").rglob("rcb-P2.json"))
    code, out, _ = whatif_main("import", "kernels", profile)
    assert code == 0
    Path("s.toml").write_text(f'extends = "minife"\n\n{out}')
    assert whatif_main("run", "s.toml", "--point")[0] == 0


def test_every_verb_has_help(whatif_main):
    for verb in VERBS:
        assert whatif_main(verb, "--help")[0] == 0
    for verb, kinds in {
        "fit": ("network", "gpu", "transfer"),
        "import": ("network", "gpu", "transfer", "kernels", "runs"),
    }.items():
        for kind in kinds:
            assert "Usage" in whatif_main(verb, kind, "--help")[1]


def test_the_covariance_of_a_fit_can_be_had_from_its_file(whatif_main, measured):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    entry = load_platform(Path("ours.toml"))[0].fits["network.inter_node.postal.rendezvous"]
    assert entry.parameters == ["latency", "bandwidth"]
    assert [error.dimension for error in entry.standard_errors] == [
        parse_quantity("1 s").dimension,
        parse_quantity("1 B/s").dimension,
    ]
    assert entry.correlation[0][1] == entry.correlation[1][0]
    assert 0 < entry.correlation[0][1] < 1
    assert entry.point_count == 8


def test_a_fit_entry_must_be_square(whatif_main, measured):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    text = Path("ours.toml").read_text()
    Path("ours.toml").write_text(text.replace('parameters = ["latency", "bandwidth"]', 'parameters = ["latency"]', 1))
    code, _, err = whatif_main("check", "ours.toml")
    assert code == 3
    assert "as many entries as `parameters`" in err


def test_the_fitted_platform_reproduces_its_formula(whatif_main, measured):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    sets = {"application.phases.halo.model": "postal", "application.phases.halo.message_size": "1 MiB"}
    program = Scenario.open("jacobi2d", platform="ours", folders=[Path()], overrides=sets).program
    time = float(evaluate(program).values["halo.inter_node.message_time"].ravel()[0])
    assert time == pytest.approx(three_protocols(2**20), rel=2e-3)


def test_copies_beyond_the_measured_sizes_are_warnings(whatif_main):
    Path("copy.toml").write_text(
        'platform = "titan"\n[application]\nname = "Copy"\nrank_count = 1\niteration_count = 1\n'
        '[application.phases.copy]\nkind = "transfer"\ndirection = "host_to_device"\nmemory = "pageable"\n'
        'pageable_model = "staged"\ntransfer_size = "1 GiB"\n'
    )
    assert (
        "copy: sizes of 1 GiB lie outside the 1 B to 256 MiB that node.host_link" in whatif_main("run", "copy.toml")[2]
    )
    sets = "--set", "application.phases.copy.transfer_size=256 MiB"
    assert "outside" not in whatif_main("run", "copy.toml", *sets)[2]


def test_a_resolved_scenario_keeps_fitted_values(whatif_main, measured):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    Path("whole.toml").write_text(whatif_main("resolve", "jacobi2d", "--platform", "ours", "--platform-dir", ".")[1])
    path = "platform.network.inter_node.postal.eager.latency"
    before = Scenario.open("jacobi2d", platform="ours", folders=[Path()]).program.parameters[path].fitted
    assert Scenario.open(Path("whole.toml")).program.parameters[path].fitted == before
    assert before is not None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["latency", "bandwidth"]', '["latency", "nonsense"]', "has no value `nonsense`"),
        ('["latency", "bandwidth"]', '["bandwidth", "latency"]', "the standard error of `bandwidth` is in s"),
        ("[[1.0, ", "[[0.5, ", "symmetric with ones"),
        ('["1 B", ', '["9 TB", ', "the smallest and the largest"),
        ('standard_errors = ["', 'standard_errors = ["-', "must be non-negative"),
        ('"network.inter_node.postal.short" = {', '"network.nowhere.postal.short" = {', "has no value `latency`"),
    ],
)
def test_a_fit_entry_that_cannot_be_is_refused(whatif_main, measured, old, new, message):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    text = Path("ours.toml").read_text()
    assert old in text
    Path("ours.toml").write_text(text.replace(old, new, 1))
    code, _, err = whatif_main("check", "ours.toml")
    assert (code, message in err) == (3, True), err


def test_entries_under_headers_of_their_own_are_replaced(whatif_main, measured):
    """Editors write `[fits."NAME"]`, which is as good as a line of `[fits]`."""
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    whole = Path("ours.toml").read_text()
    head, _, fits = whole.partition("[fits]\n")
    for line in fits.splitlines():
        name, _, entry = line.partition(" = ")
        pairs = re.findall(r"(\w+) = (\[\[.*?\]\]|\[.*?\]|\{.*?\}|[\d.e-]+)", entry)
        head += f"[fits.{name}]\n" + "".join(f"{key} = {value}\n" for key, value in pairs) + "\n"
    Path("ours.toml").write_text(head)
    assert whatif_main("check", "ours.toml")[0] == 0
    assert whatif_main("fit", "network", "osu", "-o", "ours.toml")[0] == 0
    assert load_platform(Path("ours.toml"))[0].fits.keys() == tomli.loads(whole)["fits"].keys()


def test_the_same_file_twice_counts_once(whatif_main, measured):
    once = whatif_main("fit", "network", "osu/latency.txt")[1]
    assert whatif_main("fit", "network", "osu/latency.txt", "osu/../osu/latency.txt")[1] == once


def test_a_part_can_be_swept(whatif_main):
    sweep = "--sweep", "platform.node.gpu.extends=a100-sxm4-40gb, h200-sxm"
    code, out, _ = whatif_main("run", "jacobi2d", "--platform", "perlmutter", *sweep, "--format", "json")
    assert code == 0
    rows = json.loads(out)["rows"]
    for row, name in zip(rows, ("a100-sxm4-40gb", "h200-sxm"), strict=True):
        sets = "--set", f"platform.node.gpu.extends={name}"
        alone = json.loads(
            whatif_main("run", "jacobi2d", "--platform", "perlmutter", *sets, "--point", "--format", "json")[1]
        )
        assert row["total_time"] == alone["rows"][0]["total_time"]
    assert rows[0]["total_time"] > rows[1]["total_time"]


def test_other_overrides_of_a_part_apply_to_it(whatif_main):
    ways = ["platform.node.gpu.dram_bandwidth=10 TB/s", "platform.node.gpu.extends=h200-sxm"]
    answers = {
        whatif_main("run", "jacobi2d", "--point", *(word for way in order for word in ("--set", way)))[1]
        for order in (ways, ways[::-1])
    }
    assert len(answers) == 1


def test_a_protocol_that_nobody_measured_is_assumed(whatif_main, tmp_path):
    """Also where an earlier fit had measured it: then what was known of it goes."""
    Path("all.txt").write_text(osu(three_protocols))
    Path("large.txt").write_text(osu(three_protocols, sizes=tuple(2**n for n in range(9, 23))))
    path = "platform.network.inter_node.postal.short.latency"
    for file, limits, grade in (("all.txt", "256 B, 16 KiB", "measured"), ("large.txt", "0, 16 KiB", "assumed")):
        whatif_main("fit", "network", file, "--limits", limits, "-o", "ours.toml", "--extends", "lassen")
        parameter = Scenario.open("jacobi2d", platform="ours", folders=[Path()]).program.parameters[path]
        assert parameter.grade == grade
        assert (parameter.fitted is not None) == (grade == "measured")
    assert parameter.source.startswith("as eager messages")


def test_a_platform_of_simgrid_shows_its_parameters(whatif_main):
    code, out, _ = whatif_main("import", "network", DATA / "importers" / "network" / "simgrid" / "taurus.xml")
    assert code == 0
    assert "smpi/os" in out


def test_a_fitted_value_that_was_changed_by_hand_is_not_the_fits_any_more(whatif_main, measured):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    path = "platform.network.inter_node.postal.eager.latency"
    text = Path("ours.toml").read_text()
    old = re.search(r'eager\]\nlatency = "(.*?)"', text)[1]
    Path("ours.toml").write_text(text.replace(f'latency = "{old}"', 'latency = "2 us"', 1))
    parameters = Scenario.open("jacobi2d", platform="ours", folders=[Path()]).program.parameters
    assert parameters[path].value == 2e-6
    assert parameters[path].fitted is None
    assert parameters[path.replace("latency", "bandwidth")].fitted is not None


def test_a_platform_can_be_named_by_its_file(whatif_main, measured):
    Path("here").mkdir()
    whatif_main("fit", "network", "osu", "-o", "here/ours.toml", "--extends", "lassen")
    by_file = whatif_main("run", "jacobi2d", "--platform", "here/ours.toml", "--point")
    assert by_file == whatif_main("run", "jacobi2d", "--platform", "ours", "--platform-dir", "here", "--point")
    assert by_file[0] == 0


def test_kernels_of_several_profiles_are_phases_together(whatif_main):
    files = sorted((DATA / "gpuroofperf").rglob("*.json"))
    kernels = [file for file in files if "reference_time" in file.read_text()][:2]
    code, out, _ = whatif_main("import", "kernels", *kernels)
    assert code == 0
    assert out.count("[application.phases.") == sum(
        whatif_main("import", "kernels", file)[1].count("[application.phases.") for file in kernels
    )


def test_json_has_the_limits(whatif_main, measured):
    _, out, _ = whatif_main("fit", "network", "osu", "--format", "json")
    notes = json.loads(out)["notes"]
    assert (notes["short_limit"], notes["eager_limit"], notes["limits"]) == ("256 B", "16 KiB", "found")


def test_parts_are_listed(whatif_main):
    _, out, _ = whatif_main("list", "parts")
    assert "h200-sxm\tgpu\t" in out


@pytest.mark.parametrize(("size", "mark"), [("8 MiB", "▲"), ("4 MiB", "")])
def test_the_explorer_marks_extrapolation(whatif_main, measured, size, mark):
    whatif_main("fit", "network", "osu", "-o", "ours.toml", "--extends", "lassen")
    sets = {"application.phases.halo.model": "postal", "application.phases.halo.message_size": size}
    scenario = Scenario.open("jacobi2d", platform="ours", folders=[Path()], overrides=sets)
    session = Session.start(scenario).sweep("platform.node.gpu.dram_bandwidth")
    text = _message(ExplorerState.start(session), "", busy=False)
    assert text[0] == mark
    assert (f"halo: sizes of {size} lie outside the 1 B to 4 MiB" in text[2]) == bool(mark)


@pytest.mark.parametrize("words", [["time ~ nodes", "runs.csv"], ["runs.csv", "log(time)~nodes"]])
def test_a_formula_in_place_of_a_file_is_told_its_option(whatif_main, tmp_path, words):
    (tmp_path / "runs.csv").write_text("nodes,time [s]\n1,4\n2,2.1\n4,1.2\n")
    code, _, err = whatif_main("fit", "regression", *words)
    formula = next(word for word in words if "~" in word)
    assert (code, f"`{formula}` is not a file; a formula is an option: --formula '{formula}'" in err) == (2, True)
