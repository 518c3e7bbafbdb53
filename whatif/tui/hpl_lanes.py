"""First panels of HPL as lanes that can be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whatif.linpack.grid_lines import WORK, GridLine, line_spans
from whatif.linpack.simulation.simulator import HPLOutcome
from whatif.plotting.lanes import PARTS, Lanes, MessageLines
from whatif.studies.rank_lanes import main_groups

if TYPE_CHECKING:
    from whatif.models.quantities import IntArray


def panel_lanes(outcome: HPLOutcome, nodes: IntArray, line: GridLine, panel_count: int) -> Lanes:
    """Lanes of the processes of a line, from the start of the run to the end of the updates with its first panels.

    Time without other work is that of updates, with their row swaps and what these wait for.
    """
    spans = line_spans(outcome, line, panel_count)
    window = 0.0, spans.duration
    group = main_groups(spans.lane, spans.kind, spans.start, spans.end, window, len(spans.last))
    middle = window[0] + (np.arange(PARTS) + 0.5) / PARTS * (window[1] - window[0])
    group[(group == 0) & (middle < spans.last[:, None])] = len(WORK)
    nobody = np.empty(0, dtype=np.int32)
    messages = MessageLines(nobody, nobody, np.empty(0), np.empty(0), np.empty(0))
    return Lanes(window, 0, line.of_grid(nodes).astype(np.int32), group, np.full(PARTS, -1, np.int32), messages, 0)
