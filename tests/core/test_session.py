"""Sessions: default ranges of sweeps."""

from __future__ import annotations

from whatif.core.scenario import Scenario
from whatif.core.session import Session

EFFECTIVENESS = "platform.site.power_usage_effectiveness"


def test_default_range_stays_within_the_domain():
    axis = Session.start(Scenario.open("jacobi2d")).sweep(EFFECTIVENESS, None).grid.axes[0]
    assert axis.texts[EFFECTIVENESS].startswith("1 ..")
