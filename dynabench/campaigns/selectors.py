"""Read campaigns: a person's work, earnings and costs, and what awaits the owner."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Min, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from annotation.models import Example
from core.data.encryption import UnreadableSecret, decrypt
from dynabench.campaigns.findings.costs import calculate_cost_parts
from dynabench.campaigns.models import ACTIVE_STATES, Campaign, LedgerRow, Payment, Place
from dynabench.campaigns.rules.cost import CostParts, extrapolate_to_end
from dynabench.campaigns.rules.pay import (
    DoneWork,
    calculate_median_hourly_pay,
    compute_earned,
    compute_owed,
    count_affordable_people,
)
from dynabench.campaigns.ways.panels import Arrival
from leaderboard.models import Battle
from tasks.models import Round, Task
from validation.models import Consensus, GoldAnswer, Validation

TAKEN_STATES = ("testing", "working", "submitted", "approved", "rejected")
"""The states of a place that nobody else can take."""
RESERVED_STATES = (*TAKEN_STATES, "lapsed")
"""The states of a place whose money is reserved. People who are out of time may still submit."""


def decrypt_panel_ids(place: Place) -> Arrival | None:
    """Return a participant's panel ids; None if they never had any or these were deleted."""
    try:
        return Arrival(**json.loads(decrypt(place.sealed_id) or "null"))
    except (UnreadableSecret, TypeError):
        return None


def build_round_filter(campaign: Campaign, path: str) -> Q:
    """Return a condition that selects the rows in the campaign's rounds. One query.

    A campaign without chosen rounds uses all rounds of its task. path: the lookup from the rows to
    their round.
    """
    chosen_ids = list(campaign.rounds.values_list("pk", flat=True))
    return (
        Q(**{f"{path}__in": chosen_ids}) if chosen_ids else Q(**{f"{path}__task": campaign.task_id})
    )


def are_rounds_over(campaign: Campaign) -> bool:
    """Return whether the campaign chose rounds and none of them offers work. One query."""
    ended_states = [Round.State.RELEASED]
    if campaign.kind == "write":
        # A closed round takes no more examples, but judges work in it until it is released.
        ended_states.append(Round.State.CLOSED)
    chosen_states = campaign.rounds.values_list("state", flat=True)
    return bool(chosen_states) and all(state in ended_states for state in chosen_states)


def may_submit(place: Place, done_work: DoneWork) -> bool:
    """Return whether the person may submit: the work is done or cannot continue.

    Work cannot continue if it ran out, or if the rounds are over and the person has begun.
    """
    # Nobody is paid for a round that had ended before they began.
    return (
        done_work.is_enough
        or place.ran_out_at is not None
        or (done_work.has_begun and are_rounds_over(place.campaign))
    )


def calculate_pay(place: Place, done_work: DoneWork) -> int:
    """Return what a person who submits now earns, except for accepted examples.

    One query if the work is unfinished. See `Pay.compute_submission_pay`.
    """
    # Asked only where the answer matters.
    is_unfinished = done_work.has_begun and not done_work.is_enough
    return place.campaign.pay.compute_submission_pay(
        done_work, are_rounds_over=is_unfinished and are_rounds_over(place.campaign)
    )


def select_awaiting_places(campaign: Campaign) -> QuerySet[Place]:
    """Return the places that await the owner's decision.

    Partial work that is paid by a bonus awaits no decision.
    """
    rows = campaign.all_places.filter(state=Place.State.SUBMITTED)
    return rows.filter(part_pay=None) if campaign.pays_parts_as_bonus else rows


def select_written_examples(place: Place) -> QuerySet[Example]:
    """Return the examples written for a place, without retracted ones."""
    return Example.objects.filter(
        build_round_filter(place.campaign, "round"),
        annotator=place.annotator_id,
        created_at__gte=place.began_at,
        retracted_at=None,
    )


