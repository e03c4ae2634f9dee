"""Paying by a panel's API: never twice, never forgotten, whatever dies in between.

A row is stored before the panel is asked. Who is killed leaves it PREPARED, where no money moved,
or SENT: then the panel is read, and what it does not tell is UNCLEAR. No call is in a transaction.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Min, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.accounts.models import User
from core.accounts.services import log
from core.data.encryption import Unreadable, decrypt
from core.errors import Invalid, Refused
from dynabench.campaigns.models import APPROVES_AFTER, Campaign, LedgerRow, Payment, Place
from dynabench.campaigns.place_services import enter_in_ledger
from dynabench.campaigns.selectors import awaiting, ids_of, in_payment, rows_of
from dynabench.campaigns.services import lock_owned
from dynabench.campaigns.ways.mturk import MechanicalTurk
from dynabench.campaigns.ways.panels import Arrival
from dynabench.campaigns.ways.paying import Api, Bonus, PanelRefused, PanelUnclear
from dynabench.campaigns.ways.prolific import Prolific
from tasks.mails import mail_members
from tasks.permissions import OWNERS

BATCH = 20
WARNING = timedelta(days=3)
"""So long before a panel approves by itself its owner is warned, or half of the time."""
LEASE = timedelta(minutes=5)
"""Far above the time of all calls of a batch: after it nobody is sending any more."""
REASON_LENGTH = 100
"""Prolific's least for a rejection."""
State, Kind = Payment.State, Payment.Kind
Paid = Sequence[tuple[Payment, Arrival]]


def api_of(campaign: Campaign) -> Api | None:
    """The panel's API, where the owner gave a token for it that the site's key still reads."""
    try:
        token = decrypt(campaign.sealed_token)
    except Unreadable:
        return None
    if token and campaign.way == Campaign.Way.PROLIFIC:
        hosts = settings.PANEL_PRIVATE_HOSTS
        return Prolific(settings.PROLIFIC_URL, token, campaign.study, campaign.currency, hosts)
    if token and campaign.way == Campaign.Way.MTURK:
        return MechanicalTurk(settings.MTURK_URL, token)
    return None


@transaction.atomic
def plan_bonuses(*, campaign: Campaign, actor: User) -> int:
    """Plan a bonus for everybody who is owed one; returns for how many.

    Locks the campaign. Who has an open payment gets the rest another time. Raises Refused.
    """
    locked = lock_owned(campaign, actor)
    open_ones = in_payment(locked)
    planned = []
    for row in rows_of(locked):
        owed = row.owed if _takes_bonus(row.place, locked) else 0
        if owed > 0 and row.place.pk not in open_ones and row.place.sealed_id:
            planned.append(Payment(place=row.place, kind=Kind.BONUS, amount=owed))
    Payment.objects.bulk_create(planned)
    log(actor, "campaign.bonuses-planned", locked.task, campaign=locked.slug, n=len(planned))
    return len(planned)


def _takes_bonus(place: Place, campaign: Campaign) -> bool:
    """Whether somebody gets what they are owed as a bonus: once approved, or for a part at once."""
    is_part = campaign.pays_parts_as_bonus and place.part_pay is not None
    wanted = Place.State.SUBMITTED if is_part else Place.State.APPROVED
    return place.state == wanted


@transaction.atomic
def plan_decision(*, place: Place, actor: User, approve: bool, reason: str = "") -> None:
    """Plan to approve or reject at the panel what somebody submitted. Raises Refused, Invalid."""
    campaign = lock_owned(place.campaign, actor)
    if campaign.pays_parts_as_bonus and place.part_pay is not None:
        raise Refused(_("This person gets a part of the pay, as a bonus."), code="part")
    if not approve and len(reason) < REASON_LENGTH:
        said = _("Give a reason of at least %(n)d characters; the person reads it.")
        raise Invalid(said % {"n": REASON_LENGTH}, field="reason")
    kind = Kind.APPROVE if approve else Kind.REJECT
    try:
        with transaction.atomic():
            Payment.objects.create(place=place, kind=kind, reason=reason)
    except IntegrityError:
        raise Refused(_("Another payment of this person is not over yet."), code="open") from None
    log(actor, f"campaign.{kind}-planned", campaign.task, place=place.pk)


