"""Writes about adversaries by a task's owners and by the schedule.

The locks are listed in docs/locking.md.
"""

from collections.abc import Mapping
from datetime import timedelta
from random import Random
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.open_round import find_live_round
from core.accounts.models import Annotator, User
from core.accounts.services import log
from core.errors import Invalid, Refused
from core.jobs.queue import enqueue
from dynabench.adversaries.fit import check_fits
from dynabench.adversaries.kinds.base import KINDS, AdversaryKind, SettingError
from dynabench.adversaries.masked_services import NO_MODEL_MESSAGE, find_masked_model
from dynabench.adversaries.models import BUDGET_FIELDS, Adversary, AdversaryRun
from dynabench.adversaries.selectors import find_allowed_image
from dynabench.adversaries.talk_fit import describe_talk
from dynabench.adversaries.writer_services import list_writers
from evaluation.isolation.queue import leases
from evaluation.models.jobs import UNFINISHED_STATES
from tasks.models import Round, Task
from tasks.permissions import can_see
from tasks.services import find_account_within_limit

MAX_ADVERSARIES = 50
"""The maximum number of adversaries of a task that are not retired."""
NIGHT_PAUSE = timedelta(hours=20)
"""The least time between two runs that the schedule starts."""


def find_kind(adversary: Adversary) -> AdversaryKind:
    """Return the adversary's kind. Raises Refused if its package is no longer installed."""
    kind = KINDS.get(adversary.kind)
    if kind is None:
        message = _("The kind %(name)s is no longer installed. Ask the operators.")
        raise Refused(message % {"name": adversary.kind})
    return kind


def check_options(task: Task, kind: AdversaryKind, options: Mapping[str, Any]) -> None:
    """Check the values of a kind's settings. Raises Invalid with the setting as its field."""
    if kind.model_setting and options[kind.model_setting] not in list_writers(task):
        raise Invalid(_("Choose one of the task’s chat models."), field=kind.model_setting)
    # Refused now, because the first run would fail during the night.
    for setting in kind.settings:
        if setting.needs_masked_model and options.get(setting.name) and not find_masked_model():
            raise Invalid(_(NO_MODEL_MESSAGE), field=setting.name)
    try:
        # Planning reads all of them; what it plans is thrown away.
        if task.config.talk:
            kind.plan_talks(options, describe_talk(task.config), Random(0))
        else:
            kind.plan_attacks(options, task.config.goal_choices, Random(0))
    except SettingError as error:
        raise Invalid(_(error.message) % error.values, field=error.setting) from None


@transaction.atomic
def create_adversary(
    *, task: Task, actor: User, kind: str, options: Mapping[str, Any], **columns: Any
) -> Adversary:
    """Create an adversary with an annotator of its own.

    options: complete values of the kind's settings. An account's address is not stored, but the
    account is. columns: name, seed, is_nightly and the budget.
    Locks the task, to enforce the maximum. Raises Refused and Invalid.
    """
    if kind not in KINDS:
        raise Invalid(_("Choose a kind of adversary from the list."), field="kind")
    check_fits(task, KINDS[kind])
    check_options(task, KINDS[kind], options)
    if KINDS[kind].is_program and columns.get("is_nightly"):
        message = _("Your program decides when it runs. Turn off nightly runs.")
        raise Invalid(message, field="is_nightly")
    program_user = None
    # The account is kept, and not its address, which the person may change or have erased.
    if address := options.get(KINDS[kind].account_setting):
        program_user = find_program_user(task, actor, address)
        options = {**options, KINDS[kind].account_setting: ""}
    Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    if task.adversaries.filter(retired_at=None).count() >= MAX_ADVERSARIES:
        message = _("A task can have %(most)d adversaries. Retire one first.")
        raise Refused(message % {"most": MAX_ADVERSARIES})
    # Under the lock, so that of two with one name the second is refused in words.
    if task.adversaries.filter(name=columns["name"]).exists():
        raise Invalid(
            _("This task already has an adversary with this name. Choose another."), field="name"
        )
    adversary = Adversary.objects.create(
        task=task,
        kind=kind,
        options=dict(options),
        # A pseudonym like anybody's, so that no page tells a judge who wrote a text.
        annotator=Annotator.objects.create(),
        made_by=actor,
        program_user=program_user,
        **columns,
    )
    log(actor, "adversary.made", adversary, kind=kind)
    return adversary


def find_program_user(task: Task, actor: User, address: str) -> User:
    """Return the account that may run a program. Raises Invalid and Refused."""
    user = find_account_within_limit(actor, address)
    if not can_see(user, task):
        message = _("This person can’t see the task. Add them as a member first.")
        raise Invalid(message, field="account")
    return user


