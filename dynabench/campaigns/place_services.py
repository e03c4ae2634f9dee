"""Writes about places: taken with consent, submitted, left. Locks are of the campaign."""

import json
import secrets
from datetime import timedelta
from ipaddress import ip_address, ip_network

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Q, Sum
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from annotation.models import Assignment, Conversation
from core.accounts.models import PANEL_PEOPLE, Annotator, User
from core.accounts.services import annotator_of
from core.accounts.tokens import digest_of
from core.data.encryption import encrypt
from core.data.rows import changed_fields
from core.errors import Refused
from dynabench.campaigns.models import (
    GOING,
    Campaign,
    ConsentText,
    LedgerRow,
    Place,
    Qualification,
)
from dynabench.campaigns.selectors import (
    OWED,
    RESERVED,
    TAKEN,
    Done,
    done_of,
    ids_of,
    may_submit,
    pay_of,
    rounds_are_over,
)
from dynabench.campaigns.ways.panels import PANELS, Arrival
from dynabench.campaigns.work_left import is_work_left
from tasks.models import TaskMember

MOST_CROWD, LEAST_CROWD, CROWD_SECONDS = 0.2, 2, 7 * 86_400
"""The share of the places that people from one address have at a time, and at least how many."""
ROLES = {"write": "writer", "judge": "judge", "both": "annotator", "arena": "annotator"}
SOURCES = {"prolific": Annotator.Source.PROLIFIC, "mturk": Annotator.Source.MTURK}
LAST_LOOK = timedelta(minutes=5)
"""So long before somebody who is late loses their place, it is looked whether work is left."""
State = Place.State


class NoPlace(Refused):
    """Nobody may come now, or nobody more; `code` says why."""


def lock(campaign_id: int) -> Campaign:
    """The campaign, which nobody else locks until the transaction ends."""
    rows = Campaign.objects.select_related("task")
    return rows.select_for_update(of=("self",), no_key=True).get(pk=campaign_id)


def id_hash(campaign: Campaign, panel_id: str, secret: str = "") -> str:
    """What tells a panel's person apart and names nobody, also over campaigns of one panel.

    The ids of other panels, whose links are alike, tell people apart in one campaign alone.
    secret: a former SECRET_KEY.
    """
    scope = campaign.way if campaign.way in SOURCES else f"{campaign.way}-{campaign.pk}"
    made = salted_hmac(
        f"campaigns.{scope}", panel_id, secret=secret or settings.SECRET_KEY, algorithm="sha256"
    )
    return made.hexdigest()


def _hashes(campaign: Campaign, panel_id: str) -> list[str]:
    """By the current key, and by those that `renew_hashes` may not have replaced yet."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [id_hash(campaign, panel_id, key) for key in keys]


def renew_hashes() -> None:
    """Hash what is kept of panels' ids with the current key; no lock, one update each."""
    for place in Place.objects.exclude(sealed_id="").select_related("campaign").iterator():
        if arrival := ids_of(place):
            hashed = id_hash(place.campaign, arrival.id)
            Place.objects.filter(pk=place.pk).exclude(id_hash="").update(id_hash=hashed)


def known_place(campaign: Campaign, arrival: Arrival) -> Place | None:
    """The place of somebody who agreed before."""
    found = campaign.all_places.filter(id_hash__in=_hashes(campaign, arrival.id))
    return found.select_related("annotator__user").first()


def _free(campaign: Campaign) -> None:
    """Take back the places whose time is over; the campaign is locked.

    Who works may submit late, so their money stays reserved. Once that is over, too, who has done
    all that they could is submitted, so that they are paid, and nobody else goes on.
    """
    now = timezone.now()
    over = campaign.all_places.filter(expires_at__lte=now)
    over.filter(state=State.TESTING).update(state=State.OVER)
    over.filter(state=State.WORKING).update(state=State.LAPSED)
    for place in over.filter(state=State.LAPSED, expires_at__lte=now - campaign.late):
        place.campaign = campaign
        done = done_of(place)
        if may_submit(place, done):
            _end(place, done)
        else:
            changed_fields(place, {"state": State.OVER, "expires_at": now})


