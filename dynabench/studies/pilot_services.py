"""Pilots: a study played by simulated people in tasks of its own, and deleted without a trace."""

import json
import secrets
from random import Random
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Example
from core.accounts.models import Annotator, User
from core.accounts.services import log
from core.errors import Invalid, Refused
from core.jobs.queue import enqueue
from dynabench.campaigns.models import SUBMITTED_STATES, Campaign, LedgerRow, Payment, Place
from dynabench.studies.models import Pilot, Study
from dynabench.studies.rules.plan import StudyPlan
from dynabench.studies.services import freeze_study, get_campaign_slug
from dynabench.studies.setup_services import set_up_study
from dynabench.studies.simulation_services import SimulatedPeople, play_people
from evaluation.contract import ImpossibleJob, NotNow
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work
from tasks.config.loading import load_config
from tasks.config.parsing import dump_yaml
from tasks.line_files import FileError
from tasks.models import Context, Round, RoundTarget, TargetModel, Task
from tasks.permissions import check_owner
from tasks.rounds.opening_services import request_round_state
from tasks.rounds.target_triggers import lift_triggers
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.services import ADDRESS_FIELDS

PILOT_PEOPLE = 5
MAX_PILOT_PEOPLE = 20
"""The arms of any plan have places for as many."""
RIGHT_SHARE, MODEL_GAIN = 0.5, 0.2
"""How often simulated people are right, and what a model adds to it."""


@transaction.atomic
def start_pilot(*, study: Study, actor: User, people: int = PILOT_PEOPLE) -> Pilot:
    """Queue a pilot of a study with a setup, and return it. Locks the study.

    Raises Refused, and Invalid if simulated people can't do what the study asks.
    """
    check_owner(actor, study.task)
    locked_study = Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    plan = locked_study.plan
    if plan.setup is None or load_config(dump_yaml(plan.setup.task)).verdict.type != "decide":
        message = _("Simulated people can try only studies of decisions with a setup.")
        raise Invalid(message, field="people")
    if not 1 <= people <= MAX_PILOT_PEOPLE:
        message = _("Enter a number from 1 to %(most)d.") % {"most": MAX_PILOT_PEOPLE}
        raise Invalid(message, field="people")
    if hasattr(locked_study, "pilot_of"):
        raise Refused(_("This study is a pilot itself."), code="pilot")
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
    """Set the pilot's tasks up, let simulated people take part, and close everything.

    A killed pilot goes on with the people who are missing. Raises ImpossibleJob, NotNow, LeaseLost.
    """
    actor = pilot.requested_by
    if actor is None:
        raise ImpossibleJob("Its owner's account was deleted.")
    try:
        rehearsal = pilot.rehearsal or _set_up_rehearsal(pilot, actor)
        _open_rounds(rehearsal, actor)
        crowd = SimulatedPeople(RIGHT_SHARE, MODEL_GAIN, Random())
        places = Place.objects.filter(campaign__study_arm__study=rehearsal)
        submitted = places.filter(state__in=SUBMITTED_STATES)
        arms = len(rehearsal.plan.arms) if rehearsal.plan.design == "within" else 1
        finished = submitted.count() // arms
        for number in play_people(rehearsal, pilot.people - finished, crowd):
            heartbeat.begin_step((finished + number) / pilot.people, "")
    except EndpointError as error:
        raise ImpossibleJob(f"A model gave no answer: {error.reason}.") from None
    except (Refused, FileError) as error:
        raise ImpossibleJob(str(error)) from None
    _close(rehearsal)
    leases.finish_job(pilot)


