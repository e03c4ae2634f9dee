"""A record of the writing help that an author had, stored with each text."""

from typing import Any

from annotation.models import Assignment, Suggestion

Action = Suggestion.Action


def describe_support(assignment: Assignment, text: str) -> dict[str, Any] | None:
    """Return a record of the help that the author of the text had; None if there was none.

    Its keys are:

    - `challenge`: the name of the offered challenge
    - `examples`: how many examples the gallery showed
    - `suggestion`: `use` if the text is a suggestion, otherwise `edit` or `ignore`
    - `suggested_by`: the generator's name
    """
    config = assignment.round.task.config
    support: dict[str, Any] = {}
    if assignment.challenge in config.challenges:
        support["challenge"] = assignment.challenge
    if assignment.worked:
        support["examples"] = len(assignment.worked)
    if config.support and config.support.suggestions:
        support |= _describe_suggestions(list(assignment.suggestions.all()), text)
    return support or None


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