def count_done_work(place: Place) -> DoneWork:
    """Return the work done for a place; answers to gold items of any round count as judged."""
    campaign = place.campaign
    done_counts = {}
    if campaign.kind in ("write", "both"):
        done_counts["written"] = select_written_examples(place).count()
    if campaign.kind in ("judge", "both"):
        is_own = Q(validator=place.annotator_id, created_at__gte=place.began_at)
        votes = Validation.objects.filter(is_own, build_round_filter(campaign, "example__round"))
        gold = GoldAnswer.objects.filter(is_own, gold__example__round__task=campaign.task_id)
        done_counts["judged"] = votes.count() + gold.count()
    if campaign.kind == "arena":
        own_battles = Battle.objects.filter(task=campaign.task_id, voter=place.annotator_id)
        done_counts["compared"] = (
            own_battles.filter(began_at__gte=place.began_at).exclude(winner="").count()
        )
    return DoneWork(campaign.kind, campaign.each, **done_counts, has_code=bool(campaign.code_done))


def select_ledger_rows(campaign: Campaign) -> QuerySet[LedgerRow]:
    """Return all ledger rows of a campaign."""
    return LedgerRow.objects.filter(place__campaign=campaign).select_related("place__annotator")


@dataclass(frozen=True)
class PlaceRow:
    """A participant's place, with the sums of its ledger rows by kind."""

    place: Place
    sums: dict[str, int]

    @property
    def owed(self) -> int:
        """Return what the person has earned but not been paid yet, in the smallest unit."""
        return compute_owed(self.sums)

    @property
    def earned(self) -> int:
        """Return everything that was credited to the person, paid or not."""
        return compute_earned(self.sums)

    @property
    def has_submitted(self) -> bool:
        """Return whether the person submitted work. People who were screened out did not."""
        return self.place.submitted_at is not None and self.place.state != Place.State.SCREENED

    @property
    def seconds(self) -> float:
        """Return the time from consent to submission, in seconds; 0 before the submission."""
        place = self.place
        if not (place.submitted_at and place.began_at):
            return 0.0
        return (place.submitted_at - place.began_at).total_seconds()


def list_place_rows(campaign: Campaign) -> list[PlaceRow]:
    """Return all places of the campaign's participants, with their ledger sums. Two queries."""
    sums: dict[int, dict[str, int]] = {}
    # Without the default order, which would add the primary key to the groups.
    ledger_groups = (
        select_ledger_rows(campaign).order_by().values("place", "kind").annotate(sum=Sum("amount"))
    )
    for group in ledger_groups:
        sums.setdefault(group["place"], {})[group["kind"]] = group["sum"]
    places = campaign.all_places.exclude(annotator=None).select_related("annotator")
    return [PlaceRow(place, sums.get(place.pk, {})) for place in places]


def count_payable_people(campaign: Campaign, rows: Sequence[PlaceRow]) -> int | None:
    """Return how many people the budget can pay if each earns the maximum; None if unlimited."""
    # People who are in cost the maximum each; the others cost what they have earned.
    former_earnings = sum(row.earned for row in rows if row.place.state not in RESERVED_STATES)
    return campaign.pay.count_fully_paid_people(
        campaign.budget, campaign.max_paid_examples, former_earnings
    )


def find_places_in_payment(campaign: Campaign) -> set[int]:
    """Return the ids of the places with a payment by the panel that is unfinished or unclear."""
    ended_states = (Payment.State.DONE, Payment.State.REFUSED)
    # An unclear payment may have been made, so its place is still in payment.
    rows = Payment.objects.filter(place__campaign=campaign).exclude(state__in=ended_states)
    return set(rows.values_list("place", flat=True))


def list_owed_outside(campaign: Campaign) -> list[PlaceRow]:
    """Return the people whom an owner may pay elsewhere without paying twice.

    If the campaign has the panel's API token, the panel pays for approved work. Four queries.
    """
    paid_by_panel = find_places_in_payment(campaign)
    if campaign.sealed_token:
        paid_by_panel.update(select_awaiting_places(campaign).values_list("pk", flat=True))
    return [
        row
        for row in list_place_rows(campaign)
        if row.owed > 0 and row.place.pk not in paid_by_panel
    ]


def select_campaigns(task: Task) -> QuerySet[Campaign]:
    """Return a task's campaigns, each with the number of its places that are `taken`."""
    is_taken = Q(all_places__state__in=TAKEN_STATES)
    return task.campaigns.annotate(taken=Count("all_places", filter=is_taken))


