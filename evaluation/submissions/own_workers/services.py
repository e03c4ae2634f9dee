"""Write permissions to evaluate on people's own machines, and the leases of these machines."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Invalid, Refused
from core.jobs.queue import enqueue
from evaluation.contract import Outcome
from evaluation.isolation.queue import leases
from evaluation.isolation.uploads.chunked import check_upload_complete, select_open_uploads
from evaluation.models import (
    EvaluationRun,
    EvaluationSet,
    HandedAnswers,
    OwnWorker,
    SecondOpinion,
    Submission,
    Upload,
)
from evaluation.runs.services import RUN_OVERHEAD
from evaluation.submissions.own_workers.selectors import (
    SECOND_WAIT_TIME,
    find_first_answers,
    find_leasable_runs,
    find_own_sets,
    find_person_models,
    find_workers,
    make_host_name,
    parse_machine_key,
)
from tasks.models import Task

LEASE_CODE = "lease"
"""The code of a refusal because the machine does not, or no longer, have the lease."""


def add_worker(
    *,
    task: Task,
    user: User,
    actor: User,
    second: str = SecondOpinion.SITE,
    takes_sealed: bool = False,
    submission: Submission | None = None,
    evaluation_set: EvaluationSet | None = None,
) -> OwnWorker:
    """Permit a person to evaluate their models of a task on their own machines.

    submission, evaluation_set: limit the permission to one model or to one set, not both.
    second: who repeats a tenth of the answers. takes_sealed: whether sealed sets are included.
    The log records who gave the permission. Takes no lock: `own_worker_once` and similar
    constraints prevent duplicates. Raises Refused.
    """
    if submission and evaluation_set:
        raise Invalid(_("Choose one model or one set, not both."), field="evaluation_set")
    if submission and not find_person_models(user, task).filter(pk=submission.pk).exists():
        raise Invalid(
            _("Choose one of this person's models that can run on their own machine."),
            field="model",
        )
    if evaluation_set and not find_own_sets(task).filter(pk=evaluation_set.pk).exists():
        raise Invalid(
            _("This set's inputs can't leave the site. Choose another set."), field="evaluation_set"
        )
    try:
        with transaction.atomic():
            worker = OwnWorker.objects.create(
                task=task,
                user=user,
                submission=submission,
                evaluation_set=evaluation_set,
                takes_sealed=takes_sealed,
                second=second,
            )
            log(actor, "own_worker.added", worker, **_describe_for_log(worker))
    except IntegrityError:
        raise Refused(
            _("This person already has this permission. Change the model or the set."),
            code="exists",
        ) from None
    return worker


def _describe_for_log(worker: OwnWorker) -> dict[str, Any]:
    """Return the details of a permission for the log.

    A model is logged by its id, because its name may be private.
    """
    log_data = {"user": worker.user.email, "second": worker.second, "sealed": worker.takes_sealed}
    if worker.submission_id:
        log_data["model"] = str(worker.submission_id)
    if worker.evaluation_set:
        log_data["set"] = worker.evaluation_set.name
    return log_data


@transaction.atomic
def remove_worker(*, worker: OwnWorker, actor: User) -> None:
    """Remove a permission. Runs leased by it are lost at their next heartbeat. Takes no lock."""
    log(actor, "own_worker.removed", worker, **_describe_for_log(worker))
    worker.delete()


def lease_run(
    *,
    workers: Sequence[OwnWorker],
    key: str,
    model: UUID | None = None,
    evaluation_set: str = "",
) -> EvaluationRun | None:
    """Lease the oldest run that a machine may take; None if there is none.

    workers: all of the person's permissions in a task. key: the first characters of the API key.
    model, evaluation_set: lease only runs of this model, or on the set with this name.

    The time of the call is stored with the permissions. Takes no lock: the claim is one conditional
    update, as for the site's workers (`evaluation.isolation.queue.leases.claim_job`).
    """
    store_last_call(workers)
    user, now = workers[0].user, timezone.now()
    deadline = now + timedelta(seconds=settings.EVALUATION_SECONDS) + RUN_OVERHEAD
    runs = find_leasable_runs(workers, key, model, evaluation_set)
    # Ten, because others may claim the first ones before this claim.
    for pk in runs.values_list("pk", flat=True)[:10]:
        claim = partial(leases.claim_job, EvaluationRun, pk, begin_by=now + SECOND_WAIT_TIME)
        if run := claim(deadline_at=deadline, host=make_host_name(user, key)):
            return run
    return None


def store_last_call(workers: Sequence[OwnWorker]) -> None:
    """Store when a person's machine last called the site. Takes no lock: the last one counts."""
    rows = OwnWorker.objects.filter(pk__in=[worker.pk for worker in workers])
    rows.update(heard_at=timezone.now())


