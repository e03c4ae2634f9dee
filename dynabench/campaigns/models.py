"""Campaigns: their plans, participants, ledgers and payments."""

from datetime import timedelta
from uuid import uuid4

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from core.accounts.models import Annotator, User
from dynabench.campaigns.rules.pay import Pay
from dynabench.campaigns.validators import check_questionnaire, check_rules
from dynabench.campaigns.ways import kinds as kinds  # importing them registers them
from dynabench.campaigns.ways.registry import MAX_NAME_CHARS, WAYS, Way, way_choices
from tasks.models import Round, Task
from tasks.models.proposal import validate_code


class Campaign(models.Model):
    """A paid study of one task, with a number of places, and work and pay for each person.

    Money is in the currency's smallest unit. Work counts in the campaign's rounds; if none are
    chosen, in every round of the task that is open during the campaign.
    """

    class Kind(models.TextChoices):
        WRITE = "write", _("write examples")
        JUDGE = "judge", _("judge examples")
        BOTH = "both", _("write and judge")
        ARENA = "arena", _("compare models")

    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        # Translators: state of a round: it takes examples
        OPEN = "open", _("open")
        PAUSED = "paused", _("paused")
        FULL = "full", _("full")
        CLOSED = "closed", _("closed")

    task = models.ForeignKey(Task, models.CASCADE, related_name="campaigns")
    # The last part of the link that people open.
    slug = models.CharField(max_length=40, unique=True, validators=[validate_code])
    name = models.CharField(max_length=100)
    # None chosen: all rounds of the task that are open at the time.
    rounds = models.ManyToManyField(Round, related_name="campaigns", blank=True)
    kind = models.CharField(max_length=5, choices=Kind, default=Kind.WRITE)
    # A new way needs no migration: the choices are read when they are needed.
    way = models.CharField(max_length=MAX_NAME_CHARS, choices=way_choices, default="link")
    state = models.CharField(max_length=6, choices=State, default=State.DRAFT, editable=False)
    # How many people take part, and how many examples or judgements each of them gives.
    places = models.PositiveIntegerField(default=20, validators=[MinValueValidator(1)])
    each = models.PositiveIntegerField(default=10, validators=[MinValueValidator(1)])
    # The time from the consent on. Afterwards somebody else may take the place, but the person may
    # still submit for a while (`late`).
    minutes = models.PositiveIntegerField(default=60, validators=[MinValueValidator(1)])
    # null: as soon as an owner opens it, and until an owner closes it.
    opens_at = models.DateTimeField(null=True, blank=True)
    closes_at = models.DateTimeField(null=True, blank=True)
    # What people state before they agree. The site cannot check it.
    languages = models.CharField(max_length=100, blank=True)
    minimum_age = models.PositiveSmallIntegerField(default=18, validators=[MinValueValidator(1)])
    questions = models.TextField(
        blank=True, validators=[check_questionnaire],
        help_text="YAML, see `rules.questionnaire`.",
    )  # fmt: skip
    # Amounts are in its smallest unit: for the whole task, for each example that judges confirm,
    # and on top of that for each catch.
    currency = models.CharField(max_length=3, default="EUR")
    pay_task = models.PositiveIntegerField(default=0)
    pay_accepted = models.PositiveIntegerField(default=0)
    pay_bonus = models.PositiveIntegerField(default=0)
    novel_bonus = models.BooleanField(
        default=False, help_text="Examples similar to earlier ones get a smaller bonus."
    )
    information_bonus = models.BooleanField(
        default=False, db_default=False, help_text="The bonus follows `rules.information`."
    )
    # The owner is warned while the median person earns less than this in an hour.
    hourly = models.PositiveIntegerField(default=0)
    # What the panel takes on top of the pay, and the tax on both. The budget covers these, too, and
    # every bonus that can be earned; null: there is no limit.
    fee_percent = models.PositiveSmallIntegerField(default=0)
    tax_percent = models.PositiveSmallIntegerField(default=0)
    budget = models.PositiveIntegerField(null=True, blank=True)
    machine_hour = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=("Price per hour of a machine that serves or evaluates models."),
    )
    # Where the panel wants people back, and its codes for the ways in which they may end.
    completion_url = models.URLField(max_length=500, blank=True)
    code_done = models.CharField(max_length=40, blank=True)
    code_screened = models.CharField(max_length=40, blank=True)
    code_returned = models.CharField(max_length=40, blank=True)
    # Days from the end of the campaign until the panel's ids are deleted.
    id_days = models.PositiveSmallIntegerField(default=90)
    help_text = models.TextField(blank=True)
    tour = models.TextField(blank=True)
    # The test of gold items before the work; 0: there is none. A person has several tries, some
    # hours apart, and whoever fails is owed `pay_test` for the time.
    test_items = models.PositiveSmallIntegerField(default=0, validators=[MaxValueValidator(50)])
    test_right = models.PositiveSmallIntegerField(default=0)
    test_tries = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1)])
    test_hours = models.PositiveSmallIntegerField(default=0)
    pay_test = models.PositiveIntegerField(default=0)
    requires = models.ForeignKey(
        Task, models.SET_NULL, null=True, blank=True, related_name="+",
        help_text="Campaigns whose test participants must have passed.",
    )  # fmt: skip
    # The statement, and the name of the owner who stands for it: no campaign opens without.
    ethics = models.TextField(blank=True)
    ethics_name = models.CharField(max_length=100, blank=True, editable=False)
    # Once it is set, what was promised to people can't be changed (`services.FIXED_FIELDS`).
    opened_at = models.DateTimeField(null=True, editable=False)
    closed_at = models.DateTimeField(null=True, editable=False)
    # The panel's id of the study, and the owner's API token, encrypted.
    study = models.CharField(max_length=40, blank=True)
    sealed_token = models.TextField(blank=True, editable=False)
    own_rules = models.TextField(
        blank=True, validators=[check_rules], help_text="One rule per line, see `rules.own_rules`."
    )
    approval_days = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)],
        help_text="Days until the panel approves automatically, see `APPROVES_AFTER`.",
    )  # fmt: skip
    pauses_itself = models.BooleanField(
        default=False, help_text="Flagged participants are paused without an owner's decision."
    )
    deterrents = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField()), blank=True,
        help_text="Names of `annotation.rules.writing_conditions.DETERRENTS`, drawn per text.",
    )  # fmt: skip
    is_labelled = models.BooleanField(
        default=False,
        db_default=False,
        help_text="People are told, per text, to write with or without a model.",
    )
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.slug

    @property
    def pay(self) -> Pay:
        """Return the campaign's pay rates, as a plain value for the rules."""
        return Pay(
            task=self.pay_task,
            accepted=self.pay_accepted,
            bonus=self.pay_bonus,
            fee_percent=self.fee_percent,
            tax_percent=self.tax_percent,
            test=self.pay_test,
        )

    @property
    def way_in(self) -> Way:
        """Return the way by which people join the campaign, with its properties."""
        return WAYS[self.way]

    @property
    def approval_delay(self) -> timedelta | None:
        """Return how long after a submission the panel approves it automatically.

        None if the panel does not.
        """
        days = self.approval_days or self.way_in.approves_after_days
        return timedelta(days=days) if days else None

    @property
    def pays_parts_as_bonus(self) -> bool:
        """Return whether people who did part of the work are paid by a bonus.

        They leave with the code for people who leave early. Without this code, or on other panels,
        an approval pays the full amount.
        """
        return self.way_in.pays_parts_as_bonus and bool(self.code_returned)

    @property
    def late_time(self) -> timedelta:
        """Return how long people may still submit after their time is up.

        This is the working time, but at least an hour.
        """
        return timedelta(minutes=max(self.minutes, 60))

    @property
    def max_paid_examples(self) -> int:
        """Return the maximum number of paid examples per person."""
        return self.each if self.kind in (self.Kind.WRITE, self.Kind.BOTH) else 0


