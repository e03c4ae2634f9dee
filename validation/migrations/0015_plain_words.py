"""Reword the labels of choices in plain English. No SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('validation', '0014_longer_answers'),
    ]

    operations = [
        migrations.AlterField(
            model_name='goldanswer',
            name='flag_reason',
            field=models.CharField(blank=True, choices=[('unclear', 'It is not understandable'), ('wrong-language', 'It is in the wrong language'), ('personal', 'It contains personal data'), ('copied', 'It is copied or written by a machine'), ('harmful', 'It is harmful beyond the task'), ('broken', 'The passage is broken'), ('other', 'Something else')], max_length=20),
        ),
        migrations.AlterField(
            model_name='validation',
            name='flag_reason',
            field=models.CharField(blank=True, choices=[('unclear', 'It is not understandable'), ('wrong-language', 'It is in the wrong language'), ('personal', 'It contains personal data'), ('copied', 'It is copied or written by a machine'), ('harmful', 'It is harmful beyond the task'), ('broken', 'The passage is broken'), ('other', 'Something else')], max_length=20),
        ),
    ]
