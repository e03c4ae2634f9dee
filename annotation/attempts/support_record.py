"""A record of the writing help that an author had, stored with each text."""

from typing import Any

from annotation.models import Assignment, Suggestion
from annotation.rules.edit_distance import compute_edit_distance
from tasks.arms import DRAFTS, MACHINES, SUGGESTED_ARMS

Action = Suggestion.Action


def describe_support(assignment: Assignment, text: str) -> dict[str, Any] | None:
    """Return a record of the help that the author of the text had; None if there was none.

    Its keys are:

    - `challenge`: the name of the offered challenge
    - `examples`: how many examples the gallery showed
    - `suggestion`: `use` if the text is a suggestion, otherwise `edit` or `ignore`
    - `suggested_by`: the generator's name
    - `arm`, `arm_probability`: the arm of a mixed round that was drawn for the text
    - `edit_distance`: in the arm of drafts, how many characters the author changed in the draft

    In the arm of drafts, the draft is the suggestion.
    """
    config = assignment.round.task.config
    support: dict[str, Any] = {}
    if assignment.arm:
        support = {"arm": assignment.arm, "arm_probability": assignment.arm_probability}
    if assignment.challenge in config.challenges:
        support["challenge"] = assignment.challenge
    if assignment.worked:
        support["examples"] = len(assignment.worked)
    suggestions: list[Suggestion] = []
    if (config.support and config.support.suggestions) or assignment.arm in SUGGESTED_ARMS:
        suggestions = list(assignment.suggestions.all())
        support |= _describe_suggestions(suggestions, text)
    if assignment.arm == DRAFTS and suggestions:
        support["edit_distance"] = compute_edit_distance(suggestions[-1].text, text)
    return support or None


def describe_program_support(assignment: Assignment) -> dict[str, Any] | None:
    """Return the record of a text that a program submits; None if it is in no arm.

    Programs read no page, so they have no help. Those that people run with a token are in no arm,
    also if an arm was drawn for the person.
    """
    return {"arm": MACHINES} if assignment.arm == MACHINES else None


def _describe_suggestions(suggestions: list[Suggestion], text: str) -> dict[str, Any]:
    """Return how the author used the suggestions; {} if there were none.

    A suggestion that was used and then changed counts as edited, whichever button was pressed.
    """
    if not suggestions:
        return {}
    # Other spacing is no change of a text.
    used_suggestions = [
        suggestion for suggestion in suggestions if suggestion.text.split() == text.split()
    ]
    changed_suggestions = [
        suggestion for suggestion in suggestions if suggestion.action in Suggestion.USED_ACTIONS
    ]
    if used_suggestions:
        action = Action.USE
    else:
        action = Action.EDIT if changed_suggestions else Action.IGNORE
    # Of several the last of those that decided the action.
    return {
        "suggestion": action.value,
        "suggested_by": (used_suggestions or changed_suggestions or suggestions)[-1].source,
    }
