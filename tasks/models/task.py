"""Tasks and their members."""

from functools import lru_cache

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.functional import cached_property

from core.accounts.people import get_public_name
from tasks.config.loading import load_config
from tasks.config.schema import TaskConfig
from tasks.models.invitation import Invitation
from tasks.models.member_queries import MemberQuerySet
from tasks.models.proposal import validate_code

# A configuration is frozen, so all rows with the same text share one parsed object.
parse_config = lru_cache(maxsize=256)(load_config)


SIMULATED_TASK_CODE = "demo-simulated"
"""The code of the task that `manage.py demo` fills. It marks every file as simulated."""


class Task(models.Model):
    """A task for people and models, described by its configuration."""

    code = models.CharField(
        max_length=40,
        unique=True,
        validators=[validate_code],
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
        """Return the parsed configuration."""
        return parse_config(self.config_text)

    @cached_property
    def roles(self) -> dict[int, str | None]:
        """Return the roles cached on this object by user id. See `tasks.permissions.get_role`."""
        return {}

    @cached_property
    def idle_readers(self) -> set[int]:
        """Return the cached ids of users whose role could read labels but does not count now."""
        return set()

    @cached_property
    def blind_owners(self) -> set[int]:
        """Return the cached ids of owners who judge the task blind now."""
        return set()

    @property
    def is_sensitive(self) -> bool:
        """Return whether people must accept a content warning first."""
        return self.config.content_warning is not None

    @property
    def is_simulated(self) -> bool:
        """Return whether programs wrote and judged the task's content."""
        return self.code == SIMULATED_TASK_CODE


class TaskMember(models.Model):
    """A user's role in a task.

    Query it through `select_effective`, because some roles do not count yet.
    """

    class Role(models.TextChoices):  # what each may do: `tasks.role_permissions`
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
        # A person has one role in a task. Roles are looked up by both columns on nearly every page.
        constraints = [models.UniqueConstraint(fields=["task", "user"], name="member_one_role")]

    def __str__(self) -> str:
        return f"{self.role} {get_public_name(self.user)}"  # the admin's log keeps it
