"""Trying the model without an account: nothing is stored.

The passages are those of the task's own examples. Nobody is assigned these, so no text that was
tried out in practice counts. Where a text needs no passage, its writer may keep one that fooled the
model: by their browser alone, until they have an account (`core/web/kept_text.py`).
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from allauth.account.adapter import get_adapter
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from annotation.access import is_gate_shut
from annotation.attempts.live_targets import (
    build_model_inputs,
    get_answers_now,
    get_failure_code,
)
from annotation.attempts.services import build_outputs, judge_answers
from annotation.context_picking.services import check_can_be_asked
from annotation.models import Example, TargetOutput
from annotation.open_round import find_live_round
from annotation.refusals import CapReached, NoContext
from annotation.writing import page
from annotation.writing.page import WritePage
from annotation.writing.practice_talk import Talk, load_talk
from annotation.writing.talk_views import read_said, read_taken_back, show_refused
from annotation.writing.uploads import LARGEST_BODY, receive_form
from annotation.writing.views import render_refusal
from core.errors import Refused
from core.text.words import composed
from core.web.bodies import takes
from core.web.htmx import htmx_partial, render_page
from core.web.kept_text import KeptText, keep_text, seal, unseal
from core.web.throttles import AN_HOUR, is_used_up
from tasks.access import find_task
from tasks.config.schema import TaskConfig
from tasks.models import Context, Round, RoundTarget, TargetModel, Task
from tasks.permissions import can_try_out
from tasks.selectors import list_targets
from tasks.targets.endpoints.base import EndpointError, Prediction

Status = Example.Outcome
Answered = tuple[Sequence[RoundTarget], Sequence[Prediction]]
"""Models, and what each of them says."""
Answers = Callable[[Mapping[str, Any]], Sequence[Prediction]]
"""Asks models; raises EndpointError and Refused."""


@dataclass(frozen=True)
class Opponent:
    """The models to fool in practice.

    url: of the practice page. name: of a single model that is in no round; empty otherwise.
    """

    round: Round
    entries: Callable[[], Sequence[RoundTarget]]
    answers: Answers
    url: str
    name: str = ""

    @classmethod
    def of_round(cls, round: Round) -> "Opponent":
        """Return an opponent that consists of all targets of the round."""

        def answers(inputs: Mapping[str, Any]) -> Sequence[Prediction]:
            return get_answers_now(list_targets(round), inputs)

        url = reverse("annotation:try-out", args=[round.task.code])
        return cls(round, lambda: list_targets(round), answers, url)

    def ask(self, inputs: Mapping[str, Any]) -> Answered:
        """Ask the targets and return them with their answers. Raises EndpointError."""
        return self.entries(), self.answers(inputs)

    @classmethod
    def alone(cls, task: Task, name: str, url: str, answers: Answers) -> "Opponent":
        """Return an opponent that is a single model in no round.

        answers: function that asks the model.
        """
        # Never saved; the panel and the verdict need a round with a task.
        round = Round(task=task, number=0, show_target_name=True)
        entries = [RoundTarget(round=round, target=TargetModel(task=task, name=name))]
        return cls(round, lambda: entries, answers, url, name)


@takes(LARGEST_BODY)
@login_not_required
@require_http_methods(["GET", "POST"])
def try_out(request: HttpRequest, code: str) -> HttpResponse:
    """Show the write page with the task's targets to anybody; nothing is stored."""
    task = find_task(request, code)
    round = find_live_round(task)
    if not can_try_out(request.user, task) or round is None:
        raise Http404
    return practise(request, Opponent.of_round(round))


