"""Output of HPL: runs with their parameters, times and rates.

A run is one line, `T/V N NB P Q Time Gflops`. T/V is `W`, the mapping of ranks (`R` row, `C` column), DEPTH, BCAST,
RFACT (`L` left, `C` Crout, `R` right), NDIV, PFACT and NBMIN: `WC05C2R4`. Lines before it state its progress, lines
after it its components, the greatest over all processes of the time summed over the run, and of the residual:

    Column=000001920 Fraction= 1.6% Gflops=7.133e+02                                 HPL 2.2 and later
    z5-01  : Column=065280 Fraction=0.555 Kernel=6160596.27 Mflops=7071737.86        Intel's
    + Max aggregated wall time pfact . . :              11.47                        with HPL_DETAILED_TIMING
    ||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0026933 ...... PASSED

SWAP is stated once, above the runs. The output of HPCC and rocHPL has the same lines, among others; text
before a line, such as the name of a host, and LaTeX's marks around a figure are ignored.
Source: HPL 2.3, `HPL_pdtest`, `HPL_pdinfo`; rocHPL, `HPL_pdtest`; real files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from whatif.errors import UsageError
from whatif.importers.numbers import is_number
from whatif.importers.text import read_text, reading, refuse
from whatif.linpack.simulation.configuration import Broadcast, Configuration, Looking, RowSwap
from whatif.linpack.simulation.configuration import Mapping as RankMapping
from whatif.schema.toml import shown_path

COMPONENTS: Final[Mapping[str, str]] = {
    "rfact": "recursive_factorisation",
    "pfact": "panel_factorisation",
    "mxswp": "pivot_exchange",
    "update": "update",
    "laswp": "row_swap",
    "up tr sv": "back_substitution",
    "bcast": "broadcast",
    "panel copy": "panel_copy",
}
"""Components by HPL's names (the last two are rocHPL's). The factorisation holds
`panel_factorisation` and `pivot_exchange`, HPL's update holds `row_swap`."""

SIZES: Final = ("matrix_size", "block_size", "process_rows", "process_columns")
"""Columns of N, NB, P and Q."""
_LOOKINGS: Final = "LCR"
_MAPPINGS: Final = "RC"
_VARIANT: Final = re.compile(r"W([RC])(\d{1,9})(\d)([LCR])(\d{1,9})([LCR])(\d{1,9})")
_ROW: Final = re.compile(r"^\s*(?:\S*[:>]\s*)?(W[RC]\d+[LCR]\d+[LCR]\d+)((?:\s+\S+)*)")
_PROGRESS: Final = re.compile(r"Column=\s*(\d+)\s+Fraction=.*?\b[MGT]flops=")
_COMPONENT: Final = re.compile(r"Max aggregated wall time (\S.*?)[ .]*:\s*(\S+)")
_CHECK: Final = re.compile(r"=\s*\S+\s*\.{3,}\s*(PASSED|FAILED)")
_SWAP: Final = re.compile(r"\bSWAP\s*:\s*(Binary|Spread|Mix)\b(?:.*?=\s*(\d+))?")
_MARKS: Final = re.compile(r"[£$\ufffd]?\\[a-zA-Z]+\{([^{}]*)\}[£$\ufffd]?")
_SWAPS: Final = {"Binary": RowSwap.BINARY_EXCHANGE, "Spread": RowSwap.SPREAD_ROLL, "Mix": RowSwap.MIX}
_LONGEST_LINE: Final = 1000
"""Characters of a line that are searched; HPL's lines have about 100."""
_HALF_A_STEP: Final = 0.005
"""Rounding error of HPL's printed times, in seconds."""
_RATE_ERROR: Final = 1e-3
"""Relative rounding error of HPL's printed Gflops of at least four digits, with a margin."""
_COARSE: Final = 10.0
"""Time in seconds below which two decimals are less accurate than four digits of Gflops."""


@dataclass(frozen=True, slots=True)
class HPLRun:
    """One run of HPL as printed."""

    configuration: Configuration
    """SWAP and its threshold are HPL's defaults if the file lacks them."""
    time: float
    """Seconds. HPL prints two decimals: below 10 s the time follows from the Gflops, which are more accurate."""
    rate: float
    """flop/s"""
    component_times: Mapping[str, float] = field(default_factory=dict)
    """Seconds by the names in `COMPONENTS`; empty if HPL was built without."""
    has_passed: bool | None = None
    """Whether all residuals are small enough; None if none was checked."""


def variant_code(configuration: Configuration) -> str:
    """T/V, the code that HPL prints for a run: `WC05C2R4`. It does not state SWAP."""
    return (
        f"W{_MAPPINGS[configuration.mapping]}{configuration.depth}{configuration.broadcast.value}"
        f"{_LOOKINGS[configuration.recursive_factorisation]}{configuration.recursion_divisions}"
        f"{_LOOKINGS[configuration.panel_factorisation]}{configuration.recursion_minimum}"
    )


def decoded_variant(code: str) -> dict[str, Any]:
    """Parameters of a `Configuration` from T/V. Raise `UsageError` for a text that is not such a code."""
    match = _VARIANT.fullmatch(code)
    if match is None:
        raise UsageError(f"`{code[:40]}` is not a code of a run of HPL, such as WC05C2R4")
    mapping, depth, broadcast, recursive, divisions, panel, least = match.groups()
    if int(broadcast) not in list(Broadcast):
        raise UsageError(f"`{code[:40]}` names broadcast {broadcast}; there are 0 to {max(Broadcast).value}")
    return {
        "mapping": RankMapping(_MAPPINGS.index(mapping)),
        "depth": int(depth),
        "broadcast": Broadcast(int(broadcast)),
        "recursive_factorisation": Looking(_LOOKINGS.index(recursive)),
        "recursion_divisions": int(divisions),
        "panel_factorisation": Looking(_LOOKINGS.index(panel)),
        "recursion_minimum": int(least),
    }


