"""Write places: take one with consent, submit work, leave.

Each function locks the campaign, unless its docstring says otherwise.
"""

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
from core.accounts.models import PANEL_ADDRESS_ENDING, Annotator, User
from core.accounts.services import get_annotator
from core.accounts.tokens import hash_key
from core.data.encryption import encrypt
from core.data.rows import save_changed_fields
from core.errors import Refused
from dynabench.campaigns.models import (
    ACTIVE_STATES,
    WORKING_STATES,
    Campaign,
    ConsentText,
    LedgerRow,
    Place,
    Qualification,
)
from dynabench.campaigns.questions import find_study_door
from dynabench.campaigns.rules.pay import OWED_KINDS, DoneWork
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import (
    RESERVED_STATES,
    TAKEN_STATES,
    are_rounds_over,
    calculate_pay,
    count_done_work,
    decrypt_panel_ids,
    may_submit,
)
from dynabench.campaigns.ways.panels import Arrival
from dynabench.campaigns.work_left import offer_next_work
from tasks.models import TaskMember

MAX_NETWORK_SHARE, MIN_NETWORK_PLACES = 0.2, 2
"""The maximum share of places for one network, and the number of places it may always have."""
NETWORK_SECONDS = 7 * 86_400
"""How many seconds a place counts towards its network's limit."""
ROLE_BY_KIND = {"write": "writer", "judge": "judge", "both": "annotator", "arena": "annotator"}
LAST_CHECK_TIME = timedelta(minutes=5)
"""How long before late people lose their place the site checks whether work is left for them."""
State = Place.State


class NoPlace(Refused):
    """Raised when an arriving person cannot take part. `code` is the reason."""


def lock_campaign(campaign_id: int) -> Campaign:
    """Lock the campaign until the transaction ends, and return it."""
    rows = Campaign.objects.select_related("task")
    # no_key: inserting a place, which refers to the campaign, need not wait for the lock.
    return rows.select_for_update(of=("self",), no_key=True).get(pk=campaign_id)


def hash_panel_id(campaign: Campaign, panel_id: str, secret: str = "") -> str:
    """Return a keyed hash that identifies a panel's participant without revealing the id.

    A person has the same hash in all campaigns of Prolific, and in all of Mechanical Turk. Other
    panels may use the same ids for different people, so their hashes differ between campaigns.
    secret: a former SECRET_KEY, or "" for the current one.
    """
    scope = campaign.way if campaign.way_in.source else f"{campaign.way}-{campaign.pk}"
    keyed_hash = salted_hmac(
        f"campaigns.{scope}", panel_id, secret=secret or settings.SECRET_KEY, algorithm="sha256"
    )
    return keyed_hash.hexdigest()


def _hash_with_all_keys(campaign: Campaign, panel_id: str) -> list[str]:
    """Return the hashes of a panel id with the current key and with former ones.

    Stored hashes use a former key until `renew_hashes` replaces them.
    """
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [hash_panel_id(campaign, panel_id, key) for key in keys]


def renew_hashes() -> None:
    """Rehash the stored panel ids with the current key.

    Takes no lock: one update per place.
    """
    for place in Place.objects.exclude(sealed_id="").select_related("campaign").iterator():
        if arrival := decrypt_panel_ids(place):
            new_hash = hash_panel_id(place.campaign, arrival.id)
            # Not where the hash was deleted meanwhile, as the person's ids are no longer kept.
            Place.objects.filter(pk=place.pk).exclude(id_hash="").update(id_hash=new_hash)


def find_known_place(campaign: Campaign, arrival: Arrival) -> Place | None:
    """Return the place of a panel participant who consented before; None for a newcomer."""
    places = campaign.all_places.filter(id_hash__in=_hash_with_all_keys(campaign, arrival.id))
    return places.select_related("annotator__user").first()


