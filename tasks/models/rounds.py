"""Rounds of a task, and the targets in each."""

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from tasks.budgets import Budget
from tasks.models.targets import TargetModel
from tasks.models.task import Task


def build_hidden_name(position: int) -> str:
    """Return Model A, Model B, … for a target's position in the round, counted from 0."""
    return f"Model {chr(ord('A') + position % 26)}"


class Round(models.Model):
    """A round of a task, in which people write examples against the round's targets."""

    class State(models.TextChoices):
        DRAFT = gettext_noop("draft")
        # Translators: state of a round: it can be opened
        READY = gettext_noop("ready")
        OPEN = gettext_noop("open")
        PAUSED = gettext_noop("paused")
        CLOSED = gettext_noop("closed")
        RELEASED = gettext_noop("released")

    FINISHED_STATES = (State.CLOSED, State.RELEASED)
    """The states in which nobody writes any more."""

    class Rule(models.TextChoices):
        MAJORITY = "majority", _("fools most of the round's models")
        ALL = "all", _("fools all of the round's models")
        ANY = "any", _("fools one of the round's models")

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

    # Of a mixed round, the parts of each arm (`tasks.arms`).
    arm_shares = models.JSONField(
        null=True, editable=False, help_text="By arm; null: people are assigned no arm."
    )
    shares_number = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="How often the shares were set."
    )

    class Meta:
        ordering = ["task_id", "number"]
        constraints = [
            # `plan_round` takes the next number under a lock. This holds for whoever writes without
            # it.
            models.UniqueConstraint(fields=["task", "number"], name="round_one_number"),
            models.UniqueConstraint(
                fields=["task"],
                # Two owners who open two rounds at once: `set_round_state` turns this error into a
                # refusal.
                condition=Q(state__in=["open", "paused"]),
                name="round_one_live",
                violation_error_message="Another round of this task is open. Close it first.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task.code} round {self.number}"

    @property
    def is_being_written(self) -> bool:
        """Return whether people may still finish what they were writing when the round closed."""
        # Without `writing_until` nobody was writing when the round closed.
        has_grace_period = self.state == self.State.CLOSED and self.writing_until is not None
        return has_grace_period and timezone.now() < self.writing_until  # type: ignore[operator]

    @property
    def has_fixed_targets(self) -> bool:
        """Return whether the targets can no longer change.

        A trigger enforces this (`tasks.rounds.target_triggers`).
        """
        return self.opened_at is not None or self.state == self.State.RELEASED

    @property
    def is_past_end(self) -> bool:
        """Return whether the end has passed, so that the next request will close the round."""
        return self.ends_at is not None and self.ends_at <= timezone.now()

    @property
    def budget(self) -> Budget:
        """Return the limits that close the round."""
        return Budget(
            max_collected=self.max_collected,
            max_fooling=self.max_fooling,
            max_spent=self.max_spent,
            ends_at=self.ends_at,
            pay_example=self.pay_example,
            pay_validation=self.pay_validation,
            pay_bonus=self.pay_bonus,
        )

    @property
    def target_names(self) -> list[str]:
        """Return the names of the targets as people may see them now."""
        entries = enumerate(self.round_targets.all())
        return [self.get_target_name(entry.target, index) for index, entry in entries]

    def get_target_name(self, target: TargetModel, index: int) -> str:
        """Return a target's name, or Model A, Model B, … while the round hides it.

        index: the target's index in the round, from 0.
        """
        # Once the round is over nobody can adapt to a model any more, so its name is shown.
        if self.show_target_name or self.state in (self.State.CLOSED, self.State.RELEASED):
            return target.name
        return build_hidden_name(index)


class RoundTarget(models.Model):
    """A target that people write against in a round."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="round_targets")
    target = models.ForeignKey(TargetModel, on_delete=models.PROTECT)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position", "pk"]
        # A target is in a round once. A trigger keeps the targets of an opened round
        # (`rounds.target_triggers`).
        constraints = [models.UniqueConstraint(fields=["round", "target"], name="roundtarget_once")]

    def __str__(self) -> str:
        return f"{self.round}: {self.target}"
