"""Domains of the machine of a scenario, and what a message crosses, as table and picture."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.plotting.boxes import Box
from whatif.studies.domains import DomainPicture, MachineDomain, domain_boxes, domain_picture
from whatif.studies.message_curves import PhaseMessages, message_curves
from whatif.studies.message_study import DISTANCE_LABELS, sending_phase
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, SECOND, Dimension, format_quantity

_COLUMNS: Final[dict[str, Dimension | None]] = {
    "domain": None, "inside": None, "count": ONE, "holds": None, "connects": None, "latency": SECOND,
    "bandwidth": BYTE_PER_SECOND, "link": None, "grade": None, "ports": ONE, "messages": ONE, "longest": SECOND,
    "crossed": None, "shared": None,
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Domains(StudyResult):
    """Domains of a machine with their links, and the messages of a phase that they hold."""

    shows_failures: ClassVar[bool] = True
    domains: DomainPicture
    infeasible: str = ""
    """Reason why the point is infeasible: then there are no messages."""
    optional_columns = (["shared"], ["grade", "ports"], ["link"], ["holds"])

    def obstacle(self) -> str:
        """Reason why there are no messages."""
        return f"infeasible: {self.infeasible}" if self.infeasible else ""

    def table(self) -> Table:
        """Domains and their links (see `domain_table`)."""
        return domain_table(self.domains)

    def summary(self) -> tuple[str, ...]:
        """The message whose path is marked."""
        sent = self.domains.chosen
        if sent is None:
            return ()
        size, time = format_quantity(sent.size, BYTE), format_quantity(sent.time, SECOND)
        return (f"marked: {self.domains.phase} {sent.kind} {DISTANCE_LABELS[sent.distance]}, {size}, {time}",)

    def picture(self) -> Box:
        """Boxes in boxes; those that the marked message crosses have thick lines."""
        return domain_boxes(self.domains)


def domains(scenario: Scenario, phase: str | None = None, message: int | None = None) -> Domains:
    """Domains of the machine, with the messages of a phase, by default the first one that sends any.

    `message` is the one whose path is marked, by its row in `messages(.., sent=True)` from 1 on; without it, the
    farthest. Raise `UsageError` for a phase or message that does not exist.
    """
    program = scenario.program
    evaluation = evaluate(program)
    curves = message_curves(program, evaluation)
    sent = None if curves.infeasible else sending_phase(curves, phase)
    chosen = None if message is None or sent is None else _chosen(sent, message)
    return Domains(domain_picture(program, evaluation, sent, chosen), curves.infeasible).about(scenario)


def domain_table(found: DomainPicture) -> Table:
    """One row per domain, the outermost first: how many are `inside` the one around it, its link as one process uses
    it, the messages of the phase that it holds, and whether the marked one crosses it."""
    return Table.of_rows(_COLUMNS, list(_rows(found.machine, "")))


def _chosen(sent: PhaseMessages, message: int) -> int:
    count = len(sent.messages)
    if not 1 <= message <= count:
        raise UsageError(f"message {message}: {sent.phase} sends 1 to {count}")
    return message - 1


def _rows(domain: MachineDomain, around: str) -> Iterator[tuple[Any, ...]]:
    link, sent = domain.link, domain.messages
    linked = (link.latency, link.bandwidth, link.table, link.grade, link.port_count or math.nan) if link else (
        math.nan, math.nan, "", "", math.nan
    )  # fmt: skip
    longest = max((one.time for one in sent), default=math.nan)
    crossed = "yes" if domain.crossed else "no"
    yield (domain.kind, around, domain.count, domain.holds, domain.parts, *linked, sum(one.count for one in sent),
           longest, crossed, domain.shared)  # fmt: skip
    for inner in domain.inside:
        yield from _rows(inner, domain.kind)
