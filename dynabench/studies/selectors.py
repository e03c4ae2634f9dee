"""Read studies: what each drawn person did, as records from which the report is computed."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import log
from typing import Any

from django.conf import settings
from django.db.models import Count, Q, QuerySet, prefetch_related_objects
from django.db.models.functions import Coalesce

from core.accounts.counting import find_counted_person
from core.accounts.models import Annotator, PersonAccount, User
from dynabench.campaigns.models import SUBMITTED_STATES, Campaign, Place
from dynabench.campaigns.place_services import hash_panel_id
from dynabench.campaigns.selectors import (
    calculate_numbers,
    list_place_rows,
    select_campaign_examples,
)
from dynabench.campaigns.ways.panels import Arrival
from dynabench.studies.agreement import measure_agreement
from dynabench.studies.exposure import count_harm, read_cells
from dynabench.studies.models import ModelAlone, Study, StudyDraw
from dynabench.studies.rules.coverage import TaskCell, compute_coverage
from dynabench.studies.rules.model_alone import KEY, is_key_met
from dynabench.studies.rules.novelty import compute_novelty
from dynabench.studies.rules.plan import Outcome
from dynabench.studies.rules.records import AloneRecord, MeasuredValue, PersonRecord
from tasks.models import Task
from tasks.permissions import can_own, can_read
from validation.models import Consensus

EXAMPLE_FIELDS = (
    "pk",
    "annotator",
    "context__digest",
    "context__tag",
    "context__metadata",
    "challenge",
    "inputs",
    "metadata",
    "outcome",
    "created_at",
    "shown_at",
    "consensus__state",
    "consensus__is_verified",
    "consensus__is_validated_error",
)

ExampleRow = dict[str, Any]


@dataclass
class ArmWork:
    """What the people of an arm did: their examples, and what outcomes of people compare.

    rows: by annotator. cells: of the task, if an outcome is coverage. harm: by annotator, if an
    outcome is harm.
    """

    rows: Mapping[int, list[ExampleRow]]
    cells: frozenset[TaskCell] = frozenset()
    harm: Mapping[int, int] = field(default_factory=dict)


def list_task_studies(task: Task) -> QuerySet[Study]:
    """Return the studies of a task, each with the number of people drawn as `people_count`."""
    return Study.objects.filter(task=task).annotate(
        # Within people, the first draw of each person.
        people_count=Count("arms__draws", filter=Q(arms__draws__first=None))
    )


def list_free_campaigns(task: Task) -> list[str]:
    """Return the addresses of the task's campaigns that no study uses, newest first."""
    free = Campaign.objects.filter(task=task, study_arm=None).exclude(state=Campaign.State.CLOSED)
    return list(free.order_by("-pk").values_list("slug", flat=True))


def can_read_study(user: User, study: Study) -> bool:
    """Return whether the person owns the study's task and those of all arms, and reads labels."""
    tasks = [study.task]
    # Not once more for the studies of a list, which has read them.
    prefetch_related_objects([study], "arms__campaign__task")
    for arm in study.arms.all():
        tasks.append(arm.campaign.task)
    return all(can_own(user, task) and can_read(user, task) for task in tasks)


def count_people(study: Study) -> dict[str, int]:
    """Return how many people were drawn, began and submitted. Each counts once over all arms."""
    draws = StudyDraw.objects.filter(arm__study=study)
    people = draws.annotate(person=Coalesce("first_id", "pk"))
    return people.aggregate(
        drawn=Count("person", distinct=True),
        began=Count("person", distinct=True, filter=Q(place__began_at__isnull=False)),
        submitted=Count("person", distinct=True, filter=Q(place__state__in=SUBMITTED_STATES)),
    )


def count_draws(study: Study) -> list[dict[str, Any]]:
    """Return for each arm how many people were drawn, and how many of them took a place."""
    counts = study.arms.annotate(drawn=Count("draws"), joined=Count("draws__place"))
    return [
        {"arm": name, "drawn": drawn, "joined": joined}
        for name, drawn, joined in counts.values_list("name", "drawn", "joined")
    ]


