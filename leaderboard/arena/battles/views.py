"""The pages on which a person writes to unnamed models and chooses."""

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
    require_safe,
)

from annotation.access import is_gate_shut, require_annotator
from annotation.attempts.event_stream import stream_events
from annotation.care.services import check_rested, get_care, record_text_answered, record_text_shown
from annotation.care.views import show_care
from annotation.rules.care import STOPPING_RESTS
from core.accounts.models import Annotator
from core.accounts.return_page import remember_return_page
from core.accounts.services import get_annotator
from core.errors import Refused
from core.web.downloads import respond_with_lines
from core.web.htmx import is_htmx_partial
from core.web.refusals import show_as_message
from leaderboard.arena.battles import page, services
from leaderboard.arena.battles.forms import MessageForm, RankingForm, VoteForm
from leaderboard.arena.battles.preferences import FORMATS, write_lines
from leaderboard.arena.battles.release import iter_released_rows
from leaderboard.arena.battles.selectors import (
    draw_pair,
    find_consent,
    find_open_battle,
    list_live_contestants,
    select_battles,
)
from leaderboard.arena.battles.turn_services import ask_models, begin_turn, list_stream_keys
from leaderboard.board.views import build_sentence_response
from leaderboard.models import RANKED, SIDES, Battle, Turn
from tasks.access import find_task, require_permission
from tasks.models import Task
from tasks.permissions import can_download, can_enter_judging, can_judge, can_read
from validation.judging.confirmed import do_votes_count

POLL_SECONDS = 0.2
"""Seconds that a page with a script waits for both answers before it streams partial ones."""


def _find_arena_and_voter(request: HttpRequest, code: str) -> tuple[Task, Annotator]:
    """Return the arena, and the signed-in person as its voter."""
    task = find_task(request, code, kinds=("arena",))
    return task, require_annotator(request, task, can_enter_judging)


@require_http_methods(["GET", "HEAD", "POST"])
def run_battle(request: HttpRequest, code: str) -> HttpResponse:
    """Show the battle page; a POST sends a message to two unnamed models."""
    task, voter = _find_arena_and_voter(request, code)
    if is_gate_shut(request, task):
        return redirect(reverse("annotation:gate", args=[code], query={"for": "battle"}))
    if request.method != "POST":
        if (care := get_care(voter, task)).rest in STOPPING_RESTS:
            return show_care(request, task, care)
        record_text_shown(annotator=voter, task=task)
    # A person who can read which models answer is not blind, as in judging.
    reason = "reader" if can_read(request.user, task) else ""
    if not reason and not do_votes_count(voter, task):
        reason = "unconfirmed"
        remember_return_page(request)
    if reason or len(list_live_contestants(task)) < 2:
        return render(request, "battles/none.html", {"task": task, "reason": reason})
    if find_consent(voter, task) is None:
        return render(request, "battles/consent.html", {"task": task, "here": "battle"})
    open_battle = find_open_battle(voter, task)
    if request.method == "POST":
        return _send_message(request, task, voter, open_battle)
    if open_battle is None and (gold := services.begin_gold_battle(voter=voter, task=task)):
        open_battle = select_battles(voter, task).get(pk=gold.pk)
    return page.show_battle(request, task, voter, open_battle)


def _send_message(
    request: HttpRequest, task: Task, voter: Annotator, open_battle: Battle | None
) -> HttpResponse:
    """Ask both models, and show their answers."""
    form = MessageForm(request.POST)
    if not form.is_valid():
        return page.show_battle(request, task, voter, open_battle, form=form, status=422)
    try:
        check_rested(voter, task)
        drawn = draw_pair(task) if open_battle is None else None
        turn, is_mine = begin_turn(voter=voter, task=task, drawn_pair=drawn, **form.cleaned_data)
    except Refused as error:
        return page.show_battle(request, task, voter, open_battle, form=form, refusal=error)
    if is_mine:
        record_text_answered(annotator=voter, task=task)
        # With JavaScript, the answers are streamed.
        turn = ask_models(turn, POLL_SECONDS if is_htmx_partial(request) else None)
    if not is_htmx_partial(request):
        return redirect("leaderboard:battle", task.code)
    after = select_battles(voter, task).get(pk=turn.battle_id)
    return page.show_battle(request, task, voter, after)


