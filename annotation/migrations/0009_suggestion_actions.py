from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0008_reports_told'),
    ]

    operations = [
        migrations.RenameField(
            model_name='suggestion',
            old_name='deed',
            new_name='action',
        ),
    ]
