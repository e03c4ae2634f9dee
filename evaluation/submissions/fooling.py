"""“Try to fool it”: practice on the task's write form against one model. Nothing is stored."""

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
    request_answers_in_time,
)
from annotation.refusals import NotAllowed
from annotation.writing.practice import (
    AnswerFunction,
    Opponent,
    count_practice_try,
    show_practice_page,
)
from annotation.writing.uploads import MAX_BODY_BYTES
from annotation.writing.views import render_refusal
from core.web.bodies import limit_body
from core.web.htmx import render_page
from core.web.refusals import show_as_message
from evaluation.kinds import KINDS
from evaluation.models import Submission
from evaluation.runs.chat.asking import CappedEndpoint, make_endpoint_config
from evaluation.runs.chat.settings import ChatSettings
from evaluation.runs.endpoints import CannotFetch, make_submission_endpoint
from evaluation.submissions.practice import services as practice
from evaluation.submissions.practice.selectors import (
    find_active_run,
    find_last_error,
    find_start_seconds,
    has_practice_host,
)
from evaluation.submissions.visibility import Viewer, find_shown_name, find_submission
from tasks.targets.endpoints.answers import expect_object, parse_strict_json, read_output, read_prob
from tasks.targets.endpoints.base import EndpointError, Prediction
from tasks.targets.endpoints.live import TargetFailed
from tasks.targets.spending_services import Payer

IMPORTED_ADAPTER = "imported"
"""The adapter of models whose answers were imported. They cannot be called."""


def can_be_asked(submission: Submission, viewer: Viewer) -> bool:
    """Return whether the viewer may send examples to the model, which may have to be started first.

    Files of predictions and imported targets have fixed answers and cannot be called.
    """
    target = submission.target
    if target:
        can_answer = target.adapter != IMPORTED_ADAPTER
    else:
        can_answer = not KINDS[submission.kind].is_file_of_answers
    is_accepted = submission.state == Submission.State.DONE and not submission.withdrawn_at
    return can_answer and is_accepted and not submission.emptied_at and _may_try(submission, viewer)


def _may_try(submission: Submission, viewer: Viewer) -> bool:
    """Return whether the viewer may try to fool the model.

    Calls to a chat model cost its owner money, so the owner decides whether people outside the
    team may try.
    """
    is_own_model = viewer.is_owner or viewer.is_member
    if (
        KINDS[submission.kind].costs_per_call
        and not ChatSettings.from_stored(submission.chat).is_open
    ):
        return is_own_model
    return submission.task.allow_try_out or viewer.is_inside


def make_fooling_values(submission: Submission, viewer: Viewer) -> Mapping[str, bool]:
    """Return the template values that decide which button or notice the model's page shows."""
    can_fool = can_be_asked(submission, viewer)
    runs_in_sandbox = can_fool and KINDS[submission.kind].runs_in_sandbox
    lacks_engine = runs_in_sandbox and not has_practice_host()
    starts_first = runs_in_sandbox and not lacks_engine
    return {"can_fool": can_fool, "lacks_engine": lacks_engine, "starts_first": starts_first}


def _find_model_to_fool(request: HttpRequest, pk: UUID) -> tuple[Submission, Viewer]:
    submission, viewer = find_submission(request, pk)
    if not can_be_asked(submission, viewer):
        raise Http404
    return submission, viewer


@limit_body(MAX_BODY_BYTES)
@login_not_required
@require_http_methods(["GET", "POST"])
def fool_model(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show the writing page for a single model, to people who may see it and try the task.

    While a model in the sandbox is not ready, show its start page instead.
    """
    submission, viewer = _find_model_to_fool(request, pk)
    if KINDS[submission.kind].runs_in_sandbox:
        run = find_active_run(submission)
        if request.method == "GET" and not (run and run.is_ready):
            return _show_start(request, submission, viewer)
        if "starting" in request.GET:  # requested by a waiting page, which must change now
            return redirect("evaluation:model-fool", pk)
        return show_practice_page(
            request, _make_opponent(submission, viewer, _make_sandbox_answerer(submission))
        )
    try:
        return show_practice_page(
            request, _make_opponent(submission, viewer, _make_answerer(submission, viewer))
        )
    except (CannotFetch, EndpointError) as error:
        message = _("This model isn't available right now: %(why)s") % {"why": error}
        return render_refusal(request, NotAllowed(message), submission.task)


@login_not_required
@require_POST
def start_model(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Start the model in the sandbox, unless it is running already. A start counts as a try."""
    submission, _viewer = _find_model_to_fool(request, pk)
    if not KINDS[submission.kind].runs_in_sandbox:
        raise Http404
    with show_as_message(request):
        if find_active_run(submission) is None:
            count_practice_try(request)
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
        "lacks_engine": not has_practice_host(),
    }
    return render_page(request, "evaluation/model_start.html", values, block_name="start")


def _make_opponent(submission: Submission, viewer: Viewer, answers: AnswerFunction) -> Opponent:
    url = reverse("evaluation:model-fool", args=[submission.pk])
    return Opponent.build_for_model(
        submission.task, find_shown_name(submission, viewer), url, answers
    )


def _make_answerer(submission: Submission, viewer: Viewer) -> AnswerFunction:
    """Return a function that gets the answers of a target or an endpoint.

    Raises EndpointError(misconfigured) and CannotFetch.
    """
    name, endpoint = find_shown_name(submission, viewer), make_submission_endpoint(submission)
    if submission.target:
        payer = Payer(submission.target)
        return lambda inputs: request_answers_in_time(
            [get_affordable_target(payer)], inputs, [payer]
        )
    if KINDS[submission.kind].costs_per_call:
        endpoint = CappedEndpoint(endpoint, submission)
    model = build_live_target(name, endpoint, f"submission-{submission.pk}")
    return lambda inputs: request_answers_in_time(
        [model], inputs, [], practice.MAX_ANSWER_WAIT_SECONDS
    )


def _make_sandbox_answerer(submission: Submission) -> AnswerFunction:
    """Return a function that gets the model's answers from the sandbox.

    The function starts the model again if it has ended. It raises TargetFailed if there is no
    answer.
    """
    endpoint_config = make_endpoint_config(submission.task.config)

    def get_answers(inputs: Mapping[str, Any]) -> Sequence[Prediction]:
        started_at, item = time.monotonic(), endpoint_config.select_fields(inputs)
        try:
            line = practice.ask_question(practice.start_run(submission), item)
            answer = expect_object(parse_strict_json(line.encode()), "")
            if answer.get("output") is None:
                raise EndpointError("The model does not answer this.", reason="refused")
            output = read_output(
                endpoint_config, inputs, answer["output"], use_first_occurrence=True
            )
            prob = read_prob(endpoint_config, answer.get("prob"))
        except EndpointError as error:
            raise TargetFailed(submission.name, error) from None
        return [Prediction(output, prob, time.monotonic() - started_at, {})]

    return get_answers
