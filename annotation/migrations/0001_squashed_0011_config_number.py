"""What it replaces, at once: a new site runs this one alone, in half the time."""

import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ('annotation', '0001_initial'),
        ('annotation', '0002_quality'),
        ('annotation', '0003_order'),
        ('annotation', '0004_programs'),
        ('annotation', '0005_support'),
        ('annotation', '0006_suggestions'),
        ('annotation', '0007_attempt_holds'),
        ('annotation', '0008_reports_told'),
        ('annotation', '0009_suggestion_actions'),
        ('annotation', '0010_conversations'),
        ('annotation', '0011_config_number'),
    ]
    initial = True
    dependencies = [
        ('accounts', '0002_in_ranking'),
        ('tasks', '0002_round_budgets'),
    ]
    operations = [
        migrations.CreateModel(
            name='Example',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('challenge', models.CharField(help_text='The challenge that its author took up.', max_length=60, null=True)),
                ('support', models.JSONField(help_text='The help that its author had, as docs/datasets.md says; null: none.', null=True)),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('uid', models.CharField(editable=False, help_text='Of imported history: its own id.', max_length=200, null=True)),
                ('round', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='examples', to='tasks.round')),
                ('context', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='examples', to='tasks.context')),
                ('annotator', models.ForeignKey(help_text='Unknown for some imported history.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='examples', to='accounts.annotator')),
                ('parent', models.ForeignKey(help_text='The example that this one edits.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='retries', to='annotation.example')),
                ('resembles', models.ForeignKey(db_index=False, help_text='An earlier text of the round, by somebody else, that is nearly the same.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='annotation.example')),
                ('typing', models.JSONField(help_text='What the browser told of typing; null: unknown. Untrusted.', null=True)),
                ('goal', models.CharField(blank=True, max_length=200)),
                ('config_number', models.PositiveIntegerField(help_text='Of the configuration that was in force; null: unknown, as of history.', null=True)),
                ('inputs', models.JSONField()),
                ('digest', models.CharField(max_length=32)),
                ('metadata', models.JSONField(default=dict)),
                ('outcome', models.CharField(choices=[('fooled', 'Fooled'), ('not_fooled', 'Not Fooled'), ('undecided', 'Undecided'), ('no_model', 'No Model'), ('unknown', 'Unknown')], max_length=10)),
                ('decided_by', models.CharField(choices=[('rule', 'Rule'), ('author', 'Author')], default='rule', max_length=6)),
                ('by_program', models.BooleanField(db_default=False, default=False, help_text='It came with an API token, not from a page.')),
                ('shown_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('retracted_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['round', 'outcome'], name='example_outcome'), models.Index(fields=['annotator', 'created_at'], name='example_author_time'), models.Index(condition=models.Q(('resembles__isnull', False)), fields=['resembles'], name='example_resembles'), models.Index(fields=['round', 'id'], name='example_order'), models.Index(condition=models.Q(('challenge__isnull', False)), fields=['round', 'challenge'], name='example_challenge')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('retracted_at__isnull', True)), fields=('annotator', 'round', 'context', 'digest'), name='example_one_text'), models.UniqueConstraint(fields=('round', 'uid'), name='example_one_uid')],
            },
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.annotator')),
                ('round', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='tasks.round')),
                ('context', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='tasks.context')),
                ('goal', models.CharField(blank=True, max_length=200)),
                ('parent', models.ForeignKey(help_text='Minimal-edit mode: the example to change as little as possible.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.example')),
                ('draft', models.JSONField(default=dict)),
                ('draft_saved_at', models.DateTimeField(null=True)),
                ('challenge', models.CharField(help_text='The one that is offered.', max_length=60, null=True)),
                ('worked', models.JSONField(help_text='Ids of the examples that worked, once shown.', null=True)),
                ('assigned_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('left_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['round', 'context'], name='assignment_use')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('left_at__isnull', True)), fields=('annotator', 'round'), name='assignment_one_current')],
            },
        ),
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('assignment', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='conversation', to='annotation.assignment')),
                ('turns', models.JSONField(default=list, help_text="As the field's value; the model's turns also say who answered.")),
                ('said', models.TextField(blank=True, help_text="The person's turn while it has no answer.")),
                ('failure', models.CharField(blank=True, max_length=20)),
                ('asked_at', models.DateTimeField(help_text='While the target answers.', null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('challenge', models.CharField(help_text='The challenge that its author took up.', max_length=60, null=True)),
                ('support', models.JSONField(help_text='The help that its author had, as docs/datasets.md says; null: none.', null=True)),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.annotator')),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='annotation.assignment')),
                ('key', models.UUIDField()),
                ('inputs', models.JSONField()),
                ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='annotation.example')),
                ('resembles', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='annotation.example')),
                ('typing', models.JSONField(null=True)),
                ('by_program', models.BooleanField(db_default=False, default=False)),
                ('state', models.CharField(choices=[('asking', 'Asking'), ('done', 'Done'), ('failed', 'Failed')], default='asking', max_length=6)),
                ('failure', models.CharField(blank=True, max_length=20)),
                ('example', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, to='annotation.example')),
                ('asked_at', models.DateTimeField()),
                ('held_until', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('annotator', 'key'), name='attempt_one_key'), models.CheckConstraint(condition=models.Q(models.Q(('example__isnull', False), ('state', 'done')), models.Q(('example__isnull', True), ('state__in', ['asking', 'failed'])), _connector='OR'), name='attempt_done_has_example')],
            },
        ),
        migrations.CreateModel(
            name='GatePass',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.annotator')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='tasks.task')),
                ('passed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('annotator', 'task'), name='gate_once')],
            },
        ),
        migrations.CreateModel(
            name='Report',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.annotator')),
                ('context', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reports', to='tasks.context')),
                ('reason', models.CharField(choices=[('unreadable', 'I cannot understand it'), ('broken', 'It is cut off or broken'), ('wrong-language', 'It is in the wrong language'), ('personal', 'It names a private person'), ('harmful', 'It is harmful beyond the task'), ('other', 'Something else')], max_length=20)),
                ('comment', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('resolved_at', models.DateTimeField(blank=True, null=True)),
                ('told_at', models.DateTimeField(editable=False, null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('annotator', 'context'), name='report_once')],
            },
        ),
        migrations.CreateModel(
            name='Suggestion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='suggestions', to='annotation.assignment')),
                ('text', models.TextField()),
                ('source', models.CharField(help_text="The generator's name.", max_length=60)),
                ('fingerprint', models.JSONField(default=dict, help_text='Exactly what wrote it, if it says so.')),
                ('action', models.CharField(blank=True, db_column='deed', choices=[('use', 'Use'), ('edit', 'Edit'), ('ignore', 'Ignore')], max_length=6)),
                ('asked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='TargetOutput',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('example', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='target_outputs', to='annotation.example')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='tasks.targetmodel')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='tasks.targetversion')),
                ('position', models.PositiveSmallIntegerField(default=0)),
                ('output', models.JSONField()),
                ('prob', models.JSONField(null=True)),
                ('seconds', models.FloatField()),
                ('fooled', models.BooleanField(null=True)),
                ('score', models.FloatField(null=True)),
            ],
            options={
                'ordering': ['position'],
                'constraints': [models.UniqueConstraint(fields=('example', 'target'), name='output_one_each')],
            },
        ),
        migrations.CreateModel(
            name='TextKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('example', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='text_keys', to='annotation.example')),
                ('round', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tasks.round')),
                ('key', models.BigIntegerField()),
            ],
            options={
                'indexes': [models.Index(fields=['round', 'key'], name='text_key')],
            },
        ),
    ]
