"""`whatif tune hpl`: the search against all combinations, its file, its interruption, and wrong questions."""

from __future__ import annotations

import csv
import io
import itertools
import json
import signal

import pytest
from numpy.testing import assert_allclose

from tests.ended_processes import ended_process
from whatif.linpack.input_reader import read_hpl_input
from whatif.linpack.simulation.configuration import Broadcast, Configuration, RowSwap
from whatif.linpack.tuning import factorisations, neighbours, scaled, search

QUESTION = ("tune", "hpl", "--platform", "dahu", "--ranks", "8", "--matrix-sizes", "2000", "--block-sizes", "64,128")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def simulated_runs(path) -> list[tuple[tuple[str, object], ...]]:
    """The parameters of the runs that a file of a search keeps."""
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return [tuple((key, value) for key, value in line.items() if key != "time") for line in lines]


@pytest.mark.parametrize(
    ("count", "grids"),
    [
        (1, [(1, 1)]),
        (13, [(1, 13), (13, 1)]),
        (16, [(4, 4), (2, 8), (8, 2), (1, 16), (16, 1)]),
    ],
)
def test_grids_of_a_number_of_ranks_are_all_its_factorisations(count, grids):
    assert factorisations(count) == grids


def test_candidates_are_compared_at_one_size_despite_other_blocks():
    full = [Configuration(500_000, block, 8, 8) for block in (96, 128, 384)]
    sizes = [scaled(run, 0.1).matrix_size for run in full]
    assert all(size % run.block_size == 0 and 49_600 < size <= 50_000 for size, run in zip(sizes, full, strict=True))
    # A size that is small enough is not reduced.
    assert scaled(Configuration(8000, 128, 8, 8), 0.1).matrix_size == 8000
    assert scaled(Configuration(30_000, 128, 8, 8), 0.1).matrix_size == 9984


def test_the_search_finds_the_best_of_all_though_it_was_not_drawn():
    grids, blocks = factorisations(64), (64, 128, 192, 256)
    everything = [
        Configuration(100_000, block, *grid, broadcast=broadcast, swap=swap, depth=depth)
        for grid, block, broadcast, swap, depth in itertools.product(grids, blocks, Broadcast, RowSwap, (0, 1))
    ]

    def cost(run: Configuration) -> float:
        """A bowl over the grid, with its bottom at 4 x 16, NB = 192, two_ring, mix and depth 1."""
        bowl = abs(run.process_rows - 4) / 4 + abs(run.block_size - 192) / 64 + abs(run.broadcast - 2) / 3
        return run.operations * (10 + bowl + (run.swap != RowSwap.MIX) + (run.depth != 1))

    shares: list[tuple[float, int]] = []

    def play(runs, share):
        shares.append((share, len(runs)))
        return {run: cost(run) for run in runs}

    best = search(everything, everything[3::40], play)
    wanted = Configuration(100_000, 192, 4, 16, broadcast=Broadcast.TWO_RING, depth=1)
    assert best[0] == wanted
    assert wanted not in everything[3::40]
    assert shares[:3] == [(0.1, 26), (0.3, 20), (1.0, 10)]
    assert {share for share, _ in shares[3:]} == {1.0}
    # Nobody who differs in one parameter is better, so the search may end there.
    assert all(cost(run) >= cost(wanted) for run in neighbours(wanted, everything))


def test_the_best_run_is_the_best_of_all_simulated_runs(whatif_main, tmp_path):
    choices = ("--broadcasts", "ring,5", "--swaps", "mix", "--format", "csv")
    code, out, error = whatif_main(*QUESTION, *choices, "--write-input", "HPL.dat")
    found = rows(out)
    assert (code, len(found)) == (0, 10)
    assert "32 of 32 combinations; N 2,000 to 2,000; seed 0" in error
    rates = [float(row["rate [flop/s]"]) for row in found]
    assert rates == sorted(rates, reverse=True)

    lines = (tmp_path / "HPL.dat").read_text().split("\n")
    assert len(lines) == 32
    (best,) = read_hpl_input(tmp_path / "HPL.dat").configurations()
    assert [found[0]["swap"], found[0]["broadcast"]] == [best.swap.name.lower(), best.broadcast.name.lower()]
    lists = {8: "64 128", 10: "4", 11: "1 2 4 8", 12: "8 4 2 1", 23: "0 5", 25: "0 1"} | {7: "2", 22: "2", 24: "2"}
    for number, text in lists.items():
        lines[number - 1] = text
    (tmp_path / "all.dat").write_text("\n".join(lines))
    all_runs = rows(whatif_main("hpl", "all.dat", "--platform", "dahu", "--format", "csv")[1])
    assert len(all_runs) == 32
    assert_allclose(float(found[0]["time [s]"]), min(float(row["time [s]"]) for row in all_runs), rtol=1e-12, atol=0)