def read_hpl_output(path: Path) -> list[HPLRun]:
    """Runs of an output of HPL of at most 64 MiB; see `parse_hpl_output`."""
    with reading(path, "an output of HPL"):
        return parse_hpl_output(read_text(path), shown_path(path))


def parse_hpl_output(text: str, file: str = "<text>") -> list[HPLRun]:
    """The runs of an output of HPL, in its order.

    Runs after which the output breaks off are kept. Raise `InvalidFileError` for a text without any, for a line of
    results that is cut off, and for a time and Gflops that contradict each other.
    """
    reader = _Reader(file)
    for number, line in enumerate(text.split("\n"), 1):
        reader.read(line, number)
    if not reader.runs:
        raise refuse(file, _why_empty(text, reader.last_column), reader.line)
    return reader.runs


class _Reader:
    """Takes lines one after the other; what follows a run is added to it."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.runs: list[HPLRun] = []
        self.line, self.last_column = 0, 0
        """Last line of progress, and its column."""
        self._swap: dict[str, Any] = {}

    def read(self, line: str, number: int) -> None:
        """One line, whatever it is."""
        line = line[:_LONGEST_LINE]
        line = _MARKS.sub(r"\1", line) if "\\" in line else line
        for mark, pattern, take in _TAKERS:
            if mark in line and (match := pattern.search(line)):
                take(self, match, number)
                return

    def take_progress(self, match: re.Match[str], number: int) -> None:
        self.line, self.last_column = number, int(match[1])

    def take_swap(self, match: re.Match[str], number: int) -> None:
        kind, threshold = match.groups()
        self._swap = {"swap": _SWAPS[kind]} | ({"swap_threshold": int(threshold)} if threshold else {})

    def take_row(self, match: re.Match[str], number: int) -> None:
        code, words = match[1], match[2].split()
        if len(words) < 6:
            raise refuse(self.file, f"`{code}` is not followed by N, NB, P, Q, Time and Gflops: cut off?", number)
        sizes: dict[str, Any] = {name: self._integer(word, number) for name, word in zip(SIZES, words, strict=False)}
        time, gigaflops = (self._number(word, number) for word in words[4:6])
        try:
            configuration = Configuration(**sizes, **decoded_variant(code), **self._swap)
        except UsageError as error:
            raise refuse(self.file, str(error), number) from None
        exact = self._exact_time(configuration, time, gigaflops * 1e9, number)
        self.runs.append(HPLRun(configuration, exact, gigaflops * 1e9))

    def take_component(self, match: re.Match[str], number: int) -> None:
        time = self._number(match[2], number)
        name = COMPONENTS.get(match[1], re.sub(r"\W+", "_", match[1]))
        if self.runs:
            self._add(component_times={**self.runs[-1].component_times, name: time})

    def take_check(self, match: re.Match[str], number: int) -> None:
        if self.runs:
            self._add(has_passed=self.runs[-1].has_passed is not False and match[1] == "PASSED")

    def _add(self, **found: Any) -> None:
        self.runs[-1] = replace(self.runs[-1], **found)

    def _exact_time(self, configuration: Configuration, time: float, rate: float, number: int) -> float:
        if rate <= 0:
            raise refuse(self.file, "the Gflops are 0", number)
        implied = configuration.operations / rate
        if abs(implied - time) > _HALF_A_STEP + _RATE_ERROR * time:
            implied_by = f"N = {configuration.matrix_size} at {rate / 1e9:.5g} Gflops takes {implied:.6g} s"
            raise refuse(self.file, f"{implied_by}, but the line has {time:.2f} s: cut off or altered?", number)
        return implied if time < _COARSE else time

    def _integer(self, word: str, number: int) -> int:
        if not re.fullmatch(r"[0-9]{1,15}", word):
            raise refuse(self.file, f"`{word[:40]}` is not an integer", number)
        return int(word)

    def _number(self, word: str, number: int) -> float:
        value = float(word) if is_number(word) else math.nan
        if not (math.isfinite(value) and value >= 0):
            raise refuse(self.file, f"`{word[:40]}` is not a time or a rate", number)
        return value


_TAKERS: Final[Sequence[tuple[str, re.Pattern[str], Callable[[_Reader, re.Match[str], int], None]]]] = (
    ("Column=", _PROGRESS, _Reader.take_progress),
    ("Max aggregated", _COMPONENT, _Reader.take_component),
    ("SWAP", _SWAP, _Reader.take_swap),
    ("ED", _CHECK, _Reader.take_check),
    ("W", _ROW, _Reader.take_row),
)
"""Mark of a line, its pattern, and the method that reads it."""


def _why_empty(text: str, last_column: int) -> str:
    if last_column:
        return f"the run was cut off at column {last_column}: no line of results"
    if "HPLinpack benchmark input file" in text[:1000]:
        return "this is an HPL.dat, an input of HPL; expected the output of a run"
    if "HPLinpack" in text or "T/V" in text:
        return "HPL started, but no run finished: no line of results"
    return "not an output of HPL: no line of results, such as `WC05C2R4  N  NB  P  Q  Time  Gflops`"