def find_next_approval(campaign: Campaign) -> tuple[int, datetime] | None:
    """Return how many submissions await the owner, and when the panel approves the first.

    None if no submission waits or the panel does not approve automatically. At most one query.
    """
    approval_delay = campaign.approval_delay
    if approval_delay is None:
        return None
    awaiting_totals = select_awaiting_places(campaign).aggregate(
        n=Count("pk"), first=Min("submitted_at")
    )
    if not awaiting_totals["n"]:
        return None
    return awaiting_totals["n"], awaiting_totals["first"] + approval_delay


@dataclass(frozen=True)
class CampaignNumbers:
    """The figures of a campaign.

    Money is in the currency's smallest unit; `cost` includes fee and tax.

    `parts` and the fields after it cover all known costs, not only the participants' pay.
    """

    taken: int
    submitted: int
    earned: int
    paid: int
    cost: int
    hourly: int | None
    people_left: int | None
    people_paid: int | None
    fooling: int
    parts: CostParts
    cost_per_fooling_example: int | None
    cost_in_the_end: int | None
    fooling_in_the_end: int | None

    @property
    def parts_per_catch(self) -> CostParts:
        """Return the cost of one fooling example (a catch), by part."""
        n = max(1, self.fooling)
        return CostParts._make(None if part is None else round(part / n) for part in self.parts)


def calculate_numbers(campaign: Campaign, rows: Sequence[PlaceRow]) -> CampaignNumbers:
    """Return the campaign's figures: places, money, hourly pay and the cost of fooling examples."""
    submitted_people = sum(row.has_submitted for row in rows)
    total_earned = sum(row.earned for row in rows)
    cost = campaign.pay.add_costs(total_earned)
    fooling_count = select_fooling_decisions(campaign).count()
    cost_parts = calculate_cost_parts(campaign, select_campaign_examples(campaign), cost)
    people_left = count_affordable_people(
        campaign.pay, campaign.budget, total_earned, submitted_people
    )
    return CampaignNumbers(
        taken=sum(row.place.state in TAKEN_STATES for row in rows),
        submitted=submitted_people,
        earned=total_earned,
        paid=sum(row.sums.get("paid", 0) for row in rows),
        cost=cost,
        # The median: one person who left the page open would distort a mean.
        hourly=calculate_median_hourly_pay((row.earned, row.seconds) for row in rows),
        people_left=people_left,
        people_paid=count_payable_people(campaign, rows),
        fooling=fooling_count,
        parts=cost_parts,
        cost_per_fooling_example=round(cost_parts.known / fooling_count) if fooling_count else None,
        cost_in_the_end=extrapolate_to_end(
            cost_parts.known, submitted_people, campaign.places, people_left
        ),
        fooling_in_the_end=extrapolate_to_end(
            fooling_count, submitted_people, campaign.places, people_left
        ),
    )


def select_fooling_decisions(campaign: Campaign) -> QuerySet[Consensus]:
    """Return the decisions that verify a model's error on the campaign's examples."""
    return select_campaign_decisions(campaign).filter(is_validated_error=True)


def select_campaign_examples(campaign: Campaign) -> QuerySet[Example]:
    """Return what participants wrote between their consent and the end of their participation.

    Includes retracted examples. What a person wrote later may belong to another campaign.
    """
    # Who submitted did so at one time; for who left or ran out of time, the place ended then.
    ended_at = Coalesce("annotator__places__submitted_at", "annotator__places__expires_at")
    return Example.objects.filter(
        Q(annotator__places__state__in=ACTIVE_STATES) | Q(created_at__lte=ended_at),
        build_round_filter(campaign, "round"),
        annotator__places__campaign=campaign,
        created_at__gte=F("annotator__places__began_at"),
    )


def select_campaign_decisions(campaign: Campaign) -> QuerySet[Consensus]:
    """Return the decisions on the campaign's examples, except retracted and sent-back ones."""
    # An example that was sent back may still be corrected, so nothing is decided about it.
    current_examples = select_campaign_examples(campaign).filter(retracted_at=None)
    return Consensus.objects.filter(
        example__in=current_examples, is_verified=True, is_sent_back=False
    )


def select_unfinished_payments(campaign: Campaign) -> QuerySet[Payment]:
    """Return the payments that are not done, unclear ones first."""
    rows = Payment.objects.filter(place__campaign=campaign).exclude(state=Payment.State.DONE)
    return rows.select_related("place__annotator").order_by("-state", "pk")
