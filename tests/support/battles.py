"""Arenas in which battles can be fought, and people who fight them."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import pytest

from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from leaderboard.arena.battles import services
from leaderboard.arena.battles.selectors import draw_pair, find_open_battle
from leaderboard.arena.battles.turn_services import ask_models, begin_turn
from leaderboard.models import Battle, Contestant, Turn
from tasks.config.parsing import dump_yaml
from tasks.models import TargetModel, Task
from tests.support.arenas import make_arena


def battle_arena(code: str = "duel", *, models: Mapping[str, Any] | None = None, **battles: Any):
    """An arena of models that answer by script: {"m1": {"label": "One."}, …}; without gold."""
    task = make_arena(code)
    text = {"version": 1, "kind": "arena", "name": code, "battles": {"gold": 0, **battles}}
    task.config_text = dump_yaml(text)
    task.save()
    for name, options in (models or {"m1": {"label": "One."}, "m2": {"label": "Two."}}).items():
        target = TargetModel.objects.create(
            task=task, name=name, adapter="scripted", url="http://scripted.test", options=options
        )
        Contestant.objects.create(task=task, name=name, target=target, is_live=True)
    return task


def send(task: Task, voter: Annotator, prompt: str = "Hello", **changes: Any) -> Turn:
    """A message of the person's open battle, or of a new one, asked at once."""
    battle = find_open_battle(voter, task)
    number = battle.turns.count() + 1 if battle else 1
    asked = {
        "battle": battle.uuid if battle else None,
        "number": number,
        "key": uuid4(),
        "prompt": prompt,
        "drawn_pair": None if battle else draw_pair(task),
    }
    turn, is_mine = begin_turn(voter=voter, task=task, **{**asked, **changes})
    return ask_models(turn) if is_mine else turn


def fight(
    task: Task,
    voter: Annotator,
    winner: str | Callable[[Battle], str] = "tie",
    prompt: str = "Hello",
) -> Battle:
    """A battle of one message and the vote. winner: it, or what it is of a battle."""
    battle = send(task, voter, prompt).battle
    battle.task = task
    said = winner if isinstance(winner, str) else winner(battle)
    return services.cast_vote(battle=battle, winner=said, turns=1)


@pytest.fixture
def task():
    return battle_arena()


@pytest.fixture
def voter(alice):
    return get_annotator(alice)


@pytest.fixture
def agreed(task, voter):
    services.give_consent(voter=voter, task=task, agrees=True)
