from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks', '0026_no_groups'),
    ]

    operations = [
        migrations.AddField(
            model_name='targetmodel',
            name='gpus',
            field=models.PositiveSmallIntegerField(db_default=0, default=0, help_text='That it is evaluated on: 0 or 1.'),
        ),
    ]
