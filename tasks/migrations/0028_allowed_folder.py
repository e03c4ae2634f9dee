from django.db import migrations, models
from django.db.models import F


def allow_present_folders(apps, schema_editor):
    """Let the model server load on what it loads already, wherever that lies."""
    targets = apps.get_model("tasks", "TargetModel").objects
    targets.filter(url="", source__startswith="/").update(allowed_folder=F("source"))


class Migration(migrations.Migration):
    dependencies = [
        ("tasks", "0027_target_gpus"),
    ]

    operations = [
        migrations.AddField(
            model_name="targetmodel",
            name="allowed_folder",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="The source, where an administrator allowed a folder outside the models' folder.",
                max_length=500,
            ),
        ),
        migrations.RunPython(allow_present_folders, migrations.RunPython.noop, elidable=True),
    ]
