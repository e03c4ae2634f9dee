"""Measure the information of catches, and preview what a bonus by it would have paid."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from annotation.models import TargetOutput
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.information import CatchFacts, compute_information
from evaluation.models import ItemProperty
from tasks.models import Round, Task
from validation.models import Consensus, Validation, Verdict

MAX_CATCHES = 5000
"""The newest catches of finished rounds that a preview reads."""
MAX_CLAUSE_IDS = 900
"""SQLite takes at most a thousand parameters in older builds."""


@dataclass(frozen=True)
class PreviewedCatch:
    """A past catch with its information (0-1), and what it would have earned by both rules."""

    round: int
    example: str
    person: str
    information: float
    flat: int
    by_information: int


@dataclass(frozen=True)
class PreviewedPerson:
    """What the past catches of one person, by pseudonym, would have earned by both rules."""

    person: str
    catches: int
    flat: int
    by_information: int


@dataclass(frozen=True)
class BonusPreview:
    """What a campaign's bonus would have paid for past catches. Money is in the smallest unit.

    flat_cost, information_cost: of all of them, with fee and tax. information: the sum over all.
    """

    catches: list[PreviewedCatch]
    people: list[PreviewedPerson]
    information: float
    flat_cost: int
    information_cost: int

    @property
    def flat_yield(self) -> float | None:
        """The information per major unit of money of a flat bonus; None if it costs nothing."""
        return self._divide(self.flat_cost)

    @property
    def information_yield(self) -> float | None:
        """The same of a bonus by information."""
        return self._divide(self.information_cost)

    def _divide(self, cost: int) -> float | None:
        return 100 * self.information / cost if cost else None


def measure_information(decisions: Sequence[Consensus]) -> dict[int, float]:
    """Return the information of each decided catch, by example id. Three queries for each 900."""
    # In batches, because a preview may ask about thousands.
    information: dict[int, float] = {}
    for first in range(0, len(decisions), MAX_CLAUSE_IDS):
        information |= _measure_batch(decisions[first : first + MAX_CLAUSE_IDS])
    return information


def _measure_batch(decisions: Sequence[Consensus]) -> dict[int, float]:
    example_ids = [decision.pk for decision in decisions]
    votes: defaultdict[int, Counter[str]] = defaultdict(Counter)
    # Programs are asked beside people, and who reports an example says nothing about its answer.
    rows = Validation.objects.filter(example__in=example_ids, by_program=False)
    for example_id, label, verdict in rows.exclude(verdict=Verdict.FLAGGED).values_list(
        "example", "label", "verdict"
    ):
        votes[example_id][label or verdict] += 1
    models: defaultdict[int, list[bool]] = defaultdict(list)
    # Where the author says who was right, a single answer has no verdict.
    outputs = TargetOutput.objects.filter(example__in=example_ids, fooled__isnull=False)
    for example_id, is_fooled in outputs.values_list("example", "fooled"):
        models[example_id].append(is_fooled is True)
    discriminations = dict(
        ItemProperty.objects.filter(example__in=example_ids, discrimination__isnull=False)
        .order_by("fit__fitted_at")  # the newest estimate comes last, and stays
        .values_list("example", "discrimination")
    )
    information = {}
    for decision in decisions:
        counts = votes[decision.pk]
        information[decision.pk] = compute_information(
            CatchFacts(
                right_votes=counts[decision.label or decision.verdict],
                votes=counts.total(),
                wrong_models=sum(models[decision.pk]),
                models=len(models[decision.pk]),
                answer_votes=list(counts.values()),
                discrimination=discriminations.get(decision.pk),
            )
        )
    return information


def select_past_catches(task: Task) -> QuerySet[Consensus]:
    """Return the catches of the task's finished rounds by people, newest first."""
    return (
        Consensus.objects.filter(
            round__task=task,
            round__state__in=Round.FINISHED_STATES,
            is_validated_error=True,
            is_sent_back=False,
            example__retracted_at=None,
            example__by_program=False,
        )
        .select_related("example__annotator", "round")
        .order_by("-pk")
    )


def preview_bonus(campaign: Campaign) -> BonusPreview:
    """Return what the campaign's bonus would have paid for the newest past catches.

    Similar catches aren't reduced, and no person's limit applies, so both rules are compared on
    the same catches.
    """
    # All rounds of the task: those of the campaign are seldom over before it opens.
    decisions = list(select_past_catches(campaign.task)[:MAX_CATCHES])
    information = measure_information(decisions)
    catches = []
    for decision in decisions:
        share = information[decision.pk]
        by_information = campaign.pay.compute_example_pay(share)["bonus"]
        catches.append(
            PreviewedCatch(
                round=decision.round.number,
                example=str(decision.example.uuid),
                person=str(decision.example.annotator or ""),  # unknown in imported history
                information=share,
                flat=campaign.pay_bonus,
                by_information=by_information,
            )
        )
    return BonusPreview(
        catches=catches,
        people=_sum_by_person(catches),
        information=sum(catch.information for catch in catches),
        flat_cost=campaign.pay.add_costs(sum(catch.flat for catch in catches)),
        information_cost=campaign.pay.add_costs(sum(catch.by_information for catch in catches)),
    )


def _sum_by_person(catches: Sequence[PreviewedCatch]) -> list[PreviewedPerson]:
    """Return the sums of each person, those who would have earned most first."""
    by_person: defaultdict[str, list[PreviewedCatch]] = defaultdict(list)
    for catch in catches:
        by_person[catch.person].append(catch)
    people = [
        PreviewedPerson(
            person,
            len(own_catches),
            sum(catch.flat for catch in own_catches),
            sum(catch.by_information for catch in own_catches),
        )
        for person, own_catches in by_person.items()
    ]
    return sorted(people, key=lambda row: (-row.by_information, row.person))


def iterate_preview_rows(campaign: Campaign) -> Iterator[list[Any]]:
    """Yield a header and each past catch, with what it would have earned by both rules."""
    yield ["round", "example", "person", "information", "flat", "by_information", "currency"]
    for catch in preview_bonus(campaign).catches:
        amounts = [catch.flat, catch.by_information, campaign.currency]
        yield [catch.round, catch.example, catch.person, catch.information, *amounts]
