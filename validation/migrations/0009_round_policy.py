from django.db import migrations, models


class Migration(migrations.Migration):
    """A name in Python: the table stays as it is."""

    dependencies = [
        ('validation', '0008_undone_answers'),
    ]

    operations = [
        migrations.AlterModelTable(name='judging', table='validation_judging'),
        migrations.RenameModel(old_name='Judging', new_name='RoundPolicy'),
        migrations.AlterModelOptions(
            name='roundpolicy', options={'verbose_name_plural': 'round policies'}
        ),
        migrations.AlterField(
            model_name='roundpolicy',
            name='round',
            field=models.OneToOneField(
                on_delete=models.deletion.CASCADE,
                primary_key=True,
                related_name='round_policy',
                serialize=False,
                to='tasks.round',
            ),
        ),
    ]
