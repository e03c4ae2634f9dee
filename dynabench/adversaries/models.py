"""Adversaries of tasks, their runs, and the log of everything that they tried."""

import uuid

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from annotation.models import Example
from core.accounts.models import Annotator
from dynabench.adversaries.kinds.base import KINDS, MAX_NAME_CHARS
from evaluation.models import Job, Submission, Upload
from evaluation.models.jobs import UNFINISHED_STATES
from tasks.models import Context, Round, TargetModel, Task

MAX_CALLS = 100_000
MAX_MINUTES = 600
MAX_EXAMPLES = 500
MAX_TOKENS = 10**12
MAX_SEED = 2**31 - 1


class Budget(models.Model):
    """An abstract model with the limits of a run."""

    max_calls = models.PositiveIntegerField(
        _("Maximum calls of models"),
        default=2000,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_CALLS)],
        help_text=_("A question to two models is two calls."),
    )
    max_examples = models.PositiveIntegerField(
        _("Maximum examples for people to judge"),
        default=20,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_EXAMPLES)],
    )
    max_minutes = models.PositiveIntegerField(
        _("Maximum minutes"),
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_MINUTES)],
    )
    max_tokens = models.PositiveBigIntegerField(
        _("Maximum tokens"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_TOKENS)],
        help_text=_("Leave empty for no limit."),
    )
    max_cost = models.FloatField(
        _("Maximum cost"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("At the prices of the models. Leave empty for no limit."),
    )

    class Meta:
        abstract = True


BUDGET_FIELDS = ("max_calls", "max_examples", "max_minutes", "max_tokens", "max_cost")


class Adversary(Budget):
    """An entry of a task that searches for failures of the models to fool, as people do.

    Its examples belong to an annotator of its own, so that caps and duplicates are counted for it
    as for a person.
    """

    task = models.ForeignKey(Task, models.CASCADE, related_name="adversaries")
    name = models.CharField(_("Name"), max_length=60)
    # Of a plug-in, too: a kind that is no longer installed cannot run, and its log stays.
    kind = models.CharField(max_length=MAX_NAME_CHARS)
    options = models.JSONField(default=dict, help_text="The values of the kind's settings.")
    seed = models.PositiveIntegerField(
        _("Seed"), default=0, validators=[MaxValueValidator(MAX_SEED)]
    )
    is_nightly = models.BooleanField(_("Run every night while a round is open"), default=False)
    program_user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+",
        help_text="Who runs its program, besides the task's editors.",
    )  # fmt: skip
    annotator = models.OneToOneField(Annotator, models.PROTECT, related_name="+")
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    retired_at = models.DateTimeField(null=True)  # it never runs again, and its examples stay

    class Meta:
        ordering = ["pk"]
        constraints = [
            # Boards, logs and files name an adversary by this.
            models.UniqueConstraint(fields=["task", "name"], name="adversary_one_name")
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.task}"

    @property
    def kind_title(self) -> str:
        """Return what pages call the kind; its code if its plug-in is no longer installed."""
        kind = KINDS.get(self.kind)
        return self.kind if kind is None else gettext(kind.title)


class AdversaryImage(Job):
    """A container image with an adversary's program. As a job it is the check on arrival.

    Done means that it can run, once `allowed_at` is set. The newest such image of an adversary is
    the one that its runs begin with.
    """

    function = "dynabench.adversaries.jobs.check_image"

    adversary = models.ForeignKey(Adversary, models.CASCADE, related_name="images")
    number = models.PositiveIntegerField(help_text="Of the adversary's images, from 1.")
    source = models.CharField(
        max_length=500, blank=True, help_text="In a registry, with its digest. Empty: uploaded."
    )
    # Null: it is in a registry, or a newer image has replaced it.
    upload = models.OneToOneField(Upload, models.SET_NULL, null=True, related_name="+")
    file_name = models.CharField(max_length=200, blank=True)
    digest = models.CharField(max_length=71, blank=True, help_text="The image's id: sha256:…")
    size = models.PositiveBigIntegerField(null=True, help_text="Unpacked, in bytes.")
    allowed_at = models.DateTimeField(null=True)
    allowed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )

    class Meta(Job.Meta):
        ordering = ["-pk"]
        constraints = [
            *Job.Meta.constraints,
            models.UniqueConstraint(fields=["adversary", "number"], name="adversaryimage_number"),
            # A second one could replace the first while that is still being loaded.
            models.UniqueConstraint(
                fields=["adversary"],
                condition=Q(state__in=UNFINISHED_STATES),
                name="adversaryimage_one_in_check",
            ),
        ]

    def __str__(self) -> str:
        return f"image {self.number} of {self.adversary}"


