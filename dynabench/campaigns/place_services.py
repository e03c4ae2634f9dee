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
    WORKING,
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
from dynabench.campaigns.work_left import offer_next_work
from tasks.models import TaskMember

MOST_CROWD, LEAST_CROWD = 0.2, 2
"""The maximum share of the places for people from one address; this many they may always have."""
CROWD_SECONDS = 7 * 86_400
"""How long a place counts for its address."""
ROLES = {"write": "writer", "judge": "judge", "both": "annotator", "arena": "annotator"}
SOURCES = {"prolific": Annotator.Source.PROLIFIC, "mturk": Annotator.Source.MTURK}
LAST_LOOK = timedelta(minutes=5)
"""How long before somebody who is late loses their place the site checks whether work is left."""
State = Place.State


class NoPlace(Refused):
    """The refusal of somebody who arrives while nobody, or nobody else, may; `code` says why."""


def lock(campaign_id: int) -> Campaign:
    """Return the campaign, which nobody else can lock until the transaction ends."""
    rows = Campaign.objects.select_related("task")
    # no_key: inserting a place, which refers to the campaign, need not wait for the lock.
    return rows.select_for_update(of=("self",), no_key=True).get(pk=campaign_id)


def id_hash(campaign: Campaign, panel_id: str, secret: str = "") -> str:
    """Return the hash that tells a panel's person apart and names nobody.

    It is the same over all campaigns of Prolific or Mechanical Turk. The ids of other panels, whose
    links are alike, tell people apart in one campaign only.
    secret: a former SECRET_KEY.
    """
    scope = campaign.way if campaign.way in SOURCES else f"{campaign.way}-{campaign.pk}"
    hashed = salted_hmac(
        f"campaigns.{scope}", panel_id, secret=secret or settings.SECRET_KEY, algorithm="sha256"
    )
    return hashed.hexdigest()


def _hashes(campaign: Campaign, panel_id: str) -> list[str]:
    """Return the hashes by the current key and by former ones.

    `renew_hashes` may not have replaced those of former keys yet.
    """
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [id_hash(campaign, panel_id, key) for key in keys]


def renew_hashes() -> None:
    """Hash what is kept of panels' ids with the current key; no lock, one update each."""
    for place in Place.objects.exclude(sealed_id="").select_related("campaign").iterator():
        if arrival := ids_of(place):
            hashed = id_hash(place.campaign, arrival.id)
            # Not where the hash was deleted meanwhile, as the person's ids are no longer kept.
            Place.objects.filter(pk=place.pk).exclude(id_hash="").update(id_hash=hashed)


def known_place(campaign: Campaign, arrival: Arrival) -> Place | None:
    """Return the place of somebody of a panel who agreed before; None for a newcomer."""
    places = campaign.all_places.filter(id_hash__in=_hashes(campaign, arrival.id))
    return places.select_related("annotator__user").first()


def _free_expired(campaign: Campaign) -> None:
    """Take back the places of a locked campaign whose time is over.

    1. Before the work: the place ends.
    2. At work: it lapses. The person may submit late, so their money stays reserved.
    3. Late for too long: people who have done all that they could are submitted, so that they are
       paid; for the others the place ends.
    """
    now = timezone.now()
    over = campaign.all_places.filter(expires_at__lte=now)
    # Both updates name the old state, which a person may have left since, by submitting.
    over.filter(state=State.TESTING).update(state=State.OVER)
    over.filter(state=State.WORKING).update(state=State.LAPSED)
    for place in over.filter(state=State.LAPSED, expires_at__lte=now - campaign.late):
        place.campaign = campaign
        done = done_of(place)
        if may_submit(place, done):
            _end_work(place, done)
        else:
            changed_fields(place, {"state": State.OVER, "expires_at": now})


@transaction.atomic
def free_places(*, campaign: Campaign) -> None:
    """Take back the places whose time is over, and open a campaign that was full. Locks it."""
    locked = lock(campaign.pk)
    _free_expired(locked)
    _set_full(locked)