def test_without_sizes_the_matrix_is_the_largest_multiple_that_the_memory_has_room_for(whatif_main, tmp_path):
    # 20 % of 4 MiB: 8 N (N + 1) <= 838,860.8 up to N = 323.
    small = ("--set", "platform.node.host.memory_size=4 MiB", "--memory-fraction", "20%")
    code, out, _ = whatif_main("tune", "hpl", "--platform", "dahu", "--grid", "2x3", *small, "--block-sizes", "50,64",
                               "--broadcasts", "ring", "--swaps", "mix", "--format", "csv")  # fmt: skip
    assert code == 0
    assert {(row["block_size"], row["matrix_size"]) for row in rows(out)} == {("50.0", "300.0"), ("64.0", "320.0")}
    assert {(row["process_rows"], row["process_columns"]) for row in rows(out)} == {("2.0", "3.0")}


@pytest.mark.parametrize("platform", ["theta", "summit"])
def test_a_machine_of_a_data_sheet_is_searched_as_well(whatif_main, platform):
    small = ("--grid", "2x2", "--grid", "1x4", "--matrix-sizes", "2000", "--broadcasts", "ring", "--swaps", "mix")
    code, out, error = whatif_main("tune", "hpl", "--platform", platform, *small, "--format", "csv")
    assert (code, len(rows(out))) == (0, 10)
    assert "20 of 20 combinations" in error


def test_a_killed_search_continues_without_repeating_a_run(whatif_main, tmp_path):
    code, undisturbed, _ = whatif_main(*QUESTION, "--candidates", "40", "--log", "whole.jsonl", "--format", "csv")
    assert code == 0
    file = tmp_path / "cut.jsonl"
    arguments = [*QUESTION, "--candidates", "40", "--log", "cut.jsonl"]
    assert ended_process(signal.SIGKILL, tmp_path, arguments, written="best so far").returncode == -signal.SIGKILL
    # What a process leaves that is killed while it writes.
    with file.open("a") as end:
        end.write('{"matrix_size": 2000, "block_')
    before = len(file.read_text().splitlines()) - 2
    assert before >= 2

    code, resumed, error = whatif_main(*QUESTION, "--candidates", "40", "--log", "cut.jsonl", "--format", "csv")
    assert (code, resumed) == (0, undisturbed)
    assert f"{before} of them known" in error
    assert len(set(simulated_runs(file))) == len(simulated_runs(file))
    assert set(simulated_runs(file)) == set(simulated_runs(tmp_path / "whole.jsonl"))