class ConsentText(models.Model):
    """A version of a campaign's consent text. Everybody must accept a new version."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="consents")
    # From 1. People agree to a number, which their form sends back.
    number = models.PositiveIntegerField()
    text = models.TextField()
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-number"]
        constraints = [
            # People agree to a number, so two owners who save at once must not give two texts one.
            models.UniqueConstraint(fields=["campaign", "number"], name="consent_one_number")
        ]

    def __str__(self) -> str:
        return f"consent {self.number} of {self.campaign}"


class Invited(models.Model):
    """An invitation to an account holder, which lets them join the campaign."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="invited")
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    made_at = models.DateTimeField()

    class Meta:
        # Somebody who is invited again has their time extended, by `update_or_create`.
        constraints = [models.UniqueConstraint(fields=["campaign", "user"], name="invited_once")]

    def __str__(self) -> str:
        return f"invitation {self.pk} to {self.campaign}"


class Place(models.Model):
    """A person's participation in a campaign: state, panel ids, consent and deadlines."""

    class State(models.TextChoices):
        # Translators: state of a place: questions and a test before the work
        TESTING = "testing", _("preparing")
        # Translators: state of a place: the person is at work
        WORKING = "working", _("working")
        LAPSED = "lapsed", _("out of time")
        SUBMITTED = "submitted", _("submitted")
        APPROVED = "approved", _("approved")
        REJECTED = "rejected", _("rejected")
        # Translators: state of a place: the person gave it back
        RETURNED = "returned", _("returned")
        SCREENED = "screened", _("screened out")
        OVER = "over", _("too late")

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="all_places")
    state = models.CharField(max_length=9, choices=State, default=State.WORKING)
    annotator = models.ForeignKey(Annotator, models.PROTECT, null=True, related_name="places")
    expires_at = models.DateTimeField()
    consent = models.ForeignKey(ConsentText, models.PROTECT, null=True, related_name="+")
    consented_at = models.DateTimeField(null=True)
    began_at = models.DateTimeField(null=True, help_text="Work counts from this time.")
    submitted_at = models.DateTimeField(null=True)
    # Both are emptied when the days that ids are kept are over.
    id_hash = models.CharField(max_length=64, blank=True, help_text="Keyed hash of the panel's ID.")
    sealed_id = models.TextField(blank=True, help_text="The panel's IDs, encrypted.")
    digest = models.CharField(max_length=64, blank=True, help_text="Digest of the personal secret.")
    answers = models.JSONField(
        null=True, help_text=("Answers to the questions. null: not asked yet.")
    )
    warned_at = models.DateTimeField(
        null=True, help_text=("When owners were warned about automatic approval.")
    )
    reason = models.CharField(
        max_length=500,
        blank=True,
        db_default="",
        default="",
        help_text=("Reason for the owner's decision."),
    )
    about = models.JSONField(default=dict, help_text="Voluntary answers about the person.")
    ran_out_at = models.DateTimeField(null=True, help_text="When no work or test was left.")
    part_pay = models.PositiveIntegerField(
        null=True, help_text="Partial pay, if work ran out first. null: full pay."
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            # One person takes one place, also in two browsers that agree at once. Deleted ids
            # (an empty hash) are no person's.
            models.UniqueConstraint(
                fields=["campaign", "id_hash"], condition=~Q(id_hash=""), name="place_one_id"
            ),
            # The same for people who come with their account.
            models.UniqueConstraint(
                fields=["campaign", "annotator"],
                condition=Q(annotator__isnull=False),
                name="place_one_person",
            ),
        ]
        indexes = [
            # How many places are taken, and whose time is over: on each arrival, and each minute.
            models.Index(fields=["campaign", "state"], name="place_state"),
            # A panel's person who is known from another campaign.
            models.Index(fields=["id_hash"], condition=~Q(id_hash=""), name="place_id_hash"),
            # A personal link, which holds the secret and no id.
            models.Index(fields=["digest"], condition=~Q(digest=""), name="place_digest"),
        ]

    def __str__(self) -> str:
        return f"place {self.pk} of {self.campaign}"


