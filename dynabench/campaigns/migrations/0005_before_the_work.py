"""A questionnaire, own rules, invitations of accounts."""

import django.db.models.deletion
import dynabench.campaigns.validators
from django.conf import settings
from django.db import migrations, models


ASKED = """about:
  - {name: age_group, type: multiclass, label: Age, labels: [18–29, 30–44, 45–59, 60+]}
  - {name: gender, type: multiclass, label: Gender, labels: [woman, man, {value: other, display: another}]}
"""


def ask_as_before(apps, schema_editor):
    """What campaigns asked of people, as a questionnaire."""
    apps.get_model("campaigns", "Campaign").objects.filter(asks_about=True).update(questions=ASKED)


class Migration(migrations.Migration):

    dependencies = [
        ('campaigns', '0004_machine_hour'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='campaign',
            name='own_rules',
            field=models.TextField(blank=True, help_text='A rule a line; see `rules.own_rules`.', validators=[dynabench.campaigns.validators.check_rules]),
        ),
        migrations.AddField(
            model_name='campaign',
            name='questions',
            field=models.TextField(blank=True, help_text='In YAML; see `rules.questionnaire`.', validators=[dynabench.campaigns.validators.check_questionnaire]),
        ),
        migrations.RunPython(ask_as_before, migrations.RunPython.noop),
        migrations.RemoveField(
            model_name='campaign',
            name='asks_about',
        ),
        migrations.AddField(
            model_name='place',
            name='answers',
            field=models.JSONField(help_text='To the questions; null: not asked yet.', null=True),
        ),
        migrations.AlterField(
            model_name='campaign',
            name='pauses_itself',
            field=models.BooleanField(default=False, help_text='Whom evidence or rules propose is paused without an owner.'),
        ),
        migrations.AlterField(
            model_name='pause',
            name='evidence',
            field=models.JSONField(help_text='As the rules gave it; see `quality.Look`.'),
        ),
        migrations.AlterField(
            model_name='place',
            name='state',
            field=models.CharField(choices=[('held', 'held'), ('testing', 'before the work'), ('working', 'working'), ('lapsed', 'out of time'), ('submitted', 'submitted'), ('approved', 'approved'), ('rejected', 'rejected'), ('returned', 'returned'), ('screened', 'screened out')], default='held', max_length=9),
        ),
        migrations.CreateModel(
            name='Invited',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('made_at', models.DateTimeField()),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invited', to='campaigns.campaign')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('campaign', 'user'), name='invited_once')],
            },
        ),
    ]
