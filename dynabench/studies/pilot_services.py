"""Pilots: a study played by simulated people in tasks of its own, and deleted without a trace."""

from random import Random

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from annotation.models import Example
from core.accounts.models import Annotator, User
from core.accounts.services import log
from core.errors import Invalid, Refused
from core.jobs.queue import enqueue
from dynabench.campaigns.models import Campaign, Place
from dynabench.studies.models import Pilot, Study
from dynabench.studies.pilot_copy_services import copy_study, find_pilot_problem
from dynabench.studies.pilot_judge_services import judge_examples, needs_judges, select_judges
from dynabench.studies.pilot_selectors import list_arm_campaigns
from dynabench.studies.services import get_campaign_slug
from dynabench.studies.simulation_services import (
    ModelBusy,
    SimulatedPeople,
    play_people,
)
from evaluation.contract import ImpossibleJob, NotNow
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work
from tasks.contexts.media.services import delete_media
from tasks.line_files import FileError
from tasks.models import Round, RoundTarget, Task
from tasks.permissions import check_owner
from tasks.rounds.opening_services import request_round_state
from tasks.rounds.target_triggers import lift_triggers
from tasks.targets.endpoints.base import EndpointError
from validation.models import Validation

PILOT_PEOPLE = 5
MAX_PILOT_PEOPLE = 20
"""Each copied campaign has places for as many."""
RIGHT_SHARE, MODEL_GAIN = 0.5, 0.2
"""How often simulated people are right, and what a model adds to it."""
PLAY_SHARE = 0.8
"""The share of the progress at which people have submitted, and judges begin."""


@transaction.atomic
def start_pilot(*, study: Study, actor: User, people: int = PILOT_PEOPLE) -> Pilot:
    """Queue a pilot of a study, and return it. Locks the study.

    Raises Refused, and Invalid if simulated people can't do what the study asks.
    """
    check_owner(actor, study.task)
    locked_study = Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    for campaign in list_arm_campaigns(locked_study):
        # Its texts and models are copied, so whoever starts a pilot owns them already.
        check_owner(actor, campaign.task)
    if not 1 <= people <= MAX_PILOT_PEOPLE:
        message = _("Enter a number from 1 to %(most)d.") % {"most": MAX_PILOT_PEOPLE}
        raise Invalid(message, field="people")
    if problem := find_pilot_problem(locked_study):
        raise Invalid(problem, field="people")
    # The old one's tasks would stay behind without a row that names them.
    if Pilot.objects.filter(study=locked_study).exists():
        raise Refused(_("Delete the pilot first, then start another."), code="pilot")
    pilot = Pilot.objects.create(study=locked_study, people=people, requested_by=actor)
    log(actor, "study.pilot", study.task, study=study.code, people=people)
    enqueue(pilot.function, pilot.pk)
    return pilot


def run_pilot(pilot: Pilot) -> None:
    """Do the work of a claimed pilot."""
    do_job_work(pilot, _play)


def _play(pilot: Pilot, heartbeat: Heartbeat) -> None:
    """Copy the study, let simulated people take part and others judge, and close everything.

    A killed pilot goes on where it was: each person has an id that follows from the pilot. Raises
    ImpossibleJob, NotNow, LeaseLost.
    """
    actor = pilot.requested_by
    if actor is None:
        raise ImpossibleJob("Its owner's account was deleted.")
    # What the pilot does now, so that a failure says at which step it came.
    step = "Copying the study"
    try:
        rehearsal = pilot.rehearsal or _store_copy(pilot, actor)
        step = "Asking the models"
        heartbeat.begin_step(0, step)
        _open_rounds(rehearsal, actor)
        crowd = SimulatedPeople(RIGHT_SHARE, MODEL_GAIN, Random())
        names = [f"{rehearsal.code}-{number}" for number in range(1, pilot.people + 1)]
        for person_step in play_people(rehearsal, names, crowd):
            step = str(person_step)
            heartbeat.begin_step(PLAY_SHARE * (person_step.person - 1) / pilot.people, step)
        if needs_judges(pilot.study.plan, list_arm_campaigns(pilot.study)):
            for step in judge_examples(rehearsal, crowd.random):
                heartbeat.begin_step(PLAY_SHARE, step)
    except ModelBusy as error:
        raise NotNow(f"{step}: {error}") from None
    except EndpointError as error:
        raise ImpossibleJob(f"{step}: a model gave no answer ({error.reason}).") from None
    except (Refused, FileError) as error:
        raise ImpossibleJob(f"{step}: {error}") from None
    _close(rehearsal)
    leases.finish_job(pilot)