def renew_lease(*, run: EvaluationRun, user: User, progress: float) -> None:
    """Renew a lease. Takes no lock: the update requires the lease. Raises Refused."""
    if run.deadline_at and timezone.now() > run.deadline_at:  # like a worker of the site
        raise _make_refusal()
    try:
        leases.write_heartbeat(run, progress)
    except leases.LeaseLost:
        raise _make_refusal() from None
    store_last_call(find_workers(user, run.submission.task))


@transaction.atomic
def submit_answers(
    *,
    run: EvaluationRun,
    user: User,
    upload: UUID | None,
    runner: str,
    ending: dict[str, Any],
) -> None:
    """Store the answers of a machine, and queue the run to be scored on the site.

    If the owner requires a second machine, the run waits for one for at most a day. After that, or
    if the second machine fails, the site is the second. If the first one fails, the run returns to
    the queue and one of its attempts is used up.
    Takes no lock: the update requires the lease, and `handed_once` prevents duplicates. Raises
    Refused.
    """
    lease_token, first_answers = run.lease_token, find_first_answers(run)
    try:
        if ending["outcome"] == Outcome.INFRASTRUCTURE:
            if first_answers:  # keep its answers instead of trying the second machine again
                run.handed.filter(pk=first_answers.pk).update(second=SecondOpinion.SITE)
                leases.return_to_queue(run, timezone.now(), "")
                transaction.on_commit(lambda: enqueue(run.function, run.pk))
            else:
                leases.retry_job(run, ending["sentence"])
            return
        second_rule = _find_second_rule(run, user)
        must_wait = (
            first_answers is None
            and second_rule == SecondOpinion.WORKER
            and ending["outcome"] == Outcome.OK
        )
        waits_until, message = timezone.now(), ""
        if must_wait:
            waits_until += SECOND_WAIT_TIME
            message = gettext_noop("waiting for a second machine")
        leases.return_to_queue(run, waits_until, message)
    except leases.LeaseLost:
        raise _make_refusal() from None
    assert lease_token  # `find_leased_run` has found the run by it
    try:
        HandedAnswers.objects.create(
            run=run,
            is_second=first_answers is not None,
            user=user,
            token=parse_machine_key(run),
            lease_token=lease_token,
            runner=runner,
            ending=ending,
            upload=_find_answers_file(user, upload, ending),
            second=second_rule,
        )
    except IntegrityError:  # another machine sent answers while this one took the lease
        raise _make_refusal() from None
    # After the commit, because a worker that starts earlier would not see the answers.
    if not must_wait:
        transaction.on_commit(lambda: enqueue(run.function, run.pk))


def _find_answers_file(user: User, upload: UUID | None, ending: dict[str, Any]) -> Upload | None:
    """Return the uploaded answers; None unless the model succeeded. Raises Refused."""
    if ending["outcome"] != Outcome.OK:
        return None
    file = None
    if upload:
        file = select_open_uploads(user).filter(pk=upload).first()
    if file is None:
        raise Invalid("You have no such file here. Upload it.", field="upload")
    check_upload_complete(file)
    return file


def _find_second_rule(run: EvaluationRun, user: User) -> str:
    """Return the strictest second-opinion rule of the permissions that cover the run.

    Raises Refused if the person has no permission any more.
    """
    submission_id, evaluation_set_id = run.submission_id, run.version.evaluation_set_id
    rules = set()
    for worker in find_workers(user, run.submission.task):
        if worker.submission_id in (None, submission_id) and worker.evaluation_set_id in (
            None,
            evaluation_set_id,
        ):
            rules.add(worker.second)
    for second in (
        SecondOpinion.SITE,
        SecondOpinion.WORKER,
        SecondOpinion.NOBODY,
    ):  # the strictest first
        if second in rules:
            return second
    raise _make_refusal()


def _make_refusal() -> Refused:
    return Refused("This lease is over. Take another one.", code=LEASE_CODE)
