"""GPUs of a node and the links between them, from the text of nvidia-smi and rocm-smi."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

LinkKind = Literal["nvlink", "xgmi", "pcie", ""]
NVIDIA: Final = ("nvidia-smi", "--query-gpu=name,memory.total,pcie.link.gen.max,pcie.link.width.max",
                 "--format=csv,noheader,nounits")  # fmt: skip
NVIDIA_TOPOLOGY: Final = ("nvidia-smi", "topo", "-m")
NVIDIA_LINKS: Final = ("nvidia-smi", "nvlink", "-s")
ROCM: Final = ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showtopotype")
_DIRECT: Final = re.compile(r"NV\d+|XGMI")
"""Connections without a bus."""
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*m")
_ROW: Final = re.compile(r"^GPU(\d+)\s+(.+)$", re.MULTILINE)
_LINKS_OF: Final = re.compile(r"^GPU (\d+):", re.MULTILINE)
_RATE: Final = re.compile(r"^\s*Link \d+: ([0-9.]+) GB/s", re.MULTILINE)
_CARD: Final = re.compile(r"^GPU\[\d+\]\s*:\s*Card [Ss]eries:\s*(.+?)\s*$", re.MULTILINE)
_VRAM: Final = re.compile(r"^GPU\[\d+\]\s*:\s*VRAM Total Memory \(B\):\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class GPUs:
    """Equal GPUs of a node."""

    name: str
    count: int
    memory_size: float = 0.0
    """Memory of one GPU, in B; 0 if unknown."""
    link: LinkKind = ""
    """Link between every two of all GPUs or of a domain; empty for none, or where domains differ."""
    link_count: int = 0
    """Links between two of them, or to a switch; 0 where it is not known."""
    link_rate: float = 0.0
    """Rate of one link in one direction, in B/s; 0 if unknown."""
    switched: bool = False
    """Whether links lead to switches instead of the other GPUs."""
    pcie: tuple[int, int] = (0, 0)
    """Generation and lanes of PCI Express; 0 where they are not known."""
    source: str = ""
    """Program that reported it."""
    warnings: tuple[str, ...] = ()
    domain: int = 0
    """GPUs that the link connects, where it does not connect all."""


class _Links(NamedTuple):
    """Link between two GPUs: its kind, its number where it is stated, and the GPUs that it connects if not all."""

    kind: LinkKind = ""
    number: int = 0
    domain: int = 0


def read_gpus(output_of: Callable[[Sequence[str]], str]) -> GPUs | None:
    """GPUs that nvidia-smi or rocm-smi lists, None without; `output_of` runs a program."""
    if listed := output_of(NVIDIA):
        return nvidia_gpus(listed, output_of(NVIDIA_TOPOLOGY), output_of(NVIDIA_LINKS))
    return amd_gpus(output_of(ROCM))


def nvidia_gpus(listed: str, topology: str, links: str) -> GPUs | None:
    """GPUs from the output of the three commands of nvidia-smi."""
    rows = [[cell.strip() for cell in line.split(",")] for line in listed.splitlines() if line.count(",") == 3]
    if not rows:
        return None
    name, memory, *bus = rows[0]
    generation, lanes = (int(text) if text.isdigit() else 0 for text in bus)
    rates = parse_nvlinks(links).get(0, [])
    between = links_between(parse_topology(topology))
    others = (between.domain or len(rows)) - 1
    return GPUs(
        name,
        len(rows),
        float(memory) * 2**20 if memory.isdigit() else 0.0,
        between.kind,
        between.number,
        min(rates, default=0.0),
        between.kind == "nvlink" and between.number * others > len(rates) > 0,
        (generation, lanes),
        "nvidia-smi",
        _differing([row[0] for row in rows]),
        between.domain,
    )


def amd_gpus(text: str) -> GPUs | None:
    """GPUs from the output of rocm-smi, which states neither numbers nor rates of links."""
    names, sizes = _CARD.findall(text), _VRAM.findall(text)
    if not names:
        return None
    between, differing = links_between(parse_topology(text)), _differing(names)
    size = float(sizes[0]) if sizes else 0.0
    return GPUs(names[0], len(names), size, between.kind, source="rocm-smi", warnings=differing, domain=between.domain)


def parse_topology(text: str) -> dict[tuple[int, int], str]:
    """Connections such as `NV18`, `PHB` and `XGMI` of every two GPUs, from `topo -m` or `--showtopotype`."""
    rows = [(int(number), cells.split()) for number, cells in _ROW.findall(_ESCAPES.sub("", text))]
    matrix = [(number, cells) for number, cells in rows if not cells[0].startswith("GPU")]
    others = [number for number, _ in matrix]
    return {
        (number, other): cell
        for number, cells in matrix
        for other, cell in zip(others, cells, strict=False)
        if other != number
    }


def parse_nvlinks(text: str) -> dict[int, list[float]]:
    """Rates in B/s of the active links of each GPU, from `nvidia-smi nvlink -s`."""
    _, *parts = _LINKS_OF.split(text)
    return {
        int(number): [float(rate) * 1e9 for rate in _RATE.findall(part)]
        for number, part in zip(parts[::2], parts[1::2], strict=True)
    }


def links_between(connections: Mapping[tuple[int, int], str]) -> _Links:
    """Links of all GPUs, or of equal domains in which every two have the same ones and which only a bus connects."""
    direct = {pair: cell for pair, cell in connections.items() if _DIRECT.fullmatch(cell)}
    if not direct:
        return _Links("pcie" if connections else "")
    gpus = {gpu for pair in connections for gpu in pair}
    size, kinds = _domain_size(direct, gpus), set(direct.values())
    if not size or len(kinds) > 1:
        return _Links()
    kind, domain = kinds.pop(), size if size < len(gpus) else 0
    return _Links("xgmi", 0, domain) if kind == "XGMI" else _Links("nvlink", int(kind.removeprefix("NV")), domain)


def _domain_size(pairs: Collection[tuple[int, int]], gpus: set[int]) -> int:
    """Number of GPUs in each of the equal groups that the pairs connect, all with all; 0 if they do not."""
    groups = {gpu: {gpu} | {other for one, other in pairs if one == gpu} for gpu in gpus}
    whole = all(groups[other] == group for group in groups.values() for other in group)
    sizes = {len(group) for group in groups.values()}
    return sizes.pop() if whole and len(sizes) == 1 else 0


def _differing(names: Sequence[str]) -> tuple[str, ...]:
    others = sorted(set(names) - {names[0]})
    return (f"GPUs differ: only {names[0]} is described, not {', '.join(others)}",) if others else ()
