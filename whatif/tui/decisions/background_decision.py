"""Questions of the page `decide` as background jobs, without a time limit."""

from __future__ import annotations

from dataclasses import replace

from whatif.tui.commands.explorer_commands import Change, Show
from whatif.tui.decisions.answers import Decision, DecisionRequest
from whatif.tui.decisions.decision_job import decide
from whatif.tui.jobs.background import BackgroundJob


def background_decision(request: DecisionRequest, key: object, page: str, seconds: float) -> BackgroundJob:
    """Job that answers a question of a page, however long it takes."""
    opens: tuple[Change, ...] = (Show("why", request.result), Show("screen", page))
    if page == "decide":
        opens = (Show("decide.decision", request.decision), *opens)
    title = decision_title(request.decision, request.result)
    return BackgroundJob(title, request.scenario, decide, (replace(request, patient=True),), key, seconds, opens)


def decision_title(name: str, result: str) -> str:
    """Title of a question about a result in the list of jobs."""
    return f"{name} of {result}"


def of_earlier_values(refusal: Decision, earlier: Decision) -> Decision:
    """An answer that was asked for other values, shown in place of a refusal."""
    said = ("This answer is of earlier values; & computes it for the present ones in the background.",)
    return replace(
        earlier, title=f"of earlier values: {earlier.title}", sentences=(*said, *earlier.sentences),
        seconds=refusal.seconds, changes=(), command="",
    )  # fmt: skip
