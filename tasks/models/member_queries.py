"""What is asked of a task's members; `tasks.models` has their table."""

from typing import Any, Self

from allauth.account.models import EmailAddress
from django.db import models
from django.db.models import Exists, OuterRef, Q

from core.accounts.models import PANEL_PEOPLE


class MemberQuerySet(models.QuerySet[Any]):
    """A queryset of members of tasks."""

    def with_standing(self) -> Self:
        """Add to each member `stands`: whether the role counts.

        A role counts once the address that it was given to is confirmed. Otherwise anybody who
        signed up with another person's address would get that person's role.
        """
        # A subquery in place of a join, so that a person with several addresses is one row.
        confirmed_addresses = EmailAddress.objects.filter(
            user=OuterRef("user"), email__iexact=OuterRef("address"), verified=True
        )
        return self.annotate(stands=Q(address="") | Exists(confirmed_addresses))

    def standing(self) -> Self:
        """Return the members whose role counts."""
        return self.with_standing().filter(stands=True)

    def colleagues(self) -> Self:
        """Return the members without panel participants.

        Pages, mails and the API list these members. A panel participant's row only lets them work
        in their study.
        """
        return self.exclude(user__email__endswith=PANEL_PEOPLE)
