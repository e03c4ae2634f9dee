"""Stage 1: what is asked, of which models, with which texts."""

from functools import lru_cache

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from core.accounts.models import Annotator
from core.accounts.people import public_name
from tasks.at_address import AtAddress
from tasks.blind_judging import BlindJudging as BlindJudging
from tasks.budgets import Budget
from tasks.config.loading import load_config
from tasks.config.schema import TaskConfig
from tasks.config_version import ConfigVersion as ConfigVersion
from tasks.draft import TaskDraft as TaskDraft
from tasks.duty import Duty as Duty
from tasks.invitation import Invitation as Invitation
from tasks.invitation import NoInvitations as NoInvitations
from tasks.member_queries import MemberQuerySet
from tasks.proposal import CODE
from tasks.proposal import TaskProposal as TaskProposal

# A configuration is frozen, so all rows with the same text share one parsed object.
parsed_config = lru_cache(maxsize=256)(load_config)
SIMULATED = "demo-simulated"
"""The code of the task that `manage.py demo` fills; so every file that names it says what it is."""


class Task(models.Model):
    """A question that people and models answer, described by its configuration."""

    code = models.CharField(
        max_length=40,
        unique=True,
        validators=[CODE],
    )
    name = models.CharField(max_length=100)
    summary = models.CharField(max_length=200, blank=True)
    config_text = models.TextField("configuration", help_text="YAML; see docs/task-config.md.")
    config_number = models.PositiveIntegerField(default=1, db_default=1, editable=False)
    is_official = models.BooleanField(default=False)
    is_visible = models.BooleanField(
        default=True, help_text="Shown to everybody. Otherwise only to its members."
    )
    is_unapproved = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="Administrators decide before it opens to others than its members.",
    )
    allow_try_out = models.BooleanField(
        default=True, help_text="People without an account may try the model; nothing is kept."
    )
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.code

    @property
    def config(self) -> TaskConfig:
        """The parsed configuration."""
        return parsed_config(self.config_text)

    @cached_property
    def roles(self) -> dict[int, str | None]:
        """The roles that were asked of this object, by user; see `tasks.permissions.role_of`."""
        return {}

    @cached_property
    def idle_readers(self) -> set[int]:
        """The users among them whose role reads labels but does not count now."""
        return set()

    @cached_property
    def blind_owners(self) -> set[int]:
        """The users among them who own the task and judge it blindly now."""
        return set()

    @property
    def is_sensitive(self) -> bool:
        """Whether people pass a content gate first."""
        return self.config.content_warning is not None

    @property
    def is_simulated(self) -> bool:
        """Whether programs wrote and judged what is in it."""
        return self.code == SIMULATED


class TaskMember(models.Model):
    """A user's role in a task; read it through `standing`."""

    class Role(models.TextChoices):  # what each may do: `tasks.roles`
        OWNER = "owner"
        EDITOR = "editor"
        REVIEWER = "reviewer"
        VIEWER = "viewer"
        ANNOTATOR = "annotator"
        WRITER = "writer"
        JUDGE = "judge"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    role = models.CharField(max_length=10, choices=Role)
    address = models.EmailField(blank=True, help_text="It was given to; empty: to the account.")
    is_blind = models.BooleanField(  # since the last `BlindJudging`
        default=False, db_default=False, editable=False
    )
    invitation = models.ForeignKey(
        Invitation, models.SET_NULL, null=True, editable=False, related_name="members"
    )

    objects = MemberQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "user"], name="member_one_role")]

    def __str__(self) -> str:
        return f"{self.role} {public_name(self.user)}"  # the admin's log keeps it


