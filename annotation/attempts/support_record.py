"""The help that an author had: kept with each text."""

from typing import Any

from annotation.models import Assignment, Suggestion

Action = Suggestion.Action


def describe_support(assignment: Assignment, text: str) -> dict[str, Any] | None:
    """Return a record of the help that the author of the text had; None if there was none.

    challenge: the offered one. examples: number of gallery examples shown. suggestion: use
    (the text is a suggestion), edit or ignore; suggested_by: the generator's name.
    """
    config = assignment.round.task.config
    had: dict[str, Any] = {}
    if assignment.challenge in config.challenges:
        had["challenge"] = assignment.challenge
    if assignment.worked:
        had["examples"] = len(assignment.worked)
    if config.support and config.support.suggestions:
        had |= _describe_suggestions(list(assignment.suggestions.all()), text)
    return had or None


def _describe_suggestions(suggestions: list[Suggestion], text: str) -> dict[str, Any]:
    """Describe how the author used the suggestions.

    A suggestion that was used and then changed counts as edited, whichever button was
    pressed.
    """
    if not suggestions:
        return {}
    # Other spacing is no change of a text.
    used = [suggestion for suggestion in suggestions if suggestion.text.split() == text.split()]
    taken = [
        suggestion for suggestion in suggestions if suggestion.action in (Action.USE, Action.EDIT)
    ]
    if used:
        action = Action.USE
    else:
        action = Action.EDIT if taken else Action.IGNORE
    # Of several the last of those that decided the action.
    return {"suggestion": action.value, "suggested_by": (used or taken or suggestions)[-1].source}
