"""Messages of a collective that leave a node in the same round, for charges that depend on their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whatif.models.patterns import INTER_NODE
from whatif.simulation.collective_schedules import ALGORITHMS
from whatif.simulation.collective_stages import Stage
from whatif.simulation.schedule import Costs, Places, Schedule, Step


def with_sharing(schedule: Schedule, stages: Sequence[Stage], places: Places, costs: Costs) -> Schedule:
    """Schedule of the stages of a collective (`generate.staged_trace`) whose messages share the nodes they leave."""
    if costs.sharing is None:
        return schedule
    sends = np.flatnonzero(schedule.step == Step.SEND)
    size, leaving = schedule.size[sends], _leaving(stages, places)
    protocol = costs.protocols(size, np.full(len(sends), INTER_NODE))
    sender = schedule.rank_of(sends)
    away = places.node[sender] != places.node[schedule.peer[sends]]
    stretch = np.ones(len(schedule.step))
    stretch[sends] = np.where(away, costs.stretch(protocol, leaving), 1.0)
    return replace(schedule, stretch=stretch)


def _leaving(stages: Sequence[Stage], places: Places) -> NDArray[np.int64]:
    """Messages that leave the busiest node in the round of each send, the sends of all ranks in their order."""
    sent, counts = [], []
    ranks = np.arange(len(places.node))
    for target in _targets(stages, ranks):
        for receiver in target.T:
            sender = np.flatnonzero(receiver >= 0)
            counts.append(places.leaving_count(sender, receiver[sender]))
        sent.append(target >= 0)
    mask = np.concatenate([np.zeros((len(ranks), 0), dtype=np.bool_), *sent], axis=1)
    found: NDArray[np.int64] = np.broadcast_to(np.array(counts, dtype=np.int64), mask.shape)[mask]
    return found


def _targets(stages: Sequence[Stage], ranks: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Receivers of the messages of each rank [rank, round], -1 for none, of the parts of all stages."""
    for stage in stages:
        member = (ranks // stage.stride % stage.size)[:, np.newaxis]
        for part in ALGORITHMS[stage.kind][stage.schedule](member[:, 0], stage.size, 0):
            target = part.target
            if stage.schedule == "one_by_one":
                # The root takes the message of each member in turn, whenever that is ready to be sent.
                turn = np.arange(1, target.shape[1] + 1)
                target = np.where(member == 0, target, np.where(turn == member, target[:, -1:], -1))
            yield np.where(target >= 0, ranks[:, np.newaxis] + (target - member) * stage.stride, -1)
