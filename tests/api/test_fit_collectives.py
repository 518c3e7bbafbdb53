"""`fit_collectives` and `whatif fit collectives`: from outputs and CSV to a platform that predicts."""

from __future__ import annotations

import json

import numpy as np
import pytest

import whatif
from tests.paths import DATA
from whatif.errors import UsageError
from whatif.validation.tables import rows_of

ALPS = DATA / "importers" / "network" / "nccl" / "alps_all_reduce_2_nodes.txt"
FUGAKU = DATA / "importers" / "network" / "fugaku" / "julia_osu_allreduce.csv"
COLUMNS = "test=operation,message_size=size [B],process_count=ranks,time=time [us]"
OF_FUGAKU = "test=allreduce,process_count=1536,message_size=size (bytes),time=avg_time (seconds)"
ALGORITHMS = {"all_reduce": "best", "all_gather": "ring_allgather", "alltoall": "pairwise"}


@pytest.fixture(scope="module")
def polaris(tmp_path_factory):
    """CSV of the measured collectives of Polaris, and the platform that is fitted to it."""
    folder = tmp_path_factory.mktemp("polaris")
    lines = [
        f"{row['collective']},{row['size_B']},{row['ranks']},{row['time_us']}"
        for row in rows_of("gpu_collectives.csv")
        if row["machine"] == "Polaris"
    ]
    (folder / "polaris.csv").write_text("operation,size [B],ranks,time [us]\n" + "\n".join(lines) + "\n")
    fit = whatif.fit_collectives(folder / "polaris.csv", columns=COLUMNS, library="nccl", platform="polaris")
    fit.write(folder / "measured.toml", "polaris")
    return folder, fit


def test_an_unknown_library_is_said_to_be_assumed(whatif_main, tmp_path):
    """CSV of message times in device memory does not state its program; the output of nccl-tests does."""
    assert whatif_main("import", "network", ALPS, "-o", tmp_path / "times.csv")[0] == 0
    unsure = "the library is not stated: times as those of MPI"
    for files, library, said in ((tmp_path / "times.csv", None, True), (tmp_path / "times.csv", "mpi", False),
                                 (tmp_path / "times.csv", "nccl", False), (ALPS, None, False)):  # fmt: skip
        notes = " ".join(whatif.fit_collectives(files, platform="alps", library=library).notes)
        assert (unsure in notes) == said


def test_an_output_that_names_no_program_asks_for_the_operation(tmp_path):
    path = tmp_path / "unnamed.txt"
    path.write_text("# nThread 1 nGpus 1\n# Rank  0 Group  0 Pid 1 on a device  0 [0x07] NVIDIA A100\n"
                    "# size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
                    " 32  1  float  none  -1  106.6  0.00  0.00  0  104.0  0.00  0.00  N/A\n")  # fmt: skip
    with pytest.raises(UsageError, match="state it by --operation, such as alltoall"):
        whatif.fit_collectives(path, platform="alps")


def outside(result):
    """Notes on inputs outside of fitted ranges."""
    return [note.removeprefix("warning: ") for note in result.notes if "outside" in note]


def scenario(folder, platform, **phase):
    phase = {"kind": "collective", "model": "nccl", **phase}
    application = {"name": "one", "rank_count": 8, "iteration_count": 1, "phases": {"all": phase}}
    return whatif.Scenario.of(application=application, platform=str(folder / platform))


@pytest.mark.parametrize("collective", ALGORITHMS)
@pytest.mark.parametrize("ranks", [8, 32, 1024])
def test_scenarios_on_the_written_platform_take_the_fitted_times(polaris, collective, ranks):
    folder, fit = polaris
    points, name = fit.points().to_pandas(), collective.replace("_", "")
    own = points[(points["operation"] == name) & (points["rank_count"] == ranks)]
    asked = scenario(folder, "measured.toml", algorithm=ALGORITHMS[collective], message_size="1 MiB")
    sizes = [f"{int(size)} B" for size in own["message_size"]]
    grid = {"application.phases.all.message_size": sizes}
    found = whatif.sweep(asked, grid, overrides={"application.rank_count": ranks}).columns["iteration_time"]
    np.testing.assert_allclose(found, own["fitted_time"], rtol=2e-5, atol=0)


def test_parameters_are_swept_and_uncertain(polaris):
    folder, _ = polaris
    asked = scenario(folder, "measured.toml", algorithm="ring_allgather", message_size="128 B")
    gap = "platform.network.collectives.between_domains.ring.short.gap"
    times = whatif.sweep(asked, {gap: ["8 us", "18 us"]}).columns["iteration_time"]
    np.testing.assert_allclose(np.diff(times), 7 * 10e-6, rtol=1e-9, atol=0)
    parameter = asked.program.parameters[gap]
    assert parameter.grade == "measured"
    assert 0 < parameter.fitted.standard_error < 0.1 * parameter.value


