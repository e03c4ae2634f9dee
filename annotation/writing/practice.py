"""Practice against the model without an account; nothing is stored.

The passages come from the task's own examples. These are never assigned, so texts about them never
count. If a text needs no passage and fooled the model, its writer may save it. It then stays in
their browser until they have an account (`core/web/guest_text.py`).
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
    get_failure_code,
    request_answers,
)
from annotation.attempts.services import build_outputs, judge_answers
from annotation.context_picking.services import check_supported_inputs
from annotation.models import Example, TargetOutput
from annotation.open_round import find_live_round
from annotation.refusals import CapReached, NoContext
from annotation.writing import page
from annotation.writing.forms import find_unchanged_fields
from annotation.writing.page import WritePage
from annotation.writing.practice_talk import Talk, load_talk
from annotation.writing.talk_views import (
    read_next_turn,
    read_turn_to_take_back,
    render_refused_talk,
)
from annotation.writing.uploads import MAX_BODY_BYTES, receive_form
from annotation.writing.views import render_refusal
from core.errors import Refused
from core.text.words import compose
from core.web.bodies import limit_body
from core.web.guest_text import GuestText, seal_text, store_sealed_text, unseal_text
from core.web.htmx import is_htmx_partial, render_page
from core.web.throttles import REQUESTS_PER_HOUR, is_used_up
from tasks.access import find_task
from tasks.config.schema import TaskConfig
from tasks.models import Context, Round, RoundTarget, TargetModel, Task
from tasks.permissions import can_try_out
from tasks.selectors import list_targets
from tasks.targets.endpoints.base import EndpointError, Prediction

Status = Example.Outcome
TargetAnswers = tuple[Sequence[RoundTarget], Sequence[Prediction]]
"""Models, and their answers in the same order."""
AnswerFunction = Callable[[Mapping[str, Any]], Sequence[Prediction]]
"""A function that asks models; raises EndpointError and Refused."""


@dataclass(frozen=True)
class Opponent:
    """The models to fool in practice.

    url: the address of the practice page. name: the name of a single model that is in no round;
    empty otherwise.
    """

    round: Round
    list_entries: Callable[[], Sequence[RoundTarget]]
    get_answers: AnswerFunction
    url: str
    name: str = ""

    @classmethod
    def build_for_round(cls, round: Round) -> "Opponent":
        """Return an opponent that consists of all targets of the round."""

        def answers(inputs: Mapping[str, Any]) -> Sequence[Prediction]:
            return request_answers(list_targets(round), inputs)

        url = reverse("annotation:try-out", args=[round.task.code])
        return cls(round, lambda: list_targets(round), answers, url)

    def ask_models(self, inputs: Mapping[str, Any]) -> TargetAnswers:
        """Ask the models; return their entries and their answers. Raises EndpointError, Refused."""
        return self.list_entries(), self.get_answers(inputs)

    @classmethod
    def build_for_model(
        cls, task: Task, name: str, url: str, answers: AnswerFunction
    ) -> "Opponent":
        """Return an opponent that is a single model in no round.

        answers: function that asks the model.
        """
        # Never saved; the panel and the verdict need a round with a task.
        round = Round(task=task, number=0, show_target_name=True)
        entries = [RoundTarget(round=round, target=TargetModel(task=task, name=name))]
        return cls(round, lambda: entries, answers, url, name)


@limit_body(MAX_BODY_BYTES)
@login_not_required
@require_http_methods(["GET", "POST"])
def show_try_out(request: HttpRequest, code: str) -> HttpResponse:
    """Show the write page with the task's targets to anybody; nothing is stored.

    Raises Http404 if the task has no live round, or does not let the person try it.
    """
    task = find_task(request, code)
    round = find_live_round(task)
    if not can_try_out(request.user, task) or round is None:
        raise Http404
    return show_practice_page(request, Opponent.build_for_round(round))


def show_practice_page(request: HttpRequest, opponent: Opponent) -> HttpResponse:
    """Show the page on which anybody practises writing against the opponent; nothing is stored."""
    task = opponent.round.task
    if is_gate_shut(request, task):
        return redirect(reverse("annotation:gate", args=[task.code], query={"for": "try"}))
    try:
        check_supported_inputs(task.config)
    except Refused as error:
        return render_refusal(request, error, task)
    if request.method == "POST":
        return _handle_post(request, opponent)
    if not task.config.practice_contexts:
        message = _("This task doesn't have any texts for practice yet.")
        return render_refusal(request, NoContext(message), task)
    talk = load_talk(request, opponent.url)
    # The task may have lost passages since the conversation began.
    if talk and task.config.talk and talk.place < len(task.config.practice_contexts):
        return page.render_write_page(request, _build_page(opponent, talk))
    write_page = _fill_from_example(opponent, request.GET.get("example", ""))
    return page.render_write_page(request, write_page or _build_random_practice_page(opponent))


def build_practice_page(round: Round, opened_aid: str = "", example: str = "") -> WritePage:
    """Return a practice page with a random context and goal, or filled with a good example.

    example: the index of the good example. The task must have practice contexts.
    """
    opponent = Opponent.build_for_round(round)
    # Numbers come from links, which outlive a change of the examples.
    write_page = _fill_from_example(opponent, example) or _build_random_practice_page(opponent)
    return replace(write_page, opened_aid=opened_aid)


def _build_random_practice_page(opponent: Opponent) -> WritePage:
    config = opponent.round.task.config
    assignment_id = random.randrange(len(config.practice_contexts))
    return _build_page(
        opponent, Talk(opponent.url, assignment_id, random.choice(config.goal_choices or [""]))
    )


def _fill_from_example(opponent: Opponent, number: str) -> WritePage | None:
    """Return a page with the text of a good example of the task; None if there is none."""
    config = opponent.round.task.config
    examples = config.examples.good[: page.MAX_FILLERS]
    if not number.isdecimal() or int(number) >= len(examples):
        return None
    example = examples[int(number)]
    goal = str(example.input.get(config.goal.field, "")) if config.goal.field else ""
    text = example.input.get(config.text_field)
    is_known = example.context in config.practice_contexts and goal in (config.goal_choices or [""])
    if not text or not is_known:
        return None
    place = config.practice_contexts.index(example.context)
    write_page = _build_page(opponent, Talk(opponent.url, place, goal))
    return (
        replace(write_page, start_values={config.text_field: text}) if write_page.fillers else None
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
        practice_conversation=talk.row if config.talk else None,
    )


def _handle_post(request: HttpRequest, opponent: Opponent) -> HttpResponse:
    assignment_id, goal = request.POST.get("assignment", ""), request.POST.get("goal", "")
    config = opponent.round.task.config
    valid_ids = map(str, range(len(config.practice_contexts)))
    # The form is not of this task, or was made before its configuration changed.
    if assignment_id not in valid_ids or goal not in (config.goal_choices or [""]):
        raise Http404
    begun_talk = Talk(opponent.url, int(assignment_id), goal)
    if config.talk:
        talk = load_talk(request, opponent.url)
        # Another tab may have begun a conversation about another passage.
        begun_talk = (
            talk if talk and (talk.place, talk.goal) == (int(assignment_id), goal) else begun_talk
        )
        if "say" in request.POST or read_turn_to_take_back(request):
            return _change_talk(request, opponent, begun_talk)
    return _show_verdict(request, opponent, begun_talk)


def _change_talk(request: HttpRequest, opponent: Opponent, talk: Talk) -> HttpResponse:
    """Add a turn to the conversation, or take one back."""
    try:
        if back := read_turn_to_take_back(request):
            talk.take_back_turn(*back)
        else:
            _send_turn(request, opponent, talk)
    except Refused as error:
        return render_refused_talk(request, _build_page(opponent, talk), error)
    talk.store_in_session(request)
    # So that reloading the page does not say the turn again.
    if not is_htmx_partial(request):
        return redirect(opponent.url)
    return render_page(
        request, page.TEMPLATE, _build_page(opponent, talk).build_context(), block_name="talk"
    )


def _send_turn(request: HttpRequest, opponent: Opponent, talk: Talk) -> None:
    """Ask the model for an answer to the posted turn. Raises Refused.

    A failure is stored in the conversation with the turn.
    """
    round, config = opponent.round, opponent.round.task.config
    text, turn_index = read_next_turn(request)
    assert config.talk is not None
    text = compose(text).strip()
    talk.check_turn(config.talk, text, turn_index)
    count_practice_try(request)
    turns = talk.set_next_turn(config.talk, text)
    context = config.practice_contexts[talk.place]
    try:
        _entries, answers = opponent.ask_models(
            build_model_inputs(round, context, {config.talk.name: turns})
        )
    except EndpointError as error:
        talk.failure = get_failure_code(error)
        return
    talk.add_answer(str(answers[0].output[config.answer_field]))


def count_practice_try(request: HttpRequest) -> None:
    """Count one more practice try of the IP address. Raises CapReached above the hourly limit."""
    if is_used_up("try-out", get_adapter().get_client_ip(request)):
        message = ngettext(
            "You've reached the limit of %(number)d practice try an hour. Try again later.",
            "You've reached the limit of %(number)d practice tries an hour. Try again later.",
            REQUESTS_PER_HOUR["try-out"],
        )
        raise CapReached(message % {"number": REQUESTS_PER_HOUR["try-out"]})


def _show_verdict(request: HttpRequest, opponent: Opponent, begun_talk: Talk) -> HttpResponse:
    """Show the verdict on the submitted text, or on the marked answer of a conversation."""
    round, config = opponent.round, opponent.round.task.config
    write_page = _build_page(opponent, begun_talk)
    form = write_page.build_form(*receive_form(request, round.task))
    if not form.is_valid():
        return page.render_write_page(request, write_page, form=form, status=422)
    try:
        target_answers, inputs = _ask_opponent(request, opponent, begun_talk, form.inputs)
    except Refused as error:
        return page.render_refused_page(request, write_page, error, form)
    except EndpointError as error:
        return page.render_failed_page(request, write_page, get_failure_code(error), form)
    example, outputs = _build_unsaved(write_page, inputs, *target_answers)
    if config.talk:
        # The next is another one.
        Talk(opponent.url, begun_talk.place, begun_talk.goal).store_in_session(request)
    panel = {
        **page.build_verdict_panel(example, config, outputs),
        "kept": _seal_text(config, example),
    }
    if find_unchanged_fields(config, form.inputs, write_page.text_to_change):
        panel |= _build_lesson()
    return page.render_write_page(request, write_page, panel, form=form)


def _build_lesson() -> dict[str, Any]:
    """Return the panel's values for a prompt that was submitted unchanged.

    The text is not the writer's own, so it has no verdict and cannot be saved.
    """
    heading = _("The model's answer")
    no_verdict = {"outcome": "", "possible_catch": None, "near_miss": None, "you_said": ""}
    return {**no_verdict, "heading": heading, "kept": "", "is_unchanged": True}


def _seal_text(config: TaskConfig, example: Example) -> str:
    """Return the encrypted text, which the writer's browser can keep; empty if it cannot count.

    It counts if it may have fooled the model and needs no passage. Guests' files are not
    stored, and a model's turns in a conversation count only live.
    """
    cannot_count = (
        config.context_role == "passage" or config.talk or any(c.is_media for c in config.input)
    )
    if cannot_count or example.outcome not in (Status.FOOLED, Status.UNDECIDED):
        return ""
    return seal_text(GuestText(example.round.task.code, example.goal, example.inputs))


@login_not_required
@require_POST
def keep_text_for_account(request: HttpRequest, code: str) -> HttpResponse:
    """Save a practice text in a cookie, and redirect to the write page or to sign-up for guests.

    Raises Http404 for an invalid or expired text.
    """
    task = find_task(request, code)
    text = unseal_text(sealed_text := request.POST.get("kept", ""))
    if text is None or text.task != task.code:
        raise Http404
    write_url = reverse("annotation:write", args=[task.code])
    is_signed_in = request.user.is_authenticated
    next_url = write_url if is_signed_in else reverse("account_signup", query={"next": write_url})
    response = redirect(next_url)
    store_sealed_text(response, sealed_text)
    return response


def _ask_opponent(
    request: HttpRequest, opponent: Opponent, begun_talk: Talk, inputs: Mapping[str, Any]
) -> tuple[TargetAnswers, dict[str, Any]]:
    """Return the models' answers, and the inputs in the stored format.

    A conversation already contains its answer. Raises Refused, EndpointError.
    """
    round, config = opponent.round, opponent.round.task.config
    if config.talk is None:
        count_practice_try(request)
        context = config.practice_contexts[begun_talk.place]
        return opponent.ask_models(build_model_inputs(round, context, inputs)), dict(inputs)
    turns = inputs[config.talk.name]
    # Time and fingerprint are only stored, and practice stores nothing.
    answer = Prediction({config.answer_field: begun_talk.find_answer_after(turns)}, None, 0.0, {})
    stored_inputs = {**inputs, config.talk.name: [*begun_talk.opening_turns, *turns]}
    return (opponent.list_entries(), [answer]), stored_inputs


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
