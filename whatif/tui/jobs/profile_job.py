"""GPU profile for its page, read and projected in a worker process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whatif.profiles.profile_study import ProfileInputs, ProfileSummary, profile_inputs, profile_summary
from whatif.profiles.stream_lanes import Window
from whatif.tui.jobs.refusal import answer_or_refusal
from whatif.tui.state import ExplorerState

if TYPE_CHECKING:
    from whatif.tui.pages.profile import ProfileView


def inputs_of(state: ExplorerState, view: ProfileView, window: Window | None = None) -> ProfileInputs:
    """Inputs of the profile page for a state of the explorer."""
    return profile_inputs(state.session, view.file, view.source, window)


@answer_or_refusal
def profile_of_inputs(inputs: ProfileInputs) -> ProfileSummary:
    """Summary of a profile, or the error message."""
    return profile_summary(inputs)
