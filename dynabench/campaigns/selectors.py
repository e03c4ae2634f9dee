"""Reads of campaigns: what a person has done, what was earned, what an owner should know."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Min, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from annotation.models import Example
from core.data.encryption import Unreadable, decrypt
from dynabench.campaigns.findings.costs import parts_of
from dynabench.campaigns.models import GOING, Campaign, LedgerRow, Payment, Place
from dynabench.campaigns.rules.cost import Parts, in_the_end
from dynabench.campaigns.rules.pay import part_of, people_left, per_hour
from dynabench.campaigns.ways.panels import Arrival
from leaderboard.models import Battle
from tasks.models import Round
from validation.models import Consensus, GoldAnswer, Validation

OWED = ("earned", "accepted", "bonus")
TAKEN = ("testing", "working", "submitted", "approved", "rejected")
RESERVED = (*TAKEN, "lapsed")
"""Whose money is kept for them."""


@dataclass(frozen=True)
class Done:
    """What a person has done since they agreed, of what a campaign asks.

    has_code: whether who has done it gets a code for the panel.
    """

    kind: str
    each: int
    written: int = 0
    judged: int = 0
    compared: int = 0
    has_code: bool = False

    @property
    def parts(self) -> list[tuple[str, int]]:
        """What is asked for, and how much of it is done."""
        parts = {
            "write": [("write", self.written)],
            "judge": [("judge", self.judged)],
            "both": [("write", self.written), ("judge", self.judged)],
            "arena": [("arena", self.compared)],
        }
        return parts[self.kind]

    @property
    def is_enough(self) -> bool:
        """Whether nothing is left to do."""
        return all(done >= self.each for _name, done in self.parts)

    @property
    def amount(self) -> int:
        """How much is done of all that is asked, `asked`."""
        return sum(min(done, self.each) for _name, done in self.parts)

    @property
    def asked(self) -> int:
        """How much is asked in all."""
        return self.each * len(self.parts)


def ids_of(place: Place) -> Arrival | None:
    """The panel's ids of a person; None where there are none, or none any more."""
    try:
        return Arrival(**json.loads(decrypt(place.sealed_id) or "null"))
    except (Unreadable, TypeError):
        return None


def in_rounds(campaign: Campaign, path: str) -> Q:
    """What is in the campaign's rounds, all of its task where none is chosen; one query.

    path: from the rows to their round.
    """
    chosen = list(campaign.rounds.values_list("pk", flat=True))
    return Q(**{f"{path}__in": chosen}) if chosen else Q(**{f"{path}__task": campaign.task_id})


def rounds_are_over(campaign: Campaign) -> bool:
    """Whether it chose rounds and none of them has work any more; one query."""
    over = (Round.State.RELEASED, *((Round.State.CLOSED,) if campaign.kind == "write" else ()))
    chosen = campaign.rounds.values_list("state", flat=True)
    return bool(chosen) and all(state in over for state in chosen)


def may_submit(place: Place, done: Done) -> bool:
    """Whether all is done, or cannot be gone on with, as work ran out or the rounds are over."""
    has_begun = done.amount > 0
    over = place.ran_out_at is not None or (has_begun and rounds_are_over(place.campaign))
    return done.is_enough or over


def pay_of(place: Place, done: Done) -> int:
    """What somebody who submits now earns for the task.

    All of it also where the rounds ended first; where work ran out, the part that is done.
    """
    campaign = place.campaign
    if done.is_enough or (done.amount and rounds_are_over(campaign)):
        return campaign.pay_task
    return part_of(campaign.pay_task, done.amount, done.asked)


def awaiting(campaign: Campaign) -> QuerySet[Place]:
    """The places that wait for the owner's decision; a part that is paid as a bonus needs none."""
    rows = campaign.all_places.filter(state=Place.State.SUBMITTED)
    return rows.filter(part_pay=None) if campaign.pays_parts_as_bonus else rows


def written_by(place: Place) -> QuerySet[Example]:
    """The examples of a place; what was retracted does not count."""
    return Example.objects.filter(
        in_rounds(place.campaign, "round"),
        annotator=place.annotator_id,
        created_at__gte=place.began_at,
        retracted_at=None,
    )


def done_of(place: Place) -> Done:
    """What the person of a place has done, gold items of any round among what is judged."""
    campaign = place.campaign
    done = {}
    if campaign.kind in ("write", "both"):
        done["written"] = written_by(place).count()
    if campaign.kind in ("judge", "both"):
        mine = Q(validator=place.annotator_id, created_at__gte=place.began_at)
        votes = Validation.objects.filter(mine, in_rounds(campaign, "example__round"))
        gold = GoldAnswer.objects.filter(mine, gold__example__round__task=campaign.task_id)
        done["judged"] = votes.count() + gold.count()
    if campaign.kind == "arena":
        voted = Battle.objects.filter(task=campaign.task_id, voter=place.annotator_id)
        done["compared"] = voted.filter(began_at__gte=place.began_at).exclude(winner="").count()
    return Done(campaign.kind, campaign.each, **done, has_code=bool(campaign.code_done))


def ledger_of(campaign: Campaign) -> QuerySet[LedgerRow]:
    """All rows of a campaign."""
    return LedgerRow.objects.filter(place__campaign=campaign).select_related("place__annotator")


