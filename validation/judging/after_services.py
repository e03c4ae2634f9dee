"""Write what judges answer after their vote."""

from collections.abc import Mapping
from typing import Any

from core.text.words import compose
from validation.models import GoldAnswer, Validation


def store_answers_after_vote(
    *,
    validation: Validation | GoldAnswer,
    reveal_answers: Mapping[str, str],
    metadata: Mapping[str, Any],
) -> None:
    """Store a validator's answers to the questions after the vote; the last save wins."""
    validation.reveal = reveal_answers.get("reveal", "")
    validation.reveal_choice = reveal_answers.get("reveal_choice", "")
    validation.reveal_comment = compose(reveal_answers.get("reveal_comment", ""))
    validation.metadata = {**validation.metadata, **metadata}
    # Only these columns, so that the vote itself is not written again.
    validation.save(update_fields=["reveal", "reveal_choice", "reveal_comment", "metadata"])