def test_a_scale_without_measurements_follows_from_the_data_sheet(polaris):
    folder, _ = polaris
    for algorithm in ("best", "ring_allgather"):
        asked = scenario(folder, "measured.toml", algorithm=algorithm, message_size="1 GiB")
        sheet = whatif.run(asked.on("polaris"), overrides={"application.rank_count": 4})
        here = whatif.run(asked, overrides={"application.rank_count": 4})
        assert float(here["iteration_time"]) == float(sheet["iteration_time"])
    assert not outside(whatif.run(asked, overrides={"application.rank_count": 4}))


def test_ranks_and_sizes_outside_of_the_fit_are_told(polaris):
    folder, _ = polaris
    asked = scenario(folder, "measured.toml", algorithm="ring_allgather", message_size="4 GiB")
    told = outside(whatif.run(asked, overrides={"application.rank_count": 2048}))
    table = "network.collectives.between_domains.ring was fitted to"
    assert set(told) == {
        f"all: sizes of 4 GiB lie outside the 128 B to 1 GiB that {table}",
        f"all: numbers of ranks of 2048 lie outside the 8 to 1024 that {table}",
    }


def test_errors_are_told_by_operation_and_number_of_ranks(polaris):
    _, fit = polaris
    assert any(line.split()[:2] == ["allgather", "1024"] for line in fit.notes)
    assert "held out, the largest number of ranks of each operation: mean absolute error" in fit.notes[-1]
    assert "of 65 points" in fit.notes[-1]


def test_ranks_on_more_nodes_than_they_fill_on_the_platform_are_told():
    """Four ranks on each of two nodes: on nodes of eight GPUs they are taken for ranks of one link domain."""
    for platform, told in (("alps", False), ("perlmutter", False), ("gb200_nvl72", False), ("dgx_h100", True)):
        notes = whatif.fit_collectives(ALPS, platform=platform).notes
        assert any("measured with 4 ranks on a node" in note for note in notes) == told
    notes = whatif.fit_collectives(ALPS, platform="dgx_h100", ranks_per_node=8).notes
    assert not any("ranks on a node" in note for note in notes)


def test_a_bandwidth_far_above_the_data_sheet_is_warned_about():
    words = "bandwidth_share: measured bandwidths are"
    assert not any(words in note for note in whatif.fit_collectives(ALPS, platform="alps").notes)
    (note,) = (note for note in whatif.fit_collectives(ALPS, platform="summit").notes if words in note)
    assert note.endswith("of the data sheet; is it the platform, and the ranks of a node, of the measurements?")


def test_fewer_points_than_parameters_have_no_errors(tmp_path):
    text = ALPS.read_text(encoding="utf-8").splitlines(keepends=True)
    rows = [at for at, line in enumerate(text) if line.split()[:1] and line.split()[0].isdigit()]
    few = tmp_path / "few.txt"
    few.write_text("".join(line for at, line in enumerate(text) if at not in rows[:-2]), encoding="utf-8")
    fit = whatif.fit_collectives(few, platform="alps")
    ring = "network.collectives.between_domains.ring"
    told = f"warning: {ring}: 2 points for 3 parameters leave no freedom to estimate their errors"
    assert told in fit.notes
    assert fit.to_pandas()["standard_error"].isna().all()
    assert not any("no freedom" in note for note in whatif.fit_collectives(ALPS, platform="alps").notes)


def test_one_number_of_ranks_says_that_the_error_at_others_is_unknown():
    fit = whatif.fit_collectives(ALPS, platform="alps")
    assert "the error at other numbers is unknown" in fit.notes[-1]
    assert set(fit.points().to_pandas()["operation"]) == {"allreduce"}