class TargetModel(AtAddress):
    """A model that answers: in a round's loop, or as an entrant of the leaderboard."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="targets")
    name = models.SlugField(
        max_length=60, help_text="Unique in its task; part of the model server's URL."
    )
    adapter = models.CharField(max_length=40, default="http")
    url = models.URLField(
        max_length=500, blank=True, help_text="Empty: our own model server, which loads `source`."
    )
    source = models.CharField(
        max_length=500,
        blank=True,
        help_text="A folder, a hub id with a pinned revision, or package:NAME.",
    )
    allowed_folder = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The source, where an administrator allowed a folder outside the models' folder.",
    )
    revision = models.CharField(max_length=64, blank=True)
    options = models.JSONField(default=dict, blank=True, help_text="Of the adapter.")
    serving = models.JSONField(
        default=dict,
        blank=True,
        help_text="How our model server loads it: backend, precision, fields, output, labels.",
    )
    gpus = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="That it is evaluated on: 0 or 1."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]
        verbose_name = "target"
        constraints = [
            models.UniqueConstraint(
                fields=["task", "name"],
                name="target_one_name_in_task",
                violation_error_message="Another target of this task has this name.",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def base_url(self) -> str:
        """Where the target answers; our model server has one address for all language models."""
        own = "v1" if self.adapter == "openai_chat" else f"models/{self.name}"
        return self.url or f"{settings.MODEL_SERVER_URL}/{own}"


class TargetVersion(models.Model):
    """Exactly what answered: weights, tokenizer, backend and precision of a target, by digest."""

    target = models.ForeignKey(TargetModel, on_delete=models.CASCADE, related_name="versions")
    digest = models.CharField(max_length=64)
    fingerprint = models.JSONField(default=dict)
    first_seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["target", "digest"], name="version_one_digest")
        ]

    def __str__(self) -> str:
        return f"{self.target} {self.digest}"


class TargetFailure(models.Model):
    """How a target failed lately while people wrote."""

    target = models.OneToOneField(
        TargetModel, on_delete=models.CASCADE, primary_key=True, related_name="failure"
    )
    count = models.PositiveIntegerField(default=0)
    since = models.DateTimeField()
    last_at = models.DateTimeField(db_index=True)
    reason = models.CharField(max_length=20)  # of an EndpointError
    detail = models.CharField(max_length=500, blank=True)
    told_at = models.DateTimeField(null=True)  # when its owners were mailed

    def __str__(self) -> str:
        return f"{self.target}: {self.count} failures"


class ModelUse(models.Model):
    """What calls of a target came to on one day (UTC), in one round or outside of all."""

    target = models.ForeignKey(TargetModel, on_delete=models.CASCADE, related_name="uses")
    round = models.ForeignKey(
        "Round", on_delete=models.CASCADE, null=True, related_name="model_uses"
    )
    day = models.DateField()
    requests = models.PositiveBigIntegerField(default=0)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(default=0, help_text="In whole money, at the prices of that day.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["target", "round", "day"], name="modeluse_one_a_day"),
            models.UniqueConstraint(
                fields=["target", "day"], condition=Q(round=None), name="modeluse_outside"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target} in {self.round} on {self.day}"


class Generator(AtAddress):
    """A model that suggests texts to those who write for a task; nobody tries to fool it."""

    task = models.OneToOneField(Task, on_delete=models.CASCADE, related_name="generator")
    name = models.SlugField(max_length=60, help_text="People read it with a suggestion.")
    adapter = models.CharField(max_length=40, default="openai_chat")
    url = models.URLField(max_length=500)
    options = models.JSONField(default=dict, blank=True, help_text="Of the adapter.")

    class Meta:
        ordering = ["task"]

    def __str__(self) -> str:
        return f"{self.name} for {self.task}"


def _media_path(media: "Media", name: str) -> str:
    return f"tasks/{media.task_id}/media/{media.digest[:2]}/{name}"


def hidden_name(position: int) -> str:
    """Model A, Model B … by the place in the round's loop."""
    return f"Model {chr(ord('A') + position % 26)}"


