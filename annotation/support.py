"""Help with writing: what its author had is kept with each text."""

from typing import Any

from annotation.models import Assignment


def support_of(assignment: Assignment) -> dict[str, Any] | None:
    """The help that was there for whoever wrote for the assignment; None: none.

    challenge: the one that was offered. examples: how many examples that worked were shown.
    """
    had: dict[str, Any] = {}
    if assignment.challenge in assignment.round.task.config.challenges:
        had["challenge"] = assignment.challenge
    if assignment.worked:
        had["examples"] = len(assignment.worked)
    return had or None