@pytest.fixture(scope="module")
def fugaku(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fugaku")
    fit = whatif.fit_collectives(FUGAKU, columns=OF_FUGAKU, ranks_per_node=4)
    fit.write(folder / "ours.toml", "fugaku")
    return folder, fit


def measured(folder, **changes):
    phase = {"kind": "collective", "algorithm": "measured", "operation": "allreduce", "model": "postal"}
    phase |= {"message_size": "1 KiB"}
    application = {"name": "one", "rank_count": 1536, "ranks_per_node": 4, "iteration_count": 1}
    application |= {"phases": {"all": phase | changes}}
    return whatif.Scenario.of(application=application, platform=str(folder / "ours.toml"))


def test_tables_have_the_measured_times(fugaku):
    folder, fit = fugaku
    assert fit.to_pandas()["ranks"].tolist() == [1536]
    assert float(whatif.run(measured(folder))["iteration_time"]) == pytest.approx(57.801e-6, rel=1e-4)
    assert float(whatif.run(measured(folder, message_size="1536 B"))["iteration_time"]) == pytest.approx(
        57.801e-6 * (67.341 / 57.801) ** np.log2(1.5), rel=1e-4
    )


def test_other_ranks_and_placements_than_the_measured_are_refused(fugaku):
    folder, _ = fugaku
    for change in ({"application.rank_count": 1024}, {"application.ranks_per_node": 8}):
        (reason,) = whatif.run(measured(folder), overrides=change).reasons
        assert "allreduce was measured on 1536 ranks, 4 of a node" in reason


def test_sizes_are_compared_with_the_table_of_the_same_ranks(tmp_path):
    tables = [(8, '["8 B", "1 KiB"]', '["2 us", "4 us"]'), (16, '["1 KiB", "1 MiB"]', '["5 us", "90 us"]')]
    lines = ['extends = "fugaku"', 'name = "ours"', "[network.collectives.measured]"]
    for ranks, sizes, times in tables:
        keys = f'operation = "allreduce", library = "mpi", rank_count = {ranks}, sizes = {sizes}, times = {times}'
        lines.append(f"ranks_{ranks} = {{ {keys} }}")
    (tmp_path / "ours.toml").write_text("\n".join(lines))
    question = measured(tmp_path, message_size="64 KiB")
    assert outside(whatif.run(question, overrides={"application.rank_count": 16})) == []
    told = outside(whatif.run(question, overrides={"application.rank_count": 8}))
    assert told == [
        "all: sizes of 64 KiB lie outside the 8 B to 1 KiB that network.collectives.measured was measured at"
    ]


def test_sizes_beyond_a_table_are_told(fugaku):
    folder, _ = fugaku
    told = outside(whatif.run(measured(folder, message_size="1 GiB")))
    assert told == [
        "all: sizes of 1 GiB lie outside the 4 B to 1 MiB that network.collectives.measured was measured at"
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operation": "allgather"}, "no measured allgather of mpi; it has allreduce"),
        ({"operation": None}, "needs the operation; .* has allreduce"),
        ({"model": "nccl"}, "no measured allreduce of nccl"),
        ({"distance": "inter_node"}, "no effect with"),
    ],
)
def test_contradictions_of_measured_phases_are_refused(fugaku, changes, message):
    asked = measured(fugaku[0], **{key: value for key, value in changes.items() if value is not None})
    if changes == {"operation": None}:
        phase = {"kind": "collective", "algorithm": "measured", "model": "postal", "message_size": "1 KiB"}
        application = {"name": "one", "rank_count": 1536, "ranks_per_node": 4, "iteration_count": 1}
        asked = whatif.Scenario.of(
            application={**application, "phases": {"all": phase}}, platform=str(fugaku[0] / "ours.toml")
        )
    with pytest.raises(whatif.WhatifError, match=message):
        whatif.run(asked)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ('sizes = ["8 B", "4 B"], times = ["1 us", "2 us"]', "`sizes` must ascend"),
        ('sizes = ["8 B"], times = ["1 us", "2 us"]', "`sizes` has 1 entries, `times` 2"),
        ('sizes = ["8 us"], times = ["1 us"]', "`8 us` is not allowed; state it as `64 KiB`"),
        ('sizes = ["8 B"], times = ["0 s"]', "`times` must be greater than 0"),
    ],
)
def test_damaged_tables_are_refused(tmp_path, lists, message):
    table = f'{{ operation = "allreduce", library = "mpi", rank_count = 8, {lists} }}'
    text = f'extends = "fugaku"\nname = "bad"\n[network.collectives.measured]\na = {table}\n'
    (tmp_path / "ours.toml").write_text(text)
    with pytest.raises(whatif.WhatifError, match=message):
        whatif.run(measured(tmp_path))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("operation,size [B],ranks,time [us]\nallreduce,8,8,1\n", {"library": "nccl"}, "name a platform with GPUs"),
        ("operation,size [B],ranks,time [us]\nallreduce,8,8,1\n", {"library": "ncl"}, "expected one of mpi, nccl"),
        ("operation,size [B],ranks,time [us]\nallreduce,8,8.5,1\n", {}, "`8.5` is not a number of ranks"),
        ("operation,size [B],ranks,time [us]\nping_pong,8,8,1\n", {}, "no collective was measured, only ping_pong"),
        ("operation,size [B],ranks,time [us]\nallreduce,8,8,x\n", {}, ":2"),
        ("operation,size [B],ranks,time [us]\n", {}, "no rows"),
        (
            "operation,size [B],ranks,time [us]\nallreduce,8,8,1\n",
            {"library": "nccl", "platform": "fugaku"},
            "does not describe GPUs that are linked",
        ),
    ],
)
def test_files_that_allow_no_fit_are_refused(tmp_path, text, options, message):
    (tmp_path / "times.csv").write_text(text)
    with pytest.raises(whatif.WhatifError, match=message):
        whatif.fit_collectives(tmp_path / "times.csv", columns=COLUMNS, **options)


