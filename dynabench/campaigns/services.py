"""Writes about campaigns by a task's owners; each asks `check_owns` first."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from allauth.account.models import EmailAddress
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.data.encryption import encrypt
from core.data.rows import changed_fields
from core.errors import Invalid, Refused
from core.text.taken_names import checked_name
from dynabench.campaigns.before.qualification_items import golds_of, items_needed
from dynabench.campaigns.findings.coverage import novelty_of
from dynabench.campaigns.invitations import mail_invitations
from dynabench.campaigns.models import Campaign, ConsentText, Invited, LedgerRow, Place
from dynabench.campaigns.place_services import lock, reserved
from dynabench.campaigns.rules.pay import units
from dynabench.campaigns.selectors import (
    decided_of,
    owed_outside,
    people_paid,
    rounds_are_over,
    rows_of,
)
from dynabench.campaigns.ways.panels import PANELS
from tasks.mails import wants_invitations
from tasks.models import Round, Task
from tasks.permissions import check_approved, check_owns

State = Campaign.State
FROM = {
    State.OPEN: (State.DRAFT, State.PAUSED),
    State.PAUSED: (State.OPEN, State.FULL),
    State.CLOSED: (State.OPEN, State.FULL, State.PAUSED),
}
"""From which states an owner brings a campaign into another one."""
ENDED = (Place.State.SUBMITTED, Place.State.APPROVED, Place.State.REJECTED)
FIXED = ("kind", "way", "each", "currency", "pay_task", "pay_accepted", "pay_bonus", "pay_test")
"""What was promised to people: it stays once the campaign was open."""
TESTS = {"test_items", "test_tries", "tour"}
COSTS = {"budget", "fee_percent", "tax_percent"}


@transaction.atomic
def make_campaign(
    *,
    task: Task,
    actor: User,
    consent: str,
    token: str,
    rounds: Collection[Round] = (),
    **plan: Any,
) -> Campaign:
    """A draft. No lock, a unique constraint. Raises Refused, Invalid."""
    check_owns(actor, task)
    plan["name"] = checked_name(plan["name"])
    if Campaign.objects.filter(slug=plan["slug"]).exists():
        raise Invalid(_("Another campaign has this address."), field="slug")
    _check_address(plan["way"], plan.get("completion_url", ""))
    made = Campaign.objects.create(task=task, sealed_token=encrypt(token), **plan)
    made.rounds.set(_of_task(task, rounds))
    _add_consent(made, consent)
    log(actor, "campaign.made", task, campaign=made.slug)
    return made


@transaction.atomic
def change_campaign(
    *,
    campaign: Campaign,
    actor: User,
    consent: str,
    token: str,
    rounds: Collection[Round] = (),
    **plan: Any,
) -> Campaign:
    """Change a plan; another consent text is a new version, which asks everybody again.

    token: empty keeps the one that is there. Locks the campaign. Raises Refused, Invalid.
    """
    locked = lock_owned(campaign, actor)
    if plan.get("name", locked.name) != locked.name:
        plan["name"] = checked_name(plan["name"])
    if locked.opened_at:
        wrong = next((name for name in FIXED if plan[name] != getattr(locked, name)), None)
        if wrong:
            said = _("This was promised to people. Make another campaign to change it.")
            raise Invalid(said, field=wrong)
    if Campaign.objects.filter(slug=plan["slug"]).exclude(pk=locked.pk).exists():
        raise Invalid(_("Another campaign has this address."), field="slug")
    changed = changed_fields(locked, plan | ({"sealed_token": encrypt(token)} if token else {}))
    if {"way", "completion_url"} & {*changed}:
        _check_address(locked.way, locked.completion_url)
    if TESTS & {*changed} and locked.state in (State.OPEN, State.FULL):
        _check_golds(locked, "test_items")
    limit = locked.budget if COSTS & {*changed} else None
    if limit is not None and (least := reserved(locked)) > limit:
        said = _("%(least)d are reserved for people who take part. Choose no less.")
        raise Invalid(said % {"least": least}, field="budget")
    if _choose_rounds(locked, rounds):
        changed.append("rounds")
    newest = locked.consents.first()
    if newest is None or newest.text != consent:
        _add_consent(locked, consent)
        changed.append("consent")
    log(actor, "campaign.changed", locked.task, campaign=locked.slug, fields=changed)
    return locked


@transaction.atomic
def change_questions(*, campaign: Campaign, actor: User, text: str) -> Campaign:
    """Ask another questionnaire, in YAML, from now on. Locks the campaign. Raises Refused."""
    locked = lock_owned(campaign, actor)
    fields = changed_fields(locked, {"questions": text})
    log(actor, "campaign.changed", locked.task, campaign=locked.slug, fields=fields)
    return locked


def _choose_rounds(campaign: Campaign, rounds: Collection[Round]) -> bool:
    """Whether they are others; once it was open, what counts cannot become less."""
    before, now = set(campaign.rounds.all()), set(_of_task(campaign.task, rounds))
    if before == now:
        return False
    if campaign.opened_at and now and not (before and before <= now):
        said = _("The work in the rounds that it had counts on. Add rounds, or choose none: all.")
        raise Invalid(said, field="rounds")
    campaign.rounds.set(now)
    return True


def _of_task(task: Task, rounds: Collection[Round]) -> Collection[Round]:
    if any(one.task_id != task.pk for one in rounds):
        raise Invalid(_("Choose rounds of this task."), field="rounds")
    return rounds


def _add_consent(campaign: Campaign, text: str) -> ConsentText:
    last = campaign.consents.aggregate(last=Max("number"))["last"] or 0
    return ConsentText.objects.create(campaign=campaign, number=last + 1, text=text)


@transaction.atomic
def set_campaign_state(
    *, campaign: Campaign, actor: User, state: str, ethics_name: str = ""
) -> None:
    """Open, pause or close; opening needs the owner's name under the ethics statement.

    Locks the campaign. Raises Refused, Invalid.
    """
    locked = lock_owned(campaign, actor)
    if locked.state not in FROM[State(state)]:
        said = _("The campaign is %(state)s now. Look at it again.")
        raise Refused(said % {"state": _(locked.state)}, code="state")
    if state == State.OPEN:
        _check_ready(locked, ethics_name)
        locked.ethics_name = locked.ethics_name or ethics_name
        locked.opened_at = locked.opened_at or timezone.now()
    locked.state = state
    locked.closed_at = timezone.now() if state == State.CLOSED else None
    locked.save(update_fields=["state", "ethics_name", "opened_at", "closed_at"])
    log(actor, f"campaign.{state}", locked.task, campaign=locked.slug)


@transaction.atomic
def move_campaign(
    *,
    campaign: Campaign,
    actor: User,
    rounds: Collection[Round] | None = None,
    state: str = "",
    ethics_name: str = "",
) -> None:
    """Choose its rounds, set its state, or both. Locks the campaign. Raises Refused, Invalid."""
    locked = lock_owned(campaign, actor)
    if rounds is not None and _choose_rounds(locked, rounds):
        log(actor, "campaign.changed", locked.task, campaign=locked.slug, fields=["rounds"])
    if state:
        set_campaign_state(campaign=locked, actor=actor, state=state, ethics_name=ethics_name)


def _check_ready(campaign: Campaign, ethics_name: str) -> None:
    check_approved(campaign.task)
    if not campaign.ethics.strip():
        raise Invalid(_("Write an ethics statement first: Change."), field="ethics_name")
    if not (campaign.ethics_name or ethics_name.strip()):
        raise Invalid(_("Write your name under the ethics statement."), field="ethics_name")
    if rounds_are_over(campaign):
        raise Invalid(_("The rounds are over. Choose others first: Change."), field="ethics_name")
    if campaign.way in ("link", "prolific") and not campaign.code_done:
        raise Invalid(_("Write the panel's completion code first: Change."), field="ethics_name")
    _check_golds(campaign, "ethics_name")
    _check_address(campaign.way, campaign.completion_url, "ethics_name")
    if campaign.budget is not None and people_paid(campaign, rows_of(campaign)) == 0:
        each, code = campaign.pay.most(campaign.written), campaign.currency
        told = {"each": units(each, code), "most": units(campaign.budget, code), "code": code}
        said = _("A person can cost %(each)s and the budget is %(most)s %(code)s: it pays nobody.")
        raise Invalid(said % told, field="budget")


def _check_golds(campaign: Campaign, field: str) -> None:
    """Raises Invalid where the task has fewer gold items than the tries of one person take."""
    needed, there = items_needed(campaign), golds_of(campaign).count() if campaign.test_items else 0
    if there < needed:
        told = {"needed": needed, "there": there}
        said = _(
            "The test needs %(needed)d gold items, as nobody meets one again, and the task has "
            "%(there)d. Mark more, or ask for fewer items or tries."
        )
        raise Invalid(said % told, field=field)


def _check_address(way: str, url: str, field: str = "completion_url") -> None:
    """Raises Invalid for a completion address that nobody would be sent to."""
    panel = PANELS.get(way)
    if url and (panel is None or panel.done):
        said = _("People who come this way are not sent to a completion address. Leave it empty.")
        raise Invalid(said, field=field)


@transaction.atomic
def invite(*, campaign: Campaign, actor: User, addresses: Sequence[str]) -> None:
    """Invite each address: accounts by their pages and digest, others by a link in a mail.

    The owner does not learn which is which. No lock; who is invited again has as long again.
    """
    check_owns(actor, campaign.task)
    check_approved(campaign.task)
    verified = EmailAddress.objects.filter(email__in=addresses, verified=True, user__is_active=True)
    known = dict(verified.values_list("email", "user"))
    for address, user in known.items():
        if wants_invitations(address):
            now = {"made_at": timezone.now()}
            Invited.objects.update_or_create(campaign=campaign, user_id=user, defaults=now)
    mail_invitations(campaign, [one for one in addresses if one not in known])


@transaction.atomic
def settle(*, campaign: Campaign) -> int:
    """Note what became due by decisions on examples; returns how many rows the ledger got.

    Of each person no more examples are paid than were asked for, so that the budget holds. Locks
    the campaign, so that two of these count alike. What was noted once stays.
    """
    campaign = lock(campaign.pk)
    places = {place.annotator_id: place for place in campaign.all_places.filter(state__in=ENDED)}
    noted = LedgerRow.objects.filter(place__campaign=campaign)
    known = set(noted.values_list("place", "kind", "cause"))
    rows, paid_for = [], Counter(noted.filter(amount__gt=0).values_list("place", "kind"))
    all_decided = list(decided_of(campaign).select_related("example").order_by("pk"))
    paid = {cause for _place, kind, cause in known if kind == "bonus"}
    fresh = [
        one
        for one in all_decided
        if campaign.pay_bonus
        and one.is_validated_error
        and one.example.annotator_id in places
        and f"example {one.example.uuid}" not in paid
    ]
    shares = dict.fromkeys((one.pk for one in fresh), 1.0)
    if campaign.novel_bonus and fresh:
        shares = novelty_of(campaign.task, fresh)
    for decided in all_decided:
        place = places.get(decided.example.annotator_id)
        due = {"accepted": campaign.pay_accepted} if campaign.pay_accepted else {}
        if decided.pk in shares:  # none is noted, too: it was looked at
            due["bonus"] = round(campaign.pay_bonus * shares[decided.pk])
        for kind, amount in due.items():
            cause = f"example {decided.example.uuid}"
            if not place or paid_for[place.pk, kind] >= campaign.written:
                continue
            if (place.pk, kind, cause) not in known:
                paid_for[place.pk, kind] += amount > 0
                money = {"amount": amount, "currency": campaign.currency}
                rows.append(LedgerRow(place=place, kind=kind, cause=cause, **money))
    LedgerRow.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


@transaction.atomic
def note_paid(*, campaign: Campaign, actor: User, cause: str) -> int:
    """Note that everything owed now was paid outside of this site; returns to how many.

    But what the panel is to pay. cause: the owner's own word, such as a bank's reference; each is
    used once a person. Locks the campaign. Raises Refused.
    """
    locked = lock_owned(campaign, actor)
    owed = owed_outside(locked)
    rows = [
        LedgerRow(
            place=row.place, kind="paid", amount=row.owed, currency=locked.currency, cause=cause
        )
        for row in owed
    ]
    used = LedgerRow.objects.filter(place__campaign=locked, kind="paid", cause=cause)
    if used.exists():
        raise Invalid(_("This reference was used before. Choose another one."), field="cause")
    LedgerRow.objects.bulk_create(rows)
    log(actor, "campaign.paid", locked.task, campaign=locked.slug, people=len(rows))
    return len(rows)


@transaction.atomic
def review_place(*, place: Place, actor: User, approve: bool, reason: str = "") -> None:
    """Approve what somebody submitted, or reject it; their pay for it stays. Locks the place.

    The person reads the reason, which a rejection must have. An approval is final: they rely on it.
    Raises Refused, Invalid.
    """
    check_owns(actor, place.campaign.task)
    if not approve and not reason:
        raise Invalid(_("Give a reason; the person reads it."), field="reason")
    found = Place.objects.select_for_update(of=("self",)).get(pk=place.pk)
    if found.state not in (Place.State.SUBMITTED, Place.State.APPROVED, Place.State.REJECTED):
        raise Refused(_("Nothing was submitted yet."), code="state")
    if found.state == Place.State.APPROVED and not approve:
        raise Refused(_("This was approved, which cannot be taken back."), code="state")
    found.state = Place.State.APPROVED if approve else Place.State.REJECTED
    found.reason = reason
    found.save(update_fields=["state", "reason"])
    log(actor, f"campaign.place-{found.state}", place.campaign.task, place=found.pk, reason=reason)


def lock_owned(campaign: Campaign, actor: User) -> Campaign:
    """The campaign, locked for one of the task's owners. Raises Refused."""
    locked = lock(campaign.pk)
    check_owns(actor, locked.task)
    return locked