def warn_of_approvals() -> int:
    """Mail owners, once for each person, before the panel approves by itself; how many are named.

    No lock: of several workers, the one whose update hits mails.
    """
    after = Q(approval_days__gt=0) | Q(way__in=APPROVES_AFTER)
    waiting = Q(all_places__state=Place.State.SUBMITTED, all_places__warned_at=None)
    first = Min("all_places__submitted_at", filter=waiting)
    found = Campaign.objects.filter(after).annotate(first=first).exclude(first=None)
    return sum(_warn(campaign) for campaign in found.select_related("task"))


@transaction.atomic
def _warn(campaign: Campaign) -> int:
    now, after = timezone.now(), campaign.approves_after or WARNING
    near = awaiting(campaign).filter(
        warned_at=None, submitted_at__lte=now - after + min(WARNING, after / 2)
    )
    first = near.aggregate(first=Min("submitted_at"))["first"]
    if first is None or not (n := near.update(warned_at=now)):
        return 0
    page = reverse("own-campaigns:campaign", args=[campaign.task.code, campaign.slug])
    words = {"n": n, "name": campaign.name, "at": date_format(first + after, "j M, H:i")}
    lines = [
        ngettext(
            "%(n)d submission to “%(name)s” waits for your decision.",
            "%(n)d submissions to “%(name)s” wait for your decision.",
            n,
        ),
        _("The panel approves by itself from %(at)s (UTC) on."),
    ]
    text = "\n".join([*(line % words for line in lines), settings.SITE_URL + page, ""])
    subject = _("The panel approves soon: “%(name)s”") % words
    mail_members(campaign.task, OWNERS, subject, text)
    return n


@transaction.atomic
def resolve(*, payment: Payment, actor: User, is_paid: bool) -> None:
    """The owner has looked at the panel and says what became of an unclear payment.

    No lock: one update on condition. Raises Refused.
    """
    campaign = lock_owned(payment.place.campaign, actor)
    unclear = Payment.objects.filter(pk=payment.pk, state=State.UNCLEAR)
    if not unclear.update(state=State.SENT if is_paid else State.REFUSED):
        raise Refused(_("This payment is not unclear any more."), code="state")
    if is_paid:
        payment.refresh_from_db()
        _end(payment)
    log(actor, "campaign.payment-resolved", campaign.task, payment=payment.pk, is_paid=is_paid)


def send_payments(*, campaign: Campaign) -> int:
    """Read back what was left behind, then send what is planned; returns how many ended.

    Several processes may do it at once: each row is claimed by an update that hits once.
    """
    api = api_of(campaign)
    if api is None:
        return 0
    ended = _resume(campaign, api)
    for payment in _open(campaign).filter(state=State.PLANNED).exclude(kind=Kind.BONUS)[:BATCH]:
        ended += _decide(api, payment)
    return ended + _send_bonuses(campaign, api)


def _resume(campaign: Campaign, api: Api) -> int:
    """What a killed process left: prepared is planned again, sent is read back."""
    old = _open(campaign).filter(sent_at__lte=timezone.now() - LEASE)
    old.filter(state=State.PREPARED).update(state=State.PLANNED, prepared="")
    return sum(_read_back(api, one, is_last=True) for one in old.filter(state=State.SENT))


def _read_back(api: Api, payment: Payment, *, is_last: bool = False) -> bool:
    """Look whether it happened; whether it is over. A panel may show it only after a while.

    is_last: what it does not show now is unclear.
    """
    arrival = ids_of(payment.place)
    if arrival is None:
        return _set_unclear(payment, "The panel's ids were deleted.")
    try:
        if payment.kind != Kind.BONUS:
            status = api.status(arrival)
            wanted = "approved" if payment.kind == Kind.APPROVE else "rejected"
            if status == wanted:
                return _end(payment)
            return _again(payment) if status == "waiting" else _refuse(payment, status)
        if api.bonuses(arrival) == (payment.before or 0) + payment.amount:
            return _end(payment)
    except PanelRefused as error:
        return _set_unclear(payment, str(error))
    except PanelUnclear:
        return False  # the panel is away: it is read again later
    if api.knows_keys:
        return _again(payment)
    return is_last and _set_unclear(payment, "The panel shows no such bonus.")


def _decide(api: Api, payment: Payment) -> bool:
    """Approve or reject one; asked twice, a panel does it once."""
    arrival = ids_of(payment.place)
    if arrival is None:
        return _refuse(payment, "The panel's ids were deleted.")
    if not _claim(payment, State.PLANNED, State.SENT):
        return False
    try:
        api.decide(arrival, approve=payment.kind == Kind.APPROVE, reason=payment.reason)
    except (PanelRefused, PanelUnclear):
        return _read_back(api, payment)
    return _end(payment)