def _free_expired_places(campaign: Campaign) -> None:
    """Free the expired places of a locked campaign.

    1. A place whose time ended before the work: the place ends.
    2. A place whose time ended during the work: the place lapses. The person may submit late, so
       their money stays reserved.
    3. A place that lapsed too long ago: if the person has done all that was possible, the
       work is submitted and thus paid; otherwise the place ends.
    """
    now = timezone.now()
    expired_places = campaign.all_places.filter(expires_at__lte=now)
    # Both updates name the old state, which a person may have left since, by submitting.
    expired_places.filter(state=State.TESTING).update(state=State.OVER)
    expired_places.filter(state=State.WORKING).update(state=State.LAPSED)
    for place in expired_places.filter(
        state=State.LAPSED, expires_at__lte=now - campaign.late_time
    ):
        place.campaign = campaign
        done_work = count_done_work(place)
        if may_submit(place, done_work):
            _end_work(place, done_work)
        else:
            save_changed_fields(place, {"state": State.OVER, "expires_at": now})


@transaction.atomic
def free_places(*, campaign: Campaign) -> None:
    """Free the expired places and update whether the campaign is full.

    Locks the campaign.
    """
    locked_campaign = lock_campaign(campaign.pk)
    _free_expired_places(locked_campaign)
    _update_full_state(locked_campaign)


def check_open(campaign: Campaign) -> None:
    """Check that the campaign admits people now. Raises NoPlace."""
    now = timezone.now()
    if campaign.state not in (Campaign.State.OPEN, Campaign.State.FULL):
        raise NoPlace(_("This study is closed."), code=campaign.state)
    if are_rounds_over(campaign):
        raise NoPlace(_("This study has ended."), code="closed")
    if campaign.opens_at and now < campaign.opens_at:
        raise NoPlace(_("This study hasn't started yet."), code="early")
    if campaign.closes_at and now >= campaign.closes_at:
        raise NoPlace(_("This study has ended."), code="closed")


def check_place(*, campaign: Campaign) -> None:
    """Check that the campaign is open and has a free place.

    Stores nothing about the person. Locks the campaign if it has no free place. Raises
    NoPlace.
    """
    check_open(campaign)
    # Without a lock first: most people who arrive find a place or a campaign that stays full.
    if not _has_place(campaign):
        free_places(campaign=campaign)
        if not _has_place(campaign):
            raise NoPlace(_("All places are taken."), code="full")


def calculate_reserved_cost(campaign: Campaign, extra_people: int = 0) -> int:
    """Return the maximum cost of the current participants and of `extra_people` others.

    Includes what is owed to former participants.
    """
    people = campaign.all_places.filter(state__in=RESERVED_STATES).count() + extra_people
    other_rows = LedgerRow.objects.filter(place__campaign=campaign, kind__in=OWED_KINDS)
    owed_to_others = (
        other_rows.exclude(place__state__in=RESERVED_STATES).aggregate(sum=Sum("amount"))["sum"]
        or 0
    )
    return campaign.pay.compute_reserved_cost(people, campaign.max_paid_examples, owed_to_others)


def _has_place(campaign: Campaign) -> bool:
    """Return whether a place is free and the budget allows one more person."""
    if campaign.all_places.filter(state__in=TAKEN_STATES).count() >= campaign.places:
        return False
    return (
        campaign.budget is None
        or calculate_reserved_cost(campaign, extra_people=1) <= campaign.budget
    )


def _update_full_state(campaign: Campaign) -> None:
    """Set an open or full campaign to open or full, according to its free places and budget."""
    if campaign.state in (Campaign.State.OPEN, Campaign.State.FULL):
        new_state = Campaign.State.OPEN if _has_place(campaign) else Campaign.State.FULL
        save_changed_fields(campaign, {"state": new_state})