@transaction.atomic
def free_places(*, campaign: Campaign) -> None:
    """Take back the places whose time is over, and open a campaign that was full. Locks it."""
    locked = lock(campaign.pk)
    _free(locked)
    _set_full(locked)


def check_open(campaign: Campaign) -> None:
    """Raises NoPlace while nobody may come."""
    now = timezone.now()
    if campaign.state not in (Campaign.State.OPEN, Campaign.State.FULL):
        raise NoPlace(_("This study takes nobody at present."), code=campaign.state)
    if rounds_are_over(campaign):
        raise NoPlace(_("This study is over."), code="closed")
    if campaign.opens_at and now < campaign.opens_at:
        raise NoPlace(_("This study has not begun yet."), code="early")
    if campaign.closes_at and now >= campaign.closes_at:
        raise NoPlace(_("This study is over."), code="closed")


def check_place(*, campaign: Campaign) -> None:
    """Raises NoPlace for who comes while there is none; nothing is kept of them."""
    check_open(campaign)
    if not _has_place(campaign):
        free_places(campaign=campaign)
        if not _has_place(campaign):
            raise NoPlace(_("All places are taken."), code="full")


def reserved(campaign: Campaign, more: int = 0) -> int:
    """What the people who are in can cost at most, and `more` people; with what is owed anyway."""
    people = campaign.all_places.filter(state__in=RESERVED).count() + more
    others = LedgerRow.objects.filter(place__campaign=campaign, kind__in=OWED)
    owed = others.exclude(place__state__in=RESERVED).aggregate(sum=Sum("amount"))["sum"] or 0
    return campaign.pay.reserved(people, campaign.written, owed)


def _has_place(campaign: Campaign) -> bool:
    if campaign.all_places.filter(state__in=TAKEN).count() >= campaign.places:
        return False
    return campaign.budget is None or reserved(campaign, more=1) <= campaign.budget


def _set_full(campaign: Campaign) -> None:
    """Full or open again, as it is now."""
    if campaign.state in (Campaign.State.OPEN, Campaign.State.FULL):
        now = Campaign.State.OPEN if _has_place(campaign) else Campaign.State.FULL
        changed_fields(campaign, {"state": now})


@transaction.atomic
def take_place(
    *,
    campaign: Campaign,
    consent: ConsentText,
    arrival: Arrival | None = None,
    user: User | None = None,
    address: str = "",
) -> tuple[Place, str]:
    """Somebody agreed: from now on they are known, by a pseudonym; returns a personal secret, too.

    arrival: of a panel; user: of this site. Who agreed before, in another tab, keeps that place.
    Who is known of another campaign gets no secret: it opens all that is stored of them, and a
    panel's id alone must not. Locks the campaign, so that no more people get in than there are
    places and money, and one person takes one place; then the person, so that no work counts in
    two campaigns. Raises NoPlace, and Refused where there is a newer consent text and as
    `_check_free`.
    """
    locked = lock(campaign.pk)
    if locked.consents.first() != consent:
        raise Refused(_("The text has changed. Read it again."), code="consent")
    hashes = _hashes(locked, arrival.id) if arrival else []
    one_of = Q(id_hash__in=hashes) if arrival else Q(annotator__user=user)
    if before := locked.all_places.filter(one_of).first():
        return before, ""
    _free(locked)
    check_place(campaign=locked)
    crowd = Crowd(locked, address if locked.way in PANELS else "")
    crowd.check()
    person = annotator_of(user) if user else _panel_person(locked, hashes)
    check_qualified(locked, person)
    is_known = person.places.exists()
    _check_free(locked, person)
    place, secret = _give(locked, person, consent, arrival)
    crowd.add(place)
    role = {"role": ROLES[locked.kind]}
    TaskMember.objects.get_or_create(task=locked.task, user=person.user, defaults=role)
    _set_full(locked)
    return place, "" if is_known else secret


