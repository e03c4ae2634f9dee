"""The campaigns' answers to the questions that `annotation.questions` declares."""

from datetime import datetime

from django.db.models import Q

from annotation import questions
from annotation.rules.writing_conditions import WritingPlan
from core.accounts.models import Annotator
from dynabench.campaigns.models import ACTIVE_STATES, SUBMITTED_STATES, WORKING_STATES, Campaign
from tasks.models import Round, Task


@questions.has_study_at_work.answer
def has_study_at_work(annotator: Annotator, task: Task) -> bool:
    """Return whether the person is currently working in a study of the task."""
    return annotator.places.filter(campaign__task=task, state__in=WORKING_STATES).exists()


@questions.find_study_rounds.answer
def find_study_rounds(annotator: Annotator, task: Task) -> set[int]:
    """Return the ids of the task's rounds that belong to the person's active studies.

    Rounds count only if the campaign names them explicitly.
    """
    chosen_rounds = Campaign.rounds.through.objects.filter(
        round__task=task,
        campaign__all_places__annotator=annotator,
        campaign__all_places__state__in=ACTIVE_STATES,
    )
    return set(chosen_rounds.values_list("round", flat=True))


@questions.find_writing_plan.answer
def find_writing_plan(annotator: Annotator, round: Round) -> WritingPlan:
    """Return what the newest campaign in which the person works draws for assignments."""
    places = annotator.places.filter(campaign__task=round.task_id, state__in=WORKING_STATES)
    # A campaign that chose rounds draws in these only: work elsewhere does not count in it.
    in_round = Q(campaign__rounds=None) | Q(campaign__rounds=round.pk)
    values = places.filter(in_round).order_by("-pk")
    plan = values.values_list("campaign__deterrents", "campaign__is_labelled").first()
    return WritingPlan(*plan) if plan else WritingPlan()


@questions.find_pausing_study.answer
def find_pausing_study(annotator: Annotator, task: Task) -> str | None:
    """Return the slug of a campaign of the task in which the person is paused, or None."""
    paused_places = annotator.places.filter(
        campaign__task=task, pauses__isnull=False, pauses__lifted_at=None
    )
    return paused_places.values_list("campaign__slug", flat=True).first()


@questions.is_submitted.answer
def is_submitted(annotator: Annotator, task: Task, done_at: datetime) -> bool:
    """Return whether work done at this time belongs to a submitted place. Locks the places."""
    places = annotator.places.select_for_update(of=("self",)).filter(campaign__task=task)
    for place in places.order_by("pk"):
        if place.state not in SUBMITTED_STATES or not (place.began_at and place.submitted_at):
            continue
        if place.began_at <= done_at <= place.submitted_at:
            return True
    return False
