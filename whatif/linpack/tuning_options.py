"""Options of a search over the parameters of HPL, as texts of the command line or as Python values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, TypeVar

from whatif.arguments import Share, positive_share
from whatif.errors import UsageError, did_you_mean, require_least
from whatif.linpack.predictions import HPLRuns
from whatif.linpack.simulation.configuration import Broadcast, RowSwap
from whatif.linpack.tuning import Space, factorisations

Code = TypeVar("Code", bound=IntEnum)
Numbers = str | Sequence[int]
"""Whole numbers, as a sequence or as text with commas."""
Names = str | Sequence[str]
"""Names or HPL's numbers of choices, as a sequence or as text with commas."""

BLOCK_SIZES: Final = "96, 128, 192, 256, 384"
"""Default NB on processors."""
DEVICE_BLOCK_SIZES: Final = "256, 384, 512, 768, 1024"
"""Default NB on GPUs."""
_LARGEST: Final = 2**31 - 1
_MOST_VALUES: Final = 1000


def space_of(
    runs: HPLRuns,
    *,
    ranks: int | None,
    grids: Sequence[str],
    memory_fraction: Share,
    matrix_sizes: Numbers | None,
    block_sizes: Numbers | None,
    broadcasts: Names | None,
    swaps: Names | None,
    depths: Numbers,
    candidates: int,
    seed: int,
) -> Space:
    """Space of a search. Raise `UsageError` that names the option with a wrong value."""
    if ranks is not None and grids:
        raise UsageError("--ranks and --grid exclude each other")
    require_least("ranks", ranks, 1)
    require_least("candidates", candidates, 1)
    on_devices = runs.program.loaded.scenario.platform.node.gpu is not None
    return Space(
        [*dict.fromkeys(map(_grid, grids))] or factorisations(runs.rank_limit if ranks is None else ranks),
        _whole("--matrix-sizes", matrix_sizes) if matrix_sizes is not None else [],
        _whole("--block-sizes", block_sizes or (DEVICE_BLOCK_SIZES if on_devices else BLOCK_SIZES)),
        _named("--broadcasts", broadcasts, Broadcast),
        _named("--swaps", swaps, RowSwap),
        _whole("--depths", depths, least=0),
        positive_share("--memory-fraction", memory_fraction),
        candidates,
        seed,
    )


def _grid(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*([1-9][0-9]{0,6})\s*[xX]\s*([1-9][0-9]{0,6})\s*", text)
    if found is None:
        raise UsageError(f"--grid {text}: expected PxQ, such as 32x32")
    return int(found[1]), int(found[2])


def _whole(option: str, values: Numbers, least: int = 1) -> list[int]:
    """Whole numbers, each once."""
    words = _words(values)
    if not words:
        raise UsageError(f"{option}: state at least one value")
    wrong = next((w for w in words if not (re.fullmatch("[0-9]{1,10}", w) and least <= int(w) <= _LARGEST)), None)
    if wrong is not None:
        raise UsageError(
            f"{option} {','.join(words)[:60]}: `{wrong[:40]}` is not a whole number from {least} to {_LARGEST}"
        )
    if len(words) > _MOST_VALUES:
        raise UsageError(f"{option}: {len(words):,} values; at most {_MOST_VALUES:,}")
    return list(dict.fromkeys(map(int, words)))


def _named(option: str, values: Names | None, kind: type[Code]) -> list[Code]:
    """Members of an enumeration by name or by HPL's number, each once; all of them by default."""
    if values is None:
        return list(kind)
    known = {name: item for item in kind for name in (item.name.lower(), str(item.value))}
    words = [word.lower() for word in _words(values)]
    if not words:
        raise UsageError(f"{option}: state at least one name")
    wrong = next((word for word in words if word not in known), None)
    if wrong is not None:
        names = ", ".join(f"{item.value} {item.name.lower()}" for item in kind)
        raise UsageError(f"{option}: unknown `{wrong[:40]}`{did_you_mean(wrong, known)}; expected {names}")
    return list(dict.fromkeys(known[word] for word in words))


def _words(values: str | Sequence[object]) -> list[str]:
    return [str(word).strip() for word in (values.split(",") if isinstance(values, str) else values)]
