"""Say more clearly what the labels of choices mean. No SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0034_plain_words'),
    ]

    operations = [
        migrations.AlterField(
            model_name='evaluationrun',
            name='suite',
            field=models.CharField(choices=[('plain', 'unchanged'), ('robustness', 'perturbed: robustness'), ('fairness', 'perturbed: fairness')], default='plain', max_length=10),
        ),
        migrations.AlterField(
            model_name='paraphrase',
            name='state',
            field=models.CharField(choices=[('waiting', 'to check'), ('kept', 'kept'), ('refused', 'rejected'), ('unfit', 'not a paraphrase (lost a name, number or label, or changed too little)')], default='waiting', max_length=7),
        ),
        migrations.AlterField(
            model_name='submission',
            name='adapter',
            field=models.CharField(choices=[('jsonl', 'JSON lines in, JSON lines out'), ('dynalab', 'dynalab: one example per call'), ('dynabench2', 'Dynabench 2.0: single_evaluation, batch_evaluation')], default='jsonl', max_length=10),
        ),
    ]
