from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('validation', '0006_programs'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='consensus',
            index=models.Index(condition=models.Q(('is_validated_error', True)), fields=['round', 'example'], name='consensus_errors'),
        ),
    ]
