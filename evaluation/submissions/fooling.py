"""“Try to fool it”: the task's write form against one model, in practice; nothing is stored."""

import time
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from annotation.attempts.live_targets import (
    build_live_target,
    get_affordable_target,
    get_answers_in_time,
)
from annotation.refusals import NotAllowed
from annotation.writing.practice import Answers, Opponent, check_tries, practise
from annotation.writing.uploads import LARGEST_BODY
from annotation.writing.views import render_refusal
from core.web.bodies import takes
from core.web.htmx import render_page
from core.web.refusals import as_message
from evaluation.kinds import KINDS
from evaluation.models import Submission
from evaluation.runs.chat.asking import CappedEndpoint, make_endpoint_config
from evaluation.runs.chat.settings import ChatSettings
from evaluation.runs.endpoints import CannotFetch, make_submission_endpoint
from evaluation.submissions.practice import services as practice
from evaluation.submissions.practice.selectors import (
    can_run,
    find_active_run,
    find_last_error,
    find_start_seconds,
)
from evaluation.submissions.visibility import Viewer, find_shown_name, find_submission
from tasks.targets.endpoints.answers import expect_object, read_output, read_prob, strict_json
from tasks.targets.endpoints.base import EndpointError, Prediction
from tasks.targets.endpoints.live import TargetFailed
from tasks.targets.spending_services import Payer

IMPORTED_ADAPTER = "imported"
"""The adapter of models that answered before they came here; nobody can ask them."""


def can_be_asked(submission: Submission, viewer: Viewer) -> bool:
    """Return whether the viewer may send examples to the model, which may have to be started first.

    Files of predictions and imported targets have fixed answers and cannot be called.
    """
    target = submission.target
    if target:
        answers = target.adapter != IMPORTED_ADAPTER
    else:
        answers = not KINDS[submission.kind].is_file_of_answers
    is_accepted = submission.state == Submission.State.DONE and not submission.withdrawn_at
    return answers and is_accepted and not submission.emptied_at and _may_try(submission, viewer)


def _may_try(submission: Submission, viewer: Viewer) -> bool:
    """Return whether the viewer may try to fool the model.

    Calls to a chat model cost its owner money, so the owner decides whether people outside the
    team may try.
    """
    is_theirs = viewer.is_owner or viewer.is_member
    if KINDS[submission.kind].costs_per_call and not ChatSettings.of(submission.chat).is_open:
        return is_theirs
    return submission.task.allow_try_out or viewer.is_inside


def make_fooling_values(submission: Submission, viewer: Viewer) -> Mapping[str, bool]:
    """Return the template values that decide which button or notice the model's page shows."""
    can_fool = can_be_asked(submission, viewer)
    in_sandbox = can_fool and KINDS[submission.kind].runs_in_sandbox
    lacks_engine = in_sandbox and not can_run()
    starts_first = in_sandbox and not lacks_engine
    return {"can_fool": can_fool, "lacks_engine": lacks_engine, "starts_first": starts_first}


def _find(request: HttpRequest, pk: UUID) -> tuple[Submission, Viewer]:
    submission, viewer = find_submission(request, pk)
    if not can_be_asked(submission, viewer):
        raise Http404
    return submission, viewer


@takes(LARGEST_BODY)
@login_not_required
@require_http_methods(["GET", "POST"])
def fool(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show the writing page for a single model, to people who may see it and try the task."""
    submission, viewer = _find(request, pk)
    if KINDS[submission.kind].runs_in_sandbox:
        run = find_active_run(submission)
        if request.method == "GET" and not (run and run.is_ready):
            return _show_start(request, submission, viewer)
        if "starting" in request.GET:  # asks the page that waited: now it is another one
            return redirect("evaluation:model-fool", pk)
        return practise(
            request, _make_opponent(submission, viewer, _make_sandbox_answerer(submission))
        )
    try:
        return practise(
            request, _make_opponent(submission, viewer, _make_answerer(submission, viewer))
        )
    except (CannotFetch, EndpointError) as error:
        gone = _("This model cannot be asked now: %(why)s") % {"why": error}
        return render_refusal(request, NotAllowed(gone), submission.task)


@login_not_required
@require_POST
def start(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Start the model in the sandbox, which counts as a try."""
    submission, _viewer = _find(request, pk)
    if not KINDS[submission.kind].runs_in_sandbox:
        raise Http404
    with as_message(request):
        if find_active_run(submission) is None:
            check_tries(request)
        practice.start_run(submission)
        return redirect("evaluation:model-fool", pk)
    return redirect("evaluation:model", pk)


def _show_start(request: HttpRequest, submission: Submission, viewer: Viewer) -> HttpResponse:
    """Show the progress of the model's start, or the button that starts it."""
    run, seconds = find_active_run(submission), find_start_seconds(submission)
    error = ""
    if run is None:
        error = find_last_error(submission)
    values = {
        "submission": submission,
        "task": submission.task,
        "name": find_shown_name(submission, viewer),
        "run": run,
        "seconds": seconds and ceil(seconds),
        "error": error,
        "lacks_engine": not can_run(),
    }
    return render_page(request, "evaluation/model_start.html", values, part="start")


def _make_opponent(submission: Submission, viewer: Viewer, answers: Answers) -> Opponent:
    url = reverse("evaluation:model-fool", args=[submission.pk])
    return Opponent.alone(submission.task, find_shown_name(submission, viewer), url, answers)


def _make_answerer(submission: Submission, viewer: Viewer) -> Answers:
    """Return a function that gets the answers of a target or an endpoint.

    Raises EndpointError(misconfigured) and CannotFetch.
    """
    name, endpoint = find_shown_name(submission, viewer), make_submission_endpoint(submission)
    if submission.target:
        payer = Payer(submission.target)
        return lambda inputs: get_answers_in_time([get_affordable_target(payer)], inputs, [payer])
    if KINDS[submission.kind].costs_per_call:
        endpoint = CappedEndpoint(endpoint, submission)
    model = build_live_target(name, endpoint, f"submission-{submission.pk}")
    return lambda inputs: get_answers_in_time([model], inputs, [], practice.PATIENCE_SECONDS)


def _make_sandbox_answerer(submission: Submission) -> Answers:
    """Return a function that gets the model's answers from the sandbox.

    The function starts the model again if it has ended.
    """
    endpoint_config = make_endpoint_config(submission.task.config)

    def answers(inputs: Mapping[str, Any]) -> Sequence[Prediction]:
        began, item = time.monotonic(), endpoint_config.select(inputs)
        try:
            line = practice.ask_question(practice.start_run(submission), item)
            answer = expect_object(strict_json(line.encode()), "")
            if answer.get("output") is None:
                raise EndpointError("The model does not answer this.", reason="refused")
            output = read_output(endpoint_config, inputs, answer["output"], first_place=True)
            prob = read_prob(endpoint_config, answer.get("prob"))
        except EndpointError as error:
            raise TargetFailed(submission.name, error) from None
        return [Prediction(output, prob, time.monotonic() - began, {})]

    return answers
