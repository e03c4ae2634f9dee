"""What it replaces, at once: a new site runs this one alone, in half the time."""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import tasks.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ('tasks', '0001_initial'),
        ('tasks', '0002_round_budgets'),
        ('tasks', '0003_groups'),
        ('tasks', '0004_generators'),
        ('tasks', '0005_annotator_role'),
        ('tasks', '0006_member_addresses'),
        ('tasks', '0007_target_failures'),
        ('tasks', '0008_plain_words'),
        ('tasks', '0009_media'),
        ('tasks', '0010_packaged_sources'),
        ('tasks', '0011_model_uses'),
        ('tasks', '0012_uses_outside_rounds'),
        ('tasks', '0013_withdrawn_media'),
        ('tasks', '0014_made_by'),
        ('tasks', '0015_proposals'),
        ('tasks', '0016_config_versions'),
        ('tasks', '0017_reviewers'),
        ('tasks', '0018_invitations'),
    ]
    initial = True
    dependencies = [
        ('accounts', '0006_log_without_reverse'),
    ]
    operations = [
        migrations.CreateModel(
            name='Task',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=40, unique=True, validators=[django.core.validators.RegexValidator('^[a-z0-9]+(-[a-z0-9]+)*$', 'Use lower-case letters, digits and single hyphens.')])),
                ('name', models.CharField(max_length=100)),
                ('summary', models.CharField(blank=True, max_length=200)),
                ('config_text', models.TextField(help_text='YAML; see docs/task-config.md.', verbose_name='configuration')),
                ('config_number', models.PositiveIntegerField(db_default=1, default=1, editable=False)),
                ('is_official', models.BooleanField(default=False)),
                ('is_visible', models.BooleanField(default=True, help_text='Shown to everybody. Otherwise only to its members.')),
                ('allow_try_out', models.BooleanField(default=True, help_text='People without an account may try the model; nothing is kept.')),
                ('made_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='TargetModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='tasks.task')),
                ('name', models.SlugField(help_text="Unique; part of the model server's URL.", max_length=60)),
                ('adapter', models.CharField(default='http', max_length=40)),
                ('url', models.URLField(blank=True, help_text='Empty: our own model server, which loads `source`.', max_length=500)),
                ('source', models.CharField(blank=True, help_text='A folder, a hub id with a pinned revision, or package:NAME.', max_length=500)),
                ('revision', models.CharField(blank=True, max_length=64)),
                ('options', models.JSONField(blank=True, default=dict, help_text='Of the adapter.')),
                ('serving', models.JSONField(blank=True, default=dict, help_text='How our model server loads it: backend, precision, fields, output, labels.')),
                ('secret_env', models.CharField(blank=True, help_text="Name of the environment variable that holds the target's bearer secret.", max_length=100, validators=[django.core.validators.RegexValidator('^TARGET_[A-Z0-9_]+$', 'Use a name like TARGET_MYMODEL_SECRET: TARGET_ comes first.')])),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(fields=('name',), name='target_one_name')],
            },
        ),
        migrations.CreateModel(
            name='Round',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rounds', to='tasks.task')),
                ('number', models.PositiveIntegerField(help_text='From 1. Imported history whose round is not known is round 0.')),
                ('state', models.CharField(choices=[('draft', 'Draft'), ('ready', 'Ready'), ('open', 'Open'), ('paused', 'Paused'), ('closed', 'Closed'), ('released', 'Released')], default='draft', max_length=10)),
                ('rule', models.CharField(choices=[('majority', 'fools the majority of the targets'), ('all', 'fools all targets'), ('any', 'fools one target')], default='majority', max_length=10)),
                ('show_target_name', models.BooleanField(default=True, help_text='Otherwise people read Model A, Model B until the round closes.')),
                ('description', models.TextField(blank=True, help_text='Markdown.')),
                ('opened_at', models.DateTimeField(blank=True, null=True)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('ends_at', models.DateTimeField(blank=True, help_text='The round closes by itself then. UTC.', null=True)),
                ('writing_until', models.DateTimeField(blank=True, help_text='Of a closed round: who was writing may finish until then.', null=True)),
                ('max_collected', models.PositiveIntegerField(blank=True, null=True, verbose_name='most examples')),
                ('max_fooling', models.PositiveIntegerField(blank=True, null=True, verbose_name='most verified fooling examples')),
                ('max_spent', models.PositiveIntegerField(blank=True, help_text="In cents, or what your currency's smallest is.", null=True, verbose_name='money')),
                ('pay_example', models.PositiveIntegerField(default=0, verbose_name='pay for an example, in cents')),
                ('pay_validation', models.PositiveIntegerField(default=0, verbose_name='pay for a validation, in cents')),
                ('pay_bonus', models.PositiveIntegerField(default=0, verbose_name='bonus for a verified fooling example, in cents')),
                ('parents', models.ManyToManyField(blank=True, related_name='children', to='tasks.round')),
            ],
            options={
                'ordering': ['task_id', 'number'],
                'constraints': [models.UniqueConstraint(fields=('task', 'number'), name='round_one_number'), models.UniqueConstraint(condition=models.Q(('state__in', ['open', 'paused'])), fields=('task',), name='round_one_live', violation_error_message='Another round of this task is open. Close it first.')],
            },
        ),
        migrations.CreateModel(
            name='ContextBatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('round', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='tasks.round')),
                ('file_name', models.CharField(max_length=200)),
                ('imported_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('imported_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'verbose_name_plural': 'context batches',
            },
        ),
        migrations.CreateModel(
            name='TargetFailure',
            fields=[
                ('target', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='failure', serialize=False, to='tasks.targetmodel')),
                ('count', models.PositiveIntegerField(default=0)),
                ('since', models.DateTimeField()),
                ('last_at', models.DateTimeField(db_index=True)),
                ('reason', models.CharField(max_length=20)),
                ('detail', models.CharField(blank=True, max_length=500)),
                ('told_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='RoundTarget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('round', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='round_targets', to='tasks.round')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='tasks.targetmodel')),
                ('position', models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                'ordering': ['position', 'pk'],
                'constraints': [models.UniqueConstraint(fields=('round', 'target'), name='roundtarget_once')],
            },
        ),
        migrations.CreateModel(
            name='ModelUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uses', to='tasks.targetmodel')),
                ('round', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='model_uses', to='tasks.round')),
                ('day', models.DateField()),
                ('requests', models.PositiveBigIntegerField(default=0)),
                ('tokens_in', models.PositiveBigIntegerField(default=0)),
                ('tokens_out', models.PositiveBigIntegerField(default=0)),
                ('cost', models.FloatField(default=0, help_text='In whole money, at the prices of that day.')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('target', 'round', 'day'), name='modeluse_one_a_day'), models.UniqueConstraint(condition=models.Q(('round', None)), fields=('target', 'day'), name='modeluse_outside')],
            },
        ),
        migrations.CreateModel(
            name='TargetVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='tasks.targetmodel')),
                ('digest', models.CharField(max_length=64)),
                ('fingerprint', models.JSONField(default=dict)),
                ('first_seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('target', 'digest'), name='version_one_digest')],
            },
        ),
        migrations.CreateModel(
            name='Media',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='media', to='tasks.task')),
                ('digest', models.CharField(help_text='SHA-256 of the file.', max_length=64)),
                ('mime', models.CharField(max_length=20)),
                ('size', models.PositiveIntegerField(help_text='In bytes.')),
                ('about', models.JSONField(default=dict, help_text='width and height, or seconds.')),
                ('file', models.FileField(max_length=200, upload_to=tasks.models._media_path)),
                ('sent_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='accounts.annotator')),
                ('kept_from', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='The day of an unused one begins.')),
                ('is_used', models.BooleanField(default=False, help_text='A context, example or vote names it.')),
                ('is_withdrawn', models.BooleanField(default=False, help_text='Nothing that stands names it any more: not for everybody.')),
            ],
            options={
                'indexes': [models.Index(fields=['digest'], name='media_digest'), models.Index(condition=models.Q(('is_used', False)), fields=['kept_from'], name='media_unused')],
                'constraints': [models.UniqueConstraint(fields=('task', 'digest'), name='media_once')],
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='tasks.task')),
                ('role', models.CharField(max_length=10)),
                ('address', models.EmailField(blank=True, help_text='It was mailed to; empty: a link for many.', max_length=254)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('most', models.PositiveIntegerField(default=1, help_text='So many people may accept it.')),
                ('uses', models.PositiveIntegerField(default=0)),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ends_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='Generator',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='generator', to='tasks.task')),
                ('name', models.SlugField(help_text='People read it with a suggestion.', max_length=60)),
                ('adapter', models.CharField(default='openai_chat', max_length=40)),
                ('url', models.URLField(max_length=500)),
                ('options', models.JSONField(blank=True, default=dict, help_text='Of the adapter.')),
                ('secret_env', models.CharField(blank=True, help_text='Name of the environment variable that holds its bearer secret.', max_length=100, validators=[django.core.validators.RegexValidator('^TARGET_[A-Z0-9_]+$', 'Use a name like TARGET_MYMODEL_SECRET: TARGET_ comes first.')])),
            ],
            options={
                'ordering': ['task'],
            },
        ),
        migrations.CreateModel(
            name='ConfigVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='config_versions', to='tasks.task')),
                ('number', models.PositiveIntegerField(help_text='From 1; `Task.config_number` is in force.')),
                ('text', models.TextField()),
                ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['-number'],
                'constraints': [models.UniqueConstraint(fields=('task', 'number'), name='configversion_one_number')],
            },
        ),
        migrations.CreateModel(
            name='TaskGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(unique=True)),
                ('name', models.CharField(max_length=100)),
                ('summary', models.CharField(blank=True, max_length=200)),
                ('description', models.TextField(blank=True, help_text='Markdown.')),
                ('tasks', models.ManyToManyField(blank=True, related_name='groups', to='tasks.task')),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='TaskMember',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='members', to='tasks.task')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('editor', 'Editor'), ('reviewer', 'Reviewer'), ('viewer', 'Viewer'), ('annotator', 'Annotator'), ('writer', 'Writer'), ('judge', 'Judge')], max_length=10)),
                ('address', models.EmailField(blank=True, help_text='It was given to; empty: to the account.', max_length=254)),
                ('invitation', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='members', to='tasks.invitation')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('task', 'user'), name='member_one_role')],
            },
        ),
        migrations.CreateModel(
            name='TaskProposal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('proposer', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='task_proposals', to=settings.AUTH_USER_MODEL)),
                ('kind', models.CharField(choices=[('template', 'Template'), ('task', 'Task')], max_length=10)),
                ('source', models.CharField(help_text='Code of the template or the task.', max_length=40)),
                ('name', models.CharField(max_length=100)),
                ('wanted_code', models.CharField(max_length=40, validators=[django.core.validators.RegexValidator('^[a-z0-9]+(-[a-z0-9]+)*$', 'Use lower-case letters, digits and single hyphens.')])),
                ('goal', models.TextField(help_text='What the task is for.')),
                ('people', models.TextField(help_text='Who writes and judges.')),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('approved', 'Approved'), ('declined', 'Declined')], db_index=True, default='waiting', max_length=10)),
                ('reason', models.TextField(blank=True, help_text='The proposer reads it.')),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('decided_at', models.DateTimeField(null=True)),
                ('task', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='proposal', to='tasks.task')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='Context',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('round', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='contexts', to='tasks.round')),
                ('batch', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to='tasks.contextbatch')),
                ('fields', models.JSONField(default=dict)),
                ('tag', models.CharField(blank=True, max_length=100)),
                ('metadata', models.JSONField(blank=True, default=dict)),
                ('digest', models.CharField(editable=False, max_length=32)),
                ('is_retired', models.BooleanField(default=False, help_text='Not handed out any more.')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('round', 'digest'), name='context_once', violation_error_message='This round has this context already.')],
            },
        ),
        migrations.AddField(
            model_name='round',
            name='targets',
            field=models.ManyToManyField(related_name='rounds', through='tasks.RoundTarget', to='tasks.targetmodel'),
        ),
    ]
