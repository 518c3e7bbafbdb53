"""`whatif tune`: search the parameters of an application for its best run on a platform."""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from whatif import __version__
from whatif.cli.hpl import machine_options, meter, open_runs, placement_of
from whatif.cli.parallel_options import ParallelOptions, on_option, workers_option
from whatif.cli.tune_grid import tune_grid
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.core.executors import Place
    from whatif.linpack.predictions import HPLRuns
    from whatif.linpack.simulation.configuration import Configuration
    from whatif.linpack.tuning import Space
    from whatif.linpack.tuning_log import TuningFile
    from whatif.table import Table

Code = TypeVar("Code", bound=IntEnum)

_LARGEST: Final = 2**31 - 1
_MOST_VALUES: Final = 1000
_BLOCK_SIZES: Final = "96, 128, 192, 256, 384"
_DEVICE_BLOCK_SIZES: Final = "256, 384, 512, 768, 1024"


@click.group("tune", short_help="Search the parameters of HPL, or the decomposition of a grid.")
def command() -> None:
    """Search the parameters of an application for its best run on a platform."""


command.add_command(tune_grid)


@command.command("hpl", short_help="N, NB, P x Q, broadcast, swap and depth of HPL.")
@machine_options
@click.option("--ranks", type=click.IntRange(1, 2**24), help="P x Q; default: as many as the platform has room for.")
@click.option("--grid", "grids", multiple=True, metavar="PxQ", help="Search these only, not all grids of --ranks.")
@click.option("--memory-fraction", type=click.FloatRange(0, 1, min_open=True), default=0.8, show_default=True,
              help="Of the nodes' memory, for the matrix.")  # fmt: skip
