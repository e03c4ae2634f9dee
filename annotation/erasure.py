"""Erasure of the texts of people who left. Rows stay, so that counts and votes stay valid."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from annotation.models import (
    Assignment,
    Attempt,
    Conversation,
    Example,
    GatePass,
    Report,
    ShownExample,
    Suggestion,
    TargetOutput,
    TextKey,
    TextVector,
)
from annotation.moderation import withdraw_example
from core.accounts.models import Annotator
from tasks.config.schema import TaskConfig
from tasks.contexts.media.services import delete_media, delete_unreferenced_file, list_digests
from tasks.models import Media

# A transaction locks all its examples, so it takes few at a time.
CHUNK_EXAMPLES = 100


@transaction.atomic
def erase_drafts(*, annotator: Annotator) -> None:
    """Delete a person's unfinished work, consents, report comments and what they were shown.

    Unfinished work: drafts with files, conversations, suggestions and attempts. An attempt
    that still waits for its targets is deleted too, so its example is never stored. Takes
    no lock except that of `delete_media`.
    """
    Attempt.objects.filter(annotator=annotator).delete()
    Suggestion.objects.filter(assignment__annotator=annotator).delete()
    Conversation.objects.filter(assignment__annotator=annotator).delete()
    # The row stays, as it counts how often its context was used.
    Assignment.objects.filter(annotator=annotator).update(draft={}, draft_saved_at=None)
    Report.objects.filter(annotator=annotator).update(comment="")
    GatePass.objects.filter(annotator=annotator).delete()
    ShownExample.objects.filter(annotator=annotator).delete()
    # Files that examples name go with these, in `_erase_chunk`.
    delete_media(Media.objects.filter(sent_by=annotator, is_used=False))


def erase_examples(*, annotator: Annotator) -> int:
    """Withdraw all examples of an annotator and empty their texts; return how many.

    Values chosen from a list, such as the label, are kept, so that votes decide as before.
    Released versions keep their rows; the next version has tombstones. Locks 100 examples
    at a time, in order of their ids. Idempotent; continues after an interruption.
    """
    remaining_examples = (
        Example.objects.filter(annotator=annotator).exclude(digest="").order_by("pk")
    )
    count = 0
    # An erased example has no digest, so a run that was interrupted goes on behind it.
    while chunk := list(
        remaining_examples.select_related("round__task", "annotator")[:CHUNK_EXAMPLES]
    ):
        _erase_chunk(chunk)
        count += len(chunk)
    return count


@transaction.atomic
def _erase_chunk(examples: Sequence[Example]) -> None:
    # Read before the inputs are emptied, which name the files.
    files_by_example = []
    for example in examples:
        for digest in list_digests(example.inputs.values()):
            files_by_example.append((example, digest))
    for example in examples:
        # First, because it locks the row and takes it out of the round's numbers.
        withdraw_example(example=example, actor=None, reason="The author deleted their account.")
        example.inputs = _select_choices(example.round.task.config, example.inputs)
        example.metadata, example.typing, example.signs, example.digest = {}, None, None, ""
    Example.objects.bulk_update(examples, ["inputs", "metadata", "typing", "signs", "digest"])
    TextKey.objects.filter(example__in=examples).delete()
    TextVector.objects.filter(example__in=examples).delete()
    TargetOutput.objects.filter(example__in=examples).delete()  # models repeat what they read
    # Last, when no text of the person names the file any more.
    for example, digest in files_by_example:
        task = example.round.task
        delete_unreferenced_file(task=task, digest=digest, leaver=example.annotator)


def _select_choices(config: TaskConfig, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs that were chosen from a list."""
    choice_names = [component.name for component in config.input if component.labels]
    # A choice names nobody, and votes on it must keep their meaning.
    return {name: inputs[name] for name in choice_names if name in inputs}
