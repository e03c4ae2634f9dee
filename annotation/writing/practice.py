"""Trying the model without an account: nothing is stored.

The passages are those of the task's own examples. Nobody is assigned these, so no text that was
tried out in practice counts.
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
from django.views.decorators.http import require_http_methods

from annotation.access import gate_is_shut
from annotation.assignments.services import check_can_be_asked
from annotation.attempts.live_targets import (
    answers_in_time,
    answers_now,
    failure_of,
    model_inputs,
)
from annotation.attempts.services import judge_answers, unsaved_outputs
from annotation.models import Example, TargetOutput
from annotation.open_round import live_round
from annotation.refusals import CapReached, NoContext
from annotation.writing import page
from annotation.writing.page import WritePage
from annotation.writing.uploads import LARGEST_BODY, received
from annotation.writing.views import refusal
from dynabench.lib.bodies import takes
from dynabench.lib.errors import Refused
from dynabench.lib.throttles import AN_HOUR, is_used_up
from tasks.access import find_task
from tasks.models import Context, Round, RoundTarget, TargetModel, Task
from tasks.permissions import can_try_out
from tasks.selectors import targets_of
from tasks.targets.endpoints.base import EndpointError, Prediction
from tasks.targets.endpoints.live import LiveTarget
from tasks.targets.spending_services import Payer

Answered = tuple[Sequence[RoundTarget], Sequence[Prediction]]
"""Models, and what each of them says."""


@dataclass(frozen=True)
class Opponent:
    """Whom one tries to fool. url: of the practice page; name: of a model that is in no round."""

    round: Round
    ask: Callable[[Mapping[str, Any]], Answered]
    url: str
    name: str = ""

    @classmethod
    def of_round(cls, round: Round) -> "Opponent":
        """All targets of the round."""

        def ask(inputs: Mapping[str, Any]) -> Answered:
            entries = targets_of(round)
            return entries, answers_now(entries, inputs)

        return cls(round, ask, reverse("annotation:try-out", args=[round.task.code]))

    @classmethod
    def alone(
        cls, task: Task, name: str, url: str, model: Callable[[], LiveTarget], payers: list[Payer]
    ) -> "Opponent":
        """One model, in no round, found anew for each call; payers: it, if it is a target."""
        round = Round(task=task, number=0, show_target_name=True)
        entries = [RoundTarget(round=round, target=TargetModel(task=task, name=name))]

        def ask(inputs: Mapping[str, Any]) -> Answered:
            return entries, answers_in_time([model()], inputs, payers)

        return cls(round, ask, url, name)


@takes(LARGEST_BODY)
@login_not_required
@require_http_methods(["GET", "POST"])
def try_out(request: HttpRequest, code: str) -> HttpResponse:
    """The write page, with the same targets, for anybody; nothing is stored."""
    task = find_task(request, code)
    round = live_round(task)
    if not can_try_out(request.user, task) or round is None:
        raise Http404
    return practise(request, Opponent.of_round(round))


def practise(request: HttpRequest, opponent: Opponent) -> HttpResponse:
    """The write page against somebody, for anybody who may try the task; nothing is stored."""
    task = opponent.round.task
    if gate_is_shut(request, task):
        return redirect(reverse("annotation:gate", args=[task.code], query={"for": "try"}))
    try:
        check_can_be_asked(task.config)
    except Refused as error:
        return refusal(request, error, task)
    if request.method == "POST":
        return _submit(request, opponent)
    if not task.config.practice_contexts:
        said = _("Conversations cannot be practised. Sign in and write.")
        if not task.config.talk:
            said = _("There is nothing to practise on: no example of this task shows its passage.")
        return refusal(request, NoContext(said), task)
    return page.show(request, _started(opponent))


def started(round: Round, opened: str = "") -> WritePage:
    """A practice page with a random context and goal. The task has practice contexts."""
    return replace(_started(Opponent.of_round(round)), opened=opened)


def _started(opponent: Opponent) -> WritePage:
    config = opponent.round.task.config
    place = random.randrange(len(config.practice_contexts))
    return _page(opponent, place, random.choice(config.goal_choices or [""]))


def _page(opponent: Opponent, place: int, goal: str) -> WritePage:
    """The passage of one of the task's own examples; the form names it by its place among them."""
    round, config = opponent.round, opponent.round.task.config
    context = Context(pk=place, round=round, fields=dict(config.practice_contexts[place]))
    return WritePage(
        round.task, round, context, goal, practice_url=opponent.url, opponent=opponent.name
    )


def _submit(request: HttpRequest, opponent: Opponent) -> HttpResponse:
    place, goal = request.POST.get("assignment", ""), request.POST.get("goal", "")
    round, config = opponent.round, opponent.round.task.config
    places = map(str, range(len(config.practice_contexts)))
    if place not in places or goal not in (config.goal_choices or [""]):
        raise Http404
    now = _page(opponent, int(place), goal)
    form = now.form(*received(request, round.task))
    if not form.is_valid():
        return page.show(request, now, form=form, status=422)
    if is_used_up("try-out", get_adapter().get_client_ip(request)):
        said = ngettext(
            "You have used the %(number)d practice try of this hour.",
            "You have used the %(number)d practice tries of this hour.",
            AN_HOUR["try-out"],
        )
        full = CapReached(said % {"number": AN_HOUR["try-out"]})
        return page.show_refused(request, now, full, form)
    try:
        answered = opponent.ask(model_inputs(round, now.context.fields, form.inputs))
    except EndpointError as error:
        return page.show_failed(request, now, failure_of(error), form)
    example, outputs = _unsaved(now, form.inputs, *answered)
    return page.show(request, now, page.verdict(example, config, outputs), form=form)


def _unsaved(
    now: WritePage,
    inputs: dict[str, Any],
    entries: Sequence[RoundTarget],
    predictions: Sequence[Prediction],
) -> tuple[Example, list[TargetOutput]]:
    """The verdict on rows that are never saved."""
    outcome = judge_answers(now.round, inputs, predictions)
    example = Example(
        round=now.round, context=now.context, goal=now.goal, inputs=inputs, outcome=outcome.status
    )
    return example, unsaved_outputs(example, entries, predictions, outcome)
