from django.db import migrations, models


class Migration(migrations.Migration):
    """A name in Python: the column stays `deed`, which 0.2.0 reads while this runs."""

    dependencies = [
        ('annotation', '0008_reports_told'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField(
                    model_name='suggestion',
                    old_name='deed',
                    new_name='action',
                ),
                migrations.AlterField(
                    model_name='suggestion',
                    name='action',
                    field=models.CharField(blank=True, choices=[('use', 'Use'), ('edit', 'Edit'), ('ignore', 'Ignore')], db_column='deed', max_length=6),
                ),
            ]
        ),
    ]
