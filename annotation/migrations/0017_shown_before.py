"""Notes what was shown before there were rows of it: examples to change, and those that worked."""

from collections.abc import Iterator
from itertools import islice

from django.db import migrations

BATCH = 1000


def note_shown(apps, schema_editor):
    """In batches: sites have an assignment for nearly each example."""
    rows = _shown_before(apps.get_model("annotation", "Assignment"))
    shown = apps.get_model("annotation", "ShownExample")
    example = apps.get_model("annotation", "Example")
    while batch := list(islice(rows, BATCH)):
        there = set(
            example.objects.filter(pk__in={pk for pk, *_ in batch}).values_list("pk", flat=True)
        )
        shown.objects.bulk_create(
            [
                shown(example_id=pk, annotator_id=person, way=way, shown_at=at)
                for pk, person, way, at in batch
                if pk in there
            ],
            ignore_conflicts=True,
        )


def _shown_before(assignment) -> Iterator[tuple]:
    """Yield (example, annotator, way, time) of every example that an assignment has shown."""
    columns = ("annotator", "assigned_at")
    edited = assignment.objects.filter(parent__isnull=False).values_list("parent", *columns)
    for parent, person, at in edited.iterator(BATCH):
        yield parent, person, "edit", at
    helped = assignment.objects.filter(worked__isnull=False).values_list("worked", *columns)
    for worked, person, at in helped.iterator(BATCH):
        for pk in worked or ():
            yield pk, person, "gallery", at


class Migration(migrations.Migration):
    dependencies = [("annotation", "0016_shown_examples")]

    operations = [migrations.RunPython(note_shown, migrations.RunPython.noop)]