@transaction.atomic
def take_place(
    *,
    campaign: Campaign,
    consent: ConsentText,
    arrival: Arrival | None = None,
    user: User | None = None,
    address: str = "",
) -> tuple[Place, str]:
    """Give a consenting person a place; return the place and their personal secret, or "".

    arrival: a panel participant's ids. user: the account of a person from this site. address: the
    person's IP address.

    1. Return the place that they took in another tab.
    2. Free the expired places, and check that a place is free and that not too many people
       share the address.
    3. Find or create the person. Check their qualification, and that the same work would
       not count in another campaign of the task.
    4. Store the place and make the person a member of the task.

    Somebody known from another campaign gets no secret: it gives access to everything
    stored about them, and a panel id is not sufficient proof of identity.
    Locks the campaign, so that places and budget are not exceeded and nobody gets two
    places; then the person, so that no work counts in two campaigns.
    Raises NoPlace, and Refused if the consent text has changed, the person lacks a qualification
    (`check_qualified`), takes part in another campaign of the task (`_check_no_other_place`), or
    was not drawn into this arm of a study.
    """
    locked_campaign = lock_campaign(campaign.pk)
    # Under the lock, as a study that freezes at this moment makes the campaign its arm.
    door = find_study_door(locked_campaign, arrival, user)
    if locked_campaign.consents.first() != consent:
        raise Refused(_("The consent text has changed. Please read it again."), code="consent")
    # Panels name a person by an id, this site by an account.
    hashes: list[str] = []
    is_own_place = Q(annotator__user=user)
    if arrival:
        hashes = _hash_with_all_keys(locked_campaign, arrival.id)
        is_own_place = Q(id_hash__in=hashes)
    earlier_place = locked_campaign.all_places.filter(is_own_place).first()
    if earlier_place:
        return earlier_place, ""
    if door:
        raise Refused(_("Open the study's own link first."), code="draw")
    _free_expired_places(locked_campaign)
    check_place(campaign=locked_campaign)
    # Accounts and invitations are one person's each, so their addresses don't matter.
    network_limit = NetworkLimit(locked_campaign, address if locked_campaign.way_in.panel else "")
    network_limit.check()
    person = get_annotator(user) if user else _find_or_create_person(locked_campaign, hashes)
    # After the person is known, and before anything is stored of them in this campaign.
    check_qualified(locked_campaign, person)
    had_place = person.places.exists()
    _check_no_other_place(locked_campaign, person)
    place, secret = _store_place(locked_campaign, person, consent, arrival)
    network_limit.add(place)
    # Members keep the role that they have.
    role = {"role": ROLE_BY_KIND[locked_campaign.kind]}
    TaskMember.objects.get_or_create(task=locked_campaign.task, user=person.user, defaults=role)
    _update_full_state(locked_campaign)
    return place, "" if had_place else secret


class NetworkLimit:
    """A limit on participants who share an IP address, because panel ids are easily invented.

    Addresses of private networks are ignored: they belong to a laboratory, or to a proxy that
    everybody uses. Only a keyed hash of an address is stored, in the cache, with the places taken
    from it.
    """

    def __init__(self, campaign: Campaign, address: str) -> None:
        """Find the campaign's active places that were taken from the address's network.

        An empty `address` disables the limit.
        """
        network = _find_network(address)
        self._key = ""
        if network:
            seed = f"{campaign.pk} {network}"
            self._key = f"crowd-{salted_hmac('campaigns.crowd', seed).hexdigest()}"
        self._places = campaign.all_places.filter(
            pk__in=cache.get(self._key, ()), state__in=ACTIVE_STATES
        )
        self._max_places = max(MIN_NETWORK_PLACES, int(campaign.places * MAX_NETWORK_SHARE))

    def check(self) -> None:
        """Check that the network does not have too many places in progress.

        Raises NoPlace.
        """
        if self._key and self._places.count() >= self._max_places:
            raise NoPlace(
                _("Too many people from your network are taking part right now. Try again later."),
                code="busy",
            )

    def add(self, place: Place) -> None:
        """Count another place for the network."""
        if self._key:
            # Only places that still count, so that the entry stays small.
            pks = [*self._places.values_list("pk", flat=True), place.pk]
            cache.set(self._key, pks, NETWORK_SECONDS)


def _find_network(address: str) -> str:
    """Return one customer's network: an IPv4 address or an IPv6 /64. "" if private or empty."""
    ip = ip_address(address or "::")
    # A server that listens on IPv6 reports IPv4 clients by such addresses.
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if not ip.is_global:
        return ""
    if ip.version == 6:
        # A provider gives each customer 64 bits of addresses.
        return str(ip_network((ip, 64), strict=False))
    return str(ip)


def _check_no_other_place(campaign: Campaign, person: Annotator) -> None:
    """Check that the person does not take part in another campaign of the task.

    The same work must not count twice. Locks the person, because the campaigns are
    different rows. Raises Refused.
    """
    Annotator.objects.select_for_update(of=("self",), no_key=True).get(pk=person.pk)
    active_places = person.places.filter(campaign__task=campaign.task, state__in=ACTIVE_STATES)
    if other_place := active_places.select_related("campaign").first():
        message = _(
            "You are still taking part in “%(name)s”. Submit your work there, or leave that "
            "study first."
        )
        raise Refused(message % {"name": other_place.campaign.name}, code="another")


