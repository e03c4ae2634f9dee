"""Stage 2: one person writes one example against the round's targets."""

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.rules.care import ReadingRecord
from core.accounts.models import Annotator
from tasks.models import Context, Round, TargetModel, TargetVersion, Task


class GatePass(models.Model):
    """An annotator's acceptance of a task's content warning, with their reading record."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE)
    task = models.ForeignKey(Task, on_delete=models.CASCADE)
    passed_at = models.DateTimeField(db_default=Now())
    own_minutes = models.PositiveSmallIntegerField(null=True, help_text="A day; the person's own.")
    own_items = models.PositiveSmallIntegerField(null=True, help_text="In a row; likewise.")
    day = models.DateField(null=True, help_text="Of `seconds`. No other day is kept.")
    seconds = models.PositiveIntegerField(default=0, db_default=0)
    in_a_row = models.PositiveIntegerField(default=0, db_default=0)
    # `care.services` updates the row only where this is unchanged, so that no second counts twice.
    at = models.DateTimeField(null=True)
    # While it is set, an answer adds no guess of the time to what the browser has reported.
    is_told = models.BooleanField(default=False, db_default=False)

    class Meta:
        # Of two tabs that pass the gate the second finds the first one's row.
        constraints = [models.UniqueConstraint(fields=["annotator", "task"], name="gate_once")]

    def __str__(self) -> str:
        return f"{self.annotator} entered {self.task}"

    @property
    def reading_record(self) -> ReadingRecord:
        """Return the record of the person's reading in the task."""
        return ReadingRecord(self.day, self.seconds, self.in_a_row, self.at, self.is_told)


class DrawnContext(models.Model):
    """An abstract model for how a context was drawn (`annotation.rules.context_draw`).

    Both columns are null if the context was not drawn, but was the least used one or was chosen.
    """

    context_probability = models.FloatField(
        null=True, help_text="With which this context was drawn for the person."
    )
    context_choices = models.PositiveIntegerField(
        null=True, help_text="How many contexts could be drawn then."
    )

    class Meta:
        abstract = True


class Assignment(DrawnContext):
    """The context and goal on which an annotator works until they request another."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE)
    round = models.ForeignKey(Round, on_delete=models.CASCADE)
    context = models.ForeignKey(Context, on_delete=models.CASCADE, related_name="assignments")
    goal = models.CharField(max_length=200, blank=True)
    parent = models.ForeignKey(
        "Example", on_delete=models.CASCADE, null=True, related_name="+",
        help_text="Minimal-edit mode: the example to change as little as possible.",
    )  # fmt: skip
    # Read from the assignment to the example only, never the other way, so it has no index.
    mends = models.ForeignKey(
        "Example", on_delete=models.SET_NULL, null=True, related_name="+", db_index=False,
        help_text="The person's own example that a reviewer sent back.",
    )  # fmt: skip
    draft = models.JSONField(default=dict)
    draft_saved_at = models.DateTimeField(null=True)
    challenge = models.CharField(max_length=60, null=True, help_text="The one that is offered.")
    # Kept, so that a reload shows the same ones and uses up no more of the day's examples.
    worked = models.JSONField(null=True, help_text="Ids of the examples that worked, once shown.")
    writing_condition = models.JSONField(
        null=True, help_text="As `rules.writing_conditions` drew it; null: there was no draw."
    )
    assigned_at = models.DateTimeField(db_default=Now())
    left_at = models.DateTimeField(null=True)
    arm = models.CharField(
        max_length=8, blank=True, default="", db_default="", help_text="Of a mixed round."
    )
    arm_probability = models.FloatField(null=True, help_text="That the draw had (0-1).")
    shares_number = models.PositiveIntegerField(
        null=True, help_text="Which shares of the round the arm was drawn by."
    )
    keeps_arm = models.BooleanField(
        default=False, db_default=False,
        help_text="The arm is that of a text which the person left unwritten.",
    )  # fmt: skip
    # Set before the generator is asked, so that a reload or another tab asks for no second draft.
    draft_asked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                # A person has one current assignment in a round, in all their tabs.
                fields=["annotator", "round"],
                condition=Q(left_at__isnull=True),
                name="assignment_one_current",
            )
        ]
        # Counts how often each context was assigned, to find the least used one.
        indexes = [models.Index(fields=["round", "context"], name="assignment_use")]

    def __str__(self) -> str:
        return f"{self.annotator} on {self.context}"


class Conversation(models.Model):
    """An author's conversation with the round's target, until it becomes an example.

    Stored on the server, because the model's turns must not come from a form.
    """

    assignment = models.OneToOneField(Assignment, models.CASCADE, related_name="conversation")
    turns = models.JSONField(
        default=list, help_text="As the field's value; the model's turns also say who answered."
    )
    said = models.TextField(blank=True, help_text="The person's turn while it has no answer.")
    failure = models.CharField(max_length=20, blank=True)  # the reason of an EndpointError
    # Also tells one asking from the next: an answer is stored only where this is unchanged.
    asked_at = models.DateTimeField(null=True, help_text="While the target answers.")

    def __str__(self) -> str:
        return f"{len(self.turns)} turns for {self.assignment}"

    @property
    def is_asking(self) -> bool:
        """Return whether the target may still answer; False after its deadline."""
        return self.asked_at is not None and self.asked_at >= Attempt.get_oldest_live_start()


class Suggestion(models.Model):
    """A text that the task's generator wrote for an assignment."""

    class Action(models.TextChoices):
        USE = "use"
        EDIT = "edit"
        IGNORE = "ignore"

    USED_ACTIONS = (Action.USE, Action.EDIT)

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="suggestions")
    text = models.TextField()
    source = models.CharField(max_length=60, help_text="The generator's name.")
    fingerprint = models.JSONField(default=dict, help_text="Exactly what wrote it, if it says so.")
    # The column keeps its former name, which the release before reads while this one starts.
    action = models.CharField(max_length=6, choices=Action, blank=True, db_column="deed")
    asked_at = models.DateTimeField(db_default=Now())

    class Meta:
        # `last()` is the suggestion that the person has seen last.
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.source} for {self.assignment}"