class AdversaryRun(Job, Budget):
    """A run of an adversary against the open round, and what it has used of its budget.

    The limits are those of the adversary when the run was requested.
    """

    function = "dynabench.adversaries.jobs.attack"
    first_function = "dynabench.adversaries.jobs.begin_attack"

    class End(models.TextChoices):
        FINISHED = "finished", _("Finished")
        CALLS = "calls", _("Maximum calls reached")
        EXAMPLES = "examples", _("Maximum examples reached")
        MINUTES = "minutes", _("Maximum minutes reached")
        TOKENS = "tokens", _("Maximum tokens reached")
        COST = "cost", _("Maximum cost reached")
        CAPS = "caps", _("Task limit of tries reached")
        SPENT = "spent", _("Model budget used up")
        SHARE = "share", _("Share of machines reached")
        CLOSED = "closed", _("Round closed")
        GONE = "gone", _("Program stopped asking")
        REPEATS = "repeats", _("Repeated itself")
        UNUSABLE = "unusable", _("Wrote nothing usable")
        STOPPED = "stopped", _("Stopped by an owner")

    adversary = models.ForeignKey(Adversary, models.CASCADE, related_name="runs")
    round = models.ForeignKey(Round, models.CASCADE, related_name="+")
    number = models.PositiveIntegerField(help_text="Of the adversary's runs, from 1.")
    # Chosen when the run was requested, so that a newer one changes nothing. Null: other kinds.
    image = models.ForeignKey(AdversaryImage, models.SET_NULL, null=True, related_name="runs")
    log = models.TextField(
        blank=True, db_default="", help_text="The end of what its container wrote as a log."
    )
    # Kept, because each slice repeats the search, and what people write changes weak spots.
    weak_spots = models.JSONField(
        null=True, help_text="Words of the weak spots among its topics. Null: not looked for."
    )
    calls = models.PositiveIntegerField(default=0)
    examples = models.PositiveIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(default=0)
    seconds = models.FloatField(default=0)
    # Transfer is never measured on these. Noted before a run asks them.
    asked_targets = models.ManyToManyField(TargetModel, related_name="+")
    # Until when a program's question may last; null: none is being asked.
    asking_until = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=10, choices=End, blank=True)

    class Meta(Job.Meta):
        ordering = ["-pk"]
        constraints = [
            *Job.Meta.constraints,
            models.UniqueConstraint(fields=["adversary", "number"], name="adversaryrun_number"),
            # The schedule and an owner may request a run at the same moment.
            models.UniqueConstraint(
                fields=["adversary"],
                condition=Q(state__in=UNFINISHED_STATES),
                name="adversaryrun_one_at_work",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.number} of {self.adversary}"


class AdversaryTry(models.Model):
    """A question of an adversary to the round's models: at most once for each text and label.

    The row exists before the models are asked, so a worker that dies leaves a trace of it.
    """

    class State(models.TextChoices):
        ASKING = gettext_noop("asking")
        ANSWERED = gettext_noop("answered")
        REPEATING = gettext_noop("repeating")  # asked again, as an example
        STORED = gettext_noop("stored")
        REFUSED = gettext_noop("refused")  # as an example, by a limit or as a duplicate
        UNANSWERED = gettext_noop("unanswered")  # the models cannot answer this text
        WAITING = gettext_noop("waiting")  # the models were away, and are asked again
        LOST = gettext_noop("lost")  # the worker died, so the answer is unknown

    run = models.ForeignKey(AdversaryRun, models.CASCADE, related_name="logged_tries")
    # Its index is that of adversarytry_once.
    adversary = models.ForeignKey(
        Adversary, models.CASCADE, related_name="logged_tries", db_index=False
    )
    round = models.ForeignKey(Round, models.CASCADE, related_name="+", db_index=False)
    context = models.ForeignKey(
        Context, models.SET_NULL, null=True, related_name="+",
        help_text="Null: the models do not read it.",
    )  # fmt: skip
    previous = models.ForeignKey(
        "self", models.SET_NULL, null=True, related_name="+",
        help_text="The turn before, in a conversation.",
    )  # fmt: skip
    digest = models.CharField(max_length=64, help_text="Of what the models read, and the label.")
    label = models.CharField(max_length=200)
    text = models.TextField()
    step = models.TextField(help_text="How the text was made.")
    is_offered = models.BooleanField(help_text="False: it only measures, and people never get it.")
    state = models.CharField(max_length=10, choices=State, default=State.ASKING)
    reason = models.CharField(max_length=200, blank=True)
    outputs = models.JSONField(default=list, help_text="Of each model: name, output and prob.")
    is_fooled = models.BooleanField(null=True)
    chance = models.FloatField(null=True, help_text="Mean probability of the label (0-1).")
    tokens = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(default=0)
    key = models.UUIDField(default=uuid.uuid4, help_text="Of the attempt that asks again.")
    example = models.OneToOneField(Example, models.SET_NULL, null=True, related_name="+")
    asked_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "adversary tries"
        constraints = [
            # No text is asked about twice, also by a later run or by two workers.
            models.UniqueConstraint(
                fields=["adversary", "round", "digest"], name="adversarytry_once"
            )
        ]

    def __str__(self) -> str:
        return f"try {self.pk} of {self.run}"

    @property
    def reply(self) -> str:
        """Return the model's answer in a conversation; "" for a text, or without an answer."""
        # Only answers of conversations have no probability of a label.
        if self.chance is not None or not self.outputs:
            return ""
        return "\n".join(str(value) for value in self.outputs[0]["output"].values())


class WriterCall(models.Model):
    """A request of a run to the language model that writes for its adversary.

    The row exists before the model is asked, so that no request is sent twice.
    """

    class State(models.TextChoices):
        ASKING = gettext_noop("asking")
        ANSWERED = gettext_noop("answered")
        UNUSABLE = gettext_noop("unusable")  # no text, or one in another language
        WAITING = gettext_noop("waiting")  # the model was away, and is asked again
        LOST = gettext_noop("lost")  # the worker died, so the reply is unknown

    run = models.ForeignKey(
        AdversaryRun, models.CASCADE, related_name="writer_calls", db_index=False
    )
    digest = models.CharField(
        max_length=64, help_text="Of the request, and how often the run had sent it before."
    )
    state = models.CharField(max_length=10, choices=State, default=State.ASKING)
    reason = models.CharField(max_length=20, blank=True)
    text = models.TextField(blank=True)
    tokens = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(default=0)
    asked_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-pk"]
        constraints = [
            # Found by it when a run continues.
            models.UniqueConstraint(fields=["run", "digest"], name="writercall_once")
        ]

    def __str__(self) -> str:
        return f"call {self.pk} of {self.run}"


class TransferCheck(Job):
    """A request to ask a task's other models about the catches of its board."""

    function = "dynabench.adversaries.jobs.check_transfer"

    task = models.ForeignKey(Task, models.CASCADE, related_name="transfer_checks")
    calls = models.PositiveIntegerField(default=0)
    unasked = models.JSONField(
        default=dict, help_text="Why models gave no answers: an EndpointError's reason by name."
    )

    class Meta(Job.Meta):
        ordering = ["-pk"]
        constraints = [
            *Job.Meta.constraints,
            # Two owners may ask at the same moment.
            models.UniqueConstraint(
                fields=["task"],
                condition=Q(state__in=UNFINISHED_STATES),
                name="transfercheck_one_at_work",
            ),
        ]

    def __str__(self) -> str:
        return f"transfer check {self.pk} of {self.task}"


class TransferAnswer(models.Model):
    """What a model that was not asked when a catch was found says about it.

    The row of a target exists before it is asked, so a worker that dies leaves a trace of it. The
    rows of submitted models come from their evaluations.
    """

    class State(models.TextChoices):
        ASKING = "asking"
        ANSWERED = "answered"
        EVALUATED = "evaluated"  # the answer is that of an evaluation, so nothing was asked
        UNANSWERED = "unanswered"  # the model cannot answer this text
        WAITING = "waiting"  # the model was away, and is asked again
        LOST = "lost"  # the worker died, so the answer is unknown

    example = models.ForeignKey(Example, models.CASCADE, related_name="transfer_answers")
    target = models.ForeignKey(TargetModel, models.CASCADE, null=True, related_name="+")
    submission = models.ForeignKey(Submission, models.CASCADE, null=True, related_name="+")
    state = models.CharField(max_length=10, choices=State, default=State.ASKING)
    reason = models.CharField(max_length=20, blank=True)
    output = models.JSONField(null=True)
    is_fooled = models.BooleanField(null=True)
    asked_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # No model is asked about a catch twice, also by two workers.
            models.UniqueConstraint(fields=["example", "target"], name="transferanswer_target"),
            models.UniqueConstraint(
                fields=["example", "submission"], name="transferanswer_submission"
            ),
            models.CheckConstraint(
                condition=Q(target__isnull=False, submission=None)
                | Q(target=None, submission__isnull=False),
                name="transferanswer_one_model",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target or self.submission} on {self.example_id}"
