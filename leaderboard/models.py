"""The models of stage 5: rankings of models and of people, and people's weekly goals."""

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from core.accounts.models import Annotator
from evaluation.models import EvaluationRun
from evaluation.models.jobs import ChatJob
from tasks.models import TargetModel, TargetVersion, Task


class WeeklyGoal(models.Model):
    """A person's weekly goal, valid from a week until their next row; 0 pauses the goal."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="weekly_goals")
    week = models.DateField(help_text="The Monday on which the week begins (UTC).")
    amount = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            # Two tabs that save a goal at once update one row.
            models.UniqueConstraint(fields=["annotator", "week"], name="goal_once_a_week")
        ]

    def __str__(self) -> str:
        return f"{self.annotator}: {self.amount} from {self.week}"


class Board(models.Model):
    """Precomputed values of a task's leaderboard, which `leaderboard.jobs` renews.

    The exchange rates are frozen on a named pool of models, so a new model never moves the others.
    """

    task = models.OneToOneField(Task, on_delete=models.CASCADE, related_name="board")
    rates = models.JSONField(default=dict)  # by metric; empty: none frozen yet
    pool = models.JSONField(default=list)  # the names of the models behind the rates
    runner = models.CharField(max_length=20, blank=True)  # the runner of the costs behind the rates
    # Version, runner, rows by reference model.
    anchor_costs = models.JSONField(default=dict, db_default={})
    frozen_at = models.DateTimeField(null=True)
    # Of the public board, for lists of tasks: rows, provisional sets, state, time of change.
    first_models = models.JSONField(default=dict, db_default={})
    is_sensitive = models.BooleanField(default=False)  # whether one model less changes the order
    renewed_to = models.DateTimeField(null=True)  # includes the runs that ended until then
    # Set by a conditional update, so that only one worker takes the day's snapshot.
    looked_on = models.DateField(null=True)  # the last day on which a snapshot was considered

    def __str__(self) -> str:
        return f"board of {self.task.code}"


class Resample(models.Model):
    """A run's metric on resamples of its examples, the same resamples for all models on a set.

    So differences of two models' values are paired. float32, little-endian.
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="resamples")
    metric = models.CharField(max_length=60)
    values = models.BinaryField()

    class Meta:
        # If two workers resample one run, the rows of the second are dropped.
        constraints = [models.UniqueConstraint(fields=["run", "metric"], name="resample_once")]

    def __str__(self) -> str:
        return f"{self.metric} of {self.run_id}, resampled"


class Weights(models.Model):
    """Named weights of a task's leaderboard (a fork), selected by name in the URL."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="forks")
    name = models.SlugField(max_length=60)
    description = models.CharField(max_length=300, blank=True)
    metrics = models.JSONField(default=dict)  # by metric, 0-8
    evaluation_sets = models.JSONField(default=dict)  # by name of the set, 0-8
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="forks"
    )
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        # Django would add another s.
        verbose_name_plural = "weights"
        ordering = ["task", "name"]
        constraints = [
            # The name is the fork's address, and `save_weights` takes no lock.
            models.UniqueConstraint(
                fields=["task", "name"],
                name="weights_one_name",
                violation_error_message="This task already has a saved weighting of this name.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.task.code}"


class Snapshot(models.Model):
    """A citable copy of a leaderboard, which is never changed or deleted."""

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="snapshots")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=150, blank=True)
    description = models.CharField(max_length=500, blank=True)
    table = models.JSONField()  # everything shown: rows, weights, rates, sets and versions, code
    sha256 = models.CharField(max_length=64, validators=[RegexValidator("^[0-9a-f]{64}$")])
    config_text = models.TextField(
        blank=True, db_default="", editable=False,
        help_text="The task's configuration at that time. Empty: not kept, in old snapshots.",
    )  # fmt: skip
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        # The newest first, so `task.snapshots.first()` is the latest one.
        ordering = ["task", "-number"]
        constraints = [
            # Papers cite the number.
            models.UniqueConstraint(fields=["task", "number"], name="snapshot_one_number"),
            models.CheckConstraint(condition=Q(number__gt=0), name="snapshot_from_one"),
        ]

    def __str__(self) -> str:
        return f"snapshot {self.number} of {self.task.code}"


class Contestant(models.Model):
    """A model that is compared with others in an arena."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="contestants")
    name = models.CharField(max_length=100)
    target = models.OneToOneField(
        TargetModel, on_delete=models.SET_NULL, null=True, related_name="contestant",
        help_text="The model that answers in battles. null: known only from imported comparisons.",
    )  # fmt: skip
    is_live = models.BooleanField(
        default=False, db_default=False, help_text="New battles can include it."
    )

    class Meta:
        # Imported comparisons find a model by its name.
        constraints = [models.UniqueConstraint(fields=["task", "name"], name="contestant_once")]

    def __str__(self) -> str:
        return self.name


