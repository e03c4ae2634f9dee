from django.db import migrations, models

ROWS = ("generator", "targetmodel")


def columns():
    """What came of asking a model whether it answers."""
    text = {"blank": True, "db_default": "", "default": "", "editable": False}
    yield (
        "contact_at",
        models.DateTimeField(
            null=True,
            editable=False,
            help_text="When somebody last asked it to see whether it answers.",
        ),
    )
    yield (
        "contact_reason",
        models.CharField(
            max_length=20, help_text="Why it gave no answer then; empty: it answered.", **text
        ),
    )
    yield (
        "contact_detail",
        models.CharField(max_length=500, help_text="In its own words, without secrets.", **text),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("tasks", "0028_allowed_folder"),
    ]

    operations = [
        migrations.AddField(model_name=row, name=name, field=field)
        for row in ROWS
        for name, field in columns()
    ]
