"""Grids in parts: threads, processes, a cluster of which workers and the scheduler end; what is kept, and goes on."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from queue import Queue

import pandas as pd
import pytest

from tests.ended_processes import ended_process
from whatif.cli.main import main
from whatif.core import executors as places
from whatif.core.executors import opened
from whatif.core.grid_run import run, run_whole
from whatif.core.partition import GridTask, parts_of, run_on
from whatif.core.scenario import EvaluationRequest, Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.core.uncertainty import Sampling
from whatif.errors import UsageError
from whatif.files.data_set import DataSet
from whatif.files.result_writers import write_file

BANDWIDTH = "platform.node.gpu.dram_bandwidth"
# The last number of ranks is too many for the machine; dahu cannot be asked at all, nor parts that have nothing else.
NUMBERS = ("--sweep", f"{BANDWIDTH}=1 TB/s .. 2 TB/s linear 20", "--sweep", "application.rank_count=6, 12, 6000000")
CHOICES = ("--sweep", "platform=dahu, summit, lassen", "--sweep", "application.phases.halo.model=postal, k_model")


@pytest.fixture(scope="module")
def cluster():
    with opened("local", 2) as place:
        yield place


def inputs(*sweeps):
    scenario = Scenario.open("jacobi2d")
    return scenario, grid_of([parse_option(text, scenario.program, 10**6) for text in sweeps[1::2]], 10**6)


def same(folder: Path, whole: Path) -> bool:
    """Whether a data set is, as one table, a file written by one process, to the last bit."""
    pd.testing.assert_frame_equal(pd.read_parquet(folder), pd.read_parquet(whole), check_exact=True)
    return True


def parts_kept(folder: Path) -> int:
    manifest = folder / "_whatif.jsonl"
    return manifest.read_bytes().count(b"\n") - 1 if manifest.exists() else 0


@pytest.mark.parametrize("sweeps", [NUMBERS, CHOICES], ids=["numbers", "choices"])
def test_parts_are_the_whole_to_the_last_bit_wherever_they_go(whatif_main, tmp_path, sweeps):
    plain = [whatif_main("run", "jacobi2d", *sweeps, "--format", form) for form in ("csv", "json")]
    whatif_main("run", "jacobi2d", *sweeps, "-o", "whole.parquet")
    on = ("--on", "threads", "--workers", "2")
    assert [whatif_main("run", "jacobi2d", *sweeps, "--format", form, *on) for form in ("csv", "json")] == plain
    assert whatif_main("run", "jacobi2d", *sweeps, *on, "-o", "one.parquet")[0] == 0
    assert (tmp_path / "one.parquet").exists()
    code, out, error = whatif_main("run", "jacobi2d", *sweeps, *on, "-o", "parts", "--part-points", "3")
    # A folder is filled part by part: nothing is there to take the answers of the sweep from.
    notes, answers = plain[0][2][: plain[0][2].rindex("fastest")], plain[0][2].splitlines()[-1]
    assert answers.startswith("fastest")
    assert "\nwritten: parts\n" in error
    assert (code, out, error.replace("written: parts\n", "")) == (0, "", notes)
    assert same(tmp_path / "parts", tmp_path / "whole.parquet")
    assert same(tmp_path / "one.parquet", tmp_path / "whole.parquet")
    assert len(list((tmp_path / "parts").glob("part-*"))) > 1


def test_a_killed_worker_costs_its_part_only(cluster, tmp_path):
    from distributed import Client

    scenario, grid = inputs(*NUMBERS)
    data_set, ended = DataSet(tmp_path / "parts", EvaluationRequest(scenario, grid), 3), []
    with Client(cluster.executor.client.scheduler.address, set_as_default=False) as client:
        workers = client.run(os.getpid)
        for _ in data_set.fill(cluster):
            ended.append(len(data_set.known))
            if len(ended) == 2:
                os.kill(next(iter(workers.values())), signal.SIGKILL)
        assert set(client.run(os.getpid).values()) != set(workers.values())
    assert ended == list(range(1, 21))
    write_file(run(scenario, grid), "parquet", tmp_path / "whole.parquet")
    assert same(tmp_path / "parts", tmp_path / "whole.parquet")


def test_results_come_in_the_order_of_the_points_though_parts_end_in_another(cluster):
    scenario, grid = inputs(*CHOICES)
    results = list(run_on(cluster, EvaluationRequest(scenario, grid), 1))
    expected = list(run(scenario, grid, 1))
    assert len(results) == len(expected) == 6
    for result, other in zip(results, expected, strict=True):
        assert [*result.table().rows()] == [*other.table().rows()]


def test_a_killed_run_is_continued(whatif_main, tmp_path):
    """Nothing that is complete is computed again."""
    sweeps = ("--sweep", f"{BANDWIDTH}=1 TB/s .. 2 TB/s linear 60", *CHOICES[2:])
    arguments = ["run", "jacobi2d", *sweeps, "--on", "threads", "--workers", "1", "--part-points", "2", "-o", "parts"]
    folder = tmp_path / "parts"
    done = ended_process(signal.SIGKILL, tmp_path, arguments, renamed="part-", count=6)
    assert done.returncode == -signal.SIGKILL
    kept = parts_kept(folder)
    assert 5 <= kept < 60
    # What a process leaves that is killed while it writes.
    (folder / ".part-01.parquet.xyz").write_bytes(b"PAR1")
    with (folder / "_whatif.jsonl").open("a") as manifest:
        manifest.write('{"part": 4')
    complete = {path: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    cut, gone, *rest = sorted(complete)
    cut.write_bytes(cut.read_bytes()[:-1])
    gone.unlink()

    code, _, error = whatif_main(*arguments)
    assert code == 0
    assert f"{kept - 2} of 60 parts are in parts" in error
    assert all(path.stat().st_mtime_ns == complete[path] for path in rest)
    assert not list(folder.glob(".part-*"))
    whatif_main("run", "jacobi2d", *sweeps, "-o", "whole.parquet")
    assert same(folder, tmp_path / "whole.parquet")


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (["--set", "application.iteration_count=5"], 2, "was written for other inputs: files and changes was"),
        (["--sweep", "application.rank_count=6"], 2, 'sweep was {"application.rank_count": 2} and is'),
        (["--part-points", "2"], 2, "points of a part was 1 and is 2"),
    ],
)
def test_a_folder_of_another_question_is_left_as_it_is(whatif_main, tmp_path, change, code, message):
    first = ("run", "jacobi2d", "--on", "threads", "-o", "parts")
    assert whatif_main(*first, "--sweep", "application.rank_count=6, 12")[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "parts").iterdir()}
    sweep = () if "--sweep" in change else ("--sweep", "application.rank_count=6, 12")
    found = whatif_main(*first, *sweep, *change)
    assert found[0] == code
    assert message in found[2]
    assert {path: path.read_bytes() for path in (tmp_path / "parts").iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--on", "thread"], "--on thread: expected threads, processes, local, or a scheduler"),
        (["--on", "tcp://127.0.0.1:1"], "no scheduler answers there"),
        (["--on", "tcp://nowhere.invalid"], "no scheduler answers there"),
        (["--on", "what://127.0.0.1:1"], "no scheduler answers there"),
        (["--on", "tcp://127.0.0.1:1", "--workers", "2"], "--workers has no effect on a running scheduler"),
        (["--workers", "2"], "no effect without --on"),
        (["--part-points", "2"], "no effect without --on"),
        (["--on", "threads", "--plot"], "excludes -o"),
        (["--on", "threads", "-o", "mine"], "mine: holds other files"),
        (["--on", "threads", "-o", "none/parts"], "none/parts: cannot be written: No such file"),
        (["--on", "threads", "-o", "a" * 300], "cannot be written: File name too long"),
        (["--on", "threads", "-o", "mine/notes"], "mine/notes: cannot be written: File exists"),
    ],
)
def test_invalid_placements_are_refused(whatif_main, monkeypatch, tmp_path, arguments, message):
    monkeypatch.setattr(places, "_CONNECT_SECONDS", 0.2)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    code, out, error = whatif_main("run", "jacobi2d", *arguments)
    assert (code, out) == (2, "")
    assert message in error
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "notes"]


@pytest.mark.parametrize(("was", "now"), [('"size": ', '"sighs": '), ('"points": ', '"points": 1e999, "was": ')])
def test_a_line_changed_by_hand_is_refused(whatif_main, tmp_path, was, now):
    arguments = ("run", "jacobi2d", "--on", "threads", "-o", "parts")
    assert whatif_main(*arguments)[0] == 0
    manifest = tmp_path / "parts" / "_whatif.jsonl"
    manifest.write_text(manifest.read_text().replace(was, now))
    code, _, error = whatif_main(*arguments)
    assert (code, "2:1: no part of a data set" in error) == (3, True)


@pytest.mark.parametrize(
    ("problem", "code", "reported"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 2, "cannot be written: No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_a_full_disk_and_an_interrupt_keep_written_parts(monkeypatch, capsys, tmp_path, problem, code, reported):
    written, write = [], Path.write_bytes

    def until_full(path, content):
        written.append(path)
        if len(written) == 3:
            write(path, content[:100])
            raise problem
        return write(path, content)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "write_bytes", until_full)
    monkeypatch.setattr(sys, "argv", ["whatif", "run", "jacobi2d", *NUMBERS, "--on", "threads", "-o", "parts"])
    with pytest.raises(SystemExit, match=str(code)):
        main()
    message = capsys.readouterr().err
    assert f"{reported}; 2 of 60 parts are in parts; repeat the command to continue" in message
    assert len(list((tmp_path / "parts").iterdir())) == 3
    with pytest.raises(SystemExit, match="0"):
        main()
    assert "2 of 60 parts are in parts" in capsys.readouterr().err


def test_a_lost_process_is_an_error_and_computed_parts_are_kept(tmp_path):
    scenario, grid = inputs(*NUMBERS)
    data_set = DataSet(tmp_path / "parts", EvaluationRequest(scenario, grid), 3)
    with opened("processes", 1) as place:
        parts = data_set.fill(place)
        next(parts)
        os.kill(next(iter(place.executor._processes)), signal.SIGKILL)
        with pytest.raises(UsageError, match="processes: a worker was ended by the system"):
            list(parts)
    assert 1 <= len(DataSet(tmp_path / "parts", EvaluationRequest(scenario, grid), 3).known) < 20


def test_a_worker_of_another_version_is_refused():
    scenario, grid = inputs(*NUMBERS)
    (part,) = parts_of(EvaluationRequest(scenario, grid).compiled(), [(0, grid)])
    with pytest.raises(UsageError, match=r"whatif 0\.0 sent a part to a worker with whatif"):
        replace(part, version="0.0").results()
    assert isinstance(part, GridTask)


def test_a_lost_scheduler_is_an_error_and_computed_parts_are_kept(whatif_main, tmp_path):
    from distributed import Scheduler, Worker

    addresses: Queue[str] = Queue()

    async def serve():
        async with (
            Scheduler(port=0, dashboard_address="127.0.0.1:0") as scheduler,
            Worker(scheduler.address, nthreads=1),
        ):
            addresses.put(scheduler.address)
            while parts_kept(tmp_path / "parts") < 5:
                await asyncio.sleep(0.01)
            await scheduler.close()

    serving = threading.Thread(target=asyncio.run, args=[serve()])
    serving.start()
    address = addresses.get(timeout=30)
    arguments = ("run", "jacobi2d", *NUMBERS, "--on", address, "-o", "parts", "--part-points", "1")
    code, _, error = whatif_main(*arguments)
    serving.join()
    assert code == 2
    kept = parts_kept(tmp_path / "parts")
    assert 5 <= kept < 60
    assert f"{address}: the connection to the scheduler is lost; {kept} of 60 parts are in parts" in error


def test_workers_draw_the_same_samples(tmp_path):
    scenario = Scenario.open("minimd", platform="frontier")
    grid = grid_of([parse_option("application.rank_count = 8, 16, 32, 64", scenario.program, 100)], 100)
    sampling = Sampling(64, spreads={"assumed": 0.2})
    alone = run_whole(scenario, grid, sampling).table()
    with opened("threads", 2) as place:
        parts = [result.table() for result in run_on(place, EvaluationRequest(scenario, grid, sampling), 2)]
    assert len(parts) == 2
    for name in ("total_time", "total_time.p95"):
        drawn = [value for part in parts for value in part.columns[name].values.tolist()]
        assert drawn == alone.columns[name].values.tolist()


def test_a_data_set_that_is_continued_has_all_remarks_of_its_parts(tmp_path):
    """Columns outside of their bands on one machine, and what an infeasible point alone in its part lacks."""
    scenario = Scenario.open("jacobi2d", overrides={"application.rank_count": "16"})
    grid = grid_of([parse_option("platform=summit, aws_p4d", scenario.program, 10)], 10)
    for number, asked in enumerate(
        [
            EvaluationRequest(scenario, grid, Sampling(16, spreads={"assumed": 0.2})),
            EvaluationRequest(*inputs("--sweep", "application.rank_count=6, 6000000")),
        ]
    ):
        first = DataSet(tmp_path / str(number), asked, 1)
        with opened("threads", 1) as place:
            list(first.fill(place))
        assert DataSet(tmp_path / str(number), asked, 1).known == first.known
        assert len(first.known) == 2
        remarks = [its.outside if number == 0 else its.shortage for its in first.known.values()]
        assert any(remarks)
