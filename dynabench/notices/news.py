"""News for people about their own work, read from its rows, for digests and a page."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Max, Q, QuerySet
from django.urls import reverse
from django.utils.formats import date_format

from annotation.models import Assignment
from core.accounts.models import PANEL_PEOPLE, LogEntry, User
from dynabench.campaigns.models import Campaign, Invited, LedgerRow, Place
from dynabench.campaigns.rules.pay import units
from dynabench.notices.models import About
from tasks.models import Round, Task
from validation.models import Consensus

RECENT = timedelta(days=7)
SOON = timedelta(hours=36)
"""A round that ends within this time closes tomorrow: the next digest would be late."""


@dataclass(frozen=True)
class News:
    """Something that one person should know. words: fill its sentence, without people's texts."""

    kind: str
    user: User
    task: Task
    began_at: datetime
    path: str
    words: Mapping[str, Any]

    @property
    def task_id(self) -> int:
        """Return the task's id, as a notice has it."""
        return self.task.pk


def news(now: datetime, user: User | None = None) -> Iterator[News]:
    """Yield what is new within a week, for one person or for everybody who gets mails.

    Eight queries.
    """
    for kind in (_invited, _consents, _decided_against, _closing, _paid, _appeals):
        yield from kind(now, user)


def _whose(path: str, user: User | None) -> Q:
    """Return the condition that rows are this person's, or anybody's who has an address.

    People who came from a panel have none.
    """
    # On a page the person is signed in, so nothing else has to hold.
    if user is not None:
        return Q(**{path: user})
    return Q(**{f"{path}__is_active": True}) & ~Q(**{f"{path}__email__endswith": PANEL_PEOPLE})


def _places(user: User | None) -> QuerySet[Place]:
    """Return the places in studies of this person, or of everybody."""
    rows = Place.objects.filter(_whose("annotator__user", user))
    return rows.select_related("annotator__user", "campaign__task")


def _of_study(kind: str, place: Place, at: datetime, **words: Any) -> News:
    """Make news about somebody's place in a study. words: fill its sentence."""
    assert place.annotator
    assert place.annotator.user
    campaign = place.campaign
    path = reverse("campaigns:progress", args=[campaign.slug])
    words["study"] = campaign.name
    return News(kind, place.annotator.user, campaign.task, at, path, words)


def _invited(now: datetime, user: User | None) -> Iterator[News]:
    """Yield the invitations to open studies that people have not joined."""
    rows = Invited.objects.filter(
        _whose("user", user), made_at__gte=now - RECENT, campaign__state=Campaign.State.OPEN
    ).exclude(campaign__all_places__annotator__user=F("user"))
    for invitation in rows.select_related("user", "campaign__task"):
        campaign = invitation.campaign
        study = reverse("campaigns:arrive", args=[campaign.slug])
        # By way of signing in: the mail may be read where nobody is signed in.
        path = reverse("account_login", query={"next": study})
        words = {"study": campaign.name}
        yield News(About.INVITED, invitation.user, campaign.task, invitation.made_at, path, words)


def _consents(now: datetime, user: User | None) -> Iterator[News]:
    """Yield the studies whose text has changed since people agreed."""
    rows = _places(user).filter(
        state__in=(Place.State.WORKING, Place.State.LAPSED),
        campaign__consents__made_at__gte=now - RECENT,
        campaign__consents__number__gt=F("consent__number"),
    )
    for place in rows.annotate(changed_at=Max("campaign__consents__made_at")):
        yield _of_study(About.CONSENT, place, place.changed_at)


def _decided_against(now: datetime, user: User | None) -> Iterator[News]:
    """Yield the examples that were sent back or that people did not agree with."""
    rows = Consensus.objects.filter(
        _whose("example__annotator__user", user),
        decided_at__gte=now - RECENT,
        is_verified=False,
        example__retracted_at=None,
    )
    # One query for all, as the digest reads the examples of everybody.
    about = rows.select_related("example__annotator__user", "example__round__task")
    for decision in about.prefetch_related("example__validations"):
        example = decision.example
        assert example.annotator
        task, writer = example.round.task, example.annotator.user
        assert writer
        assert decision.decided_at
        page = f"{reverse('me:work')}?status=%s&task={task.code}#examples"
        if decision.is_sent_back:
            path = page % "sent-back"
            yield News(About.SENT_BACK, writer, task, decision.decided_at, path, {})
            continue
        counts = Counter(
            vote.get_flag_reason_display() for vote in example.validations.all() if vote.flag_reason
        )
        reasons = "; ".join(f"{words} ({n})" for words, n in counts.most_common())
        path = page % "not-agreed"
        yield News(About.INVALID, writer, task, decision.decided_at, path, {"reasons": reasons})


def _closing(now: datetime, user: User | None) -> Iterator[News]:
    """Yield the rounds that end soon, to people who are writing in them."""
    rows = Assignment.objects.filter(
        _whose("annotator__user", user),
        round__state=Round.State.OPEN,
        round__ends_at__gt=now,
        round__ends_at__lte=now + SOON,
        left_at=None,
    )
    for assignment in rows.select_related("annotator__user", "round__task"):
        ends_at, writer = assignment.round.ends_at, assignment.annotator.user
        assert ends_at
        assert writer
        # The time in the words of the language in which this is read.
        words = {"round": assignment.round.number, "at": date_format(ends_at, "j M, H:i")}
        path = reverse("annotation:write", args=[assignment.round.task.code])
        yield News(About.CLOSING, writer, assignment.round.task, ends_at - SOON, path, words)


def _paid(now: datetime, user: User | None) -> Iterator[News]:
    """Yield the payments to people."""
    rows = LedgerRow.objects.filter(
        _whose("place__annotator__user", user),
        kind=LedgerRow.Kind.PAID,
        made_at__gte=now - RECENT,
    )
    for row in rows.select_related("place__annotator__user", "place__campaign__task"):
        amount = f"{units(row.amount, row.currency)} {row.currency}"
        yield _of_study(About.PAID, row.place, row.made_at, amount=amount)


def _appeals(now: datetime, user: User | None) -> Iterator[News]:
    """Yield the appeals of people that were answered."""
    answers = LogEntry.objects.filter(
        action="campaign.appeal-answered", created_at__gte=now - RECENT
    )
    # The log says when: a pause has no time of its answer. The last answer to a place counts.
    answered_at = {entry.data["place"]: entry.created_at for entry in answers.order_by("pk")}
    for place in _places(user).filter(pk__in=answered_at, pauses__appeal__gt="").distinct():
        yield _of_study(About.APPEAL, place, answered_at[place.pk])
