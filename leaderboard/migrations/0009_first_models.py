from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboard", "0008_plain_words"),
    ]

    operations = [
        migrations.AddField(
            model_name="board",
            name="first_models",
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
