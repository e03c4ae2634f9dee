"""Write campaigns for a task's owners. Each function checks the ownership (`check_owner`)."""

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
from core.data.rows import save_changed_fields
from core.errors import Invalid, Refused
from core.text.money import format_smallest_units
from core.text.taken_names import check_name
from dynabench.campaigns.before.qualification_items import (
    count_needed_items,
    select_test_gold_items,
)
from dynabench.campaigns.findings.coverage import measure_novelty
from dynabench.campaigns.findings.information import measure_information
from dynabench.campaigns.invitations import mail_invitations
from dynabench.campaigns.models import (
    SUBMITTED_STATES,
    Campaign,
    ConsentText,
    Invited,
    LedgerRow,
    Place,
)
from dynabench.campaigns.place_services import calculate_reserved_cost, lock_campaign
from dynabench.campaigns.rules.pay import AcceptedExample, list_due_credits
from dynabench.campaigns.selectors import (
    are_rounds_over,
    count_payable_people,
    list_owed_outside,
    list_place_rows,
    select_campaign_decisions,
)
from dynabench.campaigns.ways.registry import WAYS
from tasks.mails import can_receive_invitations
from tasks.models import Round, Task
from tasks.permissions import check_approval, check_owner
from validation.models import Consensus

State = Campaign.State
ALLOWED_STATES_BEFORE = {
    State.OPEN: (State.DRAFT, State.PAUSED),
    State.PAUSED: (State.OPEN, State.FULL),
    State.CLOSED: (State.OPEN, State.FULL, State.PAUSED),
}
"""The states from which an owner may move a campaign to each state."""
FIXED_FIELDS = (
    "kind",
    "way",
    "each",
    "currency",
    "pay_task",
    "pay_accepted",
    "pay_bonus",
    "information_bonus",
    "pay_test",
    "deterrents",
    "is_labelled",
)
"""Fields that were promised to people and stay fixed once the campaign has been open."""
TEST_FIELDS = {"test_items", "test_tries", "tour"}
"""Fields that determine how many gold items the test needs or can use."""
BUDGET_FIELDS = {"budget", "fee_percent", "tax_percent"}
"""Fields that determine whether the budget covers the reserved cost."""


@transaction.atomic
def make_campaign(
    *,
    task: Task,
    actor: User,
    consent: str = "",
    token: str = "",
    rounds: Collection[Round] = (),
    **plan: Any,
) -> Campaign:
    """Create a draft of a campaign.

    consent: the consent text, or "" to add it before the campaign opens. token: the panel's API
    token, or "". rounds: the rounds in which work counts; empty for all. plan: the fields to set;
    must include `name` and `slug`. Takes no lock: slugs are unique. Raises Refused or Invalid.
    """
    check_owner(actor, task)
    # Campaigns are shown to strangers, so their names must not deceive.
    plan["name"] = check_name(plan["name"])
    if Campaign.objects.filter(slug=plan["slug"]).exists():
        raise Invalid(_("This URL name is taken. Choose another one."), field="slug")
    campaign = Campaign(task=task, sealed_token=encrypt(token), **plan)
    _check_address(campaign.way, campaign.completion_url)
    campaign.save(force_insert=True)
    campaign.rounds.set(_check_rounds(task, rounds))
    if consent:
        _add_consent(campaign, consent)
    # The audit log has every step of a campaign, as money and people are involved.
    log(actor, "campaign.made", task, campaign=campaign.slug)
    return campaign


