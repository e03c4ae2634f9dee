"""The values of the battle page: one builder for the page, its parts and its states."""

from typing import Any
from uuid import uuid4

from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from annotation.attempts.failures import FAILURES, NO_ANSWER
from core.accounts.models import Annotator
from core.errors import Refused
from core.text.markdown import render_markdown
from core.web.htmx import render_page
from leaderboard.arena.battles.forms import MAX_PROMPT_CHARS, MessageForm
from leaderboard.arena.battles.selectors import count_begun_today, find_consent
from leaderboard.models import SIDES, Battle, Turn
from tasks.models import Task

TEMPLATE = "battles/battle.html"


def show_battle(
    request: HttpRequest,
    task: Task,
    voter: Annotator,
    battle: Battle | None,
    *,
    form: MessageForm | None = None,
    refusal: Refused | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the page of a person's battle. battle: None before the first message."""
    values = {
        "task": task,
        "battle": battle,
        "refused": refusal,
        "consent": find_consent(voter, task),
        "today": count_begun_today(voter, task),
        "instructions": render_markdown(task.config.instructions),
        **_build_conversation(battle),
    }
    # A battle that has ended takes no message.
    if not (battle and battle.ended_at):
        values["form"] = form or _build_form(task, battle, values["last"])
    status = refusal.status if refusal else status
    return render_page(request, TEMPLATE, values, part="work", status=status)


def _build_conversation(battle: Battle | None) -> dict[str, Any]:
    """Return the turns with both answers, the state of the last turn and, after the vote, names."""
    turns = list(battle.turns.all()) if battle else []
    last_turn = turns[-1] if turns else None
    values: dict[str, Any] = {
        "turns": [
            (turn.number, turn.prompt, _render_answers(turn))
            for turn in turns
            if turn.state == Turn.State.DONE
        ],
        "last": last_turn,
        "waits": False,
        "failed": "",
    }
    if last_turn and (last_turn.state == Turn.State.FAILED or last_turn.is_lost):
        values["failed"] = _(FAILURES.get(last_turn.failure or "lost", NO_ANSWER))
    elif last_turn:
        values["waits"] = last_turn.state == Turn.State.ASKING
    if battle and battle.winner and not battle.gold_id:
        # Before the vote the names would tell which answer is whose; of gold there are none.
        values["names"] = [battle.contestant(side).name for side in SIDES]
    return values


def _render_answers(turn: Turn) -> list[tuple[str, SafeString]]:
    """Return each side with its answer as HTML."""
    return [(reply.side, render_markdown(reply.text)) for reply in turn.replies.all()]


def _build_form(task: Task, battle: Battle | None, last_turn: Turn | None) -> MessageForm | None:
    """Return the form for the next message, filled with the text of a message that failed.

    None if no further message may be sent.
    """
    # A message that failed, or is lost, is sent again under its own number.
    number, prompt = 1, ""
    if last_turn and last_turn.state == Turn.State.DONE:
        number = last_turn.number + 1
    elif last_turn:
        number, prompt = last_turn.number, last_turn.prompt
    if (battle and battle.gold_id) or number > task.config.battles.turns:
        return None
    initial = {
        "battle": battle.uuid if battle else "",
        "number": number,
        "key": uuid4(),  # so that a double click sends one message
        "prompt": prompt,
    }
    form = MessageForm(initial=initial)
    form.fields["prompt"].widget.attrs |= {
        "data-limit": MAX_PROMPT_CHARS,
        "data-focus": number == 1,
    }
    return form
