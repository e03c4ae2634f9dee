"""Payments through a panel's API, carried out exactly once even if a process dies in between.

A row of `Payment` is stored before the panel is called, and no call runs in a transaction. A
payment passes through these states:

    PLANNED → SENT → DONE                   a decision: one call to the panel
    PLANNED → PREPARED → SENT → DONE        a bonus: prepared at the panel, then paid

A killed process leaves a payment PREPARED or SENT. If PREPARED, no money has moved. If SENT, its
outcome is looked up at the panel. If the panel doesn't show it, the payment becomes UNCLEAR.
REFUSED means that nothing was carried out.

The functions whose names begin with `_end_`, `_send_`, `_read_back` and `_pay_` return how many
payments the call ended, that is, set to DONE, REFUSED or UNCLEAR. Functions that handle one payment
return a bool. Payments that another process ended in between are not counted.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

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
from core.data.encryption import UnreadableSecret, decrypt
from core.errors import Invalid, Refused
from dynabench.campaigns.models import Campaign, LedgerRow, Payment, Place
from dynabench.campaigns.place_services import enter_in_ledger
from dynabench.campaigns.selectors import (
    decrypt_panel_ids,
    find_places_in_payment,
    list_place_rows,
    select_awaiting_places,
)
from dynabench.campaigns.services import lock_owned_campaign
from dynabench.campaigns.ways.panels import Arrival
from dynabench.campaigns.ways.paying import Api, Bonus, PanelRefused, PanelUnclear
from dynabench.campaigns.ways.registry import WAYS
from tasks.mails import mail_members
from tasks.permissions import OWNERS

BATCH_SIZE = 20
WARN_BEFORE = timedelta(days=3)
"""How long before a panel's automatic approval its owner is warned; at most half of the delay."""
LEASE_TIME = timedelta(minutes=5)
"""How long a claimed payment belongs to the process that claimed it.

This is far longer than all calls of a batch take, so afterwards no process is still sending.
"""
MIN_REASON_CHARS = 100
"""The minimum length of a rejection's reason, set by Prolific."""
IDS_DELETED_MESSAGE = "The panel's ids were deleted."
State, Kind = Payment.State, Payment.Kind


class _ClaimedPayment(NamedTuple):
    """A payment that this process has claimed, with the bonus to request from the panel."""

    payment: Payment
    bonus: Bonus


def build_panel_client(campaign: Campaign) -> Api | None:
    """Return the API client of the campaign's panel.

    None if the campaign has no token, or one that the site's key cannot decrypt.
    """
    try:
        # After a change of the site's key without the former one, nothing can be paid until an
        # owner enters the token again.
        token = decrypt(campaign.sealed_token)
    except UnreadableSecret:
        return None
    return campaign.way_in.connect(campaign, token) if token else None


@transaction.atomic
def plan_bonuses(*, campaign: Campaign, actor: User) -> int:
    """Plan a bonus for everybody who is owed one; return how many were planned.

    People with an open payment get the remainder in a later bonus. Locks the campaign, so that no
    bonus is planned twice. Raises Refused.
    """
    locked_campaign = lock_owned_campaign(campaign, actor)
    places_in_payment = find_places_in_payment(locked_campaign)
    planned_payments = []
    for row in list_place_rows(locked_campaign):
        place = row.place
        # Without its id the panel cannot be asked to pay somebody.
        can_be_paid = bool(place.sealed_id) and place.pk not in places_in_payment
        if row.owed > 0 and can_be_paid and _is_paid_by_bonus(place, locked_campaign):
            planned_payments.append(Payment(place=place, kind=Kind.BONUS, amount=row.owed))
    Payment.objects.bulk_create(planned_payments)
    log(
        actor,
        "campaign.bonuses-planned",
        locked_campaign.task,
        campaign=locked_campaign.slug,
        n=len(planned_payments),
    )
    return len(planned_payments)


