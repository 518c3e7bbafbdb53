"""GPU profile for its page, read and projected in a worker process."""

from __future__ import annotations

from whatif.profiles.profile_study import ProfileInputs, ProfileSummary, profile_summary
from whatif.tui.jobs.refusal import answer_or_refusal


@answer_or_refusal
def profile_of_inputs(inputs: ProfileInputs) -> ProfileSummary:
    """Summary of a profile, or the error message."""
    return profile_summary(inputs)