def practise(request: HttpRequest, opponent: Opponent) -> HttpResponse:
    """Show the page on which anybody practises writing against the opponent; nothing is stored."""
    task = opponent.round.task
    if is_gate_shut(request, task):
        return redirect(reverse("annotation:gate", args=[task.code], query={"for": "try"}))
    try:
        check_can_be_asked(task.config)
    except Refused as error:
        return render_refusal(request, error, task)
    if request.method == "POST":
        return _submit(request, opponent)
    if not task.config.practice_contexts:
        message = _("There is nothing to practise on: no example of this task shows its passage.")
        return render_refusal(request, NoContext(message), task)
    talk = load_talk(request, opponent.url)
    # The task may have lost passages since the conversation began.
    if talk and task.config.talk and talk.place < len(task.config.practice_contexts):
        return page.render_write_page(request, _build_page(opponent, talk))
    return page.render_write_page(request, _start_practice_page(opponent))


def start_practice(round: Round, opened_aid: str = "") -> WritePage:
    """Return a practice page with a random context and goal.

    The task must have practice contexts.
    """
    return replace(_start_practice_page(Opponent.of_round(round)), opened=opened_aid)


def _start_practice_page(opponent: Opponent) -> WritePage:
    config = opponent.round.task.config
    place = random.randrange(len(config.practice_contexts))
    return _build_page(
        opponent, Talk(opponent.url, place, random.choice(config.goal_choices or [""]))
    )


def _build_page(opponent: Opponent, talk: Talk) -> WritePage:
    """Build the page for the conversation's practice context and goal."""
    round, config = opponent.round, opponent.round.task.config
    # Never saved; the form sends the place back where it otherwise sends an assignment's id.
    context = Context(pk=talk.place, round=round, fields=dict(config.practice_contexts[talk.place]))
    return WritePage(
        round.task,
        round,
        context,
        talk.goal,
        practice_url=opponent.url,
        opponent=opponent.name,
        practised=talk.row if config.talk else None,
    )


def _submit(request: HttpRequest, opponent: Opponent) -> HttpResponse:
    place, goal = request.POST.get("assignment", ""), request.POST.get("goal", "")
    config = opponent.round.task.config
    places = map(str, range(len(config.practice_contexts)))
    # The form is not of this task, or was made before its configuration changed.
    if place not in places or goal not in (config.goal_choices or [""]):
        raise Http404
    begun_talk = Talk(opponent.url, int(place), goal)
    if config.talk:
        talk = load_talk(request, opponent.url)
        # Another tab may have begun a conversation about another passage.
        begun_talk = talk if talk and (talk.place, talk.goal) == (int(place), goal) else begun_talk
        if "say" in request.POST or read_taken_back(request):
            return _talk(request, opponent, begun_talk)
    return _judge(request, opponent, begun_talk)


def _talk(request: HttpRequest, opponent: Opponent, talk: Talk) -> HttpResponse:
    """Add a turn to the conversation, or take one back."""
    try:
        if back := read_taken_back(request):
            talk.take_back(*back)
        else:
            _say(request, opponent, talk)
    except Refused as error:
        return show_refused(request, _build_page(opponent, talk), error)
    talk.keep(request)
    # So that reloading the page does not say the turn again.
    if not htmx_partial(request):
        return redirect(opponent.url)
    return render_page(request, page.TEMPLATE, _build_page(opponent, talk).values(), part="talk")


def _say(request: HttpRequest, opponent: Opponent, talk: Talk) -> None:
    """Ask the model for an answer to the posted turn. Raises Refused.

    A failure is stored in the conversation with the turn.
    """
    round, config = opponent.round, opponent.round.task.config
    text, at = read_said(request)
    assert config.talk is not None
    text = composed(text).strip()
    talk.check(config.talk, text, at)
    check_tries(request)
    turns = talk.say(config.talk, text)
    context = config.practice_contexts[talk.place]
    try:
        _entries, answers = opponent.ask(
            build_model_inputs(round, context, {config.talk.name: turns})
        )
    except EndpointError as error:
        talk.failure = get_failure_code(error)
        return
    talk.hear(str(answers[0].output[config.answer_field]))