def _is_paid_by_bonus(place: Place, campaign: Campaign) -> bool:
    """Return whether what the person is owed can be paid by a bonus now.

    This is so after approval, or already after submission for partial work that is paid by a bonus.
    """
    is_part = campaign.pays_parts_as_bonus and place.part_pay is not None
    state_to_pay = Place.State.SUBMITTED if is_part else Place.State.APPROVED
    return place.state == state_to_pay


@transaction.atomic
def plan_decision(*, place: Place, actor: User, approve: bool, reason: str = "") -> None:
    """Plan to approve or reject a submission at the panel.

    Locks the campaign. A unique constraint allows one open payment per place. Raises
    Refused or Invalid.
    """
    campaign = lock_owned_campaign(place.campaign, actor)
    # An approval would pay the whole, as panels approve all or nothing.
    if campaign.pays_parts_as_bonus and place.part_pay is not None:
        raise Refused(
            _("This person gets partial pay as a bonus, so you can't approve or reject here."),
            code="part",
        )
    if not approve and len(reason) < MIN_REASON_CHARS:
        message = _("Give a reason of at least %(n)d characters. The person sees it.")
        raise Invalid(message % {"n": MIN_REASON_CHARS}, field="reason")
    kind = Kind.APPROVE if approve else Kind.REJECT
    try:
        # A transaction of its own: the outer one must survive the violated constraint.
        with transaction.atomic():
            Payment.objects.create(place=place, kind=kind, reason=reason)
    except IntegrityError:
        raise Refused(
            _("Another payment to this person is still in progress. Try again later."), code="open"
        ) from None
    log(actor, f"campaign.{kind}-planned", campaign.task, place=place.pk)


def warn_of_approvals() -> int:
    """Email owners before the panel approves automatically.

    Return how many submissions the emails list. Each submission is listed in one email only.
    Takes no lock: the worker whose update succeeds sends the email.
    """
    ways_that_approve = [way.name for way in WAYS.values() if way.approves_after_days]
    is_approved_automatically = Q(approval_days__gt=0) | Q(way__in=ways_that_approve)
    is_unwarned = Q(all_places__state=Place.State.SUBMITTED, all_places__warned_at=None)
    first_submitted_at = Min("all_places__submitted_at", filter=is_unwarned)
    campaigns = (
        Campaign.objects.filter(is_approved_automatically)
        .annotate(first=first_submitted_at)
        .exclude(first=None)
    )
    return sum(_warn_owners(campaign) for campaign in campaigns.select_related("task"))


@transaction.atomic
def _warn_owners(campaign: Campaign) -> int:
    """Email a campaign's owners about submissions that the panel will soon approve.

    Return how many submissions the email lists; if 0, none is sent.
    """
    now, approval_delay = timezone.now(), campaign.approval_delay or WARN_BEFORE
    awaiting_places = select_awaiting_places(campaign).filter(
        warned_at=None,
        submitted_at__lte=now - approval_delay + min(WARN_BEFORE, approval_delay / 2),
    )
    first_submitted_at = awaiting_places.aggregate(first=Min("submitted_at"))["first"]
    if first_submitted_at is None:
        return 0
    # Only rows that nobody has been warned of: another worker may have sent the mail since.
    place_count = awaiting_places.update(warned_at=now)
    if not place_count:
        return 0
    page = reverse("own-campaigns:campaign", args=[campaign.task.code, campaign.slug])

    def write_mail() -> tuple[str, str]:
        words = {
            "n": place_count,
            "name": campaign.name,
            "at": date_format(first_submitted_at + approval_delay, "j M, H:i"),
        }
        lines = [
            ngettext(
                "%(n)d submission to “%(name)s” waits for your decision.",
                "%(n)d submissions to “%(name)s” wait for your decision.",
                place_count,
            ),
            _("The panel starts to approve work automatically at %(at)s (UTC)."),
        ]
        sentences = "\n".join(line % words for line in lines)
        subject = _("Automatic approval soon: “%(name)s”") % words
        return subject, f"{sentences}\n{settings.SITE_URL}{page}\n"

    mail_members(campaign.task, OWNERS, write_mail)
    return place_count