@transaction.atomic
def change_campaign(
    *,
    campaign: Campaign,
    actor: User,
    consent: str = "",
    token: str = "",
    rounds: Collection[Round] | None = None,
    **plan: Any,
) -> Campaign:
    """Change some fields of a campaign's plan, and log the changed ones.

    If the consent text changes, everybody must agree to the new version.

    consent: the consent text; "" keeps the stored one. rounds: the rounds in which work counts;
    empty for all, None to keep them. plan: the fields to set. token: the panel's API token; ""
    keeps the stored one. Locks the campaign. Raises Refused or Invalid.
    """
    locked_campaign = lock_owned_campaign(campaign, actor)
    if plan.get("name", locked_campaign.name) != locked_campaign.name:
        plan["name"] = check_name(plan["name"])
    if locked_campaign.opened_at:
        _check_promises(locked_campaign, plan)
    slug = plan.get("slug", locked_campaign.slug)
    if Campaign.objects.filter(slug=slug).exclude(pk=locked_campaign.pk).exists():
        raise Invalid(_("This URL name is taken. Choose another one."), field="slug")
    if not _takes_address(plan.get("way", locked_campaign.way)):
        # Who changes how people come would otherwise have to empty a field of another step first.
        plan.setdefault("completion_url", "")
    if token:
        plan["sealed_token"] = encrypt(token)
    changed_names = save_changed_fields(locked_campaign, plan)
    _check_changes(locked_campaign, set(changed_names))
    if rounds is not None and _choose_rounds(locked_campaign, rounds):
        changed_names.append("rounds")
    newest_consent = locked_campaign.consents.first()
    if consent and (newest_consent is None or newest_consent.text != consent):
        _add_consent(locked_campaign, consent)
        changed_names.append("consent")
    log(
        actor,
        "campaign.changed",
        locked_campaign.task,
        campaign=locked_campaign.slug,
        fields=changed_names,
    )
    return locked_campaign


def _check_promises(campaign: Campaign, plan: dict[str, Any]) -> None:
    """Check that a plan keeps the promises made to participants. Raises Invalid."""
    for name in FIXED_FIELDS:
        if plan.get(name, getattr(campaign, name)) != getattr(campaign, name):
            message = _(
                "You can't change what people were promised. Create a new campaign instead."
            )
            raise Invalid(message, field=name)


def _check_changes(campaign: Campaign, changed_names: set[str]) -> None:
    """Check the consequences of a campaign's changed fields. Raises Invalid.

    The changes are already stored; an error rolls back the transaction.
    """
    if changed_names & {"way", "completion_url"}:
        _check_address(campaign.way, campaign.completion_url)
    if changed_names & TEST_FIELDS and campaign.state in (State.OPEN, State.FULL):
        _check_gold_items(campaign, "test_items")
    if changed_names & BUDGET_FIELDS and campaign.budget is not None:
        reserved_cost = calculate_reserved_cost(campaign)
        if reserved_cost > campaign.budget:
            message = _(
                "Current participants may still earn part of this budget. Enter at least %(least)s."
            )
            least = format_smallest_units(reserved_cost, campaign.currency)
            raise Invalid(message % {"least": least}, field="budget")


@transaction.atomic
def change_questions(*, campaign: Campaign, actor: User, text: str) -> Campaign:
    """Replace the campaign's questionnaire, in YAML. Locks the campaign. Raises Refused."""
    locked_campaign = lock_owned_campaign(campaign, actor)
    fields = save_changed_fields(locked_campaign, {"questions": text})
    log(
        actor,
        "campaign.changed",
        locked_campaign.task,
        campaign=locked_campaign.slug,
        fields=fields,
    )
    return locked_campaign


def _choose_rounds(campaign: Campaign, rounds: Collection[Round]) -> bool:
    """Set the rounds in which work counts; return whether they changed.

    Once the campaign has been open, work must not stop counting: rounds may only be added, or
    the choice cleared, so that all rounds count. Raises Invalid.
    """
    old_rounds, new_rounds = set(campaign.rounds.all()), set(_check_rounds(campaign.task, rounds))
    if old_rounds == new_rounds:
        return False
    if campaign.opened_at and new_rounds and not (old_rounds and old_rounds <= new_rounds):
        message = _(
            "Work in the current rounds must keep counting. Add rounds, or select none to "
            "include all."
        )
        raise Invalid(message, field="rounds")
    campaign.rounds.set(new_rounds)
    return True


