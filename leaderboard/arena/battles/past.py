"""A published battle as the arena's overview shows it: what an arena is for, in one example."""

from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.text import Truncator

from core.text.markdown import render_excerpt
from leaderboard.arena.battles.forms import SIDE_LABELS
from leaderboard.arena.battles.selectors import find_newest_published_battle
from leaderboard.models import SIDES, Turn
from tasks.models import Task

MAX_PROMPT_CHARS, MAX_ANSWER_CHARS = 280, 420


@dataclass(frozen=True)
class PastAnswer:
    """An answer of a published battle. label: A or B. name: of its model."""

    label: str
    html: SafeString
    name: str
    is_better: bool


@dataclass(frozen=True)
class PastBattle:
    """The first message of a published battle with both answers, shortened."""

    prompt: str
    answers: list[PastAnswer]


def build_past_battle(task: Task) -> PastBattle | None:
    """Return the newest published battle of an arena, or None. At most three queries."""
    battle = find_newest_published_battle(task)
    turns = list(battle.turns.all()) if battle else []
    # A message whose answers never came would not show what an arena is for.
    if battle is None or not turns or turns[0].state != Turn.State.DONE:
        return None
    answers = []
    for reply in turns[0].replies.all():
        answers.append(
            PastAnswer(
                label=str(SIDE_LABELS[SIDES.index(reply.side)]),
                html=render_excerpt(reply.text, MAX_ANSWER_CHARS),
                name=battle.get_contestant(reply.side).name,
                is_better=reply.side == battle.winner,
            )
        )
    return PastBattle(Truncator(turns[0].prompt).chars(MAX_PROMPT_CHARS), answers)