@transaction.atomic
def resolve_payment(*, payment: Payment, actor: User, is_paid: bool) -> None:
    """Store the owner's answer about the outcome of an unclear payment.

    is_paid: whether the money was paid, as the owner saw at the panel. Locks the campaign
    and updates the payment conditionally. Raises Refused.
    """
    campaign = lock_owned_campaign(payment.place.campaign, actor)
    # Of two owners who answer at once, the second finds no unclear payment.
    unclear_payments = Payment.objects.filter(pk=payment.pk, state=State.UNCLEAR)
    if not unclear_payments.update(state=State.SENT if is_paid else State.REFUSED):
        raise Refused(_("This payment has already been resolved."), code="state")
    if is_paid:
        # The update changed the row, but not this object.
        payment.refresh_from_db()
        _end_as_done(payment)
    log(actor, "campaign.payment-resolved", campaign.task, payment=payment.pk, is_paid=is_paid)


def send_payments(*, campaign: Campaign) -> int:
    """Send the planned payments to the panel, and return how many payments ended.

    1. Resume the payments that a killed process left unfinished (`_resume_payments`).
    2. Send a batch of decisions, one call each (`_send_decision`).
    3. Prepare and pay a batch of bonuses (`_send_bonuses`).

    Takes no lock, because no call may run in a transaction. Several processes may run this at once:
    each payment is claimed by a conditional update, which succeeds in only one of them.
    """
    api = build_panel_client(campaign)
    if api is None:
        return 0
    ended_count = _resume_payments(campaign, api)
    decisions = _select_open_payments(campaign).filter(state=State.PLANNED).exclude(kind=Kind.BONUS)
    for payment in decisions[:BATCH_SIZE]:
        ended_count += _send_decision(api, payment)
    return ended_count + _send_bonuses(campaign, api)


def _resume_payments(campaign: Campaign, api: Api) -> int:
    """Resume the payments that killed processes left unfinished; return how many are settled now.

    PREPARED ones moved no money and are planned again. SENT ones may have moved money, so
    their outcome is looked up.
    """
    abandoned_payments = _select_open_payments(campaign).filter(
        sent_at__lte=timezone.now() - LEASE_TIME
    )
    # One update for all rows: what another process has claimed by then is not PREPARED any more.
    abandoned_payments.filter(state=State.PREPARED).update(state=State.PLANNED, prepared="")
    ended_count = 0
    for payment in abandoned_payments.filter(state=State.SENT):
        ended_count += _read_back(api, payment, is_last=True)
    return ended_count


def _send_decision(api: Api, payment: Payment) -> bool:
    """Approve or reject at the panel; return whether this ended the payment.

    Idempotent at the panel.
    """
    arrival = decrypt_panel_ids(payment.place)
    if arrival is None:
        return _end_as_refused(payment, IDS_DELETED_MESSAGE)
    if not _claim_payment(payment, State.PLANNED, State.SENT):
        return False
    try:
        api.decide_submission(arrival, approve=payment.kind == Kind.APPROVE, reason=payment.reason)
    except (PanelRefused, PanelUnclear):
        # A refusal may also mean that it was decided before: the panel's own state tells.
        return _read_back(api, payment)
    return _end_as_done(payment)


def _send_bonuses(campaign: Campaign, api: Api) -> int:
    """Prepare a batch of bonuses and pay it; return how many payments ended.

    1. Read the total of bonuses that the panel has paid each person so far. By comparing it,
       `_read_back` can later find out whether this bonus was paid.
    2. Claim each payment and store that total: PLANNED becomes PREPARED. No money moves yet.
    3. Pay the payments that this process has claimed (`_pay_batch`).
    """
    ended_count = 0
    batch = []
    planned_payments = _select_open_payments(campaign).filter(state=State.PLANNED, kind=Kind.BONUS)
    for payment in planned_payments[:BATCH_SIZE]:
        arrival = decrypt_panel_ids(payment.place)
        if arrival is None:
            ended_count += _end_as_refused(payment, IDS_DELETED_MESSAGE)
            continue
        try:
            paid_before = api.get_bonus_sum(arrival)
        except PanelRefused as error:
            ended_count += _end_as_refused(payment, str(error))
            continue
        except PanelUnclear:
            # Nothing was sent. What is PREPARED already is resumed once its lease has ended.
            return ended_count
        if _claim_payment(payment, State.PLANNED, State.PREPARED, before=paid_before):
            batch.append(_ClaimedPayment(payment, Bonus(arrival, payment.amount, str(payment.key))))
    if batch:
        ended_count += _pay_batch(api, batch)
    return ended_count