def _check_rounds(task: Task, rounds: Collection[Round]) -> Collection[Round]:
    """Return the rounds, after checking that all belong to the task. Raises Invalid."""
    if any(round.task_id != task.pk for round in rounds):
        raise Invalid(_("Choose rounds of this task."), field="rounds")
    return rounds


def _add_consent(campaign: Campaign, text: str) -> ConsentText:
    """Store the next version of the consent text. Call with the campaign locked or new."""
    last_number = campaign.consents.aggregate(last=Max("number"))["last"] or 0
    return ConsentText.objects.create(campaign=campaign, number=last_number + 1, text=text)


@transaction.atomic
def set_campaign_state(
    *, campaign: Campaign, actor: User, state: str, ethics_name: str = ""
) -> None:
    """Open, pause or close a campaign.

    ethics_name: the owner's name under the ethics statement, required to open it for the first
    time. Locks the campaign. Raises Refused or Invalid.
    """
    locked_campaign = lock_owned_campaign(campaign, actor)
    if locked_campaign.state not in ALLOWED_STATES_BEFORE[State(state)]:
        message = _("The campaign has changed since you opened this page. Check it and try again.")
        raise Refused(message, code="state")
    if state == State.OPEN:
        _check_can_open(locked_campaign, ethics_name)
        # Both stay from the first opening: a campaign that was paused opens again without them.
        locked_campaign.ethics_name = locked_campaign.ethics_name or ethics_name
        locked_campaign.opened_at = locked_campaign.opened_at or timezone.now()
    locked_campaign.state = state
    locked_campaign.closed_at = timezone.now() if state == State.CLOSED else None
    locked_campaign.save(update_fields=["state", "ethics_name", "opened_at", "closed_at"])
    log(actor, f"campaign.{state}", locked_campaign.task, campaign=locked_campaign.slug)


@transaction.atomic
def move_campaign(
    *,
    campaign: Campaign,
    actor: User,
    rounds: Collection[Round] | None = None,
    state: str = "",
    ethics_name: str = "",
) -> None:
    """Choose a campaign's rounds, set its state, or both.

    Locks the campaign. Raises Refused or Invalid.
    """
    locked_campaign = lock_owned_campaign(campaign, actor)
    # The rounds first, as opening checks whether they have work left.
    if rounds is not None and _choose_rounds(locked_campaign, rounds):
        log(
            actor,
            "campaign.changed",
            locked_campaign.task,
            campaign=locked_campaign.slug,
            fields=["rounds"],
        )
    if state:
        set_campaign_state(
            campaign=locked_campaign, actor=actor, state=state, ethics_name=ethics_name
        )


def _check_can_open(campaign: Campaign, ethics_name: str) -> None:
    """Check that a campaign may open: approval, texts, work and money. Raises Invalid."""
    # Private tasks that nobody has approved recruit no strangers.
    check_approval(campaign.task)
    if not campaign.ethics.strip():
        raise Invalid(
            _("Edit the campaign and add an ethics statement first."), field="ethics_name"
        )
    if not (campaign.ethics_name or ethics_name.strip()):
        raise Invalid(_("Enter your name below the ethics statement."), field="ethics_name")
    if not campaign.consents.exists():
        raise Invalid(_("Edit the campaign and add a consent text first."), field="ethics_name")
    if are_rounds_over(campaign):
        raise Invalid(
            _("All selected rounds have ended. Edit the campaign and select other rounds first."),
            field="ethics_name",
        )
    # Without the code people could not prove to the panel that they have finished.
    if campaign.way_in.needs_completion_code and not campaign.code_done:
        raise Invalid(
            _("Edit the campaign and enter the panel's completion code first."), field="ethics_name"
        )
    _check_gold_items(campaign, "ethics_name")
    _check_address(campaign.way, campaign.completion_url, "ethics_name")
    if (
        campaign.budget is not None
        and count_payable_people(campaign, list_place_rows(campaign)) == 0
    ):
        cost_per_person = campaign.pay.compute_max_cost(campaign.max_paid_examples)
        words = {
            "each": format_smallest_units(cost_per_person, campaign.currency),
            "most": format_smallest_units(campaign.budget, campaign.currency),
        }
        message = _(
            "One person can earn %(each)s, but the budget is %(most)s. Increase the budget."
        )
        raise Invalid(message % words, field="budget")


