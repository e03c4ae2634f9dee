"""Read the kinds of notices from their registry: a new kind needs no migration. No SQL."""

from django.db import migrations, models

import dynabench.notices.registry


class Migration(migrations.Migration):
    dependencies = [("notices", "0005_seen_at")]

    operations = [
        migrations.AlterField(
            "notice",
            "kind",
            models.CharField(choices=dynabench.notices.registry.notice_choices, max_length=10),
        ),
    ]