@transaction.atomic
def start_run(*, adversary: Adversary, actor: User | None) -> AdversaryRun:
    """Queue a run against the open round, with the adversary's present budget.

    actor: None for the schedule. Locks the adversary, so that two requests at once don't take one
    number. Raises Refused.
    """
    kind, image = find_kind(adversary), None
    if kind.is_program:
        raise Refused(
            _("Its program starts its runs through the API. Start the program."), code="program"
        )
    if kind.is_container:
        image = find_allowed_image(adversary)
        if image is None:
            message = _("It has no image that is checked and allowed. Bring one, or allow it.")
            raise Refused(message, code="no_image")
    run = create_run(adversary=adversary, actor=actor, image=image)
    # Nobody waits for what the schedule starts.
    enqueue(run.first_function if actor else run.function, run.pk)
    return run


@transaction.atomic
def create_run(*, adversary: Adversary, actor: User | None, **columns: Any) -> AdversaryRun:
    """Create a run against the open round, with the adversary's present budget.

    columns: further columns of the run. Locks the adversary. Raises Refused.
    """
    locked_adversary = (
        Adversary.objects.select_for_update(of=("self",), no_key=True)
        .select_related("task")
        .get(pk=adversary.pk)
    )
    if locked_adversary.retired_at:
        raise Refused(_("This adversary is retired. Create another one."))
    check_fits(locked_adversary.task, find_kind(locked_adversary))
    if locked_adversary.runs.filter(state__in=UNFINISHED_STATES).exists():
        raise Refused(
            _("This adversary is already running. Wait until it finishes, or stop it."),
            code="running",
        )
    round = find_live_round(locked_adversary.task)
    if round is None or round.state != Round.State.OPEN:
        raise Refused(_("No round is open. Open one first."), code="round_closed")
    last_number = locked_adversary.runs.aggregate(last=Max("number"))["last"] or 0
    limits = {name: getattr(locked_adversary, name) for name in BUDGET_FIELDS}
    run = AdversaryRun.objects.create(
        adversary=locked_adversary,
        round=round,
        number=last_number + 1,
        requested_by=actor,
        **limits,
        **columns,
    )
    log(actor, "adversary.started", locked_adversary, run=run.number)
    return run


@transaction.atomic
def stop_run(*, run: AdversaryRun, actor: User) -> None:
    """Stop a queued or running run; its worker notices within seconds. Takes no lock.

    A run that has ended stays as it is.
    """
    if leases.cancel_job(run, ended_by=AdversaryRun.End.STOPPED):
        log(actor, "adversary.stopped", run.adversary, run=run.number)


@transaction.atomic
def set_schedule(*, adversary: Adversary, actor: User, is_nightly: bool) -> None:
    """Switch the run of every night on or off. Takes no lock: the last change wins.

    Raises Refused if a program decides when it runs.
    """
    if is_nightly and find_kind(adversary).is_program:
        raise Refused(_("Your program decides when it runs."), code="program")
    if Adversary.objects.filter(pk=adversary.pk).update(is_nightly=is_nightly):
        log(actor, "adversary.scheduled", adversary, is_nightly=is_nightly)


@transaction.atomic
def retire_adversary(*, adversary: Adversary, actor: User) -> None:
    """Retire an adversary and stop its run; its examples and its log stay. Idempotent.

    Takes no lock: a run that starts at this moment is the last one.
    """
    unretired_rows = Adversary.objects.filter(pk=adversary.pk, retired_at=None)
    if unretired_rows.update(retired_at=timezone.now(), is_nightly=False):
        log(actor, "adversary.retired", adversary)
    for run in adversary.runs.filter(state__in=UNFINISHED_STATES):
        stop_run(run=run, actor=actor)


def start_due_runs() -> int:
    """Start the nightly adversaries that have not run for NIGHT_PAUSE; return how many.

    Those that cannot run now, for example because no round is open, are tried again later.
    """
    since, count = timezone.now() - NIGHT_PAUSE, 0
    due_adversaries = Adversary.objects.filter(is_nightly=True, retired_at=None).exclude(
        pk__in=AdversaryRun.objects.filter(queued_at__gt=since).values("adversary")
    )
    for adversary in due_adversaries:
        try:
            start_run(adversary=adversary, actor=None)
        # IntegrityError: an owner was first. Both mean that nothing is to be done now.
        except (Refused, IntegrityError):
            continue
        count += 1
    return count
