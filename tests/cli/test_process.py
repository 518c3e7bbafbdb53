"""Closed streams, closed pipes, and signals of batch systems."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from whatif.cli import progress

WHATIF = [sys.executable, "-m", "whatif"]
LONG = ["run", "jacobi2d", "-o", "long.csv", "--max-points", "10000000",
        "--sweep", "application.rank_count=1 .. 1500 step 1", "--sweep",
        "platform.node.gpu.dram_bandwidth=1 TB/s .. 3 TB/s linear 6000"]  # fmt: skip
"""Takes minutes, but its first part soon: that has few numbers of ranks, whose places take longest."""


def run_in_shell(words):
    command = ["sh", "-c", f"{sys.executable} -m whatif {words}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["list parameters jacobi2d", "run jacobi2d --sweep platform.node.gpu_count=1,2,3"])
def test_a_reader_that_closes_the_pipe_ends_the_program_quietly(command):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*WHATIF, *command.split()], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.returncode == 0
    assert "whatif:" not in done.stderr


def test_closed_stdout_is_an_error_and_closed_stderr_is_not():
    done = run_in_shell("list platforms >&-")
    assert (done.returncode, done.stderr) == (2, "whatif: the output cannot be written: Bad file descriptor\n")
    done = run_in_shell("run jacobi2d 2>&-")
    assert done.returncode == 0
    assert done.stdout.startswith("total_time")


def ended(folder, number, *, prefix=()):
    """Exit code, stderr and files of a long sweep that a signal reaches once its file has grown."""
    with subprocess.Popen([*prefix, *WHATIF, *LONG], cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        while not any(path.stat().st_size for path in folder.iterdir()):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(number)
        if prefix:
            time.sleep(0.5)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    return process.returncode, err.splitlines()[-1], sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("signals_end_programs")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_signals_keep_what_is_computed_and_leave_no_hidden_file(tmp_path, number, code):
    found, said, files = ended(tmp_path, number)
    assert (found, files) == (code, ["long.csv.partial"])
    word = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert said == f"whatif: {word}; partial results are in long.csv.partial"


def test_an_ignored_signal_stays_ignored(tmp_path):
    assert ended(tmp_path, signal.SIGHUP, prefix=("nohup",))[0] == 143


@pytest.mark.parametrize(("found", "words"), [(None, "-m pip install 'numba<"), (object(), "compiled once")])
def test_a_simulation_that_takes_long_says_why(found, words, monkeypatch, capsys):
    monkeypatch.setattr(progress, "find_spec", lambda name: found)
    monkeypatch.setattr(progress, "_REMARK_SECONDS", 0.0)
    progress.remark_on_duration().join()
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("stderr", ["pipe", "full"])
def test_an_error_that_nobody_reads_keeps_its_exit_code(stderr):
    if stderr == "pipe":
        read, target = os.pipe()
        os.close(read)
    else:
        target = os.open("/dev/full", os.O_WRONLY)
    for words, code in (
        (["run", "nofile.toml"], 3),
        (["run", "jacobi2d", "--set", "platform.node_count=1"], 4),
        (["rum"], 2),
    ):
        done = subprocess.run([*WHATIF, *words], stdout=subprocess.DEVNULL, stderr=target, check=False)
        assert done.returncode == code
    os.close(target)