def list_panel_hashes(campaign: Campaign, arrival: Arrival) -> list[str]:
    """Return a person's hashes in a campaign, with the current key and former ones."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [hash_panel_id(campaign, arrival.id, key) for key in keys]


def list_own_annotators(user: User) -> list[int]:
    """Return the annotators of all accounts that are the same person, by a confirmed address."""
    person = find_counted_person(user)
    accounts = PersonAccount.objects.filter(person=person)
    return list(
        Annotator.objects.filter(user__in=accounts.values("user")).values_list("pk", flat=True)
    )


def has_earlier_catches(annotator: Annotator | None, hashes: Collection[str]) -> bool:
    """Return whether a person wrote confirmed examples before, by account or by panel id."""
    if annotator is None:
        place = Place.objects.filter(id_hash__in=hashes, annotator__isnull=False).first()
        annotator = place.annotator if place else None
    if annotator is None:
        return False
    return Consensus.objects.filter(example__annotator=annotator, is_verified=True).exists()


def build_study_report(study: Study) -> dict[str, Any]:
    """Return the report of a frozen study: which plan, and all numbers. Reads all its examples."""
    from dynabench.studies.rules.report import build_report  # numpy: not in each web process

    numbers = build_report(study.plan, build_records(study), list_alone_records(study))
    return _describe_study(study) | numbers


def list_alone_records(study: Study) -> list[AloneRecord]:
    """Return what the arms' models answered about the cases without people."""
    rows = ModelAlone.objects.filter(arm__study=study, failure="")
    return [
        AloneRecord(arm, digest, is_right)
        for arm, digest, is_right in rows.values_list("arm__name", "context__digest", "is_right")
    ]


def _describe_study(study: Study) -> dict[str, Any]:
    """Return the parts of the report that name the study."""
    joined = Place.objects.filter(campaign__study_arm__study=study)
    arms = study.arms.select_related("campaign__task")
    return {
        "study": study.code,
        "title": study.plan.title,
        # The people of a pilot are simulated, and so are their answers.
        "is_simulated": hasattr(study, "pilot_of"),
        "plan_hash": study.plan_hash,
        "frozen_at": study.frozen_at.isoformat() if study.frozen_at else None,
        "costs": {arm.name: _describe_cost(arm.campaign) for arm in arms},
        "coverage": {arm.name: _compute_arm_coverage(arm.campaign) for arm in arms},
        # They came by the link of a campaign, so no arm was drawn for them, and they don't count.
        "joined_without_draw": joined.filter(study_draw=None).count(),
    }


def _describe_cost(campaign: Campaign) -> dict[str, Any]:
    """Return what an arm cost, and a catch in it, in the currency's smallest unit."""
    numbers = calculate_numbers(campaign, list_place_rows(campaign))
    return {
        "currency": campaign.currency,
        "cost": numbers.parts.known,
        "cost_per_catch": numbers.cost_per_fooling_example,
    }


def _compute_arm_coverage(campaign: Campaign) -> float | None:
    """Return the share of the task's cells that the confirmed errors of a whole arm fill."""
    errors = select_campaign_examples(campaign).filter(
        retracted_at=None, consensus__is_validated_error=True
    )
    rows = errors.values_list("context__tag", "context__digest", "challenge")
    filled = {TaskCell(tag or digest, challenge or "") for tag, digest, challenge in rows}
    return compute_coverage(read_cells(campaign), filled)


def build_records(study: Study) -> list[PersonRecord]:
    """Return a record of each draw, in the order of the draws.

    Within people, a person has a record for each arm, all with the same number.
    """
    draws = StudyDraw.objects.filter(arm__study=study).select_related("arm__campaign", "place")
    # One query for each campaign, not for each person.
    work_by_campaign: dict[int, ArmWork] = {}
    measures = {outcome.measure for outcome in study.plan.outcomes}
    for arm in study.arms.select_related("campaign__task"):
        work_by_campaign[arm.campaign_id] = _read_arm_work(arm.campaign, measures)
    plan, records = study.plan, []
    numbers: dict[int, int] = {}
    for draw in draws:
        number = numbers.setdefault(draw.first_id_or_own, len(numbers) + 1)
        place, rows = draw.place, []
        work = work_by_campaign[draw.arm.campaign_id]
        if place and place.annotator_id:
            rows = work.rows.get(place.annotator_id, [])
        values: list[MeasuredValue] = []
        for outcome in plan.outcomes:
            values += _measure_person(outcome, place, rows, work)
        records.append(
            PersonRecord(
                person=number,
                arm=draw.arm.name,
                stratum=draw.stratum,
                probability=draw.probability,
                has_begun=place is not None and place.began_at is not None,
                has_submitted=place is not None and place.state in SUBMITTED_STATES,
                means=_compute_means(place, rows),
                values=values,
            )
        )
    return records


def _read_arm_work(campaign: Campaign, measures: Collection[str]) -> ArmWork:
    """Return what the campaign's people wrote and did not retract, and what they were shown.

    measures: of the plan's outcomes.
    """
    rows_by_person: dict[int, list[ExampleRow]] = defaultdict(list)
    examples = select_campaign_examples(campaign).filter(retracted_at=None).order_by("pk")
    rows = list(examples.values(*EXAMPLE_FIELDS))
    # These two compare all rows, so only where an outcome needs them.
    agreement: Mapping[int, float | None] = {}
    novelty: Mapping[int, float | None] = {}
    if "agreement" in measures:
        agreement = measure_agreement([row["pk"] for row in rows])
    if "novelty" in measures:
        novelty = compute_novelty(campaign.task.config, rows)
    for row in rows:
        row["agreement"], row["novelty"] = agreement.get(row["pk"]), novelty.get(row["pk"])
        rows_by_person[row["annotator"]].append(row)
    # Each needs queries of its own, so only where an outcome uses it.
    return ArmWork(
        rows_by_person,
        cells=read_cells(campaign) if "coverage" in measures else frozenset(),
        harm=count_harm(campaign, [row["pk"] for row in rows]) if "harm" in measures else {},
    )


