"""The values of the battle page: one builder for the page, its parts and its states."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.attempts.failures import FAILURE_MESSAGES, NO_ANSWER_MESSAGE
from core.accounts.models import Annotator
from core.errors import Refused
from core.text.markdown import render_markdown, render_sections
from core.web.htmx import render_page
from leaderboard.arena.battles.forms import (
    MAX_PROMPT_CHARS,
    SIDE_LABELS,
    MessageForm,
    RankingForm,
)
from leaderboard.arena.battles.selectors import count_battles_begun_today, find_consent
from leaderboard.arena.board import read_ranks
from leaderboard.models import SIDES, Battle, Turn
from tasks.models import Task

TEMPLATE = "battles/battle.html"
IDEAS = {
    "explain": (
        gettext_lazy("Explain something"),
        gettext_lazy("Explain to a child why the sea has tides."),
    ),
    "letter": (
        gettext_lazy("Write a letter"),
        gettext_lazy("Write a short, polite complaint about a train that came late."),
    ),
    "riddle": (
        gettext_lazy("Solve a riddle"),
        gettext_lazy("Which is heavier, a kilo of feathers or a kilo of lead? Say why."),
    ),
}
"""First messages to begin with: (title, message) by the name in the page's address."""


class ShownAnswer(NamedTuple):
    """An answer as the page shows it. After the vote: its model's name and rank, if it won."""

    label: str
    html: SafeString
    name: str
    rank: int | None
    is_winner: bool


def show_battle(
    request: HttpRequest,
    task: Task,
    voter: Annotator,
    battle: Battle | None,
    *,
    form: MessageForm | None = None,
    ranking_form: RankingForm | None = None,
    refusal: Refused | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the page of a person's battle.

    battle: None before the first message. refusal: its status takes precedence over `status`.
    """
    values = {
        "task": task,
        "battle": battle,
        "refused": refusal,
        "consent": find_consent(voter, task),
        "today": count_battles_begun_today(voter, task),
        "instructions": render_sections(task.config.instructions)
        if task.config.instructions
        else None,
        "is_new_battle": battle is None,
        **_build_conversation(battle),
    }
    # A battle that has ended accepts no messages.
    if not (battle and battle.ended_at):
        values["form"] = form or _build_form(task, battle, values["last"])
        # Only for the first message: later ones take up what the models said.
        if battle is None:
            values["ideas"] = [(name, title) for name, (title, _text) in IDEAS.items()]
            # What a person has typed stays.
            if form is None and (idea := IDEAS.get(request.GET.get("idea", ""))):
                values["form"].initial["prompt"] = str(idea[1])
        if battle and len(battle.sides) > len(SIDES):
            initial = {"battle": battle.uuid, "turns": len(values["turns"])}
            values["ranking_form"] = ranking_form or RankingForm(battle.sides, initial=initial)
    status = refusal.status if refusal else status
    return render_page(request, TEMPLATE, values, block_name="work", status=status)


def _build_conversation(battle: Battle | None) -> dict[str, Any]:
    """Return the turns with all answers, the state of the last turn and, after the vote, names."""
    turns = list(battle.turns.all()) if battle else []
    last_turn = turns[-1] if turns else None
    names: list[str] = []
    revealed: list[tuple[str, int | None]] = []
    # Names would reveal the models before the vote; gold pairs have none.
    if battle and battle.winner and not battle.gold_id:
        names = [battle.get_contestant(side).name for side in battle.sides]
        ranks = read_ranks(battle.task)
        revealed = [(name, ranks.get(name)) for name in names]
    sides = battle.sides if battle else []
    winner = battle.winner if battle else ""
    values: dict[str, Any] = {
        "turns": [
            (turn.number, turn.prompt, _render_answers(turn, sides, revealed, winner))
            for turn in turns
            if turn.state == Turn.State.DONE
        ],
        "last": last_turn,
        "waits": False,
        "failed": "",
        "labels": SIDE_LABELS[: len(sides)],
        "names": names,
    }
    if last_turn and (last_turn.state == Turn.State.FAILED or last_turn.is_lost):
        values["failed"] = _(FAILURE_MESSAGES.get(last_turn.failure or "lost", NO_ANSWER_MESSAGE))
    elif last_turn:
        values["waits"] = last_turn.state == Turn.State.ASKING
    if battle and battle.ranking:
        rows = zip(SIDE_LABELS, names, battle.sides, strict=False)
        places = [(battle.ranking[side], label, name) for label, name, side in rows]
        values["places"] = sorted(places, key=lambda row: row[0])
    return values


def _render_answers(
    turn: Turn, sides: Sequence[str], revealed: Sequence[tuple[str, int | None]], winner: str
) -> list[ShownAnswer]:
    """Return the answers of a turn.

    revealed: the models' names and ranks, after the vote. winner: the side that won, or another
    word.
    """
    answers = []
    for reply in turn.replies.all():
        index = sides.index(reply.side)
        name, rank = revealed[index] if revealed else ("", None)
        html = render_markdown(reply.text)
        label = str(SIDE_LABELS[index])
        answers.append(ShownAnswer(label, html, name, rank, reply.side == winner))
    return answers


def _build_form(task: Task, battle: Battle | None, last_turn: Turn | None) -> MessageForm | None:
    """Return the form for the next message, filled with the text of a message that failed.

    None if no further message may be sent.
    """
    # A failed or lost message is sent again with its own number.
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
    if number > 1:  # a line that grows, because most people vote now
        form.fields["prompt"].label = _("Follow-up message")
        form.fields["prompt"].widget.attrs |= {"rows": 1, "class": "grows"}
    return form