def _pay_batch(api: Api, batch: Sequence[_ClaimedPayment]) -> int:
    """Prepare the PREPARED payments of a batch at the panel and pay them; return how many ended.

    1. Prepare them at the panel as one payment.
    2. Claim each again: PREPARED becomes SENT, with the panel's id of the preparation.
    3. Pay the prepared payment, or each one separately if the panel prepares none (`_pay_group`).
    """
    try:
        preparation_id = api.prepare_bonuses([claim.bonus for claim in batch])
    except PanelRefused as error:
        return _end_all_as_refused(batch, str(error))
    except PanelUnclear:
        # No money moves before a preparation is paid, and nobody pays a lost one.
        _plan_all_again(batch)
        return 0
    sent_payments = []
    for claim in batch:
        if _claim_payment(claim.payment, State.PREPARED, State.SENT, prepared=preparation_id):
            sent_payments.append(claim)
    if len(sent_payments) < len(batch):
        # Another process took some of them over. This preparation would pay those as well, so
        # nobody pays it, and the rest is planned again.
        _plan_all_again(sent_payments)
        return 0
    if preparation_id:
        return _pay_group(api, preparation_id, sent_payments)
    return sum(_pay_group(api, preparation_id, [claim]) for claim in sent_payments)


def _pay_group(api: Api, preparation_id: str, group: Sequence[_ClaimedPayment]) -> int:
    """Pay SENT payments in one call to the panel; return how many ended.

    If the panel's answer is inconclusive, looks up the outcome of each.
    """
    try:
        api.pay_bonuses(
            preparation_id, [claim.bonus for claim in group], _("Thank you for your work.")
        )
    except PanelRefused as error:
        return _end_all_as_refused(group, str(error))
    except PanelUnclear:
        return sum(_read_back(api, claim.payment) for claim in group)
    return sum(_end_as_done(claim.payment) for claim in group)


def _read_back(api: Api, payment: Payment, *, is_last: bool = False) -> bool:
    """Look up the outcome of a SENT payment at the panel; return whether that ended it.

    A panel may list a payment with a delay. is_last: whether to set a bonus to UNCLEAR that is not
    listed now.
    """
    arrival = decrypt_panel_ids(payment.place)
    if arrival is None:
        return _end_as_unclear(payment, IDS_DELETED_MESSAGE)
    try:
        if payment.kind == Kind.BONUS:
            return _read_back_bonus(api, payment, arrival, is_last=is_last)
        return _read_back_decision(api, payment, arrival)
    except PanelRefused as error:
        return _end_as_unclear(payment, str(error))
    except PanelUnclear:
        # The panel is away. The payment stays SENT and is read again later.
        return False


def _read_back_decision(api: Api, payment: Payment, arrival: Arrival) -> bool:
    """End a SENT decision if the panel shows its outcome; otherwise plan it again.

    Return whether it ended.
    """
    status = api.get_status(arrival)
    wanted_status = "approved" if payment.kind == Kind.APPROVE else "rejected"
    if status == wanted_status:
        return _end_as_done(payment)
    if status != "waiting":
        return _end_as_refused(payment, status)
    # The panel still waits for a decision, so this one did not reach it.
    _plan_again(payment)
    return False


def _read_back_bonus(api: Api, payment: Payment, arrival: Arrival, *, is_last: bool) -> bool:
    """End a SENT bonus if the panel's paid sum shows it, else plan it again.

    Return whether it ended. is_last: see `_read_back`.
    """
    if api.get_bonus_sum(arrival) == (payment.before or 0) + payment.amount:
        return _end_as_done(payment)
    if api.knows_keys:
        # Sent again with its key, it is paid once, whatever the panel shows now.
        _plan_again(payment)
        return False
    if is_last:
        return _end_as_unclear(payment, "The panel doesn't list this bonus.")
    return False


