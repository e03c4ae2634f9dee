"""Kinds of news for participants of studies."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db.models import F, Max, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.accounts.models import LogEntry, User
from core.text.money import format_smallest_units
from dynabench.campaigns.models import Campaign, Invited, LedgerRow, Place
from dynabench.notices.news import RECENT_TIME, build_user_filter
from dynabench.notices.registry import News, PersonalNews


def _select_places(user: User | None) -> QuerySet[Place]:
    """Return the places of `user` in studies, or of everybody if None."""
    rows = Place.objects.filter(build_user_filter("annotator__user", user))
    return rows.select_related("annotator__user", "campaign__task")


def _make_study_news(kind: str, place: Place, happened_at: datetime, **words: Any) -> News:
    """Create news about a place in a study. words: the values of its sentence's placeholders."""
    assert place.annotator
    assert place.annotator.user
    campaign = place.campaign
    path = reverse("campaigns:progress", args=[campaign.slug])
    words["study"] = campaign.name
    return News(kind, place.annotator.user, campaign.task, happened_at, path, words)


class StudyInvitations(PersonalNews, name="invited"):
    """The news that the person was invited to an open study that they have not joined."""

    label = gettext_lazy("Invitations to studies")
    place = 1

    def read_news(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield news of the invitations to open studies."""
        rows = Invited.objects.filter(
            build_user_filter("user", user),
            made_at__gte=now - RECENT_TIME,
            campaign__state=Campaign.State.OPEN,
        ).exclude(campaign__all_places__annotator__user=F("user"))
        for invitation in rows.select_related("user", "campaign__task"):
            campaign = invitation.campaign
            study = reverse("campaigns:arrive", args=[campaign.slug])
            # By way of signing in: the mail may be read where nobody is signed in.
            path = reverse("account_login", query={"next": study})
            words = {"study": campaign.name}
            yield News(self.name, invitation.user, campaign.task, invitation.made_at, path, words)

    def build_sentence(self, words: Mapping[str, Any]) -> str:
        """Return the sentence that names the study."""
        return _("You are invited to take part in the study “%(study)s”.") % words


class NewConsent(PersonalNews, name="consent"):
    """The news that a study's consent text has changed since the person agreed."""

    label = gettext_lazy("A study needs your consent again")
    place = 2

    def read_news(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield news of these studies."""
        rows = _select_places(user).filter(
            state__in=(Place.State.WORKING, Place.State.LAPSED),
            campaign__consents__made_at__gte=now - RECENT_TIME,
            campaign__consents__number__gt=F("consent__number"),
        )
        for place in rows.annotate(changed_at=Max("campaign__consents__made_at")):
            yield _make_study_news(self.name, place, place.changed_at)

    def build_sentence(self, words: Mapping[str, Any]) -> str:
        """Return the sentence that names the study."""
        return (
            _(
                "The consent text of the study “%(study)s” has changed. Read it and decide "
                "whether you still agree."
            )
            % words
        )


class Payments(PersonalNews, name="paid"):
    """The news that the person was paid."""

    label = gettext_lazy("You were paid")
    place = 6

    def read_news(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield news of the payments."""
        rows = LedgerRow.objects.filter(
            build_user_filter("place__annotator__user", user),
            kind=LedgerRow.Kind.PAID,
            made_at__gte=now - RECENT_TIME,
        )
        for row in rows.select_related("place__annotator__user", "place__campaign__task"):
            amount = format_smallest_units(row.amount, row.currency)
            yield _make_study_news(self.name, row.place, row.made_at, amount=amount)

    def build_sentence(self, words: Mapping[str, Any]) -> str:
        """Return the sentence that says how much was paid, and for which study."""
        return _("You were paid %(amount)s for the study “%(study)s”.") % words


class AnsweredAppeals(PersonalNews, name="appeal"):
    """The news that the person's appeal was answered."""

    label = gettext_lazy("Your appeal was answered")
    place = 7

    def read_news(self, now: datetime, user: User | None) -> Iterator[News]:
        """Yield news of the answered appeals."""
        answers = LogEntry.objects.filter(
            action="campaign.appeal-answered", created_at__gte=now - RECENT_TIME
        )
        # The log says when: a pause has no time of its answer. The last answer to a place counts.
        answered_at = {entry.data["place"]: entry.created_at for entry in answers.order_by("pk")}
        for place in (
            _select_places(user).filter(pk__in=answered_at, pauses__appeal__gt="").distinct()
        ):
            yield _make_study_news(self.name, place, answered_at[place.pk])

    def build_sentence(self, words: Mapping[str, Any]) -> str:
        """Return the sentence that names the study."""
        return _("Your appeal in the study “%(study)s” was answered.") % words
