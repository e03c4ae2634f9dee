from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0004_programs'),
    ]

    operations = [
        migrations.AddField(
            model_name='assignment',
            name='challenge',
            field=models.CharField(help_text='The one that is offered.', max_length=60, null=True),
        ),
        migrations.AddField(
            model_name='assignment',
            name='worked',
            field=models.JSONField(help_text='Ids of the examples that worked, once shown.', null=True),
        ),
        migrations.AddField(
            model_name='attempt',
            name='challenge',
            field=models.CharField(help_text='The challenge that its author took up.', max_length=60, null=True),
        ),
        migrations.AddField(
            model_name='attempt',
            name='support',
            field=models.JSONField(help_text='The help that its author had, as docs/datasets.md says; null: none.', null=True),
        ),
        migrations.AddField(
            model_name='example',
            name='challenge',
            field=models.CharField(help_text='The challenge that its author took up.', max_length=60, null=True),
        ),
        migrations.AddField(
            model_name='example',
            name='support',
            field=models.JSONField(help_text='The help that its author had, as docs/datasets.md says; null: none.', null=True),
        ),
        migrations.AddIndex(
            model_name='example',
            index=models.Index(condition=models.Q(('challenge__isnull', False)), fields=['round', 'challenge'], name='example_challenge'),
        ),
    ]
