"""The rules of who may see which parts of a submission and of its runs.

docs/evaluation.md, “Who sees what”, says it in words.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from rest_framework.request import Request

from core.accounts.models import User
from core.accounts.people import public_name
from core.text.names import visible
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, EvaluationSet, Submission
from evaluation.submissions.selectors import select_submissions
from evaluation.submissions.teams.selectors import select_team_ids
from tasks.models import Task
from tasks.permissions import Person, can_edit, can_see, can_take

ANONYMOUS_NAME = gettext_noop("An anonymous model")
HIDDEN_LOG = gettext_noop(
    "[The log is for the task's owners: it may hold examples, which are not to leave.]"
)
MOST_EXAMPLES = 100_000
"""Examples of a set that is read for a page."""


@dataclass(frozen=True)
class Viewer:
    """A person's relation to a submission."""

    is_owner: bool  # submitted it
    is_task_owner: bool  # edits its task
    is_member: bool = False  # of the team for which it was submitted
    may_take: bool = False  # what leaves the task

    @property
    def is_inside(self) -> bool:
        """Return whether the viewer is an owner, a team member or a task owner.

        They see what is not published.
        """
        return self.is_owner or self.is_task_owner or self.is_member

    @property
    def may_repeat(self) -> bool:
        """Return whether the viewer may repeat the submission's evaluations."""
        return self.is_owner or self.is_task_owner


def find_viewer(user: Person, submission: Submission) -> Viewer | None:
    """Return the user's relation to the submission; None if they may not know that it exists."""
    viewer = make_viewer_function(user, submission.task)(submission)
    knows = viewer.is_inside or submission.is_published
    if not knows or not can_see(user, submission.task):
        return None
    return viewer


def make_viewer_function(user: Person, task: Task) -> Callable[[Submission], Viewer]:
    """Return a function that gives the user's relation to any submission of the task.

    Teams are queried only when needed.
    """
    is_task_owner, may_take = can_edit(user, task), can_take(user, task)

    @cache  # one query for a whole list, and none if no model in it has a team
    def teams() -> frozenset[int]:
        if not isinstance(user, User):
            return frozenset()
        return frozenset(select_team_ids(user).values_list("team", flat=True))

    def viewer(submission: Submission) -> Viewer:
        is_owner = isinstance(user, User) and submission.owner_id == user.pk
        is_member = submission.team_id is not None and submission.team_id in teams()
        return Viewer(is_owner, is_task_owner, is_member, may_take)

    return viewer


def find_shown_name(submission: Submission, viewer: Viewer) -> str:
    """Return the model's name, or a placeholder if the name is hidden from the viewer."""
    if submission.is_anonymous and not viewer.is_inside:
        return _(ANONYMOUS_NAME)
    return visible(submission.name)


def find_shown_owner(submission: Submission, viewer: Viewer) -> str:
    """Return the owner's public name; empty if there is none or it is hidden from the viewer.

    A withdrawn model names nobody, because it may have been anonymous.
    """
    if _hides_people(submission, viewer):
        return ""
    return public_name(submission.owner)


def find_shown_team(submission: Submission, viewer: Viewer) -> str:
    """Return the team's name; empty without a team or if the owner is hidden from the viewer."""
    if submission.team is None or _hides_people(submission, viewer):
        return ""
    return visible(str(submission.team))


def _hides_people(submission: Submission, viewer: Viewer) -> bool:
    hidden = submission.is_anonymous or submission.withdrawn_at is not None
    return hidden and not viewer.is_inside


def may_see_scores(run: EvaluationRun, viewer: Viewer) -> bool:
    """Return whether the viewer may know the set and the scores on it."""
    hidden = run.version.evaluation_set.access == EvaluationSet.Access.HIDDEN
    return viewer.is_task_owner or not hidden


def hide_model_output(run: EvaluationRun, viewer: Viewer) -> EvaluationRun:
    """Remove the model's own output from a run if it could reveal examples. Do not save the run.

    A model reads all inputs, and perturbed inputs hint at correct answers. So its log is shown only
    if the inputs may leave the site; the same applies to the number of inputs it was trained on.
    """
    version = run.version
    may_leave = version.evaluation_set.may_leave
    if not (viewer.is_task_owner or may_leave):
        run.seen = None
    if run.suite != EvaluationRun.Suite.PLAIN and version.is_sealed:
        may_leave = False
    if not (viewer.is_task_owner or may_leave):
        run.log = HIDDEN_LOG
        if run.outcome == Outcome.INVALID_OUTPUT:  # quotes an answer
            run.error = run.limit = run.measured = ""
    return run


def may_see_wrong(run: EvaluationRun, viewer: Viewer) -> bool:
    """Return whether the viewer may read the wrong answers, and with them the correct ones.

    The task's owners may, and so may everybody who may download a release that has published both
    texts and labels.
    """
    if run.suite != EvaluationRun.Suite.PLAIN or not run.predictions:
        return False
    version = run.version
    is_public = bool(
        version.dataset
        and not version.dataset.options.get("private_test")
        and version.evaluation_set.may_leave
    )
    return (
        version.size <= MOST_EXAMPLES
        and may_see_scores(run, viewer)
        and (viewer.is_task_owner or (is_public and viewer.may_take))
    )


def find_submission(request: HttpRequest | Request, pk: UUID) -> tuple[Submission, Viewer]:
    """Return the submission and the user's relation to it.

    Raises Http404 if the user may not know that it exists.
    """
    submission = get_object_or_404(select_submissions(), pk=pk)
    viewer = find_viewer(request.user, submission)
    if viewer is None:
        raise Http404  # not 403, which would tell that it exists
    return submission, viewer


def find_owned(request: HttpRequest | Request, pk: UUID) -> tuple[Submission, User]:
    """Return the submission and its owner. Raises Http404 for everybody else."""
    submission, viewer = find_submission(request, pk)
    if not viewer.is_owner or not isinstance(request.user, User):
        raise Http404
    return submission, request.user


def find_seen_runs(
    request: HttpRequest | Request, pk: UUID
) -> tuple[QuerySet[EvaluationRun], Viewer]:
    """Return the runs of a submission that the user may know of; none once it is withdrawn."""
    submission, viewer = find_submission(request, pk)
    if submission.withdrawn_at:
        return EvaluationRun.objects.none(), viewer
    runs = submission.runs.select_related("version__evaluation_set", "version__dataset")
    runs = runs.defer("version__dataset__numbers")  # may be large, and no run shows it
    if viewer.is_task_owner:
        return runs, viewer
    return runs.exclude(version__evaluation_set__access=EvaluationSet.Access.HIDDEN), viewer


def find_run(
    request: HttpRequest | Request,
    pk: UUID,
    run_id: UUID,
    may_see: Callable[[EvaluationRun, Viewer], bool] = lambda run, viewer: viewer.is_inside,
) -> tuple[EvaluationRun, Viewer]:
    """Return a run with what the user may see of it. Raises Http404 unless `may_see` allows it.

    may_see: by default, allows everybody inside (see `Viewer.is_inside`).
    """
    runs, viewer = find_seen_runs(request, pk)
    run = get_object_or_404(runs, pk=run_id)
    if not may_see(run, viewer):
        raise Http404
    return hide_model_output(run, viewer), viewer
