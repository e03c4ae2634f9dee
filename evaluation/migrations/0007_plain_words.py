from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0006_training_overlap'),
    ]

    operations = [
        migrations.AlterField(
            model_name='evaluationset',
            name='access',
            field=models.CharField(choices=[('scoring', 'scoring: counts for the leaderboard'), ('standard', 'standard: shown next to it'), ('hidden', "hidden: for the task's owners only")], default='scoring', max_length=8),
        ),
    ]
