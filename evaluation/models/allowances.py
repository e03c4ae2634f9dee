"""Quotas of one person, task or team, which replace the site's."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from evaluation.models.teams import Team
from tasks.models import Task


class Allowance(models.Model):
    """The quota of a person, a task or a team. A limit that is null is the site's default."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True)
    task = models.OneToOneField(Task, on_delete=models.CASCADE, null=True)
    team = models.OneToOneField(Team, on_delete=models.CASCADE, null=True)
    models_a_day = models.PositiveIntegerField(null=True)  # accepted ones, for a task
    gib = models.PositiveIntegerField(null=True)  # of a person, in uploads and files of models

    class Meta:
        constraints = [
            # A row with two of them would count for both, and a row with none for nobody.
            models.CheckConstraint(
                condition=Q(user__isnull=False, task=None, team=None)
                | Q(user=None, task__isnull=False, team=None)
                | Q(user=None, task=None, team__isnull=False),
                name="allowance_of_one",
            )
        ]

    def __str__(self) -> str:
        return f"allowance of {self.user or self.task or self.team}"
