from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("notices", "0004_reading")]

    operations = [
        migrations.AddField(
            model_name="digest",
            name="seen_at",
            field=models.DateTimeField(help_text="When they last looked at their news.", null=True),
        ),
    ]