def _check_gold_items(campaign: Campaign, field: str) -> None:
    """Check that the task has enough gold items for all tries of one person. Raises Invalid."""
    needed_items = count_needed_items(campaign)
    available_items = select_test_gold_items(campaign).count() if needed_items else 0
    if available_items < needed_items:
        words = {"needed": needed_items, "there": available_items}
        message = _(
            "Gold items needed for the test: %(needed)d, because each attempt uses new "
            "ones. The task has %(there)d. Mark more, or reduce items or attempts."
        )
        raise Invalid(message % words, field=field)


def _check_address(way: str, url: str, field: str = "completion_url") -> None:
    """Check that no completion URL is set unless the panel uses one. Raises Invalid."""
    if url and not _takes_address(way):
        message = _("This kind of recruitment has no completion URL. Leave it empty.")
        raise Invalid(message, field=field)


def _takes_address(way: str) -> bool:
    """Return whether people who come in this way return to an address that the owner enters."""
    panel = WAYS[way].panel
    # Accounts and invitations come from no panel, and Prolific's address is known.
    return panel is not None and not panel.done


@transaction.atomic
def invite_addresses(*, campaign: Campaign, actor: User, addresses: Sequence[str]) -> None:
    """Invite each address: account holders on the site and in their email digest, others by email.

    The owner does not learn who has an account. Takes no lock. Inviting an account again
    restarts the validity of its invitation. Raises Refused.
    """
    check_owner(actor, campaign.task)
    check_approval(campaign.task)
    # Only a confirmed address says that the account is this person's.
    verified_addresses = EmailAddress.objects.filter(
        email__in=addresses, verified=True, user__is_active=True
    )
    users_by_address = dict(verified_addresses.values_list("email", "user"))
    for address, user in users_by_address.items():
        if can_receive_invitations(address):
            validity = {"made_at": timezone.now()}
            Invited.objects.update_or_create(campaign=campaign, user_id=user, defaults=validity)
    mail_invitations(
        campaign, [address for address in addresses if address not in users_by_address]
    )


@transaction.atomic
def credit_due_pay(*, campaign: Campaign) -> int:
    """Credit the pay that decisions on examples have made due; return the number of rows added.

    1. Find the verified errors whose bonus was not credited yet, and the share of the bonus
       that each earns, by its novelty and its information if the campaign says so.
    2. For each decision, credit the pay for an accepted example and the bonus, once.
    3. Stop once a person has been paid for the required number of examples, so that the budget
       is not exceeded.

    Credits are permanent, even if a later decision differs. Locks the campaign, so that two
    processes do not count the same examples twice.
    """
    campaign = lock_campaign(campaign.pk)
    submitted_places = campaign.all_places.filter(state__in=SUBMITTED_STATES)
    places_by_author = {place.annotator_id: place for place in submitted_places}
    ledger_rows = LedgerRow.objects.filter(place__campaign=campaign)
    credited_keys = set(ledger_rows.values_list("place", "kind", "cause"))
    paid_counts = Counter(ledger_rows.filter(amount__gt=0).values_list("place", "kind"))
    decisions = list(select_campaign_decisions(campaign).select_related("example").order_by("pk"))
    bonus_causes = {cause for _place, kind, cause in credited_keys if kind == "bonus"}
    # Only what was not noted yet is compared with other examples, which is slow.
    new_decisions = [
        decision
        for decision in decisions
        if campaign.pay_bonus
        and decision.is_validated_error
        and decision.example.annotator_id in places_by_author
        and _build_cause(decision) not in bonus_causes
    ]
    shares = dict.fromkeys((decision.pk for decision in new_decisions), 1.0)
    if campaign.novel_bonus and new_decisions:
        shares = measure_novelty(campaign.task, new_decisions)
    if campaign.information_bonus and new_decisions:
        information = measure_information(new_decisions)
        # A catch whose novelty is still unknown waits, and so does its bonus.
        shares = {pk: share * information[pk] for pk, share in shares.items()}
    examples = [
        AcceptedExample(
            places_by_author[decision.example.annotator_id].pk,
            _build_cause(decision),
            shares.get(decision.pk),
        )
        for decision in decisions
        if decision.example.annotator_id in places_by_author
    ]
    # `decisions` are in the order of their rows, so that the same examples are paid each time.
    due_credits = list_due_credits(
        campaign.pay,
        examples,
        max_examples=campaign.max_paid_examples,
        credited_keys=credited_keys,
        paid_counts=paid_counts,
    )
    rows = [
        LedgerRow(
            place_id=credit.place,
            kind=credit.kind,
            cause=credit.cause,
            amount=credit.amount,
            currency=campaign.currency,
        )
        for credit in due_credits
    ]
    # `ledger_one_cause` lets nobody be paid twice for one cause.
    LedgerRow.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _build_cause(decision: Consensus) -> str:
    """Return the ledger's cause for the example of a decision."""
    return f"example {decision.example.uuid}"


