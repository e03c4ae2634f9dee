"""The conversation on the write page, as plain values for its template."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.attempts.failures import FAILURE_MESSAGES, NO_ANSWER_MESSAGE
from annotation.models import Conversation
from tasks.config.field_types.chat import DEFAULT_MAX_CHARS, get_max_turns
from tasks.config.schema import TaskConfig


def count_turns_left(conversation: Conversation, config: TaskConfig) -> int:
    """Return how many more turns the person may send."""
    assert config.talk is not None
    own_turns: int = sum(turn["role"] == "user" for turn in conversation.turns)
    return get_max_turns(config.talk) - own_turns


def build_talk_values(conversation: Conversation | None, config: TaskConfig) -> dict[str, Any]:
    """Return the template's context of a conversation, without the system message.

    conversation: None in a preview.
    """
    current = conversation or Conversation()
    assert config.talk is not None
    spoken_turns: list[dict[str, Any]] = []
    answer_count = 0
    for index, turn in enumerate(current.turns):
        if turn["role"] == "system":
            continue
        is_own = turn["role"] == "user"
        answer_count += not is_own
        # The form below names answers by their numbers.
        number = 0 if is_own else answer_count
        spoken_turns.append(
            {"place": index, "is_own": is_own, "text": turn["text"], "number": number}
        )
    return {
        "turns": spoken_turns,
        "at": len(current.turns),
        "said": current.said,
        "is_asking": current.is_asking,
        "failed": _(FAILURE_MESSAGES.get(current.failure, NO_ANSWER_MESSAGE))
        if current.failure
        else "",
        "left": count_turns_left(current, config),
        "limit": config.talk.max_length or DEFAULT_MAX_CHARS,
        "has_answers": bool(spoken_turns),
    }
