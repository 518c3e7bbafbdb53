"""Runs of HPL on the machine of one compiled scenario, for any number of configurations."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.executors import Place
from whatif.core.parameter_paths import NODE_COUNT, NODES_NEEDED
from whatif.core.term import Program
from whatif.core.uncertainty import distribution_of, parameter_samples
from whatif.errors import UsageError
from whatif.linpack.hpl_terms import memory_of, run_at
from whatif.linpack.machine import CHOICES, CORRECTION, NUMBERS, PROCESSORS, RUN_DEVIATION, SEED, WORDS, Plan
from whatif.linpack.simulation.configuration import Configuration
from whatif.linpack.simulation.simulator import HPLOutcome, Progress
from whatif.linpack.threads import Reported, in_threads
from whatif.models.quantities import FloatArray
from whatif.schema.distributions import Distribution
from whatif.units import BYTE, counted, format_quantity

_TERM: Final = "hpl.times"
_PARTS: Final = 2

Task = tuple[Configuration, int]
"""A configuration, and the seed of its random numbers."""


class Refusal(NamedTuple):
    """Reason why a configuration is infeasible on the machine."""

    about: Literal["N", "P x Q", "DEPTH", ""]
    message: str


@dataclass(frozen=True, eq=False)
class HPLRuns:
    """HPL on the machine of a scenario; the configuration of the scenario is only an example."""

    program: Program
    kernel_factor: float = 1.0
    """Further factor of the time of all kernels."""

    def refusal(self, configuration: Configuration) -> Refusal | None:
        """Reason why a configuration is infeasible (nodes, memory, other constraints); None if it is feasible."""
        evaluation = self._at(configuration)
        reasons = evaluation.reasons()
        if not reasons:
            return None
        values = evaluation.values
        if values[NODES_NEEDED] > values[NODE_COUNT]:
            return Refusal("P x Q", self._too_many_ranks(configuration, evaluation))
        largest = self.largest_matrix(configuration)
        if configuration.matrix_size > largest:
            return Refusal("N", self._too_large(configuration, evaluation, largest))
        about: Literal["DEPTH", ""] = "DEPTH" if self.plan.host is not None and configuration.depth > 1 else ""
        return Refusal(about, reasons[0])

    def largest_matrix(self, configuration: Configuration, fraction: float = 1.0) -> float:
        """Largest N whose 8 N (N + 1) bytes fit into a fraction of the memory of the nodes of P x Q ranks.

        Infinite where the platform does not state its memory.
        """
        available = fraction * self._memory * float(self._at(configuration).values[NODES_NEEDED])
        if available == math.inf:
            return math.inf
        return float(math.floor((math.sqrt(1 + available / 2) - 1) / 2))

    @property
    def rank_limit(self) -> int:
        """Most ranks that fit the machine."""
        return int(self.base.values[NODE_COUNT]) * self.ranks_per_node

    @property
    def ranks_per_node(self) -> int:
        """Ranks on a full node."""
        return int(self.base.values[self._input("ranks_per_node")])

    @property
    def is_noisy(self) -> bool:
        """Whether kernels or messages deviate."""
        return self.plan.noise != "none"

    @property
    def panel_place(self) -> str:
        """Sentence on where panels are factored on a machine with GPUs; empty for one without."""
        if self.program.loaded.scenario.platform.node.gpu is None:
            return ""
        if self.plan.host is None or self.plan.host.host_link is None:
            return "panels are factored on the GPUs, without copies to the host, while they update"
        return "panels are copied to the host and factored on its cores while the GPUs update"

    def sampling(self, configuration: Configuration) -> str:
        """Sentence on the share of the steps that are simulated; empty if all of them are."""
        if not self.plan.samples(configuration):
            return ""
        settled = self.plan.settles_soon(configuration)
        error = "" if settled else "; on processors with look-ahead times were 2 % off, for small N up to 13 %"
        words = "windows of steps are simulated, those between interpolated"
        return f"{words} (--set application.steps=all simulates each{error})"

    @property
    def idle_cores(self) -> str:
        """Warning about kernels that were calibrated with fewer busy cores than a node has ranks; empty without any."""
        busy = self.base.values.get("platform.kernels.busy_cores", np.inf)
        if busy >= self.ranks_per_node:
            return ""
        timed = f"kernels were timed with {counted(int(busy), 'busy core')}, {self.ranks_per_node} ranks run on a node"
        return f"warning: {timed}: cores that share memory and clock are slower (docs/hpl_calibration.md)"

    @property
    def has_deviations(self) -> bool:
        """Whether the times of kernels differ between seeds: by call, by run, or by the uncertainty of their costs."""
        deviations = [path for path in self.plan.parameters if ".deviation." in path or path == RUN_DEVIATION]
        uncertain = any(path.startswith("platform.kernels.") for path in self.uncertain)
        return uncertain or any(self.base.values[path] > 0 for path in deviations)

    def waits_for_uplinks(self, rank_count: int) -> bool:
        """Whether messages of `rank_count` ranks wait for links between switches, not only for adapters of nodes."""
        sockets = int(self.base.values[self._input("socket_count")])
        parameters = self._parameters(self.base)
        return self.plan.machine(parameters, rank_count, self.ranks_per_node, sockets).groups is not None

    @property
    def basis(self) -> str:
        """Platform and lowest grade of its values."""
        return (
            f"platform {self.program.loaded.scenario.platform.name}; lowest grade of its values: {self.program.grade}"
        )

    @property
    def seed(self) -> int:
        """Seed of the scenario."""
        return int(self.base.values[SEED])

    @property
    def configuration(self) -> Configuration:
        """Configuration of the scenario. Raise `UsageError` for one that HPL would refuse."""
        return self.plan.configuration(self._parameters(self.base))

    def run(
        self, configuration: Configuration, seed: int, progress: Progress | None = None, panels_seen: int = 0
    ) -> HPLOutcome:
        """Outcome of one run. Raise `UsageError` for a configuration that HPL would refuse."""
        evaluation = self._at(configuration)
        parameters = self._parameters(evaluation) | {SEED: float(seed)} | self.drawn(seed)
        parameters[CORRECTION] = parameters.get(CORRECTION, 1.0) * self.kernel_factor
        stated = dict(zip(CHOICES, self.plan.choices, strict=True))
        plan = replace(self.plan, choices=tuple((stated | words_of(configuration)).values()))
        ranks, per_node, sockets = (
            float(evaluation.values[self._input(name)]) for name in ("rank_count", "ranks_per_node", "socket_count")
        )
        return run_at(plan, parameters, ranks, per_node, sockets, panels_seen, progress)

    def drawn(self, seed: int) -> dict[str, float]:
        """Uncertain costs of the deviating parts, drawn from their distributions and the covariance of their fits."""
        if not self.uncertain:
            return {}
        # Processors of a node share their number: they are slow on the same days.
        owners = [path.rpartition("_")[0] if path.startswith(PROCESSORS) else path for path in self.uncertain]
        places = {owner: at for at, owner in enumerate(dict.fromkeys(owners))}
        numbers = np.random.default_rng((seed, 2)).random((1, len(places)))[:, [places[owner] for owner in owners]]
        samples = parameter_samples(self.program, self.uncertain, numbers)
        return {path: float(values[0]) for path, values in samples.items()}

    @cached_property
    def uncertain(self) -> dict[str, Distribution]:
        """Distributions of the costs of the deviating parts: kernels, messages, or both."""
        parts = {"none": (), "kernels": ("kernels",), "network": ("network",), "both": ("kernels", "network")}
        leads = tuple(f"platform.{part}." for part in parts[self.plan.noise])
        known = {path: distribution_of(self.program.parameters[path], {}) for path in self.plan.parameters
                 if path.startswith(leads)}  # fmt: skip
        return {path: distribution for path, distribution in known.items() if distribution is not None}

    def in_order(
        self, tasks: Iterable[Task], progress: Reported | None = None, place: Place | None = None
    ) -> Iterator[HPLOutcome]:
        """Outcomes in the order of the tasks, several simulated at a time in threads, or by the workers of a place.

        All simulations end when the iteration does.
        """
        if place is not None:
            program = pickle.dumps(self.program, pickle.HIGHEST_PROTOCOL)
            found = place.outcomes(_simulate_on_worker, ((program, *task) for task in tasks), ordered=True)
            yield from (outcome for _, outcome in found)
            return
        yield from in_threads(lambda task, step_done: self.run(*task, step_done), tasks, progress)

    @cached_property
    def base(self) -> Evaluation:
        """Parameters and constraints at the scenario's own configuration, without a run."""
        return evaluate(self.program, {_TERM: np.zeros(_PARTS)})

    @property
    def plan(self) -> Plan:
        """Layout of the parameters in the tables of the simulation."""
        plan: Plan = self.program.terms[_TERM].options["plan"]
        return plan

    def _at(self, configuration: Configuration) -> Evaluation:
        numbers = {
            f"application.{name}": np.asarray(float(getattr(configuration, field))) for name, field in NUMBERS.items()
        }
        return evaluate(self.program, {_TERM: np.zeros(_PARTS), **numbers}, self.base)

    def _parameters(self, evaluation: Evaluation) -> dict[str, float]:
        """Parameters of the simulation by path."""
        return {path: float(evaluation.values[path]) for path in self.plan.parameters}

    def _input(self, name: str) -> str:
        return str(self.program.terms[_TERM].inputs[name])

    @property
    def _memory_parts(self) -> tuple[str, ...]:
        return memory_of(self.program.loaded.scenario.application, self.base.values)

    @property
    def _memory(self) -> float:
        """Bytes of a node for the matrix; infinite where the platform does not state them."""
        parts = self._memory_parts
        return math.prod(float(self.base.values[path]) for path in parts) if parts else math.inf

    def _too_many_ranks(self, configuration: Configuration, evaluation: Evaluation) -> str:
        needed, available = evaluation.values[NODES_NEEDED], evaluation.values[NODE_COUNT]
        name = self.program.loaded.scenario.platform.name
        return (
            f"{configuration.process_rows} x {configuration.process_columns} = {configuration.rank_count:,} ranks need "
            f"{float(needed):,.0f} nodes with {self.ranks_per_node:,} ranks each; {name} has {float(available):,.0f}, "
            f"for {self.rank_limit:,} ranks"
        )

    def _too_large(self, configuration: Configuration, evaluation: Evaluation, largest: float) -> str:
        size, nodes = self._memory, float(evaluation.values[NODES_NEEDED])
        order = configuration.matrix_size
        needed = 8.0 * order * (order + 1)
        gpus = " of GPU memory" if len(self._memory_parts) > 1 else ""
        on = f"{nodes:,.0f} node{'s' * (nodes != 1)} of {format_quantity(size, BYTE)}{gpus}"
        return (
            f"N = {order:,} needs {_size(needed)} on {on} ({_size(nodes * size)}): {_size(needed - nodes * size)} "
            f"too much; the largest N that fits is {largest:,.0f}"
        )