class Crowd:
    """Who takes part from one address: a panel's ids can be invented, addresses less easily.

    Those of private networks are left out: a proxy's, behind which are all, or a laboratory's. A
    keyed hash of the address is in the cache alone, with the places that it took.
    """

    def __init__(self, campaign: Campaign, address: str) -> None:
        network = _network(address)
        told = f"{campaign.pk} {network}" if network else ""
        self._key = f"crowd-{salted_hmac('campaigns.crowd', told).hexdigest()}" if told else ""
        self._places = campaign.all_places.filter(pk__in=cache.get(self._key, ()), state__in=GOING)
        self._most = max(LEAST_CROWD, int(campaign.places * MOST_CROWD))

    def check(self) -> None:
        """Raises NoPlace while so many places of the address are neither submitted nor left."""
        if self._key and self._places.count() >= self._most:
            raise NoPlace(_("Many people take part from your network at present."), code="busy")

    def add(self, place: Place) -> None:
        """One more of the address."""
        if self._key:
            pks = [*self._places.values_list("pk", flat=True), place.pk]
            cache.set(self._key, pks, CROWD_SECONDS)


def _network(address: str) -> str:
    """What one person has: an address, or in version 6 the first half of it; a private one: ""."""
    found = ip_address(address or "::")
    found = getattr(found, "ipv4_mapped", None) or found
    if not found.is_global:
        return ""
    return str(ip_network((found, 64), strict=False) if found.version == 6 else found)


def _check_free(campaign: Campaign, person: Annotator) -> None:
    """Raises Refused while the same work would count in another campaign of the task, too."""
    Annotator.objects.select_for_update(of=("self",), no_key=True).get(pk=person.pk)
    going = person.places.filter(campaign__task=campaign.task, state__in=GOING)
    if other := going.select_related("campaign").first():
        said = _("You still take part in “%(name)s”. Submit your work there, or leave it, first.")
        raise Refused(said % {"name": other.campaign.name}, code="another")


def _give(
    campaign: Campaign,
    person: Annotator,
    consent: ConsentText,
    arrival: Arrival | None,
) -> tuple[Place, str]:
    """Somebody's place, and their secret."""
    now, secret = timezone.now(), secrets.token_urlsafe(32)
    place = Place.objects.create(
        campaign=campaign,
        annotator=person,
        state=first_state(campaign, person),
        consent=consent,
        consented_at=now,
        began_at=now,
        expires_at=now + timedelta(minutes=campaign.minutes),
        id_hash=id_hash(campaign, arrival.id) if arrival else "",
        sealed_id=encrypt(json.dumps(arrival._asdict())) if arrival else "",
        digest=digest_of(secret),
    )
    return place, secret


def first_state(campaign: Campaign, person: Annotator, *, is_asked: bool = False) -> str:
    """Before the questions, the tour or the test, for those who have not passed it.

    is_asked: whether the questions are answered.
    """
    if campaign.questions and not is_asked:
        return State.TESTING
    passed = Qualification.objects.filter(annotator=person, task=campaign.task)
    is_tested = not campaign.test_items or passed.exclude(passed_at=None).exists()
    return State.WORKING if is_tested and not campaign.tour else State.TESTING


def check_qualified(campaign: Campaign, person: Annotator) -> None:
    """Raises Refused for those who have not passed the test that the campaign requires."""
    if campaign.requires is None:
        return
    passed = Qualification.objects.filter(annotator=person, task=campaign.requires)
    if not passed.exclude(passed_at=None).exists():
        said = _("This study is for people who have passed the test of “%(task)s”.")
        raise Refused(said % {"task": campaign.requires.name}, code="qualification")


def _panel_person(campaign: Campaign, hashes: list[str]) -> Annotator:
    """The person of this panel, known from another campaign or new: an account without address."""
    known = Place.objects.filter(id_hash__in=hashes, annotator__user__isnull=False).first()
    if known and known.annotator:
        return known.annotator
    user = User.objects.create_user(f"{secrets.token_hex(12)}{PANEL_PEOPLE}")
    annotator = annotator_of(user)
    annotator.source = SOURCES.get(campaign.way, Annotator.Source.PANEL)
    annotator.save(update_fields=["source"])
    return annotator


