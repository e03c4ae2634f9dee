"""Records of others' examples that a person was shown, and therefore never judges."""

from collections.abc import Iterable

from django.db import connection

from annotation.models import ShownExample
from core.accounts.models import Annotator, User
from tasks.models import Round, Task

# One statement, as a task may have a hundred thousand examples.
# COALESCE: an imported example may have no author, and NULL <> x would leave it out.
# Examples of released rounds are no longer judged, so they need no row.
NOTE_READ_SQL = """
INSERT INTO annotation_shownexample (example_id, annotator_id, way)
SELECT example.id, %(annotator)s, %(way)s
FROM annotation_example AS example JOIN tasks_round AS round ON round.id = example.round_id
WHERE round.task_id = %(task)s AND round.state <> %(released)s
  AND COALESCE(example.annotator_id, -1) <> %(annotator)s
ON CONFLICT DO NOTHING
"""


def note_shown_examples(
    *, annotator: Annotator, examples: Iterable[int], way: ShownExample.Way
) -> None:
    """Record that the person is about to see these examples, by id, with their answers.

    Call it before the response is sent: a later vote then finds the row, and an earlier
    vote could not have known the answer. Takes no lock: a unique constraint keeps the first
    way.
    """
    # Duplicates are left to the constraint: a query for them could miss a row stored meanwhile.
    rows = [ShownExample(annotator=annotator, example_id=pk, way=way) for pk in examples]
    if rows:
        ShownExample.objects.bulk_create(rows, ignore_conflicts=True)


def note_read_examples(task: Task, user: User) -> None:
    """Record that a person could read all of the task's unreleased examples by others.

    Used when a role that reads labels ends; the person may judge later examples. Call it in
    the transaction that ends the role.
    """
    annotator = Annotator.objects.filter(user=user).first()
    # Whoever never wrote or judged has no annotator, and may judge later examples.
    if annotator is None:
        return
    values: dict[str, int | str] = {
        "annotator": annotator.pk,
        "task": task.pk,
        "way": ShownExample.Way.ROLE.value,
        "released": Round.State.RELEASED.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(NOTE_READ_SQL, values)
