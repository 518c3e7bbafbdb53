"""Quantities that phases share, such as ranks per node and cells per rank; each is wired once, when first used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

from whatif.core.parameter_paths import NODE_COUNT, NODES_NEEDED, RANK_COUNT
from whatif.core.rank_groups import group_of
from whatif.core.term import Reference
from whatif.core.wiring import Wiring
from whatif.models.decomposition import (
    MOST_RANKS,
    ascending_dimensions,
    balanced_dimensions,
    bisection_dimensions,
    largest_box,
    local_cells,
)
from whatif.models.ranks import (
    agrees,
    group_count,
    nests,
    nodes_needed,
    nodes_of_file,
    nodes_per_domain,
    pair_count,
    placed_count,
    placed_members,
    ranks_in_turn,
    ranks_on_gpu,
    ranks_per_device,
    ranks_per_domain,
    ranks_per_node,
    ranks_per_socket,
    sharing_count,
)
from whatif.models.sockets import ranks_on_cores
from whatif.models.workload import along_dimensions, cell_count, joined_cells, repeated_cells
from whatif.schema.application import CellGrid
from whatif.schema.host_messages import states_host_messages
from whatif.schema.scenario_spec import ScenarioSpec
from whatif.units import ONE, Quantity
from whatif.vocabulary import Buffers

DIMENSIONS: Final[Mapping[str, Callable[..., object]]] = {
    "balanced": balanced_dimensions,
    "ascending": ascending_dimensions,
    "bisection": bisection_dimensions,
}
"""Function that gives the ranks along each dimension, by the decomposition."""
GPU_COUNT: Final = "platform.node.gpu_count"
DOMAIN_GPUS: Final = "platform.node.domain_gpu_count"


def scenario_folder(wiring: Wiring) -> Path | None:
    """Folder of the scenario's file; None without a file."""
    folders = (layer.document.folder for layer in reversed(wiring.loaded.layers.items) if not layer.at)
    return next((folder for folder in folders if folder is not None), None)


def read_mapping(wiring: Wiring, name: str | None) -> tuple[int, ...]:
    """Node of every rank, from a file in the folder of the scenario with one whole number a line."""
    path = "application.grid.mapping_file"
    folder = scenario_folder(wiring)
    if name is None or folder is None or Path(name).name != name:
        wiring.refuse(path, 'mapping = "file" needs the plain name of a file in the folder of the scenario')
    try:
        with (folder / name).open(encoding="utf-8") as file:
            nodes = tuple(int(line) for line in islice(file, MOST_RANKS + 1) if line.strip())
    except OSError as error:
        wiring.refuse(path, f"`{name}` cannot be read: {error.strerror}")
    except ValueError as error:
        wiring.refuse(path, f"`{name}` must hold one node number a line: {error}")
    wrong = next((node for node in nodes if not 0 <= node < MOST_RANKS), None)
    if not nodes or wrong is not None:
        found = "it is empty" if wrong is None else f"found {wrong}"
        wiring.refuse(path, f"`{name}` must hold the node number of every rank, from 0, one a line; {found}")
    return nodes


def _fullest(nodes: tuple[int, ...]) -> Quantity:
    """Ranks of the node that has the most."""
    return Quantity(float(max(Counter(nodes).values())), ONE)


