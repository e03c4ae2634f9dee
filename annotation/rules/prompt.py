"""The prompt of an author: the goal in a sentence, and the fields to read."""

from collections.abc import Mapping
from typing import Any

from tasks.config.schema import TaskConfig


def split_goal(config: TaskConfig, goal: str) -> tuple[str, str, str]:
    """Split the goal sentence into the text before, the goal's words and the text after.

    Without a goal, all words are in the first part.
    """
    field = config.goal.field
    if not field or not goal:
        return config.goal.text, "", ""
    text_before, _, text_after = config.goal.text.partition("{" + field + "}")
    words = next(
        (label.goal or label.words) for label in config.get_labels(field) if label.value == goal
    )
    return text_before, words, text_after


def list_fields_to_read(config: TaskConfig, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context's non-empty fields in order, except the prompt to write from."""
    prompt = config.support.prompt_field if config.support else None
    names = (component.name for component in config.context if component.name != prompt)
    return {name: context[name] for name in names if context.get(name) not in (None, "", [])}