def test_missing_ranks_must_be_stated(tmp_path):
    (tmp_path / "times.csv").write_text("size,time\n8,1e-6\n64,2e-6\n")
    columns = "test=barrier,message_size=size [B],time=time [s]"
    with pytest.raises(UsageError, match="state it by --ranks"):
        whatif.fit_collectives(tmp_path / "times.csv", columns=columns)
    table = whatif.fit_collectives(tmp_path / "times.csv", columns=columns, ranks=64).to_pandas()
    assert table["ranks"].tolist() == [64]


OSU = """# OSU MPI {} Latency Test v7.2
# Size       Avg Latency(us)
1                       5.00
1024                   20.00
"""
IMB = """# Benchmarking Allgather
# #processes = 4
#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
1024         1000        9.00        11.00        10.00
"""


@pytest.mark.parametrize(("name", "smallest"), [("Allgather", 64.0), ("All-to-All", 64.0), ("Allreduce", 1.0)])
def test_osu_prints_the_part_of_one_rank(tmp_path, name, smallest):
    (tmp_path / "osu.txt").write_text(OSU.format(name))
    table = whatif.fit_collectives(tmp_path / "osu.txt", ranks=64).to_pandas()
    assert table[["smallest", "largest", "ranks"]].to_numpy().tolist() == [[smallest, 1024 * smallest, 64]]


def test_imb_states_ranks_and_prints_the_part_of_one(tmp_path):
    (tmp_path / "imb.txt").write_text(IMB)
    (row,) = whatif.fit_collectives(tmp_path / "imb.txt").to_pandas().to_dict("records")
    assert (row["operation"], row["library"], row["ranks"], row["smallest"]) == ("allgather", "mpi", 4, 4096)


def test_files_of_several_tools_are_refused(tmp_path):
    (tmp_path / "osu.txt").write_text(OSU.format("Allreduce"))
    with pytest.raises(UsageError, match="several tools"):
        whatif.fit_collectives([tmp_path / "osu.txt", ALPS], ranks=8)


def test_the_command_prints_parameters_and_writes_the_platform(tmp_path, whatif_main):
    path = tmp_path / "ours.toml"
    code, out, err = whatif_main(
        "fit", "collectives", str(ALPS), "-o", str(path), "--extends", "alps", "--format", "json"
    )
    assert code == 0, err
    names = [row["parameter"] for row in json.loads(out)["rows"]]
    assert "network.collectives.between_domains.ring.bandwidth_share" in names
    assert f"written: {path}" in err
    assert 'grade = "measured"' in path.read_text()


def test_the_command_writes_tables_of_a_library_of_gpus(tmp_path, whatif_main):
    path = tmp_path / "ours.toml"
    code, _, err = whatif_main("fit", "collectives", str(ALPS), "--tables", "-o", str(path), "--extends", "alps")
    assert code == 0, err
    asked = scenario(tmp_path, "ours.toml", algorithm="measured", operation="allreduce", message_size="128 MiB")
    assert float(whatif.run(asked)["iteration_time"]) == pytest.approx(1916.4e-6, rel=1e-5)


def test_one_large_size_is_written_with_what_it_does_not_show_graded_assumed(tmp_path):
    (tmp_path / "times.csv").write_text(
        "operation,size [B],ranks,time [us]\nall_reduce,0,8,15\nall_reduce,17179869184,8,70000\n"
    )
    fit = whatif.fit_collectives(tmp_path / "times.csv", columns=COLUMNS, library="nccl", platform="mi300x_node")
    assert len(fit.points()) == 1
    fit.write(tmp_path / "ours.toml", "mi300x_node")
    asked = scenario(tmp_path, "ours.toml", algorithm="best", message_size="17179869184 B")
    assert float(whatif.run(asked)["iteration_time"]) == pytest.approx(70e-3, rel=1e-3)
    table = "platform.network.collectives.in_domain.ring"
    grades = {key: asked.program.parameters[f"{table}.{key}"].grade for key in ("bandwidth_share", "rendezvous.gap")}
    assert grades == {"bandwidth_share": "measured", "rendezvous.gap": "assumed"}


def test_empty_buffers_alone_are_refused(tmp_path):
    (tmp_path / "times.csv").write_text("operation,size [B],ranks,time [us]\nall_reduce,0,8,15\n")
    with pytest.raises(UsageError, match="no times of buffers"):
        whatif.fit_collectives(tmp_path / "times.csv", columns=COLUMNS, library="nccl", platform="mi300x_node")