WORKING_STATES = (Place.State.WORKING, Place.State.LAPSED)
"""The states of a place whose person may work."""
SUBMITTED_STATES = (Place.State.SUBMITTED, Place.State.APPROVED, Place.State.REJECTED)
"""The states of a place whose work is submitted. Later decisions on its examples may add pay."""
# Read by each request that may change a place: the states that are not final.
ACTIVE_STATES = (Place.State.TESTING, *WORKING_STATES)
"""The states of a place whose person is tested or may work."""


class LedgerRow(models.Model):
    """An amount credited or paid to a participant, with its cause.

    Rows are added, never changed or deleted.
    """

    class Kind(models.TextChoices):
        EARNED = "earned", _("earned")
        ACCEPTED = "accepted", _("accepted example")
        BONUS = "bonus", _("bonus")
        PAID = "paid", _("paid")

    place = models.ForeignKey(Place, models.PROTECT, related_name="ledger")
    kind = models.CharField(max_length=8, choices=Kind)
    amount = models.PositiveIntegerField()
    currency = models.CharField(max_length=3)
    cause = models.CharField(
        max_length=80, help_text=("Reason of the amount: a task, or an example's ID.")
    )
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            # Nothing is owed or paid twice, whoever enters it, and however often.
            models.UniqueConstraint(fields=["place", "kind", "cause"], name="ledger_one_cause")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.amount} {self.currency}"


