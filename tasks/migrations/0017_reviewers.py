from django.db import migrations, models


def _rename(old, new):
    def rename(apps, schema_editor):
        apps.get_model("tasks", "TaskMember").objects.filter(role=old).update(role=new)

    return rename


class Migration(migrations.Migration):
    dependencies = [("tasks", "0016_config_versions")]

    operations = [
        migrations.AlterField(
            model_name="taskmember",
            name="role",
            field=models.CharField(
                choices=[
                    ("owner", "Owner"),
                    ("editor", "Editor"),
                    ("reviewer", "Reviewer"),
                    ("viewer", "Viewer"),
                    ("annotator", "Annotator"),
                    ("writer", "Writer"),
                    ("judge", "Judge"),
                ],
                max_length=10,
            ),
        ),
        migrations.RunPython(_rename("moderator", "reviewer"), _rename("reviewer", "moderator")),
    ]
