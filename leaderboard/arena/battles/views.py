"""The pages on which a person writes to two unnamed models and chooses."""

from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
    require_safe,
)

from annotation.access import is_gate_shut, require_annotator
from annotation.attempts.event_stream import stream_events
from annotation.care.services import check_rested, get_care, note_answered, note_shown
from annotation.care.views import show_care
from annotation.rules.care import STOPS
from core.accounts.models import Annotator
from core.accounts.places import keep_place
from core.accounts.services import annotator_of
from core.errors import Refused
from core.web.downloads import lines
from core.web.htmx import htmx_partial
from core.web.refusals import as_message
from leaderboard.arena.battles import page, services
from leaderboard.arena.battles.forms import MessageForm, VoteForm
from leaderboard.arena.battles.release import iter_released_lines
from leaderboard.arena.battles.selectors import (
    draw_pair,
    find_consent,
    find_open_battle,
    list_live_contestants,
    select_battles,
)
from leaderboard.arena.battles.turn_services import ask_models, begin_turn, list_stream_keys
from leaderboard.models import Battle, Turn
from tasks.access import find_task, require_permission
from tasks.models import Task
from tasks.permissions import can_enter_judging, can_judge, can_read, can_take
from validation.judging.confirmed import may_decide

SOON = 0.2
"""Seconds that a page with a script waits for both answers, before it shows what comes."""


def _enter(request: HttpRequest, code: str) -> tuple[Task, Annotator]:
    """Return the arena, and the signed-in person as its voter."""
    task = find_task(request, code, kinds=("arena",))
    return task, require_annotator(request, task, can_enter_judging)


@require_http_methods(["GET", "HEAD", "POST"])
def battle(request: HttpRequest, code: str) -> HttpResponse:
    """Show the battle page, and send a message to two unnamed models."""
    task, voter = _enter(request, code)
    if is_gate_shut(request, task):
        return redirect(reverse("annotation:gate", args=[code], query={"for": "battle"}))
    if request.method != "POST":
        if (care := get_care(voter, task)).rest in STOPS:
            return show_care(request, task, care)
        note_shown(annotator=voter, task=task)
    # A person who can read which models answer is not blind, as in judging.
    reason = "reader" if can_read(request.user, task) else ""
    if not reason and not may_decide(voter, task):
        reason = "unconfirmed"
        keep_place(request)
    if reason or len(list_live_contestants(task)) < 2:
        return render(request, "battles/none.html", {"task": task, "reason": reason})
    if find_consent(voter, task) is None:
        return render(request, "battles/consent.html", {"task": task, "here": "battle"})
    current = find_open_battle(voter, task)
    if request.method == "POST":
        return _send(request, task, voter, current)
    if current is None and (gold := services.begin_gold_battle(voter=voter, task=task)):
        current = select_battles(voter, task).get(pk=gold.pk)
    return page.show_battle(request, task, voter, current)


def _send(
    request: HttpRequest, task: Task, voter: Annotator, current: Battle | None
) -> HttpResponse:
    """Ask both models, and show their answers."""
    form = MessageForm(request.POST)
    if not form.is_valid():
        return page.show_battle(request, task, voter, current, form=form, status=422)
    try:
        check_rested(voter, task)
        drawn = draw_pair(task) if current is None else None
        turn, is_mine = begin_turn(voter=voter, task=task, drawn=drawn, **form.cleaned_data)
    except Refused as error:
        return page.show_battle(request, task, voter, current, form=form, refusal=error)
    if is_mine:
        note_answered(annotator=voter, task=task)
        # With a script the answers stream.
        turn = ask_models(turn, SOON if htmx_partial(request) else None)
    if not htmx_partial(request):
        return redirect("leaderboard:battle", task.code)
    after = select_battles(voter, task).get(pk=turn.battle_id)
    return page.show_battle(request, task, voter, after)


@require_GET
def battle_stream(request: HttpRequest, code: str) -> HttpResponseBase:
    """Stream both answers to the person's own message while the models write them.

    204 if no answer is pending. Only the text of each side is sent, in the format of `annotation`.
    """
    task, voter = _enter(request, code)
    pending_turns = Turn.objects.filter(
        battle__voter=voter, battle__task=task, state=Turn.State.ASKING
    )
    turn = pending_turns.filter(battle__ended_at=None).first()
    if turn is None:
        return HttpResponse(status=204)
    return stream_events(
        list_stream_keys(turn), pending_turns.filter(pk=turn.pk, asked_at=turn.asked_at)
    )


def _find_own_battle(request: HttpRequest, uuid: UUID) -> tuple[Battle, Annotator]:
    """Return the signed-in person's battle, and the person. Raises Http404 for other people's."""
    voter = annotator_of(request.user)  # type: ignore[arg-type]
    battle = get_object_or_404(Battle.objects.select_related("task"), voter=voter, uuid=uuid)
    with_turns = select_battles(voter, battle.task).get(pk=battle.pk)
    with_turns.task = battle.task
    return with_turns, voter


@require_POST
def vote(request: HttpRequest, code: str) -> HttpResponse:
    """Store a vote for A, B, a tie or both bad, then show the models' names."""
    task, voter = _enter(request, code)
    form = VoteForm(request.POST)
    if not form.is_valid():
        return page.show_battle(request, task, voter, find_open_battle(voter, task), status=422)
    own_battle, _ = _find_own_battle(request, form.cleaned_data.pop("battle"))
    # The form names the battle; one of another arena is not voted on here.
    if own_battle.task_id != task.pk:
        raise Http404
    require_permission(request.user, task, can_judge)
    try:
        services.cast_vote(battle=own_battle, **form.cleaned_data)
    except Refused as error:
        unchanged = select_battles(voter, task).get(pk=own_battle.pk)
        return page.show_battle(request, task, voter, unchanged, refusal=error)
    if not htmx_partial(request):
        return redirect("leaderboard:battle-over", code, own_battle.uuid)
    return page.show_battle(request, task, voter, select_battles(voter, task).get(pk=own_battle.pk))


@require_safe
def battle_over(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Show a finished conversation with the models' names; redirect if it is still open."""
    own_battle, voter = _find_own_battle(request, uuid)
    if own_battle.task.code != code:
        raise Http404
    if own_battle.ended_at is None:
        return redirect("leaderboard:battle", code)
    return page.show_battle(request, own_battle.task, voter, own_battle)


@require_POST
def leave_conversation(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """End a conversation without a vote, and begin another one."""
    own_battle, _voter = _find_own_battle(request, uuid)
    if own_battle.task.code != code:
        raise Http404
    services.leave_battle(battle=own_battle)
    return redirect("leaderboard:battle", code)


@require_POST
def consent(request: HttpRequest, code: str) -> HttpResponse:
    """Store whether the person's conversations may be published."""
    task, voter = _enter(request, code)
    if request.POST.get("agrees") in ("yes", "no"):
        with as_message(request):
            services.give_consent(voter=voter, task=task, agrees=request.POST["agrees"] == "yes")
    return redirect("leaderboard:battle", code)


@login_not_required
@require_safe
def conversations(request: HttpRequest, code: str) -> StreamingHttpResponse:
    """Export the published conversations as JSON lines; members also get the models' settings."""
    task = find_task(request, code, can_take, kinds=("arena",))
    rows = iter_released_lines(task, with_setup=can_read(request.user, task))
    return lines(rows, f"{code}-conversations.jsonl")