class SupportedText(models.Model):
    """An abstract model for a text, with the help that its author had."""

    challenge = models.CharField(
        max_length=60, null=True, help_text="The challenge that its author took up."
    )
    support = models.JSONField(
        null=True, help_text="The help that its author had, as docs/datasets.md says; null: none."
    )

    class Meta:
        abstract = True


class Example(SupportedText, DrawnContext):
    """A text that a person wrote, with the verdict of the task's rule on the targets' answers."""

    class Outcome(models.TextChoices):
        FOOLED = "fooled"
        NOT_FOOLED = "not_fooled"
        UNDECIDED = "undecided"  # the author is asked
        NO_MODEL = "no_model"
        UNKNOWN = "unknown"  # imported without the author's label

    class DecidedBy(models.TextChoices):
        RULE = "rule"
        AUTHOR = "author"

    uuid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    uid = models.CharField(
        max_length=200, null=True, editable=False, help_text="Of imported history: its own id."
    )
    round = models.ForeignKey(  # example_order is its index
        Round, on_delete=models.PROTECT, related_name="examples", db_index=False
    )
    context = models.ForeignKey(Context, on_delete=models.PROTECT, related_name="examples")
    annotator = models.ForeignKey(
        Annotator,
        on_delete=models.PROTECT,
        related_name="examples",
        null=True,
        help_text="Unknown for some imported history.",
    )
    parent = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, related_name="retries",
        help_text="The example that this one edits.",
    )  # fmt: skip
    resembles = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, related_name="+", db_index=False,
        help_text="An earlier text of the round, by somebody else, that is nearly the same.",
    )  # fmt: skip
    typing = models.JSONField(
        null=True, help_text="What the browser told of typing; null: unknown. Untrusted."
    )
    signs = models.JSONField(
        null=True, help_text="The condition it was written under, and what was observed in it."
    )
    goal = models.CharField(max_length=200, blank=True)
    config_number = models.PositiveIntegerField(
        null=True, help_text="Of the configuration that was in force; null: unknown, as of history."
    )
    inputs = models.JSONField()
    # Empty once the text is erased; an erasure that was interrupted goes on by that.
    digest = models.CharField(max_length=32)
    metadata = models.JSONField(default=dict)  # the answers to metadata.create
    outcome = models.CharField(max_length=10, choices=Outcome)
    decided_by = models.CharField(max_length=6, choices=DecidedBy, default=DecidedBy.RULE)
    by_program = models.BooleanField(
        default=False, db_default=False, help_text="It came with an API token, not from a page."
    )
    # When its author was given the context; until `created_at` it took them to write.
    shown_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    retracted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # A retracted text may be written again; two tabs cannot store the same text twice.
            models.UniqueConstraint(
                fields=["annotator", "round", "context", "digest"],
                condition=Q(retracted_at__isnull=True),
                name="example_one_text",
            ),
            # An import that runs again, or beside another one, adds no row twice.
            models.UniqueConstraint(fields=["round", "uid"], name="example_one_uid"),
        ]
        indexes = [
            # Counts of a round by outcome are answered from the index.
            models.Index(fields=["round", "outcome"], name="example_outcome"),
            # Exports, queues and reviews read a round in pages, by id.
            models.Index(fields=["round", "id"], name="example_order"),
            # A person's tries of today are counted at each submit.
            models.Index(fields=["annotator", "created_at"], name="example_author_time"),
            models.Index(
                # Few examples resemble another one, so the index is small.
                fields=["resembles"],
                condition=Q(resembles__isnull=False),
                name="example_resembles",
            ),
            models.Index(
                # Verified examples are counted for each challenge; few take one up.
                fields=["round", "challenge"],
                condition=Q(challenge__isnull=False),
                name="example_challenge",
            ),
        ]

    def __str__(self) -> str:
        return str(self.uuid)

    @property
    def outcome_words(self) -> str:
        """Return the verdict as displayed in lists."""
        if self.retracted_at:
            return gettext("withdrawn")
        return {
            self.Outcome.FOOLED: gettext("fooled the model"),
            self.Outcome.NOT_FOOLED: gettext("model was right"),
            self.Outcome.UNDECIDED: gettext("undecided"),
            self.Outcome.NO_MODEL: gettext("saved"),
            self.Outcome.UNKNOWN: gettext("unknown"),
        }[self.Outcome(self.outcome)]