class Comparison(models.Model):
    """A voter's choice between the answers of two models whose names were hidden."""

    class Winner(models.TextChoices):
        LEFT = "left"
        RIGHT = "right"
        TIE = "tie"
        BOTH_BAD = "both_bad"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="comparisons")
    uid = models.CharField(max_length=100, help_text="ID in the source, unique in the task.")
    voter = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    left = models.ForeignKey(Contestant, on_delete=models.CASCADE, related_name="+")
    right = models.ForeignKey(Contestant, on_delete=models.CASCADE, related_name="+")
    winner = models.CharField(max_length=8, choices=Winner)
    weight = models.FloatField(
        default=1.0,
        db_default=1.0,
        help_text="Below 1: one of the pairs of a ranking, which depend on one another.",
    )
    draw_weight = models.FloatField(
        default=1.0,
        db_default=1.0,
        help_text="Not 1: the pair was drawn with an unequal chance, which this makes up for.",
    )
    style = models.JSONField(
        null=True,
        help_text=("Length, headings, lists and bold of a battle's answers, as [left, right]."),
    )
    stored_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # Repeating an import adds nothing.
            models.UniqueConstraint(fields=["task", "uid"], name="comparison_once"),
            # A comparison of a model with itself has no information, and would break the fit.
            models.CheckConstraint(condition=~Q(left=F("right")), name="comparison_of_two"),
        ]

    def __str__(self) -> str:
        return f"{self.left} or {self.right}: {self.winner}"


class GoldPair(models.Model):
    """A prompt with a good and a broken answer, which shows whether an arena's voter is careful."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="gold_pairs")
    prompt = models.TextField()
    good = models.TextField()
    broken = models.TextField()
    is_active = models.BooleanField(default=True)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"gold pair {self.pk} of {self.task}"


class ReleaseConsent(models.Model):
    """A voter's answer to whether their conversations in an arena may be published."""

    voter = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="+")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="+")
    version = models.PositiveSmallIntegerField(
        help_text=("Version of the question that was answered.")
    )
    agrees = models.BooleanField()
    given_at = models.DateTimeField(default=timezone.now)

    class Meta:
        # The last answer replaces the previous one.
        constraints = [models.UniqueConstraint(fields=["voter", "task"], name="consent_once")]

    def __str__(self) -> str:
        return f"{self.voter} {'agrees' if self.agrees else 'does not agree'}: {self.task}"


SIDES = ("left", "right")
EXTRA_SIDES = ("s3", "s4", "s5")
"""The further sides of a battle with more than two answers. They sort after those of SIDES."""
TWO_SIDES = "left-right"
"""The pair of a battle of two answers."""
RANKED = "ranked"
"""The `winner` of a battle whose answers were ranked."""


