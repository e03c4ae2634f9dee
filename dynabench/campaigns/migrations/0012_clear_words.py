"""Say more clearly what the labels of choices mean. No SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('campaigns', '0011_plain_words'),
    ]

    operations = [
        migrations.AlterField(
            model_name='place',
            name='state',
            field=models.CharField(choices=[('testing', 'preparing'), ('working', 'working'), ('lapsed', 'out of time'), ('submitted', 'submitted'), ('approved', 'approved'), ('rejected', 'rejected'), ('returned', 'returned'), ('screened', 'screened out'), ('over', 'too late')], default='working', max_length=9),
        ),
    ]
