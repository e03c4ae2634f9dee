"""Reword the labels of choices in plain English. No SQL."""

import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0033_kinds_by_registry'),
    ]

    operations = [
        migrations.AlterField(
            model_name='evaluationset',
            name='access',
            field=models.CharField(choices=[('scoring', 'Scoring (counts for the leaderboard)'), ('standard', 'Standard (shown next to the leaderboard scores)'), ('hidden', "Hidden (only the task's owners see it)")], default='scoring', max_length=8),
        ),
        migrations.AlterField(
            model_name='evaluationset',
            name='source',
            field=models.CharField(choices=[('round', 'Released round'), ('upload', 'Uploaded file'), ('control', 'Control set (not adversarial)'), ('held', 'Held back from a release')], default='upload', max_length=7),
        ),
        migrations.AlterField(
            model_name='handedanswers',
            name='second',
            field=models.CharField(choices=[('nobody', 'No one'), ('site', 'This site'), ('worker', 'Another runner with a different token')], db_default='site', max_length=6),
        ),
        migrations.AlterField(
            model_name='ownworker',
            name='second',
            field=models.CharField(choices=[('nobody', 'No one'), ('site', 'This site'), ('worker', 'Another runner with a different token')], db_default='site', default='site', max_length=6),
        ),
        migrations.AlterField(
            model_name='paraphrase',
            name='state',
            field=models.CharField(choices=[('waiting', 'to check'), ('kept', 'kept'), ('refused', 'rejected'), ('unfit', 'no paraphrase (lost a name, number or label, or changed too little)')], default='waiting', max_length=7),
        ),
        migrations.AlterConstraint(
            model_name='team',
            name='team_one_name',
            constraint=models.UniqueConstraint(django.db.models.functions.text.Lower('name'), name='team_one_name', violation_error_message='This team name is already taken.'),
        ),
    ]
