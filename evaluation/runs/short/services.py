"""Request and cancel short evaluations of paid models, and evaluate such models in full."""

import secrets
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Invalid, Refused
from core.jobs.queue import enqueue
from evaluation.contract import Outcome
from evaluation.isolation.queue import leases
from evaluation.models import EvaluationRun, EvaluationSetVersion, ShortEvaluation, Submission
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.runs.chat.settings import MAX_COST, ChatSettings
from evaluation.runs.services import request_runs
from evaluation.runs.short.selectors import (
    MIN_ASKED,
    explain_model_refusal,
    explain_set_refusal,
    find_choosable_versions,
    find_scored_versions,
)
from tasks.permissions import can_edit

MAX_PER_DAY = 10
"""Short evaluations of one model in a day, which limits what the site's workers do for it."""
MIN_HALF_WIDTH, MAX_HALF_WIDTH = 0.005, 0.25


@transaction.atomic
def request_short_evaluation(
    *,
    submission: Submission,
    actor: User,
    set_name: str,
    half_width: float,
    most_questions: int | None = None,
    most_cost: float | None = None,
) -> ShortEvaluation:
    """Request a short evaluation on the newest version of a set, and return it.

    half_width: of the wanted 95% interval, 0-1. most_questions: None for all of the set. most_cost:
    in the currency of the model's prices; None for the model's own cap alone.

    Locks the submission, for the day's limit. Raises Invalid and Refused.
    """
    Submission.objects.select_for_update(of=("self",), no_key=True).get(pk=submission.pk)
    if reason := explain_model_refusal(submission):
        raise Refused(reason)
    is_editor = can_edit(actor, submission.task)
    version = _find_version(submission, set_name, is_editor=is_editor)
    most_questions = _check_limits(submission, version, half_width, most_questions, most_cost)
    _check_daily_limit(submission)
    evaluation = ShortEvaluation(
        submission=submission,
        version=version,
        requested_by=actor,
        half_width=half_width,
        most_questions=most_questions,
        most_cost=most_cost,
        seed=secrets.randbelow(2**31),
    )
    try:
        with transaction.atomic():  # a nested one, so that the outer one survives the error
            evaluation.save(force_insert=True)
    except IntegrityError:
        raise Refused(
            _("A short evaluation on this set is already under way."), code="under_way"
        ) from None
    log(actor, "short_evaluation.requested", evaluation)
    enqueue(evaluation.function, evaluation.pk)
    return evaluation


def _find_version(
    submission: Submission, set_name: str, *, is_editor: bool
) -> EvaluationSetVersion:
    """Return the set's newest version. Raises Invalid if this person can't choose it."""
    versions = find_choosable_versions(submission.task, is_editor=is_editor)
    for version in versions:
        if version.evaluation_set.name == set_name:
            has_score = version.pk in find_scored_versions(submission)
            reason = explain_set_refusal(version, is_editor=is_editor, has_score=has_score)
            if reason:
                raise Invalid(reason, field="evaluation_set")
            return version
    raise Invalid(_("Choose a test set whose inputs can leave this site."), field="evaluation_set")


def _check_limits(
    submission: Submission,
    version: EvaluationSetVersion,
    half_width: float,
    most_questions: int | None,
    most_cost: float | None,
) -> int:
    """Return the maximum number of questions. Raises Invalid for a number that can't be."""
    if not MIN_HALF_WIDTH <= half_width <= MAX_HALF_WIDTH:
        message = _("Enter a number from %(low)s to %(high)s.") % {
            "low": MIN_HALF_WIDTH,
            "high": MAX_HALF_WIDTH,
        }
        raise Invalid(message, field="half_width")
    if most_questions is None:
        most_questions = version.size
    least = min(MIN_ASKED, version.size)
    if most_questions < least:
        message = _("Enter at least %(n)d, so that an estimate is possible.") % {"n": least}
        raise Invalid(message, field="most_questions")
    if most_cost is not None:
        if not ChatSettings.from_stored(submission.chat).is_paid:
            raise Invalid(
                _("Leave this empty, because this model has no prices."), field="most_cost"
            )
        if not 0 < most_cost <= MAX_COST:
            message = _("Enter a number above 0 and at most %(most)d.") % {"most": MAX_COST}
            raise Invalid(message, field="most_cost")
    return min(most_questions, version.size)


def _check_daily_limit(submission: Submission) -> None:
    since = timezone.now() - timedelta(days=1)
    if submission.short_evaluations.filter(queued_at__gt=since).count() >= MAX_PER_DAY:
        message = _("At most %(n)d short evaluations of a model are possible in a day.")
        raise Refused(message % {"n": MAX_PER_DAY}, code="quota")


@transaction.atomic
def cancel_short_evaluation(*, evaluation: ShortEvaluation, actor: User) -> None:
    """Cancel a short evaluation that isn't over. Takes no lock. Raises Refused.

    Calls that are open at this moment are still paid for. Its worker stores nothing more.
    """
    if not leases.cancel_job(evaluation, outcome=Outcome.CANCELLED):
        raise Refused(_("This short evaluation is already over."))
    log(actor, "short_evaluation.cancelled", evaluation)


@transaction.atomic
def evaluate_in_full(*, submission: Submission, actor: User) -> list[EvaluationRun]:
    """Evaluate a model for which only short evaluations were chosen on all questions of all sets.

    Later sets follow, as for other models. Takes no lock: `run_once` prevents duplicates. Raises
    Refused.
    """
    if not submission.chat.get("short_only"):
        raise Refused(_("This model is already evaluated on all examples."))
    if reason := explain_model_refusal(submission):
        raise Refused(reason)
    submission.chat = {**submission.chat, "short_only": False}
    # Withdrawn meanwhile: its settings are gone, and must not come back.
    rows = Submission.objects.filter(pk=submission.pk, withdrawn_at=None)
    if not rows.update(chat=submission.chat):
        raise Refused(_("This model has been withdrawn."))
    log(actor, "submission.in_full", submission)
    return request_runs(submission=submission, actor=actor)


def cancel_short_evaluations(submission: Submission) -> int:
    """Cancel all unfinished short evaluations of a model; return how many ended."""
    unfinished = submission.short_evaluations.filter(state__in=UNFINISHED_STATES)
    return sum(leases.cancel_job(each, outcome=Outcome.CANCELLED) for each in unfinished)
