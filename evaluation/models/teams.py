"""Teams of people who submit models together."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now
from django.utils.translation import gettext_lazy as _


class Team(models.Model):
    """A group of people who submit models together. Leaderboards show its name."""

    name = models.CharField(max_length=60)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]
        constraints = [
            # Boards show the name, so names of teams must not differ only in case.
            models.UniqueConstraint(
                Lower("name"),
                name="team_one_name",
                violation_error_message=_("This team name is already taken."),
            )
        ]

    def __str__(self) -> str:
        return self.name


class TeamMember(models.Model):
    """A person's membership of a team, or a pending invitation to an address."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="team_places"
    )
    address = models.EmailField(help_text="In small letters; it was invited.")
    is_owner = models.BooleanField(default=False)
    joined_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="teammember_one_person"),
            models.UniqueConstraint(fields=["team", "address"], name="teammember_one_address"),
            # An unconfirmed address owns nothing and does not count as a member.
            models.CheckConstraint(
                condition=Q(user__isnull=False) | Q(is_owner=False, joined_at=None),
                name="teammember_invited",
            ),
        ]

    def __str__(self) -> str:
        return f"member {self.pk} of {self.team}"