@require_GET
def stream_battle(request: HttpRequest, code: str) -> HttpResponseBase:
    """Stream both answers to the person's own message while the models write them.

    204 if no answer is pending. Only the texts of both sides are sent, in the format of
    `stream_events`.
    """
    task, voter = _find_arena_and_voter(request, code)
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
    voter = get_annotator(request.user)  # type: ignore[arg-type]
    battle = get_object_or_404(Battle.objects.select_related("task"), voter=voter, uuid=uuid)
    with_turns = select_battles(voter, battle.task).get(pk=battle.pk)
    with_turns.task = battle.task
    return with_turns, voter


@require_POST
def store_vote(request: HttpRequest, code: str) -> HttpResponse:
    """Store a vote for A, B, a tie or both bad, or a ranking, then show the models' names."""
    task, voter = _find_arena_and_voter(request, code)
    # Buttons of a battle with two answers send a winner, a ranking sends places.
    if "winner" not in request.POST:
        return _store_ranking(request, task, voter)
    form = VoteForm(request.POST)
    if not form.is_valid():
        return page.show_battle(request, task, voter, find_open_battle(voter, task), status=422)
    return _cast_vote(request, task, form.cleaned_data)


def _store_ranking(request: HttpRequest, task: Task, voter: Annotator) -> HttpResponse:
    """Store a ranking of the answers of the person's open battle."""
    open_battle = find_open_battle(voter, task)
    form = RankingForm(open_battle.sides if open_battle else SIDES, request.POST)
    if not form.is_valid():
        shown_form = form if open_battle else None
        return page.show_battle(
            request, task, voter, open_battle, ranking_form=shown_form, status=422
        )
    values = {name: form.cleaned_data[name] for name in ("battle", "turns", "ranking")}
    return _cast_vote(request, task, {**values, "winner": RANKED})


def _cast_vote(request: HttpRequest, task: Task, values: dict[str, Any]) -> HttpResponse:
    """Store a checked vote, and show the models' names. values: the arguments of `cast_vote`."""
    own_battle, voter = _find_own_battle(request, values.pop("battle"))
    # The form names the battle; votes on battles of other arenas are refused here.
    if own_battle.task_id != task.pk:
        raise Http404
    require_permission(request.user, task, can_judge)
    try:
        services.cast_vote(battle=own_battle, **values)
    except Refused as error:
        unchanged = select_battles(voter, task).get(pk=own_battle.pk)
        return page.show_battle(request, task, voter, unchanged, refusal=error)
    if not is_htmx_partial(request):
        return redirect("leaderboard:battle-over", task.code, own_battle.uuid)
    return page.show_battle(request, task, voter, select_battles(voter, task).get(pk=own_battle.pk))


@require_safe
def show_finished_battle(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Show a finished conversation with the models' names; redirect if it is still open."""
    own_battle, voter = _find_own_battle(request, uuid)
    if own_battle.task.code != code:
        raise Http404
    if own_battle.ended_at is None:
        return redirect("leaderboard:battle", code)
    return page.show_battle(request, own_battle.task, voter, own_battle)


@require_POST
def leave_conversation(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """End a conversation without a vote, and redirect to the page for a new one."""
    own_battle, _voter = _find_own_battle(request, uuid)
    if own_battle.task.code != code:
        raise Http404
    services.leave_battle(battle=own_battle)
    return redirect("leaderboard:battle", code)


@require_POST
def store_consent(request: HttpRequest, code: str) -> HttpResponse:
    """Store whether the person's conversations may be published."""
    task, voter = _find_arena_and_voter(request, code)
    if request.POST.get("agrees") in ("yes", "no"):
        with show_as_message(request):
            services.give_consent(voter=voter, task=task, agrees=request.POST["agrees"] == "yes")
    return redirect("leaderboard:battle", code)


@login_not_required
@require_safe
def export_conversations(request: HttpRequest, code: str) -> HttpResponseBase:
    """Export the published conversations as JSON lines, or as preference data in a `format`.

    Members also get the models' settings with the conversations.
    """
    task = find_task(request, code, can_download, kinds=("arena",))
    format = request.GET.get("format")
    if format is None:
        rows = iter_released_rows(task, with_setup=can_read(request.user, task))
        return respond_with_lines(write_lines(rows), f"{code}-conversations.jsonl")
    if format not in FORMATS:
        text = _("Unknown format %(format)r. Use one of: %(names)s.")
        return build_sentence_response(
            text % {"format": format[:20], "names": ", ".join(FORMATS)}, 400
        )
    # The models' settings would become columns of training data, so they are left out.
    preferences = FORMATS[format](iter_released_rows(task, with_setup=False))
    return respond_with_lines(write_lines(preferences), f"{code}-{format}.jsonl")
