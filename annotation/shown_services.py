"""Writes of which examples by others the site has shown to a person, who then never judges them."""

from collections.abc import Iterable

from annotation.models import ShownExample
from dynabench.accounts.models import Annotator


def note_shown_examples(
    *, annotator: Annotator, examples: Iterable[int], way: ShownExample.Way
) -> None:
    """Store that the person is about to see these examples, by their ids, with their answers.

    Call it before the response is sent: a vote that arrives later then finds the row, and one that
    was cast before could not know the answer. No lock: a unique constraint keeps the first way.
    """
    rows = [ShownExample(annotator=annotator, example_id=pk, way=way) for pk in examples]
    if rows:
        ShownExample.objects.bulk_create(rows, ignore_conflicts=True)
