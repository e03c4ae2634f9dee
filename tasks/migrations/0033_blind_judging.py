from django.db import migrations, models
from django.db.models.deletion import CASCADE
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0011_undo"),
        ("tasks", "0032_opening_rounds"),
    ]

    operations = [
        migrations.AddField(
            model_name="taskmember",
            name="is_blind",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.CreateModel(
            name="BlindJudging",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("began_at", models.DateTimeField(db_default=Now())),
                (
                    "noted_at",
                    models.DateTimeField(
                        help_text="What they could read before was noted by then; they judge from "
                        "now.",
                        null=True,
                    ),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=CASCADE, related_name="+", to="accounts.annotator"
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=CASCADE, related_name="blind_judgings", to="tasks.task"
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.AddConstraint(
            model_name="blindjudging",
            constraint=models.UniqueConstraint(
                condition=models.Q(ended_at=None),
                fields=("task", "annotator"),
                name="blind_once_at_a_time",
            ),
        ),
    ]
