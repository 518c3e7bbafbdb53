"""Placement of the ranks of a halo phase on nodes and sockets, as table and picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.plotting.tiles import TileMap
from whatif.studies.message_study import DISTANCE_LABELS
from whatif.studies.placement_layout import PlacementPicture, halo_phases, placement_picture
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import ONE, counted

MOST_DRAWN: Final = 64
"""Most rows and columns of a picture; of a larger grid it is the window around the busiest node."""
MOST_LISTED: Final = 1024
"""Most rows and columns of a table."""
_COLUMNS: Final = dict.fromkeys(("rank", "node", "socket", "row", "column", "busiest"), ONE)


@dataclass(frozen=True, eq=False, repr=False)
class Placement(StudyResult):
    """The node and the socket of each rank of a halo phase, and the messages of the busiest node."""

    whole: PlacementPicture
    window: PlacementPicture
    """The part that is drawn."""
    title: str

    def table(self) -> Table:
        """Ranks, their nodes and sockets (see `placement_table`)."""
        return placement_table(self.whole)

    def summary(self) -> tuple[str, ...]:
        """The part that is shown, and the messages of the busiest node."""
        return _part_words(self.whole), _busiest_words(self.whole)

    def caption(self) -> tuple[str, str]:
        """The part that is drawn, and the messages of the busiest node."""
        return _part_words(self.window), _busiest_words(self.window)

    def picture(self) -> TileMap:
        """A tile for each rank; lines between nodes, thin ones between sockets; the busiest node is hatched."""
        found = self.window
        rows, columns = found.axes if len(found.axes) > 1 else ("", *found.axes)
        return TileMap(
            self.title, columns, rows, found.part.ranks, found.nodes, found.sockets, found.busiest, *self.caption(),
        )  # fmt: skip


def placement(scenario: Scenario, phase: str | None = None, plane: int | None = None) -> Placement:
    """Placement of a halo phase, by default the first one; of a 3D grid the plane of the busiest node, or another one.

    Raise `UsageError` for another phase, and for a plane that it does not have, `InfeasiblePointError` for an
    infeasible point.
    """
    program = scenario.program
    application = program.loaded.scenario.application
    halos = halo_phases(program)
    if phase is None and not halos:
        raise UsageError("no placement to draw: this application has no halo phase")
    name, evaluation = phase or halos[0], evaluate(program)
    whole, window = (
        placement_picture(program, evaluation, name, most, most, plane) for most in (MOST_LISTED, MOST_DRAWN)
    )
    if plane is not None and not 0 <= plane < whole.part.plane_count:
        planes = f"planes 0 to {whole.part.plane_count - 1}" if whole.part.plane_count > 1 else "one plane"
        raise UsageError(f"--plane {plane}: `{name}` has {planes}")
    title = f"{name}: ranks of {application.name} that share a node of {program.loaded.scenario.platform.name}"
    return Placement(whole, window, title).about(scenario)


def placement_table(found: PlacementPicture) -> Table:
    """One row per rank: its node, the socket in it, and its first place in the part of the grid that is shown;
    `busiest` is 1 on the busiest node. Of a 3D grid one plane."""
    ranks, first = np.unique(found.part.ranks, return_index=True)
    places = np.unravel_index(first, found.part.ranks.shape)
    nodes, sockets, busiest = (array.ravel()[first] for array in (found.nodes, found.sockets, found.busiest))
    return Table.of_rows(_COLUMNS, list(zip(ranks, nodes, sockets, *places, busiest, strict=True)))


def _part_words(found: PlacementPicture) -> str:
    """The part of the grid that is shown, and its plane."""
    part = found.part
    plane = f", {part.plane_name}, plane {part.plane + 1} of {part.plane_count}" if part.plane_name else ""
    return f"{part.shown}{plane}"


def _busiest_words(found: PlacementPicture) -> str:
    """Messages of the busiest node by their distance."""
    sent = ", ".join(f"{count} {DISTANCE_LABELS[distance]}" for distance, count in found.sent.items())
    total = counted(sum(found.sent.values()), "message")
    return f"busiest node {found.busiest_node} of {found.node_count}, {total} an exchange: {sent}"
