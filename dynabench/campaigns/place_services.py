"""Writes about places: held, taken with consent, submitted, left. Locks are of the campaign."""

import json
import secrets
from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from annotation.models import Assignment, Conversation
from dynabench.accounts.models import Annotator, User
from dynabench.accounts.services import annotator_of
from dynabench.accounts.tokens import digest_of
from dynabench.campaigns.models import (
    PANEL_PEOPLE,
    Campaign,
    ConsentText,
    LedgerRow,
    Place,
    Qualification,
)
from dynabench.campaigns.rules.pay import has_room
from dynabench.campaigns.selectors import done_of, ids_of
from dynabench.campaigns.ways.panels import Arrival
from dynabench.lib.encryption import encrypt
from dynabench.lib.errors import Refused
from dynabench.lib.rows import changed_fields
from tasks.models import TaskMember

HOLD = timedelta(minutes=15)
"""So long a place waits for a yes."""
TAKEN = ("held", "testing", "working", "submitted", "approved", "rejected")
GOING = ("testing", "working", "lapsed")
"""What people do counts, or may count yet."""
ROLES = {"write": "writer", "judge": "judge", "both": "annotator", "arena": "annotator"}
SOURCES = {"prolific": Annotator.Source.PROLIFIC, "mturk": Annotator.Source.MTURK}
State = Place.State


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


@transaction.atomic
def hold_place(*, campaign: Campaign) -> Place | None:
    """Hold a place for somebody of whom nothing is stored yet; None: all are taken.

    Locks the campaign, so that no more people get in than there are places and money. Raises
    Refused where nobody may come.
    """
    locked = lock(campaign.pk)
    _free(locked)
    check_open(locked)
    if not _has_place(locked):
        _set_state(locked, Campaign.State.FULL)
        return None
    place = Place.objects.create(campaign=locked, expires_at=timezone.now() + HOLD)
    _set_state(locked, Campaign.State.OPEN if _has_place(locked) else Campaign.State.FULL)
    return place


def _free(campaign: Campaign) -> None:
    """Take back the places whose time is over; of those that were only held nothing stays."""
    over = campaign.all_places.filter(expires_at__lte=timezone.now())
    over.filter(state=State.HELD).delete()
    over.filter(state__in=(State.TESTING, State.WORKING)).update(state=State.LAPSED)


@transaction.atomic
def free_places(*, campaign: Campaign) -> None:
    """Take back the places whose time is over, and open a campaign that was full. Locks it."""
    locked = lock(campaign.pk)
    _free(locked)
    if locked.state == Campaign.State.FULL and _has_place(locked):
        _set_state(locked, Campaign.State.OPEN)


def check_open(campaign: Campaign) -> None:
    """Raises Refused while nobody may come."""
    now = timezone.now()
    if campaign.state not in (Campaign.State.OPEN, Campaign.State.FULL):
        raise Refused(_("This study takes nobody at present."), code=campaign.state)
    if campaign.opens_at and now < campaign.opens_at:
        raise Refused(_("This study has not begun yet."), code="early")
    if campaign.closes_at and now >= campaign.closes_at:
        raise Refused(_("This study is over."), code="closed")


def _has_place(campaign: Campaign) -> bool:
    taken = campaign.all_places.filter(state__in=TAKEN).count()
    if taken >= campaign.places:
        return False
    written = campaign.each if campaign.kind in ("write", "both") else 0
    return has_room(campaign.pay, campaign.budget, taken, written)


def _set_state(campaign: Campaign, state: str) -> None:
    if campaign.state != state:
        campaign.state = state
        campaign.save(update_fields=["state"])


