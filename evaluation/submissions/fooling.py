"""“Try to fool it”: the task's write form against one model, in practice; nothing is stored."""

from functools import partial
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotation.attempts.live_targets import affordable, live_target
from annotation.refusals import NotAllowed
from annotation.writing.practice import Opponent, practise
from annotation.writing.uploads import LARGEST_BODY
from annotation.writing.views import refusal
from dynabench.lib.bodies import takes
from evaluation.models import Submission
from evaluation.submissions.visibility import Viewer, find_submission, shown_name
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.spending_services import Payer

IMPORTED = "imported"
"""The adapter of models that answered before they came here; nobody can ask them."""


def can_be_asked(submission: Submission, viewer: Viewer) -> bool:
    """Whether the model answers one example at once: a target, or an endpoint that was checked."""
    target = submission.target
    answers = target.adapter != IMPORTED if target else submission.kind == Submission.Kind.ENDPOINT
    is_accepted = submission.state == Submission.State.DONE and not submission.withdrawn_at
    may_try = submission.task.allow_try_out or viewer.is_inside
    return answers and is_accepted and may_try


@takes(LARGEST_BODY)
@login_not_required
@require_http_methods(["GET", "POST"])
def fool(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The write page against one model, for who may see the model and try the task."""
    submission, viewer = find_submission(request, pk)
    if not can_be_asked(submission, viewer):
        raise Http404
    try:
        opponent = _opponent(submission, viewer)
    except EndpointError as error:
        gone = _("This model cannot be asked now: %(why)s") % {"why": error}
        return refusal(request, NotAllowed(gone), submission.task)
    return practise(request, opponent)


def _opponent(submission: Submission, viewer: Viewer) -> Opponent:
    """Raises EndpointError(misconfigured)."""
    from evaluation.runs.execute import endpoint_for  # loads what only workers need else

    url = reverse("evaluation:model-fool", args=[submission.pk])
    name, endpoint = shown_name(submission, viewer), endpoint_for(submission)
    alone = partial(Opponent.alone, submission.task, name, url)
    if submission.target:
        payer = Payer(submission.target)
        return alone(lambda: affordable(payer), [payer])
    return alone(lambda: live_target(name, endpoint, f"submission-{submission.pk}"), [])