def check_open(campaign: Campaign) -> None:
    """Check that people may come now. Raises NoPlace."""
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
    """Check that a place is free.

    Raises NoPlace; nothing is stored of somebody who comes in vain.
    """
    check_open(campaign)
    # Without a lock first: most people who arrive find a place or a campaign that stays full.
    if not _has_place(campaign):
        free_places(campaign=campaign)
        if not _has_place(campaign):
            raise NoPlace(_("All places are taken."), code="full")


def reserved(campaign: Campaign, more: int = 0) -> int:
    """Return what the people who are in, and `more` people, can cost at most.

    Including what is owed to others anyway.
    """
    people = campaign.all_places.filter(state__in=RESERVED).count() + more
    others = LedgerRow.objects.filter(place__campaign=campaign, kind__in=OWED)
    owed = others.exclude(place__state__in=RESERVED).aggregate(sum=Sum("amount"))["sum"] or 0
    return campaign.pay.reserved(people, campaign.written, owed)


def _has_place(campaign: Campaign) -> bool:
    """Return whether a place is free and there is money for one more person."""
    if campaign.all_places.filter(state__in=TAKEN).count() >= campaign.places:
        return False
    return campaign.budget is None or reserved(campaign, more=1) <= campaign.budget


def _set_full(campaign: Campaign) -> None:
    """Make a campaign full or open again, as its places and its money are now."""
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
    """Give somebody who agreed a place; return it with their personal secret, or "".

    arrival: of a panel; user: of this site. address: their IP address.

    1. Return the place that they took in another tab.
    2. Free the places whose time is over, and check that one is left, also for their address.
    3. Find or make the person, check their qualification, and that no other campaign of the task
    would
       count the same work.
    4. Store the place and make the person a member of the task.

    Somebody who is known of another campaign gets no secret: it opens all that is stored of them,
    and a
    panel's id is not enough for that.
    Locks the campaign, so that no more people get in than there are places and money, and one
    person
    takes one place; then the person, so that no work counts in two campaigns.
    Raises NoPlace, and Refused where there is a newer consent text and as `_check_free`.
    """
    locked = lock(campaign.pk)
    if locked.consents.first() != consent:
        raise Refused(_("The text has changed. Read it again."), code="consent")
    # Panels name a person by an id, this site by an account.
    hashes: list[str] = []
    is_theirs = Q(annotator__user=user)
    if arrival:
        hashes = _hashes(locked, arrival.id)
        is_theirs = Q(id_hash__in=hashes)
    earlier_place = locked.all_places.filter(is_theirs).first()
    if earlier_place:
        return earlier_place, ""
    _free_expired(locked)
    check_place(campaign=locked)
    # Accounts and invitations are one person's each, so their addresses don't matter.
    crowd = Crowd(locked, address if locked.way in PANELS else "")
    crowd.check()
    person = annotator_of(user) if user else _panel_person(locked, hashes)
    # After the person is known, and before anything is stored of them in this campaign.
    check_qualified(locked, person)
    had_place = person.places.exists()
    _check_free(locked, person)
    place, secret = _store_place(locked, person, consent, arrival)
    crowd.add(place)
    # Members keep the role that they have.
    role = {"role": ROLES[locked.kind]}
    TaskMember.objects.get_or_create(task=locked.task, user=person.user, defaults=role)
    _set_full(locked)
    return place, "" if had_place else secret


class Crowd:
    """The people who take part from one address: ids can be invented, addresses less easily.

    Addresses of private networks are left out: a proxy's, behind which everybody is, or a
    laboratory's. Only the cache has a keyed hash of the address, with the places that it took.
    """

    def __init__(self, campaign: Campaign, address: str) -> None:
        """Read the places that people of this address have taken; address: "" for nobody's."""
        network = _network(address)
        self._key = ""
        if network:
            seed = f"{campaign.pk} {network}"
            self._key = f"crowd-{salted_hmac('campaigns.crowd', seed).hexdigest()}"
        self._places = campaign.all_places.filter(pk__in=cache.get(self._key, ()), state__in=GOING)
        self._most = max(LEAST_CROWD, int(campaign.places * MOST_CROWD))

    def check(self) -> None:
        """Check that not too many places of the address are neither submitted nor left.

        Raises NoPlace.
        """
        if self._key and self._places.count() >= self._most:
            raise NoPlace(_("Many people take part from your network at present."), code="busy")

    def add(self, place: Place) -> None:
        """Count one more place of the address."""
        if self._key:
            # Only places that still count, so that the entry stays small.
            pks = [*self._places.values_list("pk", flat=True), place.pk]
            cache.set(self._key, pks, CROWD_SECONDS)


