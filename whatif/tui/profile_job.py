"""GPU profile for its page, read and projected in a worker process."""

from __future__ import annotations

from whatif.errors import WhatifError
from whatif.profiles.profile_study import ProfileInputs, ProfileView, profile_inputs, profile_view
from whatif.profiles.stream_lanes import Window
from whatif.tui.fit_job import FitRefusal
from whatif.tui.state import ExplorerState


def inputs_of(study: ExplorerState, window: Window | None = None) -> ProfileInputs:
    """Inputs of the profile page for a state of the explorer."""
    return profile_inputs(study.session, study.view.profile, study.view.profile_from, window)


def profiled(asked: ProfileInputs) -> ProfileView | FitRefusal:
    """Profile for its page, or the error message."""
    try:
        return profile_view(asked)
    except WhatifError as problem:
        return FitRefusal(str(problem))