@transaction.atomic
def _store_copy(pilot: Pilot, actor: User) -> Study:
    """Copy the study of a pilot, and note the copy. Locks what `copy_study` does."""
    # In one transaction, so that a kill leaves no copy that no pilot names.
    rehearsal = copy_study(study=pilot.study, actor=actor, places=MAX_PILOT_PEOPLE)
    Pilot.objects.filter(pk=pilot.pk).update(rehearsal=rehearsal)
    pilot.rehearsal = rehearsal
    return rehearsal


def _open_rounds(rehearsal: Study, actor: User) -> None:
    """Open the rounds of a pilot, which asks its models. Raises RoundError, NotNow."""
    codes = [get_campaign_slug(rehearsal.plan, arm) for arm in rehearsal.plan.arms]
    rounds = Round.objects.filter(task__code__in=codes).select_related("task")
    for round in rounds.exclude(state=Round.State.OPEN):
        opened_round = request_round_state(round=round, state=Round.State.OPEN, actor=actor)
        if opened_round.state != Round.State.OPEN:
            raise NotNow("A model is still being loaded.")


def _close(rehearsal: Study) -> None:
    """End the rounds, campaigns and the study of a pilot. Takes no lock: three updates."""
    tasks = Task.objects.filter(campaigns__study_arm__study=rehearsal)
    # Paused: a closed round would become a test set, on which models are run.
    Round.objects.filter(task__in=tasks).update(state=Round.State.PAUSED)
    Campaign.objects.filter(study_arm__study=rehearsal).update(state=Campaign.State.CLOSED)
    Study.objects.filter(pk=rehearsal.pk).update(state=Study.State.CLOSED)


@transaction.atomic
def delete_pilot(*, study: Study, actor: User) -> None:
    """Delete a pilot with its tasks, answers and simulated people. Locks the study.

    A worker that is playing it loses its lease. Raises Refused.
    """
    check_owner(actor, study.task)
    Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    pilot = Pilot.objects.select_related("rehearsal").filter(study=study).first()
    if pilot is None:
        return
    leases.cancel_job(pilot)
    rehearsal = pilot.rehearsal
    # The pilot first, which protects its study and the copy.
    pilot.delete()
    if rehearsal:
        _delete_rehearsal(rehearsal)
    log(actor, "study.pilot_deleted", study.task, study=study.code)


def _delete_rehearsal(rehearsal: Study) -> None:
    """Delete the study of a pilot and all rows of its tasks, in the order of their references."""
    tasks = list(Task.objects.filter(campaigns__study_arm__study=rehearsal))
    places = Place.objects.filter(campaign__task__in=tasks)
    people = list(Annotator.objects.filter(places__in=places).distinct())
    users = [person.user_id for person in people if person.user_id] + select_judges(rehearsal)
    # Draws and arms first, as an arm protects its campaign.
    rehearsal.delete()
    # Without pay there are no rows of the ledger, which would have to stay.
    places.delete()
    # Votes first, which protect their example.
    Validation.objects.filter(example__round__task__in=tasks).delete()
    Example.objects.filter(round__task__in=tasks).delete()
    # The models of a round that has opened stay as they are, unless the round goes, too.
    with lift_triggers(Round.objects.filter(task__in=tasks)):
        RoundTarget.objects.filter(round__task__in=tasks).delete()
    for task in tasks:
        delete_media(task.media.all())
        task.delete()
    # They exist for this pilot only: each has an id or an address of its own.
    Annotator.objects.filter(Q(pk__in=[p.pk for p in people]) | Q(user__in=users)).delete()
    User.objects.filter(pk__in=users).delete()
