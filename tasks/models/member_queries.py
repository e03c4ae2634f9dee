"""Queries for a task's members. `tasks.models` has their table."""

from typing import Any, Self

from allauth.account.models import EmailAddress
from django.db import models
from django.db.models import Exists, OuterRef, Q

from core.accounts.models import PANEL_ADDRESS_ENDING


class MemberQuerySet(models.QuerySet[Any]):
    """A queryset of members of tasks."""

    def annotate_effectiveness(self) -> Self:
        """Add `is_effective` to each member, which says whether the role counts.

        A role that was given to an email address counts once the address is confirmed. Otherwise
        anybody who signed up with another person's address would get that person's role.
        """
        # A subquery in place of a join, so that a person with several addresses is one row.
        confirmed_addresses = EmailAddress.objects.filter(
            user=OuterRef("user"), email__iexact=OuterRef("address"), verified=True
        )
        return self.annotate(is_effective=Q(address="") | Exists(confirmed_addresses))

    def select_effective(self) -> Self:
        """Return the members whose role counts."""
        return self.annotate_effectiveness().filter(is_effective=True)

    def select_colleagues(self) -> Self:
        """Return the members without panel participants.

        Pages, mails and the API list these members. A panel participant's row only lets them work
        in their study.
        """
        return self.exclude(user__email__endswith=PANEL_ADDRESS_ENDING)