class Payment(models.Model):
    """A request to a panel's API about approval or a bonus, stored before it is sent.

    A SENT request may have been carried out, so its outcome is looked up before it is sent
    again. If the outcome cannot be determined, it is UNCLEAR and waits for the owner.
    """

    class Kind(models.TextChoices):
        APPROVE = "approve", _("approval")
        REJECT = "reject", _("rejection")
        BONUS = "bonus", _("bonus")

    class State(models.TextChoices):
        PLANNED = "planned", _("planned")
        PREPARED = "prepared", _("prepared")
        # Translators: state of a payment or message
        SENT = "sent", _("sent")
        DONE = "done", _("done")
        UNCLEAR = "unclear", _("unclear")
        REFUSED = "refused", _("refused")

    place = models.ForeignKey(Place, models.PROTECT, related_name="payments")
    kind = models.CharField(max_length=7, choices=Kind)
    amount = models.PositiveIntegerField(default=0)
    reason = models.CharField(max_length=500, blank=True)
    key = models.UUIDField(unique=True, default=uuid4, editable=False)
    state = models.CharField(max_length=8, choices=State, default=State.PLANNED)
    prepared = models.CharField(
        max_length=60, blank=True, help_text=("ID of the payment at the panel.")
    )
    before = models.PositiveIntegerField(null=True, help_text="Number of earlier bonuses.")
    said = models.CharField(max_length=500, blank=True)
    sent_at = models.DateTimeField(null=True)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            # Two payments at once to one person could not be told apart when they are read back.
            models.UniqueConstraint(
                fields=["place"],
                condition=Q(state__in=["planned", "prepared", "sent", "unclear"]),
                name="payment_one_open",
            )
        ]
        # Which campaigns have something to send, each minute.
        indexes = [models.Index(fields=["state"], name="payment_state")]

    def __str__(self) -> str:
        return f"{self.kind} {self.amount} for {self.place}"


class Pause(models.Model):
    """A suspension of a participant: the evidence, their appeal and the owner's answer."""

    place = models.ForeignKey(Place, models.CASCADE, related_name="pauses")
    evidence = models.JSONField(help_text="Evidence at the time, see `quality.Look`.")
    by_rule = models.BooleanField(
        default=False, help_text=("Paused by a rule, without an owner's decision.")
    )
    began_at = models.DateTimeField(db_default=Now())
    appeal = models.CharField(max_length=2000, blank=True)
    answer = models.CharField(max_length=2000, blank=True)
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            # Of an owner and a rule that pause somebody at once, the second is refused.
            models.UniqueConstraint(
                fields=["place"], condition=Q(lifted_at=None), name="pause_one_open"
            )
        ]

    def __str__(self) -> str:
        return f"pause of {self.place}"


class Qualification(models.Model):
    """A person's result in a task's test of gold items.

    A passed test also admits them to other campaigns that require it.
    """

    annotator = models.ForeignKey(Annotator, models.CASCADE, related_name="qualifications")
    task = models.ForeignKey(Task, models.CASCADE, related_name="+")
    tries = models.PositiveSmallIntegerField(default=0)
    right = models.PositiveSmallIntegerField(default=0)
    asked = models.PositiveSmallIntegerField(default=0)
    tried_at = models.DateTimeField()
    passed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # Two tabs that begin the test share one row, and so its tries.
            models.UniqueConstraint(fields=["annotator", "task"], name="qualification_once")
        ]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.task}"