def _measure_person(
    outcome: Outcome, place: Place | None, rows: list[ExampleRow], work: ArmWork
) -> list[MeasuredValue]:
    """Return a person's values of an outcome. Values that are unknown are left out."""
    if outcome.kind.is_per_person:
        value = _measure_whole(outcome, place, rows, work)
        return [] if value is None else [MeasuredValue(outcome.name, "", value)]
    values = []
    for row in rows:
        value = _measure_example(outcome.measure, row)
        if value is not None:
            values.append(MeasuredValue(outcome.name, row["context__digest"], value))
    return values


def _measure_whole(
    outcome: Outcome, place: Place | None, rows: list[ExampleRow], work: ArmWork
) -> float | None:
    """Return a person's value of a measure of people; None if it is unknown."""
    # Who never began has written nothing in this arm, and has no value.
    if place is None or place.began_at is None:
        return None
    if outcome.measure == "examples":
        return float(len(rows))
    if outcome.measure == "coverage":
        return compute_coverage(work.cells, _list_filled_cells(rows))
    if outcome.measure == "harm":
        return float(work.harm.get(place.annotator_id or 0, 0))
    answer = _read_answer(outcome.question or "", place, rows)
    if answer is None or outcome.minus is None:
        return answer
    earlier_answer = _read_answer(outcome.minus, place, rows)
    return None if earlier_answer is None else answer - earlier_answer


def _list_filled_cells(rows: list[ExampleRow]) -> list[TaskCell]:
    """Return the cells of those examples that are confirmed errors of the model."""
    cells = []
    for row in rows:
        if row["consensus__is_validated_error"]:
            topic = row["context__tag"] or row["context__digest"]
            cells.append(TaskCell(topic, row["challenge"] or ""))
    return cells


def _read_answer(name: str, place: Place, rows: list[ExampleRow]) -> float | None:
    """Return a person's answer as a number; None if it is none.

    The campaign's questionnaire asks before the work. Else it is a field that the task asks with
    each example: then the mean of these answers.
    """
    answers = [(place.answers or {}).get(name)]
    # No answer before the work: then the question is one that the task asks.
    if answers == [None]:
        answers = [row["metadata"].get(name) for row in rows]
    numbers = []
    for answer in answers:
        try:
            numbers.append(float(answer))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    return sum(numbers) / len(numbers) if numbers else None


def _measure_example(measure: str, row: ExampleRow) -> float | None:
    """Return an example's value of a measure; None if it is unknown."""
    if measure == "fooled":
        return {"fooled": 1.0, "not_fooled": 0.0}.get(row["outcome"])
    if measure == "caught":
        # Of all tries, as the catch rate of a round: what waits for votes is no catch yet.
        return float(bool(row["consensus__is_validated_error"]))
    if measure == "valid":
        is_decided = row["consensus__state"] == Consensus.State.DECIDED
        return float(row["consensus__is_verified"]) if is_decided else None
    if measure == "correct":
        return _compare_with_key(row)
    if measure in ("agreement", "novelty"):
        value: float | None = row[measure]
        return value
    seconds = _measure_seconds(row)
    # At least a second, as clocks of two requests may give 0.
    return None if seconds is None else log(max(seconds, 1.0))


def _compare_with_key(row: ExampleRow) -> float | None:
    """Return 1 if the person's answer has all values of the context's key, else 0.

    None if the context has no key.
    """
    key = row["context__metadata"].get(KEY)
    if not isinstance(key, dict) or not key:
        return None
    return float(is_key_met(key, row["inputs"]))


def _measure_seconds(row: ExampleRow) -> float | None:
    """Return the time from the text to the stored example, in seconds; None if it is unknown."""
    if row["shown_at"] is None:
        return None
    seconds: float = (row["created_at"] - row["shown_at"]).total_seconds()
    return seconds


def _compute_means(place: Place | None, rows: list[ExampleRow]) -> dict[str, float]:
    """Return the means that rules of exclusion use, without those that are unknown."""
    if place is None or place.began_at is None:
        return {}
    means = {"examples": float(len(rows))}
    for name, measure in (("seconds", _measure_seconds), ("valid", _measure_valid)):
        values = [value for value in map(measure, rows) if value is not None]
        if values:
            means[name] = sum(values) / len(values)
    return means


def _measure_valid(row: ExampleRow) -> float | None:
    """Return whether people agree with a decided example, as 1 or 0."""
    return _measure_example("valid", row)