def _network(address: str) -> str:
    """Return what one person has: an IPv4 address, or half of an IPv6 one; "": private."""
    ip = ip_address(address or "::")
    # A server that listens on IPv6 reports IPv4 clients by such addresses.
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if not ip.is_global:
        return ""
    if ip.version == 6:
        # A provider gives each customer 64 bits of addresses.
        return str(ip_network((ip, 64), strict=False))
    return str(ip)


def _check_free(campaign: Campaign, person: Annotator) -> None:
    """Check that the same work would not count in another campaign of the task, too.

    Raises Refused.
    Locks the person, as the campaigns are different rows.
    """
    Annotator.objects.select_for_update(of=("self",), no_key=True).get(pk=person.pk)
    going = person.places.filter(campaign__task=campaign.task, state__in=GOING)
    if other := going.select_related("campaign").first():
        message = _(
            "You still take part in “%(name)s”. Submit your work there, or leave it, first."
        )
        raise Refused(message % {"name": other.campaign.name}, code="another")


def _store_place(
    campaign: Campaign,
    person: Annotator,
    consent: ConsentText,
    arrival: Arrival | None,
) -> tuple[Place, str]:
    """Store somebody's place, and return it with their secret, of which a digest is stored."""
    now, secret = timezone.now(), secrets.token_urlsafe(32)
    place = Place.objects.create(
        campaign=campaign,
        annotator=person,
        state=first_state(campaign, person),
        consent=consent,
        consented_at=now,
        # From the consent on, unless a test comes first, which moves it to its end.
        began_at=now,
        expires_at=now + timedelta(minutes=campaign.minutes),
        id_hash=id_hash(campaign, arrival.id) if arrival else "",
        sealed_id=encrypt(json.dumps(arrival._asdict())) if arrival else "",
        digest=digest_of(secret),
    )
    return place, secret


def first_state(campaign: Campaign, person: Annotator, *, is_asked: bool = False) -> str:
    """Return whether a person begins with the work or with what comes before it.

    Before it are the questions, the tour, and the test for people who have not passed it.
    is_asked: whether the questions are answered.
    """
    # The questions come before the tour and the test.
    if campaign.questions and not is_asked:
        return State.TESTING
    if campaign.tour:
        return State.TESTING
    passed = Qualification.objects.filter(annotator=person, task=campaign.task)
    needs_test = campaign.test_items and not passed.exclude(passed_at=None).exists()
    return State.TESTING if needs_test else State.WORKING


def check_qualified(campaign: Campaign, person: Annotator) -> None:
    """Check that a person has passed the test that the campaign requires. Raises Refused."""
    if campaign.requires is None:
        return
    passed = Qualification.objects.filter(annotator=person, task=campaign.requires)
    if not passed.exclude(passed_at=None).exists():
        message = _("This study is for people who have passed the test of “%(task)s”.")
        raise Refused(message % {"task": campaign.requires.name}, code="qualification")


def _panel_person(campaign: Campaign, hashes: list[str]) -> Annotator:
    """Return the person of this panel, known from another campaign or new.

    A new one gets an account whose address nobody has.
    """
    # Not somebody who has left the site: their pseudonym must not come back to life.
    earlier = Place.objects.filter(id_hash__in=hashes, annotator__user__isnull=False).first()
    if earlier and earlier.annotator:
        return earlier.annotator
    # An address that exists nowhere: such accounts get no mail and can't reset a password.
    user = User.objects.create_user(f"{secrets.token_hex(12)}{PANEL_PEOPLE}")
    annotator = annotator_of(user)
    annotator.source = SOURCES.get(campaign.way, Annotator.Source.PANEL)
    annotator.save(update_fields=["source"])
    return annotator


@transaction.atomic
def agree_again(*, place: Place, consent: ConsentText) -> None:
    """Store that somebody agreed to a new version of the text. No lock, one update.

    Raises Refused where there is a newer one.
    """
    if place.campaign.consents.first() != consent:
        raise Refused(_("The text has changed. Read it again."), code="consent")
    now = timezone.now()
    Place.objects.filter(pk=place.pk).update(consent=consent, consented_at=now)