def test_an_interrupted_search_prints_the_best_so_far(tmp_path):
    arguments = [*QUESTION, "--candidates", "40", "--log", "runs.jsonl", "--format", "csv"]
    done = ended_process(signal.SIGINT, tmp_path, arguments, written="best so far")
    assert done.returncode == 130
    assert "interrupted; the same command continues from runs.jsonl" in done.stderr
    assert done.stderr.count("best so far") == 1
    assert 2 <= len(rows(done.stdout)) <= 10
    kept = (tmp_path / "runs.jsonl").read_text().splitlines()[1:]
    assert 2 <= len(kept) < 40
    assert min(float(row["time [s]"]) for row in rows(done.stdout)) in [json.loads(line)["time"] for line in kept]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--candidates", "41"], "candidate_count was 3 and is 41"),
        (["--seed", "1"], "seed was 0 and is 1"),
        (["--block-sizes", "64"], "block_sizes was [64, 128] and is [64]"),
        (["--set", "platform.kernels.dgemm.mnk=1 ns"], "machine was"),
        (["--binding", "by_socket"], "machine was"),
    ],
)
def test_a_file_of_another_question_is_refused_and_left_as_it_is(whatif_main, tmp_path, change, message):
    few = ("--broadcasts", "ring", "--swaps", "mix", "--candidates", "3", "--log", "runs.jsonl")
    assert whatif_main(*QUESTION, *few)[0] == 0
    before = (tmp_path / "runs.jsonl").read_bytes()
    question = [*QUESTION, *few]
    if change[0] in question:
        question[question.index(change[0]) + 1] = change[1]
        change = []
    code, out, error = whatif_main(*question, *change)
    assert (code, out) == (2, "")
    assert f"runs.jsonl: was written for other inputs: {message}" in error
    assert (tmp_path / "runs.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"my notes\n", "1:1: not a file of `whatif tune`"),
        (b"my notes", "1:1: not a file of `whatif tune`"),
        (b"[" * 100_000, "1:1: not a file of `whatif tune`"),
        (bytes(range(256)), "binary"),
        (b'WHOLE{"time": 1.0}\n', "not a run of HPL"),
        (b"WHOLELASTNaN}\n", "the time is not a number above 0"),
        (b"WHOLELAST-1.0}\n", "the time is not a number above 0"),
    ],
)
def test_a_file_that_is_not_of_a_search_is_refused_and_unchanged(whatif_main, tmp_path, text, message):
    few = (*QUESTION, "--broadcasts", "ring", "--swaps", "mix", "--candidates", "1", "--log", "runs.jsonl")
    file = tmp_path / "runs.jsonl"
    assert whatif_main(*few)[0] == 0
    whole = file.read_bytes()
    last = whole.splitlines()[-1].rpartition(b" ")[0] + b" "
    file.write_bytes(text.replace(b"WHOLE", whole).replace(b"LAST", last))
    before = file.read_bytes()
    code, out, error = whatif_main(*few)
    assert (code, out) == (3, "")
    assert message in error
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ranks", "2000"], "40 x 50 = 2,000 ranks need 63 nodes with 32 ranks each; Dahu has 32"),
        (["--grid", "40x40"], "1,600 ranks need 50 nodes"),
        (["--grid", "4"], "--grid 4: expected PxQ"),
        (["--grid", "2x2", "--ranks", "4"], "exclude each other"),
        (["--ranks", "32", "--matrix-sizes", "300000"], "80% of the memory of the nodes of 4 x 8 ranks; the largest"),
        (["--ranks", "32", "--memory-fraction", "1e-9"], "not even one block of 96"),
        (["--memory-fraction", "nan"], "--memory-fraction nan: expected a share"),
        (["--memory-fraction", "2"], "--memory-fraction 2: is 200%; for 2 per cent write `2%`"),
        (["--memory-fraction", "150%"], "--memory-fraction 150%: expected a share above 0 and at most 100 %"),
        (["--broadcasts", "rings"], "did you mean `ring`"),
        (["--swaps", "7"], "unknown `7`; expected 0 binary_exchange, 1 spread_roll, 2 mix"),
        (["--block-sizes", "64,,128"], "`` is not a whole number from 1"),
        (["--depths", "-1"], "`-1` is not a whole number from 0"),
        (["--block-sizes", ",".join(map(str, range(1, 1002)))], "1,001 values; at most 1,000"),
        (["--matrix-sizes", ",".join(map(str, range(1, 999))), "--block-sizes", ",".join(map(str, range(1, 999)))],
         "combinations are too many"),
        (["--ranks", "4", "--log", "none/runs.jsonl"], "none/runs.jsonl: cannot be written"),
        (["--write-input", "none/HPL.dat"], "no folder none"),
        (["--set", "application.matrix_size=5"], "--set application.matrix_size"),
    ],
)  # fmt: skip
def test_invalid_options_are_refused_before_a_simulation(whatif_main, arguments, message):
    code, out, error = whatif_main("tune", "hpl", "--platform", "dahu", *arguments)
    assert (code, out) == (2, "")
    assert message in error


def test_workers_find_the_same_runs(whatif_main):
    few = ("--grid", "2x2", "--matrix-sizes", "800", "--block-sizes", "50,64", "--candidates", "4", "--format", "csv")
    alone, beside = (whatif_main("tune", "hpl", "--platform", "dahu", *few, *where)
                     for where in ((), ("--on", "threads", "--workers", "2")))  # fmt: skip
    assert alone[:2] == beside[:2]
    assert alone[0] == 0
    code, _, error = whatif_main("tune", "hpl", "--platform", "dahu", *few, "--on", "nowhere")
    assert (code, "expected threads, processes, local" in error) == (2, True)
