"""Studies: their frozen plans, their arms, and the draw of each person."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from core.accounts.models import Annotator
from dynabench.campaigns.models import Campaign, Place
from dynabench.studies.rules.plan import StudyPlan, read_plan
from evaluation.models.jobs import UNFINISHED_STATES, Job
from tasks.models import Context, TargetModel, Task


class Study(models.Model):
    """A randomised comparison of arms, each of which recruits people by a campaign."""

    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        # Translators: state of a study: its plan can't change any more, and people can join
        FROZEN = "frozen", _("frozen")
        CLOSED = "closed", _("closed")

    task = models.ForeignKey(Task, models.CASCADE, related_name="studies")
    # The last part of the link that people open, from the plan.
    code = models.CharField(max_length=40, unique=True)
    plan_text = models.TextField(help_text="YAML, see `rules.plan`.")
    state = models.CharField(max_length=6, choices=State, default=State.DRAFT)
    plan_hash = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the frozen plan.")
    frozen_at = models.DateTimeField(null=True)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "studies"
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.code

    @property
    def plan(self) -> StudyPlan:
        """Return the parsed plan."""
        return read_plan(self.plan_text)


class StudyArm(models.Model):
    """An arm of a frozen study, and the campaign that its people take part in."""

    study = models.ForeignKey(Study, models.CASCADE, related_name="arms")
    name = models.CharField(max_length=60)
    campaign = models.OneToOneField(Campaign, models.PROTECT, related_name="study_arm")
    position = models.PositiveSmallIntegerField(help_text="As in the plan, from 0.")

    class Meta:
        ordering = ["study", "position"]
        constraints = [
            # Draws name an arm by its name.
            models.UniqueConstraint(fields=["study", "name"], name="studyarm_one_name")
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.study}"


class StudyDraw(models.Model):
    """The arm that was drawn for a person, with the probability that it had."""

    arm = models.ForeignKey(StudyArm, models.CASCADE, related_name="draws")
    stratum = models.CharField(max_length=20, blank=True, help_text="The urn it was drawn from.")
    probability = models.FloatField()
    drawn_at = models.DateTimeField(db_default=Now())
    # Of a panel's person the hash that their place in the arm's campaign has, else the account's
    # annotator. The hash is emptied once the place is known.
    id_hash = models.CharField(max_length=64, blank=True)
    annotator = models.ForeignKey(Annotator, models.PROTECT, null=True, related_name="+")
    place = models.OneToOneField(Place, models.SET_NULL, null=True, related_name="study_draw")
    # Within people: the draw of the person's first arm. Later arms follow in the order of the ids.
    first = models.ForeignKey("self", models.CASCADE, null=True, related_name="later_draws")

    class Meta:
        # The order of the draws, from which their probabilities follow.
        ordering = ["pk"]
        constraints = [
            # The study's lock draws once for a person; this holds within an arm without it.
            models.UniqueConstraint(
                fields=["arm", "id_hash"], condition=~Q(id_hash=""), name="studydraw_one_id"
            ),
            models.UniqueConstraint(
                fields=["arm", "annotator"],
                condition=Q(annotator__isnull=False),
                name="studydraw_one_person",
            ),
        ]

    def __str__(self) -> str:
        return f"draw {self.pk} of {self.arm}"

    @property
    def first_id_or_own(self) -> int:
        """Return the id of the person's first draw, which all draws of the person share."""
        return self.first_id or self.pk

    def select_later_parts(self) -> models.QuerySet["StudyDraw"]:
        """Return the person's draws after this one."""
        return StudyDraw.objects.filter(first=self.first_id_or_own, pk__gt=self.pk)


class ModelAlone(models.Model):
    """What the model of an arm answers about a case without a person."""

    arm = models.ForeignKey(StudyArm, models.CASCADE, related_name="alone_answers")
    context = models.ForeignKey(Context, models.CASCADE, related_name="+")
    target = models.ForeignKey(TargetModel, models.CASCADE, related_name="+")
    replies = models.JSONField(default=list, help_text="The model's words, one for each answer.")
    answers = models.JSONField(default=dict, help_text="As read; null: it named none, or several.")
    is_right = models.BooleanField(default=False)
    failure = models.CharField(max_length=20, blank=True, help_text="Empty once it has answered.")
    tries = models.PositiveSmallIntegerField(default=0)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            # Two sweeps that ask at once store one row.
            models.UniqueConstraint(fields=["arm", "context"], name="modelalone_once")
        ]

    def __str__(self) -> str:
        return f"{self.arm} on context {self.context_id}"


class StudyDraft(models.Model):
    """A study that a person fills in on pages. What was typed stays, also if it is wrong."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="study_drafts")
    code = models.CharField(max_length=40, help_text="That its study will have.")
    design = models.CharField(max_length=7)
    values = models.JSONField(default=dict, help_text="What was typed, by the field's name.")
    plan_text = models.TextField(
        blank=True, help_text="YAML that its owner wrote; empty: the fields give the plan."
    )
    cases = models.BinaryField(default=b"")
    cases_name = models.CharField(max_length=200, blank=True)
    study = models.OneToOneField(Study, models.SET_NULL, null=True, related_name="study_draft")
    made_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-changed_at"]

    def __str__(self) -> str:
        return f"draft of {self.code}"


class PlanSimulation(Job):
    """What the analysis of a plan finds in simulated studies. One row for each text of a plan."""

    function = "dynabench.studies.jobs.simulate_plan"

    plan_hash = models.CharField(max_length=64, unique=True)
    plan_text = models.TextField()
    studies = models.PositiveIntegerField(default=0, help_text="That were simulated.")
    false_alarms = models.FloatField(null=True)
    power = models.FloatField(null=True)
    coverage95 = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"simulation of {self.plan_hash[:12]}"

    @property
    def planned_power(self) -> float:
        """Return the power that the plan wants (0-1)."""
        return read_plan(self.plan_text).size.power


class Pilot(Job):
    """A rehearsal of a study with simulated people, in tasks and campaigns of its own.

    Nothing of it is a row of the study, so that it can neither count nor stay behind.
    """

    function = "dynabench.studies.jobs.play_pilot"

    # Both stay while there is a pilot: without its row its copies would be tasks like others.
    study = models.OneToOneField(Study, models.PROTECT, related_name="pilot")
    people = models.PositiveSmallIntegerField()
    rehearsal = models.OneToOneField(
        Study, models.PROTECT, null=True, related_name="pilot_of",
        help_text="The study that the simulated people take part in.",
    )  # fmt: skip

    def __str__(self) -> str:
        return f"pilot of {self.study}"

    @property
    def is_at_work(self) -> bool:
        """Return whether simulated people are still taking part, or wait to."""
        return self.state in UNFINISHED_STATES