@dataclass(frozen=True)
class Row:
    """A place as an owner reads it: by pseudonym, with what it is owed and got."""

    place: Place
    sums: dict[str, int]

    @property
    def owed(self) -> int:
        """What is not paid yet."""
        return sum(self.sums.get(kind, 0) for kind in OWED) - self.sums.get("paid", 0)

    @property
    def earned(self) -> int:
        """Everything that is owed or was paid."""
        return sum(self.sums.get(kind, 0) for kind in OWED)

    @property
    def has_submitted(self) -> bool:
        """Whether the person did the work; who did not pass the test ends without it."""
        return self.place.submitted_at is not None and self.place.state != Place.State.SCREENED

    @property
    def seconds(self) -> float:
        """From the consent to the end; 0 before it."""
        place = self.place
        if not (place.submitted_at and place.began_at):
            return 0.0
        return (place.submitted_at - place.began_at).total_seconds()


def rows_of(campaign: Campaign) -> list[Row]:
    """All places of people who agreed; two queries."""
    sums: dict[int, dict[str, int]] = {}
    grouped = ledger_of(campaign).order_by().values("place", "kind").annotate(sum=Sum("amount"))
    for one in grouped:
        sums.setdefault(one["place"], {})[one["kind"]] = one["sum"]
    places = campaign.all_places.exclude(annotator=None).select_related("annotator")
    return [Row(place, sums.get(place.pk, {})) for place in places]


def people_paid(campaign: Campaign, rows: Sequence[Row]) -> int | None:
    """How many people the budget pays, each the most they can earn; None: there is no limit."""
    others = sum(row.earned for row in rows if row.place.state not in RESERVED)
    return campaign.pay.people(campaign.budget, campaign.written, others)


def in_payment(campaign: Campaign) -> set[int]:
    """The places whose money the panel is asked for, or may have been."""
    over = (Payment.State.DONE, Payment.State.REFUSED)
    rows = Payment.objects.filter(place__campaign=campaign).exclude(state__in=over)
    return set(rows.values_list("place", flat=True))


def owed_outside(campaign: Campaign) -> list[Row]:
    """Who is owed what an owner may pay elsewhere, without paying it twice; four queries.

    Where a panel is asked by its API, it pays for the task once that is approved.
    """
    going = in_payment(campaign)
    waits = set(awaiting(campaign).values_list("pk", flat=True)) if campaign.sealed_token else set()
    return [
        row for row in rows_of(campaign) if row.owed > 0 and row.place.pk not in {*going, *waits}
    ]


def approval_due(campaign: Campaign) -> tuple[int, datetime] | None:
    """How many wait for the owner, and when the panel approves the first; None: nobody's time runs.

    One query, and none where the panel does not approve by itself.
    """
    after = campaign.approves_after
    if after is None:
        return None
    found = awaiting(campaign).aggregate(n=Count("pk"), first=Min("submitted_at"))
    return (found["n"], found["first"] + after) if found["n"] else None


@dataclass(frozen=True)
class Numbers:
    """A campaign in numbers; money in the currency's smallest unit, with fee and tax in `cost`.

    What is said of `parts` and later ones holds for all that the campaign costs, as far as known.
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
    parts: Parts
    cost_each: int | None
    cost_in_the_end: int | None
    fooling_in_the_end: int | None

    @property
    def each(self) -> Parts:
        """The parts of one fooling example, where there are any."""
        many = max(1, self.fooling)
        return Parts._make(None if part is None else round(part / many) for part in self.parts)


def numbers_of(campaign: Campaign, rows: Sequence[Row]) -> Numbers:
    """What an owner watches: places, money, what an hour came to, what a fooling example costs."""
    ended = sum(row.has_submitted for row in rows)
    earned = sum(row.earned for row in rows)
    cost = campaign.pay.with_costs(earned)
    fooling = fooling_of(campaign).count()
    parts = parts_of(campaign, examples_of(campaign), cost)
    left = people_left(campaign.pay, campaign.budget, earned, ended)
    return Numbers(
        taken=sum(row.place.state in TAKEN for row in rows),
        submitted=ended,
        earned=earned,
        paid=sum(row.sums.get("paid", 0) for row in rows),
        cost=cost,
        hourly=per_hour((row.earned, row.seconds) for row in rows),
        people_left=left,
        people_paid=people_paid(campaign, rows),
        fooling=fooling,
        parts=parts,
        cost_each=round(parts.known / fooling) if fooling else None,
        cost_in_the_end=in_the_end(parts.known, ended, campaign.places, left),
        fooling_in_the_end=in_the_end(fooling, ended, campaign.places, left),
    )


def fooling_of(campaign: Campaign) -> QuerySet[Consensus]:
    """The decisions on this campaign's examples that verify an error of a model."""
    return decided_of(campaign).filter(is_validated_error=True)


def examples_of(campaign: Campaign) -> QuerySet[Example]:
    """What its people wrote, from when they agreed till they submitted or left.

    Retracted examples too. What they write later may be for another campaign.
    """
    ended = Coalesce("annotator__places__submitted_at", "annotator__places__expires_at")
    return Example.objects.filter(
        Q(annotator__places__state__in=GOING) | Q(created_at__lte=ended),
        in_rounds(campaign, "round"),
        annotator__places__campaign=campaign,
        created_at__gte=F("annotator__places__began_at"),
    )


def decided_of(campaign: Campaign) -> QuerySet[Consensus]:
    """The decisions on these examples, but those that were retracted or sent back."""
    standing = examples_of(campaign).filter(retracted_at=None)
    return Consensus.objects.filter(example__in=standing, is_verified=True, is_sent_back=False)


def payments_of(campaign: Campaign) -> QuerySet[Payment]:
    """What the panel was asked and is not done, unclear ones first."""
    rows = Payment.objects.filter(place__campaign=campaign).exclude(state=Payment.State.DONE)
    return rows.select_related("place__annotator").order_by("-state", "pk")
