"""What it replaces, at once: a new site runs this one alone, in half the time."""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ('leaderboard', '0001_initial'),
        ('leaderboard', '0002_boards'),
        ('leaderboard', '0003_board_runner'),
        ('leaderboard', '0004_arenas'),
        ('leaderboard', '0005_battles'),
        ('leaderboard', '0006_anchor_costs'),
        ('leaderboard', '0007_follows'),
    ]
    initial = True
    dependencies = [
        ('accounts', '0006_log_without_reverse'),
        ('evaluation', '0002_evaluations'),
        ('tasks', '0012_uses_outside_rounds'),
    ]
    operations = [
        migrations.CreateModel(
            name='Board',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='board', to='tasks.task')),
                ('rates', models.JSONField(default=dict)),
                ('pool', models.JSONField(default=list)),
                ('runner', models.CharField(blank=True, max_length=20)),
                ('anchor_costs', models.JSONField(db_default={}, default=dict)),
                ('frozen_at', models.DateTimeField(null=True)),
                ('is_sensitive', models.BooleanField(default=False)),
                ('renewed_to', models.DateTimeField(null=True)),
                ('looked_on', models.DateField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Contestant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='contestants', to='tasks.task')),
                ('name', models.CharField(max_length=100)),
                ('target', models.OneToOneField(help_text='Who answers in battles; null: only imported comparisons name it.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='contestant', to='tasks.targetmodel')),
                ('is_live', models.BooleanField(db_default=False, default=False, help_text='Whether new battles may draw it.')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('task', 'name'), name='contestant_once')],
            },
        ),
        migrations.CreateModel(
            name='Comparison',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comparisons', to='tasks.task')),
                ('uid', models.CharField(help_text='Of the source; unique in the task.', max_length=100)),
                ('voter', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.annotator')),
                ('left', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='leaderboard.contestant')),
                ('right', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='leaderboard.contestant')),
                ('winner', models.CharField(choices=[('left', 'Left'), ('right', 'Right'), ('tie', 'Tie'), ('both_bad', 'Both Bad')], max_length=8)),
                ('style', models.JSONField(help_text='Of a battle: length, headings, lists and bold, [left, right] each.', null=True)),
                ('stored_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('task', 'uid'), name='comparison_once'), models.CheckConstraint(condition=models.Q(('left', models.F('right')), _negated=True), name='comparison_of_two')],
            },
        ),
        migrations.CreateModel(
            name='Follow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='followers', to='tasks.task')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='follows', to=settings.AUTH_USER_MODEL)),
                ('told_to', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('task', 'user'), name='follow_once')],
            },
        ),
        migrations.CreateModel(
            name='GoldPair',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='gold_pairs', to='tasks.task')),
                ('prompt', models.TextField()),
                ('good', models.TextField()),
                ('broken', models.TextField()),
                ('is_active', models.BooleanField(default=True)),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='Battle',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='battles', to='tasks.task')),
                ('voter', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='battles', to='accounts.annotator')),
                ('left', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='leaderboard.contestant')),
                ('right', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='leaderboard.contestant')),
                ('gold', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='battles', to='leaderboard.goldpair')),
                ('good', models.CharField(blank=True, max_length=5)),
                ('chance', models.FloatField(help_text='With which this pair was drawn.', null=True)),
                ('began_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('ended_at', models.DateTimeField(help_text='By a vote, or without one.', null=True)),
                ('winner', models.CharField(blank=True, choices=[('left', 'Left'), ('right', 'Right'), ('tie', 'Tie'), ('both_bad', 'Both Bad')], max_length=8)),
                ('names_itself', models.BooleanField(default=False, help_text='A model said who it is, so the vote is kept apart.')),
                ('release', models.CharField(choices=[('private', 'Private'), ('waiting', 'Waiting'), ('released', 'Released'), ('withheld', 'Withheld')], default='private', max_length=8)),
                ('consent_version', models.PositiveSmallIntegerField(null=True)),
                ('personal', models.JSONField(default=list, help_text='Kinds of personal data found.')),
            ],
            options={
                'indexes': [models.Index(fields=['task', 'release', 'id'], name='battle_release'), models.Index(fields=['voter', 'began_at'], name='battle_voter_time')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('task', 'voter'), name='battle_one_open'), models.CheckConstraint(condition=models.Q(('winner', ''), ('ended_at__isnull', False), _connector='OR'), name='battle_vote_ends'), models.CheckConstraint(condition=models.Q(models.Q(('gold__isnull', True), ('left__isnull', False), ('right__isnull', False)), models.Q(('gold__isnull', False), ('left__isnull', True), ('right__isnull', True)), _connector='OR'), name='battle_of_two_or_gold')],
            },
        ),
        migrations.CreateModel(
            name='ReleaseConsent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('voter', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.annotator')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tasks.task')),
                ('version', models.PositiveSmallIntegerField(help_text='Of the question that was answered.')),
                ('agrees', models.BooleanField()),
                ('given_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('voter', 'task'), name='consent_once')],
            },
        ),
        migrations.CreateModel(
            name='Resample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='resamples', to='evaluation.evaluationrun')),
                ('metric', models.CharField(max_length=60)),
                ('values', models.BinaryField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('run', 'metric'), name='resample_once')],
            },
        ),
        migrations.CreateModel(
            name='Snapshot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='snapshots', to='tasks.task')),
                ('number', models.PositiveIntegerField()),
                ('title', models.CharField(blank=True, max_length=150)),
                ('description', models.CharField(blank=True, max_length=500)),
                ('table', models.JSONField()),
                ('sha256', models.CharField(max_length=64, validators=[django.core.validators.RegexValidator('^[0-9a-f]{64}$')])),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['task', '-number'],
                'constraints': [models.UniqueConstraint(fields=('task', 'number'), name='snapshot_one_number'), models.CheckConstraint(condition=models.Q(('number__gt', 0)), name='snapshot_from_one')],
            },
        ),
        migrations.CreateModel(
            name='Turn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('battle', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='turns', to='leaderboard.battle')),
                ('number', models.PositiveSmallIntegerField()),
                ('key', models.UUIDField()),
                ('prompt', models.TextField()),
                ('state', models.CharField(choices=[('asking', 'Asking'), ('done', 'Done'), ('failed', 'Failed')], default='asking', max_length=6)),
                ('failure', models.CharField(blank=True, max_length=20)),
                ('asked_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['number'],
                'constraints': [models.UniqueConstraint(fields=('battle', 'number'), name='turn_one_number')],
            },
        ),
        migrations.CreateModel(
            name='Reply',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('turn', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='replies', to='leaderboard.turn')),
                ('side', models.CharField(max_length=5)),
                ('text', models.TextField()),
                ('version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='tasks.targetversion')),
                ('setup', models.JSONField(default=dict, help_text='Adapter and options: prompt and sampling.')),
                ('seconds', models.FloatField(null=True)),
            ],
            options={
                'ordering': ['side'],
                'constraints': [models.UniqueConstraint(fields=('turn', 'side'), name='reply_one_a_side')],
            },
        ),
        migrations.CreateModel(
            name='WeeklyGoal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='weekly_goals', to='accounts.annotator')),
                ('week', models.DateField(help_text='The Monday it begins on, by UTC.')),
                ('amount', models.PositiveSmallIntegerField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('annotator', 'week'), name='goal_once_a_week')],
            },
        ),
        migrations.CreateModel(
            name='Weights',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='forks', to='tasks.task')),
                ('name', models.SlugField(max_length=60)),
                ('description', models.CharField(blank=True, max_length=300)),
                ('metrics', models.JSONField(default=dict)),
                ('evaluation_sets', models.JSONField(default=dict)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='forks', to=settings.AUTH_USER_MODEL)),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'verbose_name_plural': 'weights',
                'ordering': ['task', 'name'],
                'constraints': [models.UniqueConstraint(fields=('task', 'name'), name='weights_one_name', violation_error_message='This task has weights of that name already.')],
            },
        ),
    ]