def check_tries(request: HttpRequest) -> None:
    """Check the hourly limit of practice tries per IP address. Raises CapReached."""
    if is_used_up("try-out", get_adapter().get_client_ip(request)):
        message = ngettext(
            "You have used the %(number)d practice try of this hour.",
            "You have used the %(number)d practice tries of this hour.",
            AN_HOUR["try-out"],
        )
        raise CapReached(message % {"number": AN_HOUR["try-out"]})


def _judge(request: HttpRequest, opponent: Opponent, begun_talk: Talk) -> HttpResponse:
    """Show the verdict on the submitted text, or on the marked answer of a conversation."""
    round, config = opponent.round, opponent.round.task.config
    write_page = _build_page(opponent, begun_talk)
    form = write_page.form(*receive_form(request, round.task))
    if not form.is_valid():
        return page.render_write_page(request, write_page, form=form, status=422)
    try:
        target_answers, inputs = _ask_opponent(request, opponent, begun_talk, form.inputs)
    except Refused as error:
        return page.show_refused(request, write_page, error, form)
    except EndpointError as error:
        return page.show_failed(request, write_page, get_failure_code(error), form)
    example, outputs = _build_unsaved(write_page, inputs, *target_answers)
    if config.talk:
        # The next is another one.
        Talk(opponent.url, begun_talk.place, begun_talk.goal).keep(request)
    panel = {
        **page.build_verdict_panel(example, config, outputs),
        "kept": _seal_text(config, example),
    }
    return page.render_write_page(request, write_page, panel, form=form)


def _seal_text(config: TaskConfig, example: Example) -> str:
    """Return the encrypted text, which the writer's browser can keep; empty if it cannot count.

    It counts if it may have fooled the model and needs no passage. Guests' files are not
    stored, and a model's turns in a conversation count only live.
    """
    is_apart = config.gives == "passage" or config.talk or any(c.is_media for c in config.input)
    if is_apart or example.outcome not in (Status.FOOLED, Status.UNDECIDED):
        return ""
    return seal(KeptText(example.round.task.code, example.goal, example.inputs))


@login_not_required
@require_POST
def keep(request: HttpRequest, code: str) -> HttpResponse:
    """Save a practice text in a cookie, and redirect to the account with which it will count."""
    task = find_task(request, code)
    text = unseal(sealed_text := request.POST.get("kept", ""))
    if text is None or text.task != task.code:
        raise Http404
    write_url = reverse("annotation:write", args=[task.code])
    signed_in = request.user.is_authenticated
    place = write_url if signed_in else reverse("account_signup", query={"next": write_url})
    response = redirect(place)
    keep_text(response, sealed_text)
    return response


def _ask_opponent(
    request: HttpRequest, opponent: Opponent, begun_talk: Talk, inputs: Mapping[str, Any]
) -> tuple[Answered, dict[str, Any]]:
    """Return the models' answers, and the inputs in the stored format.

    A conversation already contains its answer. Raises Refused, EndpointError.
    """
    round, config = opponent.round, opponent.round.task.config
    if config.talk is None:
        check_tries(request)
        context = config.practice_contexts[begun_talk.place]
        return opponent.ask(build_model_inputs(round, context, inputs)), dict(inputs)
    turns = inputs[config.talk.name]
    # Time and fingerprint are only stored, and practice stores nothing.
    answer = Prediction({config.answer_field: begun_talk.answer_after(turns)}, None, 0.0, {})
    whole = {**inputs, config.talk.name: [*begun_talk.opening, *turns]}
    return (opponent.entries(), [answer]), whole


def _build_unsaved(
    write_page: WritePage,
    inputs: dict[str, Any],
    entries: Sequence[RoundTarget],
    predictions: Sequence[Prediction],
) -> tuple[Example, list[TargetOutput]]:
    """Return the example and the outputs with the verdict, as unsaved rows."""
    outcome = judge_answers(write_page.round, inputs, predictions)
    example = Example(
        round=write_page.round,
        context=write_page.context,
        goal=write_page.goal,
        inputs=inputs,
        outcome=outcome.status,
    )
    return example, build_outputs(example, entries, predictions, outcome)