def _claim_payment(payment: Payment, old_state: str, new_state: str, **values: object) -> bool:
    """Move a payment from `old_state` to `new_state`; return whether this process did it.

    False if another process claimed the payment first.
    """
    values |= {"state": new_state, "sent_at": timezone.now()}
    # The filter on the old state makes the update succeed in one of several processes.
    if not Payment.objects.filter(pk=payment.pk, state=old_state).update(**values):
        return False
    for name, value in values.items():
        setattr(payment, name, value)
    return True


def _plan_again(payment: Payment) -> None:
    """Return a claimed payment to PLANNED, because it was certainly not carried out."""
    # Not where another process has ended it in between.
    claimed_payments = Payment.objects.filter(pk=payment.pk, state__in=(State.PREPARED, State.SENT))
    claimed_payments.update(state=State.PLANNED, prepared="")


def _plan_all_again(batch: Iterable[_ClaimedPayment]) -> None:
    """Return all payments of a batch to PLANNED. See `_plan_again`."""
    for claim in batch:
        _plan_again(claim.payment)


@transaction.atomic
def _end_as_done(payment: Payment) -> bool:
    """End a SENT payment that was carried out, and update the ledger and the place.

    Return whether this call ended it. One transaction, so that every DONE payment is in the
    ledger.
    """
    # Of two processes that read the same answer back, the one whose update succeeds enters it.
    sent_payments = Payment.objects.filter(pk=payment.pk, state=State.SENT)
    if not sent_payments.update(state=State.DONE, said=""):
        return False
    place = payment.place
    if payment.kind == Kind.BONUS:
        enter_in_ledger(place, LedgerRow.Kind.PAID, payment.amount, f"bonus {payment.key}")
        return True
    is_approved = payment.kind == Kind.APPROVE
    new_state = Place.State.APPROVED if is_approved else Place.State.REJECTED
    Place.objects.filter(pk=place.pk).update(state=new_state, reason=payment.reason)
    if is_approved:
        pay = place.campaign.pay
        # A panel pays the whole or nothing, so the rest of the pay is earned as well.
        supplement = pay.compute_approval_supplement(place.part_pay)
        enter_in_ledger(place, LedgerRow.Kind.EARNED, supplement, "rest")
        enter_in_ledger(place, LedgerRow.Kind.PAID, pay.task, "approval")
    return True


def _end_as_refused(payment: Payment, reason: str) -> bool:
    """End a payment that the panel refused; return whether this call ended it."""
    # Only in the state that this process knows: another one may have sent it since.
    unchanged_payments = Payment.objects.filter(pk=payment.pk, state=payment.state)
    return bool(unchanged_payments.update(state=State.REFUSED, said=reason[:500]))


def _end_all_as_refused(batch: Iterable[_ClaimedPayment], reason: str) -> int:
    """End all payments of a batch as refused; return how many this call ended."""
    return sum(_end_as_refused(claim.payment, reason) for claim in batch)


def _end_as_unclear(payment: Payment, reason: str) -> bool:
    """Set a SENT payment of unknown outcome to UNCLEAR; return whether this call did it.

    It then waits for the owner (`resolve_payment`).
    """
    # Not where another process has learned meanwhile what became of it.
    sent_payments = Payment.objects.filter(pk=payment.pk, state=State.SENT)
    return bool(sent_payments.update(state=State.UNCLEAR, said=reason[:500]))


def _select_open_payments(campaign: Campaign) -> QuerySet[Payment]:
    """Return the campaign's payments that are unfinished or unclear."""
    states = (State.PLANNED, State.PREPARED, State.SENT, State.UNCLEAR)
    rows = Payment.objects.filter(place__campaign=campaign, state__in=states)
    return rows.select_related("place__campaign")