@click.option("--matrix-sizes", metavar="N,..", help="Default: the largest that the memory has room for.")
@click.option("--block-sizes", metavar="NB,..", help=f"Default: {_BLOCK_SIZES}; GPUs: {_DEVICE_BLOCK_SIZES}.")
@click.option("--broadcasts", metavar="NAME,..", help="Such as ring or long_modified; default: all six.")
@click.option("--swaps", metavar="NAME,..", help="binary_exchange, spread_roll, mix; default: all.")
@click.option("--depths", metavar="DEPTH,..", default="0, 1", show_default=True, help="Panels of look-ahead.")
@click.option("--candidates", type=click.IntRange(1, 100_000), default=200, show_default=True,
              help="Combinations that are played, drawn where there are more.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**53), default=0, show_default=True, help="Of all that is drawn.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Keep every run here; the same search goes on from it.")  # fmt: skip
@click.option("--write-input", type=click.Path(path_type=Path, dir_okay=False), metavar="HPL.dat",
              help="Write the best run as an input of HPL.")  # fmt: skip
@on_option
@workers_option
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
def tune_hpl(
    platform: str,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    ranks_per_node: int | None,
    binding: str,
    panel_on: str,
    output: Path | None,
    write_input: Path | None,
    on: str | None,
    workers: int | None,
    file_format: str,
    **asked: Any,
) -> None:
    """Search N, NB, P x Q, broadcast, swap and look-ahead of HPL for the highest rate that the memory allows.

    Candidates are played on small matrices first, the better ones on larger ones, the best at full size; then single
    parameters of the best are changed as long as that helps. Prints the ten best, or those so far when interrupted.
    """
    from whatif.linpack.simulation.configuration import Configuration
    from whatif.linpack.tuning import combinations, drawn, search
    from whatif.linpack.tuning_log import TuningFile

    if write_input is not None and not write_input.parent.is_dir():
        raise UsageError(f"{write_input}: there is no folder {write_input.parent}")
    placement = placement_of(ranks_per_node, binding, panel_on, seed=asked["seed"])
    runs = open_runs(Configuration(1, 1, 1, 1), platform, platform_dirs, overrides, placement)
    space = _space(runs, **asked)
    everything = combinations(space, runs)
    chosen = drawn(everything, space.candidate_count, space.seed)
    _narrate(runs, space.seed, everything, chosen)
    file = None if output is None else TuningFile(output, _question(space, runs))
    with ParallelOptions(on, workers).place() as place:
        player = Player(runs, space.seed, file, place)
        try:
            best = search(everything, chosen, player)[0]
        except KeyboardInterrupt:
            player.write(file_format)
            kept = f"; the same command goes on from {output}" if output else ""
            raise KeyboardInterrupt(f"interrupted{kept}") from None
    player.write(file_format)
    if write_input is not None:
        _write_input(write_input, best)


def _space(
    runs: HPLRuns,
    *,
    ranks: int | None,
    grids: Sequence[str],
    memory_fraction: float,
    matrix_sizes: str | None,
    block_sizes: str | None,
    broadcasts: str | None,
    swaps: str | None,
    depths: str,
    candidates: int,
    seed: int,
) -> Space:
    """What the options ask to be searched."""
    from whatif.linpack.simulation.configuration import Broadcast, RowSwap
    from whatif.linpack.tuning import Space, factorisations

    if ranks is not None and grids:
        raise UsageError("--ranks and --grid exclude each other")
    if math.isnan(memory_fraction):
        raise UsageError("--memory-fraction is no number")
    on_devices = runs.program.loaded.scenario.platform.node.gpu is not None
    return Space(
        [*dict.fromkeys(map(_grid, grids))] or factorisations(runs.rank_limit if ranks is None else ranks),
        _whole("--matrix-sizes", matrix_sizes) if matrix_sizes is not None else [],
        _whole("--block-sizes", block_sizes or (_DEVICE_BLOCK_SIZES if on_devices else _BLOCK_SIZES)),
        _named("--broadcasts", broadcasts, Broadcast),
        _named("--swaps", swaps, RowSwap),
        _whole("--depths", depths, least=0),
        memory_fraction,
        candidates,
        seed,
    )


def _grid(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*([1-9][0-9]{0,6})\s*[xX]\s*([1-9][0-9]{0,6})\s*", text)
    if found is None:
        raise UsageError(f"--grid {text}: expected PxQ, such as 32x32")
    return int(found[1]), int(found[2])


def _whole(option: str, text: str, least: int = 1) -> list[int]:
    """Whole numbers with commas between, each once."""
    words = [word.strip() for word in text.split(",")]
    wrong = next((w for w in words if not (re.fullmatch("[0-9]{1,10}", w) and least <= int(w) <= _LARGEST)), None)
    if wrong is not None:
        raise UsageError(f"{option} {text[:60]}: `{wrong[:40]}` is no whole number from {least} to {_LARGEST}")
    if len(words) > _MOST_VALUES:
        raise UsageError(f"{option}: {len(words):,} values; at most {_MOST_VALUES:,}")
    return list(dict.fromkeys(map(int, words)))


def _named(option: str, text: str | None, kind: type[Code]) -> list[Code]:
    """Members of an enumeration by name or by HPL's number, each once; all where nothing is said."""
    from whatif.errors import did_you_mean

    if text is None:
        return list(kind)
    known = {name: item for item in kind for name in (item.name.lower(), str(item.value))}
    words = [word.strip().lower() for word in text.split(",")]
    wrong = next((word for word in words if word not in known), None)
    if wrong is not None:
        names = ", ".join(f"{item.value} {item.name.lower()}" for item in kind)
        raise UsageError(f"{option}: there is no `{wrong[:40]}`{did_you_mean(wrong, known)}; there are {names}")
    return list(dict.fromkeys(known[word] for word in words))


def _question(space: Space, runs: HPLRuns) -> dict[str, Any]:
    """What a search depends on: its lists, the machine with every number of it, and the program."""
    from dataclasses import asdict

    from whatif.linpack.predictions import parameters_of
    from whatif.linpack.simulation.configuration import Configuration

    own = {f"application.{name}" for name in parameters_of(Configuration(1, 1, 1, 1))}
    values = [
        (path, str(parameter.value)) for path, parameter in sorted(runs.program.parameters.items()) if path not in own
    ]
    return {
        "program": f"whatif {__version__} tune hpl",
        "platform": runs.program.loaded.scenario.platform.name,
        **asdict(space),
        "machine": hashlib.sha256(repr(values).encode()).hexdigest(),
    }


def _narrate(runs: HPLRuns, seed: int, everything: Sequence[Configuration], chosen: Sequence[Configuration]) -> None:
    program, sizes = runs.program, [item.matrix_size for item in everything]
    click.echo(
        f"platform {program.loaded.scenario.platform.name}; worst grade of its values: {program.grade}; "
        f"{len(chosen):,} of {len(everything):,} combinations; N {min(sizes):,} to {max(sizes):,}; seed {seed}",
        err=True,
    )


class Player:
    """Plays the candidates of a search, keeps what is known of them, and tells of the best."""

    def __init__(self, runs: HPLRuns, seed: int, file: TuningFile | None, place: Place | None = None) -> None:
        self._runs = runs
        self._place = place
        self._seed = seed
        self._file = file
        self._times: dict[Configuration, float] = {} if file is None else file.times
        self._known: dict[Configuration, float] = {}
        """Of the last share of N at which something is known."""
        self._share = 0.0

    def __call__(self, configurations: Sequence[Configuration], share: float) -> Mapping[Configuration, float]:
        """The times of configurations; those that are known are not played again."""
        wanted = [item for item in dict.fromkeys(configurations) if item not in self._times]
        known = {item: self._times[item] for item in configurations if item in self._times}
        size = f"{share:.0%} of N" if share < 1 else "full N"
        click.echo(f"{size}: {len(known) + len(wanted)} candidates, {len(known)} of them known", err=True)
        if share == self._share:
            known |= self._known
        with meter(len(wanted)) as told:
            outcomes = self._runs.in_order(((item, self._seed) for item in wanted), told, self._place)
            for item, outcome in zip(wanted, outcomes, strict=True):
                self._keep(item, outcome.time)
                known[item] = outcome.time
                self._known, self._share = known, share
                self._tell(known, item)
        self._known, self._share = known, share
        return known

    def _keep(self, configuration: Configuration, time: float) -> None:
        if self._file is not None:
            self._file.add(configuration, time)
        else:
            self._times[configuration] = time

    def _tell(self, known: Mapping[Configuration, float], latest: Configuration) -> None:
        from whatif.linpack.tuning import rate_of

        if len(known) > 1 and latest == _ranked(known)[0]:
            rate = rate_of(latest, known[latest]) / 1e9
            text = " ".join(f"{name} {value}" for name, value in _parameters(latest).items())
            click.echo(f"best so far: {rate:,.5g} Gflops: {text}", err=True)

    def write(self, file_format: str) -> None:
        """The ten best of the largest size at which something is known."""
        from whatif.table_writers import TABLE_WRITERS

        if self._known:
            TABLE_WRITERS[file_format](_table(self._known), sys.stdout)
            sys.stdout.flush()


def _ranked(known: Mapping[Configuration, float]) -> list[Configuration]:
    from whatif.linpack.tuning import rate_of

    return sorted(known, key=lambda item: rate_of(item, known[item]), reverse=True)


def _parameters(run: Configuration) -> dict[str, Any]:
    """What is searched, in HPL's words."""
    return {
        "N": run.matrix_size, "NB": run.block_size, "P": run.process_rows, "Q": run.process_columns,
        "BCAST": run.broadcast.name.lower(), "SWAP": run.swap.name.lower(), "DEPTH": run.depth,
    }  # fmt: skip


def _table(known: Mapping[Configuration, float]) -> Table:
    from whatif.linpack.output_reader import variant_code
    from whatif.linpack.tuning import BEST, rate_of
    from whatif.table import Table
    from whatif.units import FLOP_PER_SECOND, ONE, SECOND

    sizes = dict.fromkeys(("matrix_size", "block_size", "process_rows", "process_columns"), ONE)
    columns = {"variant": None, **sizes, "broadcast": None, "swap": None, "depth": ONE}
    best = _ranked(known)[:BEST]
    rows: Iterable[Sequence[Any]] = (
        [variant_code(run), *_parameters(run).values(), known[run], rate_of(run, known[run])] for run in best
    )
    return Table.of_rows({**columns, "time": SECOND, "rate": FLOP_PER_SECOND}, list(rows))


def _write_input(path: Path, best: Configuration) -> None:
    from whatif.atomic import atomic_file
    from whatif.linpack.input_writer import hpl_input_text

    with atomic_file(path) as temporary:
        temporary.write_text(hpl_input_text(best), encoding="utf-8")
    click.echo(f"written: {path}", err=True)
