from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tasks", "0030_target_names_in_tasks"),
    ]

    operations = [
        migrations.AddField(
            model_name="task",
            name="is_unapproved",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Administrators decide before it opens to others than its members.",
            ),
        ),
        migrations.AddField(
            model_name="taskproposal",
            name="show",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="Once it is approved everybody sees the task.",
            ),
        ),
    ]