def _store_place(
    campaign: Campaign,
    person: Annotator,
    consent: ConsentText,
    arrival: Arrival | None,
) -> tuple[Place, str]:
    """Store a person's place, with a digest of a new secret; return the place and the secret."""
    now, secret = timezone.now(), secrets.token_urlsafe(32)
    place = Place.objects.create(
        campaign=campaign,
        annotator=person,
        state=choose_first_state(campaign, person),
        consent=consent,
        consented_at=now,
        # From the consent on, unless a test comes first, which moves it to its end.
        began_at=now,
        expires_at=now + timedelta(minutes=campaign.minutes),
        id_hash=hash_panel_id(campaign, arrival.id) if arrival else "",
        sealed_id=encrypt(json.dumps(arrival._asdict())) if arrival else "",
        digest=hash_key(secret),
    )
    return place, secret


def choose_first_state(campaign: Campaign, person: Annotator, *, is_asked: bool = False) -> str:
    """Return the initial state of a person's place: TESTING or WORKING.

    TESTING if questions, a tour, or a test that the person has not passed come before the work.
    is_asked: whether the questions are already answered.
    """
    # The questions come before the tour and the test.
    if not is_asked and read_questionnaire(campaign.questions).fields:
        return State.TESTING
    if campaign.tour:
        return State.TESTING
    passed_tests = Qualification.objects.filter(annotator=person, task=campaign.task)
    needs_test = campaign.test_items and not passed_tests.exclude(passed_at=None).exists()
    return State.TESTING if needs_test else State.WORKING


def check_qualified(campaign: Campaign, person: Annotator) -> None:
    """Check that a person has passed the test that the campaign requires. Raises Refused."""
    if campaign.requires is None:
        return
    passed_tests = Qualification.objects.filter(annotator=person, task=campaign.requires)
    if not passed_tests.exclude(passed_at=None).exists():
        message = _("To take part, first pass the test of “%(task)s”.")
        raise Refused(message % {"task": campaign.requires.name}, code="qualification")


def _find_or_create_person(campaign: Campaign, hashes: list[str]) -> Annotator:
    """Return the person whom another campaign knows by one of the hashes, or create one.

    A new person gets an account with an address that cannot receive email.
    """
    # Not somebody who has left the site: their pseudonym must not come back to life.
    earlier_place = Place.objects.filter(id_hash__in=hashes, annotator__user__isnull=False).first()
    if earlier_place and earlier_place.annotator:
        return earlier_place.annotator
    # An address that exists nowhere: such accounts get no mail and can't reset a password.
    user = User.objects.create_user(f"{secrets.token_hex(12)}{PANEL_ADDRESS_ENDING}")
    annotator = get_annotator(user)
    annotator.source = campaign.way_in.source or Annotator.Source.PANEL
    annotator.save(update_fields=["source"])
    return annotator


@transaction.atomic
def agree_again(*, place: Place, consent: ConsentText) -> None:
    """Store the person's consent to a new version of the text.

    Takes no lock: one update. Raises Refused if there is a newer version.
    """
    if place.campaign.consents.first() != consent:
        raise Refused(_("The consent text has changed. Please read it again."), code="consent")
    now = timezone.now()
    Place.objects.filter(pk=place.pk).update(consent=consent, consented_at=now)


@transaction.atomic
def hide_earlier_work(*, user: User) -> None:
    """Delete drafts and conversations of open assignments when a person signs in by a panel id.

    Somebody else may have guessed the id. Also deletes the list of the account's sessions, which
    shows IP addresses. Unsent text stays in the browser where it was written. Takes no lock: one
    update and two deletions.
    """
    UserSession.objects.filter(user=user).delete()
    # An id can be guessed, so whoever uses it must not read drafts and conversations.
    current_assignments = Assignment.objects.filter(annotator__user=user, left_at__isnull=True)
    Conversation.objects.filter(assignment__in=current_assignments).delete()
    current_assignments.update(draft={})