@transaction.atomic
def agree_again(*, place: Place, consent: ConsentText) -> None:
    """Somebody agreed to a new version; no lock, one update. Raises Refused where it is old."""
    if place.campaign.consents.first() != consent:
        raise Refused(_("The text has changed. Read it again."), code="consent")
    now = timezone.now()
    Place.objects.filter(pk=place.pk).update(consent=consent, consented_at=now)


@transaction.atomic
def come_in(*, user: User) -> None:
    """A panel's id signed somebody in: they go on, and read nothing of before, in any task.

    From where they came is forgotten. What they wrote and did not send stays in the browser where
    they wrote it. No lock, an update and two deletions.
    """
    UserSession.objects.filter(user=user).delete()
    going = Assignment.objects.filter(annotator__user=user, left_at__isnull=True)
    Conversation.objects.filter(assignment__in=going).delete()
    going.update(draft={})


def note_end_of_work(place: Place, done: Done) -> bool:
    """Note that the site has no work left for somebody, the first time; whether it has none.

    From then on they may submit what they have done. No lock, one update.
    """
    if is_work_left(place, done):
        return False
    if place.ran_out_at is None:
        place.ran_out_at = timezone.now()
        Place.objects.filter(pk=place.pk, ran_out_at=None).update(ran_out_at=place.ran_out_at)
    return True


def note_ends_of_work(campaign: Campaign) -> None:
    """Note it of those who are about to lose their place, have begun and found no more work.

    They may have closed the page that said so. No lock.
    """
    late = timezone.now() - campaign.late + LAST_LOOK
    going = campaign.all_places.filter(state__in=(State.WORKING, State.LAPSED), ran_out_at=None)
    for place in going.filter(expires_at__lte=late).select_related("annotator__user"):
        place.campaign = campaign
        done = done_of(place)
        if done.amount and not done.is_enough:
            note_end_of_work(place, done)


@transaction.atomic
def submit(*, place: Place) -> Place:
    """Somebody has done what was asked, in time or late, and is owed the pay for the task.

    Also who has done a part, once `note_end_of_work` has noted that no work is left. Locks the
    campaign, so that their money goes to nobody else meanwhile. Raises Refused while something is
    left to do.
    """
    _free(lock(place.campaign_id))
    found = Place.objects.select_for_update(of=("self",)).get(pk=place.pk)
    if found.state not in (State.WORKING, State.LAPSED):
        return found
    done = done_of(found)
    if not may_submit(found, done):
        raise Refused(_("Something is left to do."), code="unfinished")
    _end(found, done)
    return found


def _end(place: Place, done: Done) -> None:
    """All is done that could be: submit it. Who could begin nothing gets the pay for the test."""
    campaign, now = place.campaign, timezone.now()
    if not done.is_enough and not done.amount:
        changed_fields(place, {"state": State.SCREENED, "submitted_at": now})
        enter_in_ledger(place, LedgerRow.Kind.EARNED, campaign.pay_test, "test")
        return
    pay = pay_of(place, done)
    part = None if pay == campaign.pay_task else pay
    changed_fields(place, {"state": State.SUBMITTED, "submitted_at": now, "part_pay": part})
    enter_in_ledger(place, LedgerRow.Kind.EARNED, pay, "task")


def enter_in_ledger(place: Place, kind: str, amount: int, cause: str) -> None:
    """Note what somebody is owed or got; each cause once."""
    if amount:
        row = {"amount": amount, "currency": place.campaign.currency}
        LedgerRow.objects.get_or_create(place=place, kind=kind, cause=cause, defaults=row)


@transaction.atomic
def give_back(*, place: Place) -> None:
    """Somebody leaves before the end; the place is free again. No lock, one update."""
    going = Place.objects.filter(pk=place.pk, state__in=GOING)
    going.update(state=State.RETURNED, expires_at=timezone.now())
