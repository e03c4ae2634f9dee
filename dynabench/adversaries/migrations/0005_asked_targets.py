from django.db import migrations


def note_logged_targets(apps, schema_editor):
    """Note for each earlier run which models its log names, and which its round has."""
    runs = apps.get_model("adversaries", "AdversaryRun").objects
    targets = apps.get_model("tasks", "TargetModel").objects
    tries = apps.get_model("adversaries", "AdversaryTry").objects
    for run in runs.select_related("adversary").iterator():
        names = set()
        for outputs in tries.filter(run=run.pk).values_list("outputs", flat=True).iterator():
            names.update(output["model"] for output in outputs)
        run.asked_targets.add(
            *targets.filter(task=run.adversary.task_id, name__in=names),
            *targets.filter(roundtarget__round=run.round_id),
        )


class Migration(migrations.Migration):
    dependencies = [
        ("adversaries", "0004_transfer"),
    ]

    operations = [
        migrations.RunPython(note_logged_targets, migrations.RunPython.noop, elidable=True),
    ]
