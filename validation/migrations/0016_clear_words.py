"""Say more clearly what the labels of choices mean. No SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('validation', '0015_plain_words'),
    ]

    operations = [
        migrations.AlterField(
            model_name='consensus',
            name='verdict',
            field=models.CharField(blank=True, choices=[('correct', 'Correct'), ('incorrect', 'Incorrect'), ('flagged', 'Flagged'), ('cannot_tell', 'Unclear')], max_length=11),
        ),
        migrations.AlterField(
            model_name='gold',
            name='verdict',
            field=models.CharField(blank=True, choices=[('correct', 'Correct'), ('incorrect', 'Incorrect'), ('flagged', 'Flagged'), ('cannot_tell', 'Unclear')], max_length=11),
        ),
        migrations.AlterField(
            model_name='goldanswer',
            name='flag_reason',
            field=models.CharField(blank=True, choices=[('unclear', 'I cannot understand it'), ('wrong-language', 'It is in the wrong language'), ('personal', 'It contains personal data'), ('copied', 'It is copied or written by a machine'), ('harmful', 'It is harmful beyond the task'), ('broken', 'The text is broken'), ('other', 'Something else')], max_length=20),
        ),
        migrations.AlterField(
            model_name='goldanswer',
            name='verdict',
            field=models.CharField(blank=True, choices=[('correct', 'Correct'), ('incorrect', 'Incorrect'), ('flagged', 'Flagged'), ('cannot_tell', 'Unclear')], max_length=11),
        ),
        migrations.AlterField(
            model_name='ownerdecision',
            name='verdict',
            field=models.CharField(blank=True, choices=[('correct', 'Correct'), ('incorrect', 'Incorrect'), ('flagged', 'Flagged'), ('cannot_tell', 'Unclear')], max_length=11),
        ),
        migrations.AlterField(
            model_name='validation',
            name='flag_reason',
            field=models.CharField(blank=True, choices=[('unclear', 'I cannot understand it'), ('wrong-language', 'It is in the wrong language'), ('personal', 'It contains personal data'), ('copied', 'It is copied or written by a machine'), ('harmful', 'It is harmful beyond the task'), ('broken', 'The text is broken'), ('other', 'Something else')], max_length=20),
        ),
        migrations.AlterField(
            model_name='validation',
            name='verdict',
            field=models.CharField(blank=True, choices=[('correct', 'Correct'), ('incorrect', 'Incorrect'), ('flagged', 'Flagged'), ('cannot_tell', 'Unclear')], max_length=11),
        ),
    ]
