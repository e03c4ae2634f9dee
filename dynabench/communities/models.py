"""Communities: their texts, owners, tasks, news, and models submitted to all of their tasks."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from evaluation.models import Submission
from tasks.models import Task, TaskProposal
from tasks.models.proposal import validate_code


def logo_path(community: "Community", name: str) -> str:
    """Return the storage path of a logo."""
    return f"communities/{community.pk}/{name}"


class Community(models.Model):
    """A group of people who maintain tasks together."""

    slug = models.CharField(max_length=40, unique=True, validators=[validate_code])
    name = models.CharField(max_length=100)
    summary = models.CharField(max_length=200, blank=True)
    text = models.TextField(blank=True, help_text="Markdown.")
    # Drawn again by the site, under a name made of its digest.
    logo = models.FileField(upload_to=logo_path, max_length=200, blank=True, editable=False)
    # A new community is written by its owners before strangers see it.
    is_listed = models.BooleanField(
        default=False,
        help_text=("Visible to everyone. Otherwise only to its owners and members of its tasks."),
    )
    # Names in the order in which pages offer them; empty: there are no tracks.
    tracks = models.JSONField(
        default=list, blank=True, help_text="Training budgets that joint submissions can choose."
    )
    owners = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="communities")
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.slug


class CommunityTask(models.Model):
    """A task's membership in a community, or its owner's request to join."""

    class State(models.TextChoices):
        ASKED = "asked"
        IN = "in"

    community = models.ForeignKey(Community, models.CASCADE, related_name="entries")
    task = models.ForeignKey(Task, models.CASCADE, related_name="communities")
    # A declined task has no row: it may ask again.
    state = models.CharField(max_length=5, choices=State, default=State.ASKED)
    # Readers may choose other weights, in the address of the board.
    weight = models.FloatField(default=1, help_text="Default weight on the board across tasks.")
    since = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            # Of two owners who ask for the same task at once, one gets the entry.
            models.UniqueConstraint(fields=["community", "task"], name="community_task_once")
        ]

    def __str__(self) -> str:
        return f"{self.task} in {self.community}"


class Post(models.Model):
    """A news item of a community."""

    community = models.ForeignKey(Community, models.CASCADE, related_name="posts")
    # News outlive the account of who posted them.
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    title = models.CharField(max_length=200)
    text = models.TextField(help_text="Markdown.")
    posted_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-posted_at", "-pk"]

    def __str__(self) -> str:
        return self.title


class CommunityProposal(models.Model):
    """A proposal for a new community, on which administrators decide."""

    class State(models.TextChoices):
        WAITING = gettext_noop("waiting")
        APPROVED = gettext_noop("approved")
        DECLINED = gettext_noop("declined")

    proposer = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="community_proposals"
    )
    name = models.CharField(max_length=100)
    # Not unique: two people may propose the same address, of whom one gets it.
    slug = models.CharField(max_length=40, validators=[validate_code])
    goal = models.TextField(help_text="What its tasks explore together, and for whom.")
    # Indexed, as administrators' pages ask for those that wait.
    state = models.CharField(max_length=10, choices=State, default=State.WAITING, db_index=True)
    reason = models.TextField(blank=True, help_text="Shown to the proposer.")
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    community = models.OneToOneField(Community, models.SET_NULL, null=True, related_name="proposal")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"proposal {self.pk} of {self.slug}"


class ProposedTask(models.Model):
    """A request that a proposed task join a community, whose owners may then decide on it."""

    community = models.ForeignKey(Community, models.CASCADE, related_name="proposed_tasks")
    proposal = models.OneToOneField(TaskProposal, models.CASCADE, related_name="for_community")

    def __str__(self) -> str:
        return f"{self.proposal} for {self.community}"


class JointSubmission(models.Model):
    """A model submitted to all tasks of a community under one name."""

    community = models.ForeignKey(Community, models.CASCADE, related_name="joint_submissions")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="joint_submissions"
    )
    name = models.CharField(max_length=100)
    track = models.CharField(max_length=60, blank=True, help_text="One of the community's tracks.")
    # One for each task, and for predictions one for each set.
    submissions = models.ManyToManyField(Submission, related_name="joint")
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-made_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.name} in {self.community}"
