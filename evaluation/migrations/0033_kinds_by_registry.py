"""Read the kinds of submissions from their registry: a new kind needs no migration. No SQL."""

from django.db import migrations, models

import evaluation.kinds


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0032_jobs_note_servers_away")]

    operations = [
        migrations.AlterField(
            "submission",
            "kind",
            models.CharField(choices=evaluation.kinds.kind_choices, max_length=11),
        ),
    ]