class Battle(models.Model):
    """A conversation of one person with two unnamed models at once, until the person votes.

    There may be up to five models, which the person then ranks (`ranking`). With a gold pair there
    are no models, and `good` is the side of the good answer.
    """

    class Release(models.TextChoices):
        PRIVATE = "private"  # without consent
        WAITING = "waiting"  # it may contain personal data, so an owner checks it
        RELEASED = "released"
        WITHHELD = "withheld"  # an owner has checked and withheld it

    uuid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="battles")
    voter = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="battles")
    # Protected, because a conversation without its models could not be published.
    left = models.ForeignKey(Contestant, on_delete=models.PROTECT, null=True, related_name="+")
    right = models.ForeignKey(Contestant, on_delete=models.PROTECT, null=True, related_name="+")
    gold = models.ForeignKey(GoldPair, on_delete=models.CASCADE, null=True, related_name="battles")
    good = models.CharField(max_length=5, blank=True)
    chance = models.FloatField(
        null=True,
        help_text="Probability of drawing this pair, or the mean of the shown pairs.",
    )
    pair_count = models.PositiveIntegerField(
        null=True, help_text="Number of pairs that could be drawn. null: not known, so unweighted."
    )
    began_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(
        null=True, help_text=("When the battle ended, with or without a vote.")
    )
    winner = models.CharField(
        max_length=8, choices=[*Comparison.Winner.choices, (RANKED, "Ranked")], blank=True
    )
    ranking = models.JSONField(
        null=True, help_text="The place of each side, from 1. Sides can share a place."
    )
    names_itself = models.BooleanField(
        default=False, help_text="A model revealed its name, so the vote is kept separate."
    )
    release = models.CharField(max_length=8, choices=Release, default=Release.PRIVATE)
    consent_version = models.PositiveSmallIntegerField(null=True)
    personal = models.JSONField(default=list, help_text="Kinds of personal data found.")

    class Meta:
        constraints = [
            # Two tabs that begin at the same time get one battle.
            models.UniqueConstraint(
                fields=["task", "voter"], condition=Q(ended_at__isnull=True), name="battle_one_open"
            ),
            # A vote ends the conversation, so that no message can follow it.
            models.CheckConstraint(
                condition=Q(winner="") | Q(ended_at__isnull=False), name="battle_vote_ends"
            ),
            models.CheckConstraint(
                # The code treats a battle without a gold pair as one of two models, and calls both.
                condition=Q(gold__isnull=True, left__isnull=False, right__isnull=False)
                | Q(gold__isnull=False, left__isnull=True, right__isnull=True),
                name="battle_of_two_or_gold",
            ),
        ]
        indexes = [
            # For published conversations, read by id in chunks, and for those that wait.
            models.Index(fields=["task", "release", "id"], name="battle_release"),
            # For the number of battles that a voter began today, counted before each.
            models.Index(fields=["voter", "began_at"], name="battle_voter_time"),
        ]

    def __str__(self) -> str:
        return str(self.uuid)

    @property
    def sides(self) -> list[str]:
        """Return the names of the sides, in the order of the page."""
        return [*SIDES, *(extra_side.side for extra_side in self.extra_sides.all())]

    @property
    def ranked_names(self) -> list[tuple[int, str]]:
        """Return the place and the name of each model, best first; empty without a ranking."""
        ranking = self.ranking or {}
        places = [(ranking[side], self.get_contestant(side).name) for side in ranking]
        return sorted(places)

    def get_contestant(self, side: str) -> Contestant:
        """Return the model on a side. A gold pair has none."""
        for extra_side in self.extra_sides.all() if side not in SIDES else ():
            if extra_side.side == side:
                return extra_side.contestant
        contestant = self.left if side == "left" else self.right
        assert contestant is not None
        return contestant

    def get_contestant_id(self, side: str) -> int:
        """Return the id of the model on a side, without reading the model."""
        # Reports of judges need only ids, of many battles.
        ids = {"left": self.left_id, "right": self.right_id}
        for extra_side in self.extra_sides.all() if side not in SIDES else ():
            ids[extra_side.side] = extra_side.contestant_id
        contestant_id = ids[side]
        assert contestant_id is not None
        return contestant_id