@transaction.atomic
def take_place(
    *,
    place: Place,
    consent: ConsentText,
    arrival: Arrival | None,
    user: User | None,
) -> tuple[Place, str]:
    """Somebody agreed: from now on they are known, by a pseudonym; returns a personal secret, too.

    arrival: of a panel; user: of this site. Who agreed before, in another tab, keeps that place.
    Who is known of another campaign gets no secret: it opens all that is stored of them, and a
    panel's id alone must not. Locks the campaign, so that one person takes one place, then the
    person, so that no work counts in two campaigns. Raises Refused once the hold is over and the
    place is another's, where there is a newer consent text, and as `_check_free`.
    """
    locked = lock(place.campaign_id)
    if locked.consents.first() != consent:
        raise Refused(_("The text has changed. Read it again."), code="consent")
    hashes = _hashes(locked, arrival.id) if arrival else []
    one_of = Q(id_hash__in=hashes) if arrival else Q(annotator__user=user)
    if before := locked.all_places.filter(one_of).first():
        Place.objects.filter(pk=place.pk, state=State.HELD).delete()
        return before, ""
    found = locked.all_places.filter(pk=place.pk, state=State.HELD).first()
    if found is None:
        raise Refused(_("Your place was held for 15 minutes. Come again."), code="lapsed")
    person = annotator_of(user) if user else _panel_person(locked, hashes)
    check_qualified(locked, person)
    is_known = person.places.exists()
    _check_free(locked, person)
    secret = _give(found, locked, person, consent, arrival)
    role = {"role": ROLES[locked.kind]}
    TaskMember.objects.get_or_create(task=locked.task, user=person.user, defaults=role)
    return found, "" if is_known else secret


def _check_free(campaign: Campaign, person: Annotator) -> None:
    """Raises Refused while the same work would count in another campaign of the task, too."""
    Annotator.objects.select_for_update(of=("self",), no_key=True).get(pk=person.pk)
    going = person.places.filter(campaign__task=campaign.task, state__in=GOING)
    if other := going.select_related("campaign").first():
        said = _("You still take part in “%(name)s”. Submit your work there, or leave it, first.")
        raise Refused(said % {"name": other.campaign.name}, code="another")


def _give(
    place: Place,
    campaign: Campaign,
    person: Annotator,
    consent: ConsentText,
    arrival: Arrival | None,
) -> str:
    """Make a held place somebody's; returns their secret."""
    now, secret = timezone.now(), secrets.token_urlsafe(32)
    values = {
        "annotator": person,
        "state": first_state(campaign, person),
        "consent": consent,
        "consented_at": now,
        "began_at": now,
        "expires_at": now + timedelta(minutes=campaign.minutes),
        "id_hash": id_hash(campaign, arrival.id) if arrival else "",
        "sealed_id": encrypt(json.dumps(arrival._asdict())) if arrival else "",
        "digest": digest_of(secret),
    }
    changed_fields(place, values)
    return secret


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
    """Somebody agreed to a new version; no lock, one update."""
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


@transaction.atomic
def submit(*, place: Place) -> Place:
    """Somebody has done what was asked, in time or late, and is owed the pay for the task.

    Locks the campaign. Raises Refused while something is left to do.
    """
    campaign = lock(place.campaign_id)
    found = Place.objects.select_for_update(of=("self",)).get(pk=place.pk)
    if found.state not in (State.WORKING, State.LAPSED):
        return found
    if not done_of(found).is_enough:
        raise Refused(_("Something is left to do."), code="unfinished")
    found.state, found.submitted_at = State.SUBMITTED, timezone.now()
    found.save(update_fields=["state", "submitted_at"])
    enter_in_ledger(found, LedgerRow.Kind.EARNED, campaign.pay_task, "task")
    return found


def enter_in_ledger(place: Place, kind: str, amount: int, cause: str) -> None:
    """Note what somebody is owed or got; each cause once."""
    if amount:
        row = {"amount": amount, "currency": place.campaign.currency}
        LedgerRow.objects.get_or_create(place=place, kind=kind, cause=cause, defaults=row)


@transaction.atomic
def give_back(*, place: Place) -> None:
    """Somebody leaves before the end, or says no; the place is free again. Locks the place.

    Of who never agreed nothing stays.
    """
    found = Place.objects.select_for_update(of=("self",)).filter(pk=place.pk).first()
    if found is None:
        return
    if found.state == State.HELD:
        found.delete()
    elif found.state in (State.TESTING, State.WORKING, State.LAPSED):
        found.state = State.RETURNED
        found.save(update_fields=["state"])