@lru_cache(maxsize=2)
def _unpickled(program: bytes) -> HPLRuns:
    # The sender is the program itself, as is who receives it.
    return HPLRuns(pickle.loads(program))  # noqa: S301


def _simulate_on_worker(task: tuple[bytes, Configuration, int]) -> HPLOutcome:
    """Outcome of one run, in a worker process."""
    program, configuration, seed = task
    return _unpickled(program).run(configuration, seed)


def _size(size: float) -> str:
    """Bytes as text with a decimal prefix."""
    return format_quantity(float(f"{size:.3g}"), BYTE)


def sampling_remarks(program: Program, swept: Mapping[str, FloatArray]) -> tuple[str, ...]:
    """Remark on sampled steps of the scenario's run, or of the longest of a sweep."""
    runs = HPLRuns(program)
    longest: dict[str, Any] = {
        field: int(values.min() if name == "block_size" else values.max())
        for name, field in NUMBERS.items()
        if (values := swept.get(f"application.{name}")) is not None
    }
    try:
        remark = runs.sampling(replace(runs.configuration, **longest))
    except UsageError:  # Said of the point itself.
        return ()
    return (remark,) if remark else ()


def parameters_of(configuration: Configuration) -> dict[str, Any]:
    """Parameters of `application.kind = "hpl"` for a configuration."""
    return {name: getattr(configuration, field) for name, field in NUMBERS.items()} | words_of(configuration)


def words_of(configuration: Configuration) -> dict[str, str]:
    """Parameters of a configuration whose values are words."""
    return {name: getattr(configuration, field).name.lower() for name, (field, _) in WORDS.items()}
