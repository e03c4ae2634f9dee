"""Read pilots: what simulated people did in each arm, and what the study would cost."""

from dataclasses import dataclass
from statistics import fmean

from django.db.models import QuerySet

from annotation.models import Example
from dynabench.campaigns.models import SUBMITTED_STATES, Campaign, Place
from dynabench.campaigns.selectors import (
    calculate_numbers,
    list_place_rows,
    select_campaign_decisions,
    select_campaign_examples,
)
from dynabench.studies.models import Pilot, Study, StudyArm
from dynabench.studies.rules.pilot_summary import (
    compute_outcome_mean,
    compute_people_cost,
    count_planned_people,
    extrapolate_cost,
)
from dynabench.studies.selectors import build_records
from dynabench.studies.services import get_campaign_slug
from validation.models import Consensus


@dataclass(frozen=True)
class ArmSummary:
    """What a pilot tells of one arm.

    judged: examples that judges have decided. minutes: the mean per person. means: by outcome.
    cost: of the simulated people, had they been paid. expected_cost: of all planned people. Money
    is in the currency's smallest unit. None: unknown.
    """

    name: str
    submitted: int
    examples: int
    judged: int
    minutes: float | None
    time_limit: int
    means: dict[str, float | None]
    currency: str
    cost: int
    expected_cost: int | None
    planned_people: int


def list_arm_campaigns(study: Study) -> list[Campaign]:
    """Return the campaigns of a study's arms, with their tasks, in the order of the arms.

    Also of a draft, which has no rows for its arms yet. Leaves out deleted ones.
    """
    plan = study.plan
    slugs = [get_campaign_slug(plan, arm) for arm in plan.arms]
    found = (
        Campaign.objects.filter(slug__in=slugs).select_related("task").in_bulk(field_name="slug")
    )
    return [found[slug] for slug in slugs if slug in found]


def list_pilot_tasks() -> set[int]:
    """Return the ids of the tasks in which only simulated people work. One query."""
    arms = StudyArm.objects.filter(study__pilot_of__isnull=False)
    return set(arms.values_list("campaign__task", flat=True))


def summarise_pilot(pilot: Pilot) -> list[ArmSummary]:
    """Return what a pilot tells of each arm; [] before its study is copied.

    Leaves out arms that the study has renamed or whose campaign was deleted since.
    """
    rehearsal = pilot.rehearsal
    if rehearsal is None:
        return []
    plan = rehearsal.plan
    records = build_records(rehearsal)
    # The copies pay nothing, so what people would earn follows from the study's own campaigns.
    paying = {c.slug: c for c in list_arm_campaigns(pilot.study)}
    slugs = {arm.name: get_campaign_slug(pilot.study.plan, arm) for arm in pilot.study.plan.arms}
    summaries = []
    for arm in rehearsal.arms.select_related("campaign__task"):
        # The plan of a draft may have changed since it was copied.
        own = paying.get(slugs.get(arm.name, ""))
        if own is None:
            continue
        means = {
            outcome.name: compute_outcome_mean(outcome, [r for r in records if r.arm == arm.name])
            for outcome in plan.outcomes
        }
        summaries.append(
            _summarise_arm(arm.name, arm.campaign, own, means, count_planned_people(plan, arm.name))
        )
    return summaries


def _summarise_arm(
    name: str, campaign: Campaign, own: Campaign, means: dict[str, float | None], planned: int
) -> ArmSummary:
    """Return what a pilot tells of an arm.

    campaign: the copy. own: the study's, with its pay. means: by outcome. planned: how many people.
    """
    places = campaign.all_places.filter(state__in=SUBMITTED_STATES)
    decisions = select_campaign_decisions(campaign)
    accepted = decisions.filter(example__annotator__places__in=places)
    submitted = places.count()
    people_cost = compute_people_cost(
        own.pay,
        submitted,
        accepted.count(),
        accepted.filter(is_validated_error=True).count(),
    )
    # The copy knows what its models and machines cost. Its people cost nothing.
    cost = people_cost + calculate_numbers(campaign, list_place_rows(campaign)).parts.known
    examples = select_campaign_examples(campaign)
    return ArmSummary(
        name=name,
        submitted=submitted,
        examples=examples.count(),
        judged=_count_judged(examples),
        minutes=_measure_minutes(list(places)),
        time_limit=own.minutes,
        means=means,
        currency=own.currency,
        cost=cost,
        expected_cost=extrapolate_cost(cost, submitted, planned),
        planned_people=planned,
    )


def _count_judged(examples: QuerySet[Example]) -> int:
    return Consensus.objects.filter(example__in=examples, state=Consensus.State.DECIDED).count()


def _measure_minutes(places: list[Place]) -> float | None:
    """Return the mean time from the beginning of the work to the end, in minutes."""
    minutes = [
        (place.submitted_at - place.began_at).total_seconds() / 60
        for place in places
        if place.submitted_at and place.began_at
    ]
    return fmean(minutes) if minutes else None