class Round(models.Model):
    """One turn of the loop: people against this round's targets."""

    class State(models.TextChoices):
        DRAFT = gettext_noop("draft")
        READY = gettext_noop("ready")
        OPEN = gettext_noop("open")
        PAUSED = gettext_noop("paused")
        CLOSED = gettext_noop("closed")
        RELEASED = gettext_noop("released")

    class Rule(models.TextChoices):
        MAJORITY = "majority", _("fools the majority of the targets")
        ALL = "all", _("fools all targets")
        ANY = "any", _("fools one target")

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="rounds")
    number = models.PositiveIntegerField(
        help_text="From 1. Imported history whose round is not known is round 0."
    )
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    rule = models.CharField(max_length=10, choices=Rule, default=Rule.MAJORITY)
    show_target_name = models.BooleanField(
        default=True, help_text="Otherwise people read Model A, Model B until the round closes."
    )
    description = models.TextField(blank=True, help_text="Markdown.")
    parents = models.ManyToManyField("self", symmetrical=False, related_name="children", blank=True)
    targets = models.ManyToManyField(TargetModel, through="RoundTarget", related_name="rounds")
    opened_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(
        null=True, blank=True, help_text="The round closes by itself then. UTC."
    )
    writing_until = models.DateTimeField(
        null=True, blank=True, help_text="Of a closed round: who was writing may finish until then."
    )
    # Since when it waits for its targets to be loaded, to be opened then; and why it was not.
    opening_since = models.DateTimeField(null=True, editable=False)
    opening_note = models.CharField(
        max_length=500, blank=True, default="", db_default="", editable=False
    )
    # Budgets: the one that is reached first closes the round. Money is in cents or the like.
    max_collected = models.PositiveIntegerField("most examples", null=True, blank=True)
    max_fooling = models.PositiveIntegerField(
        "most verified fooling examples", null=True, blank=True
    )
    max_spent = models.PositiveIntegerField(
        "money", null=True, blank=True, help_text="In cents, or what your currency's smallest is."
    )
    pay_example = models.PositiveIntegerField("pay for an example, in cents", default=0)
    pay_validation = models.PositiveIntegerField("pay for a validation, in cents", default=0)
    pay_bonus = models.PositiveIntegerField(
        "bonus for a verified fooling example, in cents", default=0
    )

    class Meta:
        ordering = ["task_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["task", "number"], name="round_one_number"),
            models.UniqueConstraint(
                fields=["task"],
                condition=Q(state__in=["open", "paused"]),
                name="round_one_live",
                violation_error_message="Another round of this task is open. Close it first.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task.code} round {self.number}"

    @property
    def is_being_written(self) -> bool:
        """Whether people may still finish what they were writing when the round closed."""
        closed = self.state == self.State.CLOSED and self.writing_until is not None
        return closed and timezone.now() < self.writing_until  # type: ignore[operator]

    @property
    def has_fixed_targets(self) -> bool:
        """Whether its targets stay what they are; the database holds it (`tasks.rounds.fixed`)."""
        return self.opened_at is not None or self.state == self.State.RELEASED

    @property
    def is_past_end(self) -> bool:
        """Whether its end has come; the next request that sees it closes the round."""
        return self.ends_at is not None and self.ends_at <= timezone.now()

    @property
    def budget(self) -> Budget:
        """What closes the round by itself, as a plain value for the rules."""
        return Budget(
            collected=self.max_collected,
            fooling=self.max_fooling,
            money=self.max_spent,
            ends_at=self.ends_at,
            pay_example=self.pay_example,
            pay_validation=self.pay_validation,
            pay_bonus=self.pay_bonus,
        )

    @property
    def target_names(self) -> list[str]:
        """The targets as people may read them now."""
        entries = enumerate(self.round_targets.all())
        return [self.shown_name(entry.target, place) for place, entry in entries]

    def shown_name(self, target: TargetModel, place: int) -> str:
        """A target as people may read it now: Model A, Model B … while the round hides its name.

        place: among the round's targets, from 0.
        """
        if self.show_target_name or self.state in (self.State.CLOSED, self.State.RELEASED):
            return target.name
        return hidden_name(place)


class RoundTarget(models.Model):
    """A target in a round's loop."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="round_targets")
    target = models.ForeignKey(TargetModel, on_delete=models.PROTECT)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position", "pk"]
        constraints = [models.UniqueConstraint(fields=["round", "target"], name="roundtarget_once")]

    def __str__(self) -> str:
        return f"{self.round}: {self.target}"


class Media(models.Model):
    """A picture or a recording of a task, stored as `tasks.media.decoding` made it, by its digest.

    Contexts, examples and drafts name it by digest, in their JSON. Nobody can know who does, so
    what was stored notes it here; the rest is deleted after a day.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="media")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the file.")
    mime = models.CharField(max_length=20)
    size = models.PositiveIntegerField(help_text="In bytes.")
    about = models.JSONField(default=dict, help_text="width and height, or seconds.")
    file = models.FileField(upload_to=_media_path, max_length=200)
    sent_by = models.ForeignKey(Annotator, on_delete=models.SET_NULL, null=True, related_name="+")
    kept_from = models.DateTimeField(db_default=Now(), help_text="The day of an unused one begins.")
    is_used = models.BooleanField(default=False, help_text="A context, example or vote names it.")
    is_withdrawn = models.BooleanField(
        default=False, help_text="Nothing that stands names it any more: not for everybody."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "digest"], name="media_once")]
        indexes = [
            models.Index(fields=["digest"], name="media_digest"),
            models.Index(fields=["kept_from"], condition=Q(is_used=False), name="media_unused"),
        ]

    def __str__(self) -> str:
        return f"{self.mime} {self.digest[:12]} of {self.task}"

    @property
    def ending(self) -> str:
        """Of its file's name; the same for all of its kind."""
        return self.mime.partition("/")[2]


class ContextBatch(models.Model):
    """One import of contexts."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="batches")
    file_name = models.CharField(max_length=200)
    imported_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    imported_at = models.DateTimeField(db_default=Now())
    license = models.CharField(max_length=100, blank=True, default="", db_default="")
    citation = models.TextField(blank=True, default="", db_default="")
    origin = models.CharField(max_length=400, blank=True, default="", db_default="")
    """The address that the file was taken from, at a commit."""

    class Meta:
        verbose_name = "import of contexts"
        verbose_name_plural = "imports of contexts"

    def __str__(self) -> str:
        return f"{self.file_name} in {self.round}"


class Context(models.Model):
    """A text (or image …) that people write against; its fields are those of the configuration."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="contexts")
    batch = models.ForeignKey(ContextBatch, on_delete=models.SET_NULL, null=True, blank=True)
    fields = models.JSONField(default=dict)
    tag = models.CharField(max_length=100, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    digest = models.CharField(max_length=32, editable=False)
    is_retired = models.BooleanField(default=False, help_text="Not handed out any more.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["round", "digest"],
                name="context_once",
                violation_error_message="This round has this context already.",
            )
        ]

    def __str__(self) -> str:
        return f"context {self.pk} of {self.round}"
