"""The conversation on the write page, as plain values for its template."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.attempts.failures import FAILURES, NO_ANSWER
from annotation.models import Conversation
from tasks.config.field_types.chat import LENGTH, most_turns
from tasks.config.schema import TaskConfig


def turns_left(held: Conversation, config: TaskConfig) -> int:
    """Return how many more turns the person may say."""
    assert config.talk is not None
    said: int = sum(turn["role"] == "user" for turn in held.turns)
    return most_turns(config.talk) - said


def values(conversation: Conversation | None, config: TaskConfig) -> dict[str, Any]:
    """Return the turns and what can be said next, but never the model's system message.

    conversation: None in a preview.
    """
    held = conversation or Conversation()
    assert config.talk is not None
    shown = [
        {"place": place, "is_own": turn["role"] == "user", "text": turn["text"]}
        for place, turn in enumerate(held.turns)
        if turn["role"] != "system"
    ]
    return {
        "turns": shown,
        "at": len(held.turns),
        "said": held.said,
        "is_asking": held.is_asking,
        "failed": _(FAILURES.get(held.failure, NO_ANSWER)) if held.failure else "",
        "left": turns_left(held, config),
        "limit": config.talk.max_length or LENGTH,
        "has_answers": bool(shown),
    }
