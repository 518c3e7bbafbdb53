"""Job of the messages page: curves, messages, placement and domains of one point, computed in a worker process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import evaluate
from whatif.core.session import SessionInputs
from whatif.errors import WhatifError
from whatif.plotting.tiles import group_colours
from whatif.plugins import registered_pages
from whatif.schema.application import HaloPhase
from whatif.studies.domain_study import DomainPicture, domain_picture
from whatif.studies.message_curves import KCounts, MessageCurves, PhaseMessages, counts, message_curves
from whatif.studies.placement_layout import PlacementPicture, placement_picture
from whatif.tui.jobs.fit_job import FitPoints, points_of_view
from whatif.tui.page_views import FitView


class Placed(NamedTuple):
    """A placement with the colours of its nodes [row, column]."""

    picture: PlacementPicture
    colours: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Contents of the page for one point; `reason` explains a missing placement."""

    curves: MessageCurves
    phase: PhaseMessages | None
    counts: KCounts | None
    placed: Placed | None
    reason: str
    domains: DomainPicture
    measured: FitPoints | None = None


def gather(
    inputs: SessionInputs,
    phase: str | None,
    width: int,
    height: int,
    plane: int | None,
    view: FitView | None = None,
    message: int | None = None,
) -> Gathered:
    """Curves, messages, k, domains and placement of the present point; k and placement of a halo phase.

    The measurements of the fit page are drawn over the curves. The placement has at most `width` columns and `height`
    rows of ranks; `plane` is the one to show, None for that of the busiest node. `message` is the one whose path is
    marked, None for the farthest.
    """
    program = inputs.program
    evaluation = evaluate(program)
    halo = isinstance(program.loaded.scenario.application.phases.get(phase or ""), HaloPhase)
    curves = message_curves(program, evaluation, phase if halo else None)
    sent = next((item for item in curves.phases if item.phase == phase), None)
    points = points_of_view(view) if view is not None else None
    domains = domain_picture(program, evaluation, sent, message)
    if phase is None or not halo or curves.infeasible:
        why = _why_no_placement(curves, phase, getattr(program.loaded.scenario.application, "kind", ""))
        return Gathered(curves, sent, None, None, why, domains, points)
    found = counts(program, evaluation, phase)
    try:
        picture = placement_picture(program, evaluation, phase, width, height, plane)
    except WhatifError as problem:
        return Gathered(curves, sent, found, None, f"There is no placement to draw: {problem}.", domains, points)
    return Gathered(curves, sent, found, Placed(picture, group_colours(picture.nodes)), "", domains, points)


def _why_no_placement(curves: MessageCurves, phase: str | None, application: str) -> str:
    if curves.infeasible:
        return f"Infeasible point: {curves.infeasible}."
    if phase is None:
        own = any(page.screen == "ranks" and page.application == application for page in registered_pages().values())
        place = "4 shows its ranks" if own else "7 shows other scenarios"
        return f"No halo or collective phase in this application: the curves are the platform's. {place}."
    more = f", y shows {curves.phase}" if curves.phase is not None else ""
    return f"A collective such as {phase} has no placement to draw: its ranks have no neighbours on a grid{more}."