@transaction.atomic
def _set_up_rehearsal(pilot: Pilot, actor: User) -> Study:
    """Make the tasks, campaigns and the frozen plan of a pilot. Locks what `set_up_study` does.

    Its tasks are as private and unapproved as any new one.
    """
    plan = pilot.study.plan
    text = _write_rehearsal_plan(plan)
    first_task = Task.objects.get(code=get_campaign_slug(plan, plan.arms[0]))
    rehearsal = set_up_study(
        plan_text=text,
        cases=_write_cases(first_task),
        file_name="cases.jsonl",
        actor=actor,
        is_pilot=True,
    )
    _copy_secrets(plan, rehearsal.plan)
    freeze_study(study=rehearsal, actor=actor)
    # Without the checks of a campaign that recruits: nobody but simulated people can come.
    arms = rehearsal.arms.values("campaign")
    Campaign.objects.filter(pk__in=arms).update(state=Campaign.State.OPEN, opened_at=timezone.now())
    Pilot.objects.filter(pk=pilot.pk).update(rehearsal=rehearsal)
    pilot.rehearsal = rehearsal
    rehearsal.refresh_from_db()
    return rehearsal


def _write_rehearsal_plan(plan: StudyPlan) -> str:
    """Return the plan of a pilot in YAML: another code, no pay, and names that say what it is."""
    assert plan.setup is not None
    data: dict[str, Any] = plan.model_dump(mode="json", exclude_none=True)
    data["study"] = f"pilot-{secrets.token_hex(4)}"
    data["title"] = f"Pilot: {plan.title}"
    data["setup"]["task"]["name"] = f"Pilot: {plan.setup.task['name']}"[:100]
    # Simulated people come by ids, as those of a panel, and nobody pays them.
    data["setup"]["campaign"] |= {"way": "link", "pay_task": 0}
    return dump_yaml(data)


def _write_cases(task: Task) -> bytes:
    """Return the cases of a study's task as a file."""
    lines = []
    for context in Context.objects.filter(round__task=task, is_retired=False).order_by("pk"):
        tag = {"tag": context.tag} if context.tag else {}
        lines.append(json.dumps({**context.fields, **tag, "metadata": context.metadata}))
    return "\n".join(lines).encode()


def _copy_secrets(plan: StudyPlan, pilot_plan: StudyPlan) -> None:
    """Give the models of a pilot the encrypted secrets of the study's models."""
    for arm, pilot_arm in zip(plan.arms, pilot_plan.arms, strict=True):
        target = TargetModel.objects.filter(task__code=get_campaign_slug(plan, arm)).first()
        copies = TargetModel.objects.filter(task__code=get_campaign_slug(pilot_plan, pilot_arm))
        # Only to the address that the secret was given for.
        if target:
            address = {name: getattr(target, name) for name in ADDRESS_FIELDS}
            copies.filter(**address).update(sealed_secret=target.sealed_secret)


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
    if pilot.rehearsal:
        _delete_rehearsal(pilot.rehearsal)
    pilot.delete()
    log(actor, "study.pilot_deleted", study.task, study=study.code)


def _delete_rehearsal(rehearsal: Study) -> None:
    """Delete the study of a pilot and all rows of its tasks, in the order of their references."""
    tasks = list(Task.objects.filter(campaigns__study_arm__study=rehearsal))
    places = Place.objects.filter(campaign__task__in=tasks)
    people = list(Annotator.objects.filter(places__in=places).distinct())
    users = [person.user_id for person in people if person.user_id]
    # Draws and arms first, as an arm protects its campaign.
    rehearsal.delete()
    LedgerRow.objects.filter(place__in=places).delete()
    Payment.objects.filter(place__in=places).delete()
    places.delete()
    Example.objects.filter(round__task__in=tasks).delete()
    # The models of a round that has opened stay as they are, unless the round goes, too.
    with lift_triggers(Round.objects.filter(task__in=tasks)):
        RoundTarget.objects.filter(round__task__in=tasks).delete()
    for task in tasks:
        task.delete()
    # They exist for this pilot only: each has an id of its own.
    Annotator.objects.filter(pk__in=[person.pk for person in people]).delete()
    User.objects.filter(pk__in=users).delete()