class ShownExample(models.Model):
    """A record that a person was shown somebody else's example, and in which way.

    Whoever has read an example outside the queue is not blind to it, and never judges it.
    """

    class Way(models.TextChoices):
        EDIT = "edit"  # as the one to change as little as possible
        GALLERY = "gallery"  # among the examples that worked
        TOUR = "tour"  # in a campaign's tour
        TEST = "test"  # in a campaign's test, whose answers are explained
        DISCUSSION = "discussion"
        ROLE = "role"  # in lists and exports, while they had a role that reads labels
        NUMBERS = "numbers"  # by their round's, after a vote of theirs that they took back

    example = models.ForeignKey(  # its index is that of shown_once
        Example, on_delete=models.CASCADE, related_name="shown_to", db_index=False
    )
    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="+")
    way = models.CharField(max_length=10, choices=Way)
    shown_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # Also the index by which the queue passes by what a person has seen.
            models.UniqueConstraint(fields=["example", "annotator"], name="shown_once")
        ]

    def __str__(self) -> str:
        return f"{self.example_id} to {self.annotator_id} ({self.way})"


class TextKey(models.Model):
    """A near-duplicate key of an example that was written on this site.

    See `annotation.rules.near_duplicates`. Imported examples have none.
    """

    example = models.ForeignKey(Example, on_delete=models.CASCADE, related_name="text_keys")
    # The index text_key begins with the round.
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.BigIntegerField()

    class Meta:
        # A new text is compared only with the texts of its round that share a key.
        indexes = [models.Index(fields=["round", "key"], name="text_key")]

    def __str__(self) -> str:
        return f"{self.key} of {self.example}"


class TextVector(models.Model):
    """A sentence encoder's vector of a verified error in a study.

    Only vectors of the same encoder are compared.
    """

    example = models.OneToOneField(
        Example, on_delete=models.CASCADE, primary_key=True, related_name="text_vector"
    )
    encoder = models.CharField(max_length=16, help_text="How the SHA-256 of its weights begins.")
    values = models.BinaryField(help_text="Each a signed byte; empty: too short to compare.")

    def __str__(self) -> str:
        return f"vector of {self.example_id}"


