"""Who may have a short evaluation of which model on which set. Loads no numpy."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from evaluation.contract import Outcome
from evaluation.kinds import KINDS
from evaluation.models import EvaluationRun, EvaluationSet, EvaluationSetVersion, Submission
from evaluation.test_sets.selectors import select_newest_versions
from tasks.models import Task

RIGHT_OR_WRONG_METRICS = ("accuracy", "exact_match")
"""Metrics that are the share of right answers: only these can be estimated from some of them."""
MAX_SET_SIZE = 100_000
"""The largest set: all its examples are in memory while questions are drawn."""
MIN_ASKED = 40
"""The least maximum of questions that can be chosen: `scoring.shorter.drawing.MIN_QUESTIONS`."""


def explain_model_refusal(submission: Submission) -> str:
    """Return why a model can't have a short evaluation on any set; "" if it can."""
    if not KINDS[submission.kind].costs_per_call:
        return _("Short evaluations are for chat models, whose owners pay for each call.")
    if submission.withdrawn_at:
        return _("This model has been withdrawn.")
    if submission.state != Submission.State.DONE:
        return _("This model has not been accepted yet.")
    metric = submission.task.config.metrics.main
    if metric not in RIGHT_OR_WRONG_METRICS:
        return _(
            "Short evaluations need a main metric by which each answer is right or wrong, and this "
            "task's is %(metric)s."
        ) % {"metric": metric}
    return ""


def find_choosable_versions(task: Task, *, is_editor: bool) -> QuerySet[EvaluationSetVersion]:
    """Return the newest versions of sets that a person may name: hidden ones only as an editor."""
    versions = select_newest_versions(task).filter(evaluation_set__may_leave=True)
    # Whether a version is sealed depends on its release.
    versions = versions.select_related("evaluation_set__task", "dataset")
    versions = versions.defer("dataset__numbers").order_by("evaluation_set__name")
    if is_editor:
        return versions
    return versions.exclude(evaluation_set__access=EvaluationSet.Access.HIDDEN)


def find_scored_versions(submission: Submission) -> set[int]:
    """Return the ids of the versions on all of whose examples a model has a score. One query."""
    runs = submission.runs.filter(suite=EvaluationRun.Suite.PLAIN, outcome=Outcome.OK)
    return set(runs.values_list("version", flat=True))


def explain_set_refusal(version: EvaluationSetVersion, *, is_editor: bool, has_score: bool) -> str:
    """Return why a model can't have a short evaluation on this version; "" if it can.

    is_editor: whether the person who asks edits the task, and so may know the right answers.
    has_score: whether the model has a score on all of its examples.
    """
    # Which question comes next, and when the evaluation stops, depends on which answers were
    # right, and the model's server sees both. No rounding of the estimate would hide that.
    if version.is_sealed and not is_editor:
        return _(
            "The right answers of this set are secret. A short evaluation would reveal more about "
            "them than a rounded score, so only the task's editors can request one."
        )
    if version.size > MAX_SET_SIZE:
        return _("This set has more than %(n)d examples.") % {"n": MAX_SET_SIZE}
    if has_score:
        return _("This model has a score on all examples of this set.")
    return ""