def note_end_of_work(place: Place, done_work: DoneWork) -> bool:
    """Return whether the site has no work left for the person; record when that is first found.

    From then on they may submit what they have done. Takes no lock: one update.
    """
    if offer_next_work(place, done_work):
        return False
    if place.ran_out_at is None:
        place.ran_out_at = timezone.now()
        # Only the first time counts, also where two tabs find out at once.
        Place.objects.filter(pk=place.pk, ran_out_at=None).update(ran_out_at=place.ran_out_at)
    return True


def note_ends_of_work(campaign: Campaign) -> None:
    """Record that work ran out for people who are about to lose their place.

    This concerns people who have begun but not finished: they may have closed the page that
    would have said so. Takes no lock.
    """
    # Shortly before the end: looking for work is slow, and most people submit in time.
    latest_end = timezone.now() - campaign.late_time + LAST_CHECK_TIME
    working_places = campaign.all_places.filter(state__in=WORKING_STATES, ran_out_at=None)
    for place in working_places.filter(expires_at__lte=latest_end).select_related(
        "annotator__user"
    ):
        place.campaign = campaign
        done_work = count_done_work(place)
        # Who has done nothing earns nothing, and who has done all needs no note.
        if done_work.has_begun and not done_work.is_enough:
            note_end_of_work(place, done_work)


@transaction.atomic
def submit_place(*, place: Place) -> Place:
    """Submit a person's work, on time or late, and credit the pay for the task.

    Returns the place, unchanged if the person is not working. Partial work may be submitted once
    `note_end_of_work` has recorded that no work is left.
    Locks the campaign, so that the money stays reserved for them, then the place. Raises
    Refused while work is left to do.
    """
    _free_expired_places(lock_campaign(place.campaign_id))
    # The place's lock keeps people from retracting an example while it is being paid.
    locked_place = Place.objects.select_for_update(of=("self",)).get(pk=place.pk)
    if locked_place.state not in WORKING_STATES:
        return locked_place
    done_work = count_done_work(locked_place)
    if not may_submit(locked_place, done_work):
        raise Refused(
            _("Your work isn't finished yet. Complete the remaining items, then submit."),
            code="unfinished",
        )
    if lacks_closing_answers(locked_place):
        raise Refused(_("Answer the last questions first."), code="questions")
    _end_work(locked_place, done_work)
    return locked_place


def lacks_closing_answers(place: Place) -> bool:
    """Return whether questions after the work are not answered yet."""
    answers = place.answers or {}
    # Questions that may stay open are stored without a value once they were asked.
    after = read_questionnaire(place.campaign.questions).after
    return any(question.name not in answers for question in after)


def _end_work(place: Place, done_work: DoneWork) -> None:
    """Mark a place as submitted and enter its pay in the ledger.

    People who could not begin any work get the pay for the test.
    """
    now = timezone.now()
    pay = calculate_pay(place, done_work)
    if not done_work.is_paid_as_work:
        save_changed_fields(place, {"state": State.SCREENED, "submitted_at": now})
        enter_in_ledger(place, LedgerRow.Kind.EARNED, pay, "test")
        return
    # null says that the whole was earned.
    part_pay = None if pay == place.campaign.pay_task else pay
    save_changed_fields(
        place, {"state": State.SUBMITTED, "submitted_at": now, "part_pay": part_pay}
    )
    enter_in_ledger(place, LedgerRow.Kind.EARNED, pay, "task")


def enter_in_ledger(place: Place, kind: str, amount: int, cause: str) -> None:
    """Add a ledger row for money owed or paid to a person, once per kind and cause.

    Does nothing if the amount is 0.
    """
    if amount:
        money = {"amount": amount, "currency": place.campaign.currency}
        # By the unique constraint of place, kind and cause, so that nothing is owed twice.
        LedgerRow.objects.get_or_create(place=place, kind=kind, cause=cause, defaults=money)


@transaction.atomic
def give_back_place(*, place: Place) -> None:
    """End the place of a person who leaves early, so that it becomes free.

    Takes no lock: one update.
    """
    # Not what was submitted in another tab since the page was opened.
    unfinished_places = Place.objects.filter(pk=place.pk, state__in=ACTIVE_STATES)
    unfinished_places.update(state=State.RETURNED, expires_at=timezone.now())