class BattleSide(models.Model):
    """The model on a third or further side of a battle."""

    battle = models.ForeignKey(
        Battle, on_delete=models.CASCADE, related_name="extra_sides", db_index=False
    )
    side = models.CharField(max_length=5)
    # Protected, because a conversation without its models could not be published.
    contestant = models.ForeignKey(Contestant, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["side"]
        constraints = [models.UniqueConstraint(fields=["battle", "side"], name="battle_side_once")]

    def __str__(self) -> str:
        return f"{self.side} of {self.battle_id}"


class Follow(models.Model):
    """A follower of a task, who is emailed when a round is released."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="followers")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="follows"
    )
    # Set by an update with the old value as condition, so only one worker sends each mail.
    told_to = models.DateTimeField(default=timezone.now)  # no emails about earlier releases

    class Meta:
        # A double click creates one row, so nobody gets an email twice.
        constraints = [models.UniqueConstraint(fields=["task", "user"], name="follow_once")]

    def __str__(self) -> str:
        return f"{self.user_id} of {self.task}"


class Turn(models.Model):
    """One message of a battle; `key` makes a repeated click reuse the same call and row."""

    class State(models.TextChoices):
        ASKING = "asking"
        DONE = "done"
        FAILED = "failed"

    battle = models.ForeignKey(Battle, on_delete=models.CASCADE, related_name="turns")
    number = models.PositiveSmallIntegerField()
    key = models.UUIDField()
    prompt = models.TextField()
    state = models.CharField(max_length=6, choices=State, default=State.ASKING)
    failure = models.CharField(max_length=20, blank=True)  # the reason of an EndpointError
    asked_at = models.DateTimeField()

    class Meta:
        ordering = ["number"]
        constraints = [
            # Each message of a conversation exists once, whatever several tabs send.
            models.UniqueConstraint(fields=["battle", "number"], name="turn_one_number"),
        ]

    def __str__(self) -> str:
        return f"turn {self.number} of {self.battle}"

    @property
    def is_lost(self) -> bool:
        """Return whether the process that asked has died, because the answers are overdue."""
        # A live process ends each call at the deadline, plus a few seconds to store answers.
        longest = timedelta(seconds=settings.LIVE_DEADLINE_SECONDS + 10)
        return self.state == self.State.ASKING and timezone.now() > self.asked_at + longest

    @property
    def answered_at(self) -> datetime:
        """Return when both answers were available; for a gold pair, when the turn began."""
        seconds = max((reply.seconds or 0 for reply in self.replies.all()), default=0)
        return self.asked_at + timedelta(seconds=seconds)


class Reply(models.Model):
    """One side's answer in a turn. `setup` has the model's settings; it is empty for gold pairs."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="replies")
    side = models.CharField(max_length=5)
    text = models.TextField()
    version = models.ForeignKey(TargetVersion, on_delete=models.PROTECT, null=True)
    setup = models.JSONField(default=dict, help_text="Adapter and options: prompt and sampling.")
    seconds = models.FloatField(null=True)

    class Meta:
        ordering = ["side"]  # left, right
        # `finish_turn` stores both answers at once; a second pair is refused.
        constraints = [models.UniqueConstraint(fields=["turn", "side"], name="reply_one_a_side")]

    def __str__(self) -> str:
        return f"{self.side} of {self.turn}"


class ArenaJudge(ChatJob):
    """A chat model with a prompt that judges an arena's battles. Neither ever changes.

    Its verdicts are kept apart from people's votes and affect no ranking of theirs.
    """

    function = "leaderboard.jobs.ask_arena_judge"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="arena_judges")
    name = models.SlugField(max_length=60)
    most_calls = models.PositiveIntegerField(help_text="Each time that it is asked.")
    is_shown = models.BooleanField(
        default=False, help_text="The leaderboard shows its ranking beside people's."
    )
    report = models.JSONField(default=dict)  # of `judges.reports.build_report`

    class Meta(ChatJob.Meta):
        ordering = ["-pk"]
        constraints = [
            *ChatJob.Meta.constraints,
            # Readers tell judges apart by their names.
            models.UniqueConstraint(fields=["task", "name"], name="arena_judge_one_name"),
        ]

    def __str__(self) -> str:
        return f"arena judge {self.name} of {self.task.code}"


class ArenaVerdict(models.Model):
    """A judge's choice in one order of a battle, or of a pair of its answers if they were ranked.

    Stored at once, so that nothing is asked twice.
    """

    class Choice(models.TextChoices):
        FIRST = "first"
        SECOND = "second"
        TIE = "tie"

    judge = models.ForeignKey(
        ArenaJudge, on_delete=models.CASCADE, related_name="verdicts", db_index=False
    )
    battle = models.ForeignKey(Battle, on_delete=models.CASCADE, related_name="verdicts")
    pair = models.CharField(
        max_length=11, default=TWO_SIDES, db_default=TWO_SIDES, help_text="The names of both sides."
    )
    is_swapped = models.BooleanField(help_text="The second side of the pair was shown first.")
    choice = models.CharField(max_length=6, choices=Choice)
    asked_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # An order that two workers ask about counts once.
            models.UniqueConstraint(
                fields=["judge", "battle", "pair", "is_swapped"], name="arena_verdict_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.judge}: {self.choice} of {self.battle_id}"
