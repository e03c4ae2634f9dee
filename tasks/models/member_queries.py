"""What is asked of a task's members; `tasks.models` has their table."""

from typing import Any, Self

from allauth.account.models import EmailAddress
from django.db import models
from django.db.models import Exists, OuterRef, Q

from core.accounts.models import PANEL_PEOPLE


class MemberQuerySet(models.QuerySet[Any]):
    """Members of tasks, as their table offers them."""

    def with_standing(self) -> Self:
        """Add to each member `stands`: whether the role counts.

        It does once the address that it was given to is confirmed. Otherwise anybody who signed up
        with another person's address would get that person's role.
        """
        # A subquery in place of a join, so that a person with several addresses is one row.
        confirmed = EmailAddress.objects.filter(
            user=OuterRef("user"), email__iexact=OuterRef("address"), verified=True
        )
        return self.annotate(stands=Q(address="") | Exists(confirmed))

    def standing(self) -> Self:
        """Return the members whose role counts."""
        return self.with_standing().filter(stands=True)

    def colleagues(self) -> Self:
        """Return those who belong to the task: pages, mails and the API name them as its members.

        People of a panel have a row too, which lets them work in their study, and belong to none.
        """
        return self.exclude(user__email__endswith=PANEL_PEOPLE)