def _send_bonuses(campaign: Campaign, api: Api) -> int:
    """Prepare a batch, then pay it; each step is stored before it is asked for."""
    batch = []
    for payment in _open(campaign).filter(state=State.PLANNED, kind=Kind.BONUS)[:BATCH]:
        arrival = ids_of(payment.place)
        if arrival is None:
            _refuse(payment, "The panel's ids were deleted.")
            continue
        try:
            before = api.bonuses(arrival)
        except PanelRefused as error:
            _refuse(payment, str(error))
        except PanelUnclear:
            return 0  # nothing was sent
        else:
            if _claim(payment, State.PLANNED, State.PREPARED, before=before):
                batch.append((payment, arrival))
    return _pay(api, batch) if batch else 0


def _pay(api: Api, batch: Paid) -> int:
    bonuses = [Bonus(arrival, one.amount, str(one.key)) for one, arrival in batch]
    try:
        prepared = api.set_up(bonuses)
    except PanelRefused as error:
        return sum(_refuse(one, str(error)) for one, _arrival in batch)
    except PanelUnclear:
        for one, _arrival in batch:
            _again(one)  # no money moves before it is paid
        return 0
    mine = [
        (one, bonus)
        for (one, _arrival), bonus in zip(batch, bonuses, strict=True)
        if _claim(one, State.PREPARED, State.SENT, prepared=prepared)
    ]
    if len(mine) < len(batch):  # another process took some over: nobody pays this preparation
        for one, _bonus in mine:
            _again(one)
        return 0
    groups = [mine] if prepared else [[one] for one in mine]
    return sum(_pay_group(api, prepared, group) for group in groups)


def _pay_group(api: Api, prepared: str, group: list[tuple[Payment, Bonus]]) -> int:
    """Pay what the panel takes as one; where its answer tells nothing, read it back."""
    try:
        api.pay(prepared, [bonus for _one, bonus in group], _("Thank you for your work."))
    except PanelRefused as error:
        return sum(_refuse(one, str(error)) for one, _bonus in group)
    except PanelUnclear:
        return sum(_read_back(api, one) for one, _bonus in group)
    return sum(_end(one) for one, _bonus in group)


def _claim(payment: Payment, old: str, new: str, **more: object) -> bool:
    """Go on to a state; False where another process did."""
    values = {"state": new, "sent_at": timezone.now(), **more}
    if not Payment.objects.filter(pk=payment.pk, state=old).update(**values):
        return False
    for name, value in values.items():
        setattr(payment, name, value)
    return True


@transaction.atomic
def _end(payment: Payment) -> bool:
    """It happened: the ledger and the place say so, in one transaction. True where it is new."""
    going = Payment.objects.filter(pk=payment.pk, state=State.SENT)
    if not going.update(state=State.DONE, said=""):
        return False
    place = payment.place
    if payment.kind == Kind.BONUS:
        enter_in_ledger(place, LedgerRow.Kind.PAID, payment.amount, f"bonus {payment.key}")
        return True
    is_approved = payment.kind == Kind.APPROVE
    to = Place.State.APPROVED if is_approved else Place.State.REJECTED
    Place.objects.filter(pk=place.pk).update(state=to, reason=payment.reason)
    if is_approved:
        whole = place.campaign.pay_task
        if place.part_pay is not None:  # the panel pays nothing less
            enter_in_ledger(place, LedgerRow.Kind.EARNED, whole - place.part_pay, "rest")
        enter_in_ledger(place, LedgerRow.Kind.PAID, whole, "approval")
    return True


def _again(payment: Payment) -> bool:
    going = Payment.objects.filter(pk=payment.pk, state__in=(State.PREPARED, State.SENT))
    going.update(state=State.PLANNED, prepared="")
    return False


def _refuse(payment: Payment, said: str) -> bool:
    """Unless another process went on with it meanwhile."""
    same = Payment.objects.filter(pk=payment.pk, state=payment.state)
    return bool(same.update(state=State.REFUSED, said=said[:500]))


def _set_unclear(payment: Payment, said: str) -> bool:
    going = Payment.objects.filter(pk=payment.pk, state=State.SENT)
    return bool(going.update(state=State.UNCLEAR, said=said[:500]))


def _open(campaign: Campaign) -> QuerySet[Payment]:
    going = (State.PLANNED, State.PREPARED, State.SENT, State.UNCLEAR)
    rows = Payment.objects.filter(place__campaign=campaign, state__in=going)
    return rows.select_related("place__campaign")