@transaction.atomic
def come_in(*, user: User) -> None:
    """Prepare the site for somebody whom a panel's id signed in: they read nothing of before.

    The addresses from which they came are forgotten. What they wrote and did not send stays in the
    browser where they wrote it. No lock, an update and two deletions.
    """
    UserSession.objects.filter(user=user).delete()
    # An id can be guessed, so whoever uses it must not read drafts and conversations.
    current = Assignment.objects.filter(annotator__user=user, left_at__isnull=True)
    Conversation.objects.filter(assignment__in=current).delete()
    current.update(draft={})


def note_end_of_work(place: Place, done: Done) -> bool:
    """Return whether the site has no work left for somebody, and note it the first time.

    From then on they may submit what they have done. No lock, one update.
    """
    if offer_next_work(place, done):
        return False
    if place.ran_out_at is None:
        place.ran_out_at = timezone.now()
        # Only the first time counts, also where two tabs find out at once.
        Place.objects.filter(pk=place.pk, ran_out_at=None).update(ran_out_at=place.ran_out_at)
    return True


def note_ends_of_work(campaign: Campaign) -> None:
    """Record that work ran out for people who are about to lose their place.

    These have begun and not finished, and may have closed the page that told them. No lock.
    """
    # Shortly before the end: looking for work is slow, and most people submit in time.
    late = timezone.now() - campaign.late + LAST_LOOK
    going = campaign.all_places.filter(state__in=WORKING, ran_out_at=None)
    for place in going.filter(expires_at__lte=late).select_related("annotator__user"):
        place.campaign = campaign
        done = done_of(place)
        # Who has done nothing earns nothing, and who has done all needs no note.
        if done.amount and not done.is_enough:
            note_end_of_work(place, done)


@transaction.atomic
def submit_place(*, place: Place) -> Place:
    """Submit a person's work, in time or late; they are owed the pay for the task.

    Somebody who has done a part may submit once `note_end_of_work` has noted that no work is left.
    Locks the campaign, so that their money goes to nobody else meanwhile, then the place.
    Raises Refused while something is left to do.
    """
    _free_expired(lock(place.campaign_id))
    # The place's lock keeps people from retracting an example while it is being paid.
    locked = Place.objects.select_for_update(of=("self",)).get(pk=place.pk)
    if locked.state not in WORKING:
        return locked
    done = done_of(locked)
    if not may_submit(locked, done):
        raise Refused(_("Something is left to do."), code="unfinished")
    _end_work(locked, done)
    return locked


def _end_work(place: Place, done: Done) -> None:
    """Submit what somebody has done, and enter their pay in the ledger.

    People who could begin nothing get the pay for the test.
    """
    campaign, now = place.campaign, timezone.now()
    if not done.is_enough and not done.amount:
        changed_fields(place, {"state": State.SCREENED, "submitted_at": now})
        enter_in_ledger(place, LedgerRow.Kind.EARNED, campaign.pay_test, "test")
        return
    pay = pay_of(place, done)
    # null says that the whole was earned.
    part = None if pay == campaign.pay_task else pay
    changed_fields(place, {"state": State.SUBMITTED, "submitted_at": now, "part_pay": part})
    enter_in_ledger(place, LedgerRow.Kind.EARNED, pay, "task")


def enter_in_ledger(place: Place, kind: str, amount: int, cause: str) -> None:
    """Note what somebody is owed or was paid; each cause once."""
    if amount:
        money = {"amount": amount, "currency": place.campaign.currency}
        # By the unique constraint of place, kind and cause, so that nothing is owed twice.
        LedgerRow.objects.get_or_create(place=place, kind=kind, cause=cause, defaults=money)


@transaction.atomic
def give_back(*, place: Place) -> None:
    """Give the place of somebody who leaves before the end back. No lock, one update."""
    # Not what was submitted in another tab since the page was opened.
    unfinished = Place.objects.filter(pk=place.pk, state__in=GOING)
    unfinished.update(state=State.RETURNED, expires_at=timezone.now())
