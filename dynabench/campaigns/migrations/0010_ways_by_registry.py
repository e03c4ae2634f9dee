"""Read the ways into a campaign from their registry: a new way needs no migration. No SQL."""

from django.db import migrations, models

import dynabench.campaigns.ways.registry


class Migration(migrations.Migration):
    dependencies = [("campaigns", "0009_ends_of_work")]

    operations = [
        migrations.AlterField(
            "campaign",
            "way",
            models.CharField(
                choices=dynabench.campaigns.ways.registry.way_choices,
                default="link",
                max_length=10,
            ),
        ),
    ]