@transaction.atomic
def record_external_payment(*, campaign: Campaign, actor: User, cause: str) -> int:
    """Record that everything owed now was paid outside the site; return the number of people paid.

    Excludes what the panel will pay. cause: the owner's payment reference, for example the
    bank's; each can be used once. Locks the campaign. Raises Refused or Invalid.
    """
    locked_campaign = lock_owned_campaign(campaign, actor)
    # A reference that is sent twice, by a reload or by two owners, must not pay twice.
    used_references = LedgerRow.objects.filter(
        place__campaign=locked_campaign, kind="paid", cause=cause
    )
    if used_references.exists():
        raise Invalid(_("This reference has already been used. Enter another one."), field="cause")
    currency = locked_campaign.currency
    rows = [
        LedgerRow(place=row.place, kind="paid", amount=row.owed, currency=currency, cause=cause)
        for row in list_owed_outside(locked_campaign)
    ]
    LedgerRow.objects.bulk_create(rows)
    log(
        actor,
        "campaign.paid",
        locked_campaign.task,
        campaign=locked_campaign.slug,
        people=len(rows),
    )
    return len(rows)


@transaction.atomic
def review_place(*, place: Place, actor: User, approve: bool, reason: str = "") -> None:
    """Approve or reject a submission; the money owed for it stays owed.

    reason: shown to the person; required for a rejection. An approval is final, because the
    person relies on it. Locks the place. Raises Refused or Invalid.
    """
    check_owner(actor, place.campaign.task)
    if not approve and not reason:
        raise Invalid(_("Give a reason. The person sees it."), field="reason")
    locked_place = Place.objects.select_for_update(of=("self",)).get(pk=place.pk)
    # A rejection may be changed into an approval, but never the other way round.
    if locked_place.state not in SUBMITTED_STATES:
        raise Refused(
            _("This person hasn't submitted anything yet. Wait for their work."), code="state"
        )
    if locked_place.state == Place.State.APPROVED and not approve:
        raise Refused(_("This submission is approved. You can't change an approval."), code="state")
    locked_place.state = Place.State.APPROVED if approve else Place.State.REJECTED
    locked_place.reason = reason
    locked_place.save(update_fields=["state", "reason"])
    log(
        actor,
        f"campaign.place-{locked_place.state}",
        place.campaign.task,
        place=locked_place.pk,
        reason=reason,
    )


def lock_owned_campaign(campaign: Campaign, actor: User) -> Campaign:
    """Lock the campaign and return it, if the actor owns its task. Raises Refused."""
    locked_campaign = lock_campaign(campaign.pk)
    check_owner(actor, locked_campaign.task)
    return locked_campaign