class TargetOutput(models.Model):
    """The answer of one target to one example."""

    example = models.ForeignKey(Example, on_delete=models.CASCADE, related_name="target_outputs")
    target = models.ForeignKey(TargetModel, on_delete=models.PROTECT)
    version = models.ForeignKey(TargetVersion, on_delete=models.PROTECT)
    position = models.PositiveSmallIntegerField(default=0)
    output = models.JSONField()
    prob = models.JSONField(null=True)
    seconds = models.FloatField()
    fooled = models.BooleanField(null=True)
    score = models.FloatField(null=True)
    judgements = models.JSONField(
        null=True, help_text="What the author said of each criterion, in their order."
    )

    class Meta:
        # The order in which the targets are asked; the first one's chance is shown and explained.
        ordering = ["position"]
        constraints = [
            # A target answers an example once.
            models.UniqueConstraint(fields=["example", "target"], name="output_one_each")
        ]

    def __str__(self) -> str:
        return f"{self.target} on {self.example}"


class Attempt(SupportedText):
    """A submission of a text, with the state of the requests to its targets.

    `key` makes a repeated click reuse the same row and requests.
    """

    class State(models.TextChoices):
        ASKING = "asking"
        DONE = "done"
        FAILED = "failed"

    uuid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE)
    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE)
    key = models.UUIDField()
    inputs = models.JSONField()
    parent = models.ForeignKey(Example, on_delete=models.SET_NULL, null=True, related_name="+")
    resembles = models.ForeignKey(
        Example, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False
    )
    typing = models.JSONField(null=True)
    by_program = models.BooleanField(default=False, db_default=False)
    state = models.CharField(max_length=6, choices=State, default=State.ASKING)
    failure = models.CharField(max_length=20, blank=True)  # the reason of an EndpointError
    example = models.OneToOneField(Example, on_delete=models.CASCADE, null=True)
    asked_at = models.DateTimeField()
    held_until = models.DateTimeField(db_default=Now())  # the asking process renews it

    class Meta:
        constraints = [
            # A double click, or a request that is sent again, has the same key.
            models.UniqueConstraint(fields=["annotator", "key"], name="attempt_one_key"),
            models.CheckConstraint(
                # Pages of a done attempt show its example, and no other attempt may lead to one.
                condition=Q(state="done", example__isnull=False)
                | Q(state__in=["asking", "failed"], example__isnull=True),
                name="attempt_done_has_example",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.uuid}"

    @property
    def is_lost(self) -> bool:
        """Return whether no process will ever finish the attempt, for example after a crash."""
        if self.state != self.State.ASKING:
            return False
        # Nobody renews it any more, or it has outlived the longest time that targets may take.
        return self.held_until < timezone.now() or self.asked_at < self.get_oldest_live_start()

    @staticmethod
    def get_oldest_live_start() -> datetime:
        """Return the earliest start time of an attempt that has not passed its deadline."""
        return timezone.now() - timedelta(seconds=settings.LIVE_DEADLINE_SECONDS)


class Report(models.Model):
    """An annotator's report of a problem with a context."""

    class Reason(models.TextChoices):
        UNREADABLE = "unreadable", _("I cannot understand it")
        BROKEN = "broken", _("It is cut off or broken")
        WRONG_LANGUAGE = "wrong-language", _("It is in the wrong language")
        PERSONAL = "personal", _("It names a private person")
        HARMFUL = "harmful", _("It is more harmful than the task needs")
        OTHER = "other", _("Something else")

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE)
    context = models.ForeignKey(Context, on_delete=models.CASCADE, related_name="reports")
    reason = models.CharField(max_length=20, choices=Reason)
    comment = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    resolved_at = models.DateTimeField(null=True, blank=True)
    told_at = models.DateTimeField(null=True, editable=False)  # when reviewers were mailed

    class Meta:
        # A later report of the person replaces the earlier one.
        constraints = [models.UniqueConstraint(fields=["annotator", "context"], name="report_once")]

    def __str__(self) -> str:
        return f"{self.reason}: {self.context}"


class SignalStudy(models.Model):
    """The counts of a labelled study, from which the error rates of signals follow.

    Without anything by which a person could be found: no ids, no times, in random order.
    """

    name = models.CharField(max_length=60, help_text="Of the campaign that was measured.")
    counts = models.JSONField(help_text="As `machine_text.selectors` packs them, one per author.")
    signal_rates = models.JSONField(help_text="Of each signal, for display.")
    measured_at = models.DateTimeField(db_default=Now())

    class Meta:
        # The newest one holds for the site.
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.name}, {self.measured_at:%Y-%m-%d}"
