"""The rules of who may see which parts of a submission and of its runs.

docs/evaluation.md, “Who sees what”, explains them.
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
from core.accounts.people import get_public_name
from core.text.names import remove_invisible_characters
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, EvaluationSet, EvaluationSetVersion, Submission
from evaluation.submissions.selectors import select_submissions
from evaluation.submissions.teams.selectors import select_team_ids
from tasks.models import Task
from tasks.permissions import Person, can_download, can_edit, can_see

ANONYMOUS_NAME = gettext_noop("An anonymous model")
HIDDEN_LOG_MESSAGE = gettext_noop(
    "[Only the task's owners can see this log, because it may contain "
    "examples that can't leave this site.]"
)
MAX_EXAMPLES = 100_000
"""The maximum size of a set that is read for a page."""


@dataclass(frozen=True)
class Viewer:
    """A person's relation to a submission."""

    is_owner: bool  # whether the reader submitted it
    is_task_owner: bool  # whether the reader edits its task
    is_member: bool = False  # whether the reader is in its team
    may_download: bool = False  # whether the reader may download datasets and sets of the task

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
    may_know = viewer.is_inside or submission.is_published
    if not may_know or not can_see(user, submission.task):
        return None
    return viewer


def make_viewer_function(user: Person, task: Task) -> Callable[[Submission], Viewer]:
    """Return a function that gives the user's relation to any submission of the task.

    Teams are queried only when needed.
    """
    is_task_owner, may_download = can_edit(user, task), can_download(user, task)

    @cache  # one query for a whole list, and none if no model in it has a team
    def get_team_ids() -> frozenset[int]:
        if not isinstance(user, User):
            return frozenset()
        return frozenset(select_team_ids(user).values_list("team", flat=True))

    def get_viewer(submission: Submission) -> Viewer:
        is_owner = isinstance(user, User) and submission.owner_id == user.pk
        is_member = submission.team_id is not None and submission.team_id in get_team_ids()
        return Viewer(is_owner, is_task_owner, is_member, may_download)

    return get_viewer


def find_shown_name(submission: Submission, viewer: Viewer) -> str:
    """Return the model's name, or a placeholder if the name is hidden from the viewer."""
    if submission.is_anonymous and not viewer.is_inside:
        return _(ANONYMOUS_NAME)
    return remove_invisible_characters(submission.name)


def find_shown_owner(submission: Submission, viewer: Viewer) -> str:
    """Return the owner's public name; empty if there is none or it is hidden from the viewer.

    A withdrawn model names nobody, because it may have been anonymous.
    """
    if _hides_people(submission, viewer):
        return ""
    return get_public_name(submission.owner)


def find_shown_team(submission: Submission, viewer: Viewer) -> str:
    """Return the team's name; empty without a team or if the owner is hidden from the viewer."""
    if submission.team is None or _hides_people(submission, viewer):
        return ""
    return remove_invisible_characters(str(submission.team))


def _hides_people(submission: Submission, viewer: Viewer) -> bool:
    is_hidden = submission.is_anonymous or submission.withdrawn_at is not None
    return is_hidden and not viewer.is_inside


def may_see_scores(run: EvaluationRun, viewer: Viewer) -> bool:
    """Return whether the viewer may know the set and the scores on it."""
    is_hidden = run.version.evaluation_set.access == EvaluationSet.Access.HIDDEN
    return viewer.is_task_owner or not is_hidden


def hide_model_output(run: EvaluationRun, viewer: Viewer) -> EvaluationRun:
    """Remove the model's own output from a run if it could reveal examples; return the run.

    A model reads all inputs, and perturbed inputs hint at correct answers. So its log is shown only
    if the inputs may leave the site. The same applies to the number of inputs that it was trained
    on. The run is changed in memory: do not save it.
    """
    version = run.version
    may_leave = version.evaluation_set.may_leave
    if not (viewer.is_task_owner or may_leave):
        run.seen = None
    if run.suite != EvaluationRun.Suite.PLAIN and version.is_sealed:
        may_leave = False
    if not (viewer.is_task_owner or may_leave):
        run.log = HIDDEN_LOG_MESSAGE
        if run.outcome == Outcome.INVALID_OUTPUT:  # the message quotes an answer
            run.error = run.limit = run.measured = ""
    return run


def may_see_wrong_answers(run: EvaluationRun, viewer: Viewer) -> bool:
    """Return whether the viewer may read the wrong answers, and with them the correct ones.

    The task's owners may, and so may everybody who may download a release that has published both
    texts and labels. Always False for perturbed runs, for runs without stored predictions, and for
    sets of more than MAX_EXAMPLES examples.
    """
    if run.suite != EvaluationRun.Suite.PLAIN or not run.predictions:
        return False
    version = run.version
    return (
        version.size <= MAX_EXAMPLES
        and may_see_scores(run, viewer)
        and (viewer.is_task_owner or (publishes_labels(version) and viewer.may_download))
    )


def publishes_labels(version: EvaluationSetVersion) -> bool:
    """Return whether a release has published both the texts and the labels of the version.

    Always False for hidden sets, whose scores are secret, and for sets that may not leave the site.
    """
    # A hidden set keeps its scores secret, even if its rows are in a release.
    is_hidden = version.evaluation_set.access == EvaluationSet.Access.HIDDEN
    return bool(
        version.dataset
        and not version.dataset.options.get("private_test")
        and version.evaluation_set.may_leave
        and not is_hidden
    )


def find_submission(request: HttpRequest | Request, pk: UUID) -> tuple[Submission, Viewer]:
    """Return the submission and the user's relation to it.

    Raises Http404 if the user may not know that it exists.
    """
    submission = get_object_or_404(select_submissions(), pk=pk)
    viewer = find_viewer(request.user, submission)
    if viewer is None:
        raise Http404  # not 403, which would reveal that it exists
    return submission, viewer


def find_owned_submission(request: HttpRequest | Request, pk: UUID) -> tuple[Submission, User]:
    """Return the submission and its owner. Raises Http404 for everybody else."""
    submission, viewer = find_submission(request, pk)
    if not viewer.is_owner or not isinstance(request.user, User):
        raise Http404
    return submission, request.user


def find_visible_runs(
    request: HttpRequest | Request, pk: UUID
) -> tuple[QuerySet[EvaluationRun], Viewer]:
    """Return the runs of a submission that the user may know of; none once it is withdrawn."""
    submission, viewer = find_submission(request, pk)
    if submission.withdrawn_at:
        return EvaluationRun.objects.none(), viewer
    runs = submission.runs.select_related("version__evaluation_set", "version__dataset")
    # These may be large, and runs do not show them.
    runs = runs.defer("measurements", "version__dataset__numbers")
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
    runs, viewer = find_visible_runs(request, pk)
    run = get_object_or_404(runs, pk=run_id)
    if not may_see(run, viewer):
        raise Http404
    return hide_model_output(run, viewer), viewer
