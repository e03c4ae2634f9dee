from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks', '0007_target_failures'),
    ]

    operations = [
        migrations.AlterField(
            model_name='generator',
            name='name',
            field=models.SlugField(help_text='People read it with a suggestion.', max_length=60),
        ),
    ]