class Context:
    """Wiring of one scenario, and the references that its phases share."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring

    @property
    def scenario(self) -> ScenarioSpec:
        """Scenario that is being compiled."""
        return self.wiring.loaded.scenario

    @property
    def grid(self) -> CellGrid:
        """Grid of the application; validation ensures that scenarios whose phases need one have it."""
        grid = self.scenario.application.grid
        assert grid is not None
        return grid

    def once(self, name: str, function: Callable[..., object], **inputs: Reference) -> str:
        """Term that several phases share, added when first used."""
        return name if name in self.wiring.terms else self.wiring.add(name, function, inputs)

    rank_count = RANK_COUNT

    @property
    def on_gpus(self) -> bool:
        """Whether kernels run on GPUs."""
        return self.scenario.on_gpus

    @property
    def is_simulated(self) -> bool:
        """Whether messages are simulated one by one, not computed by closed forms."""
        return self.scenario.application.communication != "modelled"

    @property
    def ranks_on_gpu(self) -> str:
        """Ranks that share a GPU at the same time: those of a full node, at most all."""
        full = self.once("placement.ranks_on_full_gpu", ranks_on_gpu, **self._node_ranks)
        return self.once("placement.ranks_on_gpu", sharing_count, rank_count=self.rank_count, available_count=full)

    @property
    def in_time_slices(self) -> bool:
        """Whether one of the ranks that share a GPU has it at a time."""
        return self.on_gpus and self.scenario.application.gpu_sharing == "time_slices"

    @property
    def ranks_at_once(self) -> Reference:
        """Ranks whose kernels run at the same time on a GPU."""
        return Quantity(1.0, ONE) if self.in_time_slices else self.ranks_on_gpu

    @property
    def ranks_per_device(self) -> str:
        """Ranks on each GPU in use of a full node, in the mean."""
        return self.once("placement.ranks_per_device", ranks_per_device, **self._node_ranks)

    @property
    def _node_ranks(self) -> dict[str, str]:
        per_gpu = "application.ranks_per_gpu"
        return {"ranks_per_gpu": per_gpu, "gpu_count": GPU_COUNT, "ranks_per_node": self.ranks_per_node}

    @property
    def ranks_per_node(self) -> str:
        """Ranks on a full node: as stated by the application, else one for each GPU, or on sockets for each core."""
        stated = "application.ranks_per_node"
        if stated in self.wiring.parameters:
            return stated
        node = self.scenario.platform.node
        if self.on_gpus and node.gpu is not None:
            inputs = {"gpu_count": GPU_COUNT, "ranks_per_gpu": "application.ranks_per_gpu"}
            return self.once("placement.ranks_per_node", ranks_per_node, **inputs)
        if node.cpu is None:
            name, remedy = self.scenario.platform.name, "such as the cores of a node: 32 or 64"
            lacks = "no GPUs and no `[platform.node.cpu]`" if node.gpu is None else "no `[platform.node.cpu]`"
            self.wiring.refuse(stated, f"missing: {name} has {lacks}, so state how many ranks run on a node, {remedy}")
        threads: Reference = "application.threads_per_rank"
        cores = {"core_count": "platform.node.cpu.core_count", "socket_count": "platform.node.socket_count"}
        threads = threads if threads in self.wiring.parameters else Quantity(1.0, ONE)
        return self.once("placement.ranks_per_node", ranks_on_cores, **cores, threads_per_rank=threads)

    @property
    def ranks_per_socket(self) -> str:
        """Ranks on a full socket."""
        socket_count = "platform.node.socket_count"
        inputs = {"ranks_per_node": self.ranks_per_node, "socket_count": socket_count}
        return self.once("placement.ranks_per_socket", ranks_per_socket, **inputs)

    @property
    def nodes_needed(self) -> str:
        """Nodes that the ranks occupy."""
        if isinstance(self.mapping, tuple):
            counted = Quantity(float(len(set(self.mapping))), ONE)
            return self.once(NODES_NEEDED, nodes_of_file, node_count=counted)
        inputs = {"rank_count": self.rank_count, "ranks_per_node": self.ranks_per_node}
        return self.once(NODES_NEEDED, nodes_needed, **inputs)

    @property
    def placed_count(self) -> str:
        """Number of ranks whose messages are counted; NaN if the platform is too small for them."""
        inputs = {"rank_count": self.rank_count, "needed_count": self.nodes_needed, "available_count": NODE_COUNT}
        return self.once("placement.rank_count", placed_count, **inputs)

    def sharing(self, distance: str) -> str:
        """k' of a distance: number of processes (inside a socket: pairs) that communicate over it at the same time."""
        if distance == "intra_socket":
            return self.once("placement.pair_count", pair_count, sharing_count=self.sharing("inter_socket"))
        scope, name = (
            (self._fullest_node, "placement.node_sharing_count")
            if distance == "inter_node"
            else (self.ranks_per_socket, "placement.socket_sharing_count")
        )
        return self.once(name, sharing_count, rank_count=self.rank_count, available_count=scope)

    @property
    def _fullest_node(self) -> Reference:
        """Ranks of the node that has the most, if all nodes but the last are full, taken in turn, or as in the file."""
        if isinstance(self.mapping, tuple):
            return _fullest(self.mapping)
        if self.mapping != "round_robin":
            return self.ranks_per_node
        inputs = {"rank_count": self.rank_count, "node_count": self.nodes_needed}
        return self.once("placement.ranks_in_turn", ranks_in_turn, **inputs)

    @cached_property
    def buffers(self) -> Buffers:
        """Memory that holds the data of messages: as stated, or by what the platform states."""
        platform, stated = self.scenario.platform, self.scenario.application.buffers
        if stated not in (None, "host") and not self._linked:
            reason = f"`{stated}`: {platform.name} does not state GPUs with a `[node.peer_link]`"
            self.wiring.refuse("application.buffers", reason)
        if stated is not None or not (self._linked and self.on_gpus):
            return stated or "host"
        return "host" if states_host_messages(platform.network, self.wiring.loaded.layers, ("platform",)) else "device"

    @property
    def device_buffers_need(self) -> str:
        """Remedy where messages must be sent from the memory of GPUs, but are sent from main memory."""
        lacking = f"{self.scenario.platform.name} needs `[platform.node.peer_link]`"
        return 'state `application.buffers = "device"`' if self._linked else lacking

    @property
    def _linked(self) -> bool:
        node = self.scenario.platform.node
        return node.gpu is not None and node.peer_link is not None

    @property
    def domain_rank_count(self) -> str:
        """Ranks that a link domain has, if it is not the last one: those of a node if its size is not stated."""
        if DOMAIN_GPUS not in self.wiring.parameters:
            return self.ranks_per_node
        if "placement.link_domain nests" not in self.wiring.terms:
            places = f"({DOMAIN_GPUS}, {self._gpus['gpu_count']})"
            reason = f"link domains are neither a part of a node nor whole nodes {places}"
            self.wiring.require("placement.link_domain nests", reason, nests, {**self._gpus})
        counts = {"ranks_per_node": self.ranks_per_node, "nodes_per_domain": self._nodes_per_domain}
        return self.once("placement.ranks_per_domain", ranks_per_domain, **counts, **self._gpus)

    @property
    def _nodes_per_domain(self) -> str:
        return self.once("placement.nodes_per_domain", nodes_per_domain, node_count=self.nodes_needed, **self._gpus)

    @property
    def _gpus(self) -> dict[str, str]:
        return {"domain_gpu_count": DOMAIN_GPUS, "gpu_count": GPU_COUNT}

    @property
    def domains(self) -> dict[str, Reference]:
        """Ranks of a node and of its inner domain that communicate, and nodes of a link domain of several nodes.

        The inner domain is the socket of messages from main memory, and the link domain of those between GPUs.
        """
        node = self.sharing("inter_node")
        if self.buffers == "host":
            return {"ranks_per_node": node, "ranks_per_socket": self.sharing("inter_socket")}
        if DOMAIN_GPUS not in self.wiring.parameters:
            return {"ranks_per_node": node, "ranks_per_socket": node}
        inner = {"rank_count": node, "available_count": self.domain_rank_count}
        return {
            "ranks_per_node": node,
            "ranks_per_socket": self.once("placement.domain_sharing_count", sharing_count, **inner),
            "nodes_per_domain": self._nodes_per_domain,
        }

    @property
    def grid_group(self) -> dict[str, Reference]:
        """Size and stride of the groups that have a grid each; empty if all ranks share one."""
        name = self.grid.group
        if name is None:
            return {}
        if self.grid.decomposition == "bisection" or self.grid.mapping == "tiles":
            choice = "decomposition" if self.grid.decomposition == "bisection" else "mapping"
            self.wiring.refuse(f"application.grid.{choice}", "does not apply to the grids of groups")
        return group_of(self, "application.grid.group", name)

    @property
    def grid_rank_count(self) -> Reference:
        """Ranks of a grid: all, or those of a group."""
        return self.grid_group.get("group_size", self.rank_count)

    @property
    def placed_grid_count(self) -> str:
        """Ranks of a grid whose messages are counted."""
        group = self.grid_group
        if not group:
            return self.placed_count
        inputs = {"group_size": group["group_size"], "rank_count": self.placed_count}
        return self.once("grid.rank_count", placed_members, **inputs)

    @property
    def grid_groups(self) -> dict[str, Reference]:
        """Stride and number of the groups that have a grid each; empty if all ranks share one."""
        group = self.grid_group
        if not group:
            return {}
        sizes = {"rank_count": self.rank_count, "group_size": group["group_size"]}
        return {
            "group_stride": group["group_stride"],
            "group_count": self.once("grid.group_count", group_count, **sizes),
        }

    @property
    def rank_dimensions(self) -> str:
        """Ranks along each dimension of the grid."""
        name = "grid.ranks"
        if name in self.wiring.terms:
            return name
        if self.grid.decomposition == "given":
            given = self._stack(name, "application.grid.ranks", list(self.grid.ranks))
            product = self.once("grid.given_count", cell_count, cells=given)
            size = RANK_COUNT if self.grid.group is None else "the size of application.grid.group"
            reason = f"the ranks along the dimensions do not multiply to {size}"
            inputs: dict[str, Reference] = {"first_count": product, "second_count": self.grid_rank_count}
            self.wiring.require("grid.rank_count agrees", reason, agrees, inputs)
            return given
        function = DIMENSIONS[self.grid.decomposition]
        options = {"dimension_count": len(self.grid.cells)}
        return self.wiring.add(name, function, {"rank_count": self.placed_grid_count}, options=options)

    @property
    def stated_cells(self) -> str:
        """Cells as stated in the file: of one rank (weak scaling) or of all ranks (strong scaling)."""
        return self._stack("grid.cells", "application.grid.cells", list(self.grid.cells))

    @property
    def rank_cells(self) -> str:
        """Cells of the largest rank's box along each dimension."""
        if self.grid.decomposition == "bisection":
            return self.once("grid.rank_cells", largest_box, rank_count=self.placed_count, cells=self.all_cells)
        if self.grid.scaling == "weak":
            return self.stated_cells
        return self.once("grid.rank_cells", local_cells, cell_count=self.stated_cells, extent=self.rank_dimensions)

    @property
    def all_cells(self) -> str:
        """Cells of all ranks together along each dimension."""
        if self.grid.scaling == "strong":
            return self.stated_cells
        return self.once("grid.all_cells", joined_cells, cells=self.stated_cells, extents=self.rank_dimensions)

    @property
    def rank_cell_count(self) -> str:
        """Number of cells of the largest rank's box."""
        return self.once("grid.rank_cell_count", cell_count, cells=self.rank_cells)

    @property
    def total_cell_count(self) -> str:
        """Number of cells of all ranks together."""
        stated = self.once("grid.cell_count", cell_count, cells=self.stated_cells)
        parts: Reference = self.rank_count
        if self.grid.scaling == "strong":
            groups = self.grid_groups
            if not groups:
                return stated
            parts = groups["group_count"]
        return self.once("grid.total_cell_count", repeated_cells, cell_count=stated, rank_count=parts)

    @cached_property
    def mapping(self) -> str | tuple[int, ...]:
        """Mapping of ranks to nodes: a name, or the node of every rank from the file."""
        grid = self.scenario.application.grid
        if grid is None or grid.mapping != "file":
            return "block" if grid is None else grid.mapping
        mapping = read_mapping(self.wiring, grid.mapping_file)
        inputs: dict[str, Reference] = {
            "first_count": Quantity(float(len(mapping)), ONE),
            "second_count": self.rank_count,
        }
        reason = f"application.grid.mapping_file places {len(mapping)} ranks, not application.rank_count"
        self.wiring.require("placement.mapping agrees", reason, agrees, inputs)
        reason = "application.grid.mapping_file places more ranks on a node than application.ranks_per_node"
        self.wiring.require_fit("placement.mapping", reason, _fullest(mapping), self.ranks_per_node)
        return mapping

    def _stack(self, name: str, table: str, keys: list[str]) -> str:
        if name not in self.wiring.terms:
            self.wiring.add(name, along_dimensions, {f"{table}.{key}": f"{table}.{key}" for key in keys})
        return name

    def profiled_cells(self, phase: str, keys: list[str]) -> str:
        """Cells of the rank in the run in which a kernel was profiled."""
        return self._stack(f"{phase}.profiled_cells", f"application.phases.{phase}.profiled_cells", keys)
