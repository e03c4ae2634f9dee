"""Each lock of battles, with the race that it prevents. Without the lock its test fails."""

import pytest

from annotation.refusals import NotAllowed, StaleForm
from core.accounts.models import Annotator
from core.errors import Refused
from leaderboard.arena.battles import services
from leaderboard.arena.battles.turn_services import finish_turn
from leaderboard.models import Battle, Comparison, GoldPair, Reply, Turn
from tasks.targets.endpoints.base import Prediction
from tests.support.battles import battle_arena, fight, send
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)
WINNERS = ("left", "right", "tie", "both_bad")


@pytest.fixture
def task():
    return battle_arena()


@pytest.fixture
def voter():
    return Annotator.objects.create(pseudonym="w-voter")


def outcome(call):
    """What a call gave, or how it was refused."""
    try:
        return call()
    except Refused as error:
        return type(error)


@pytest.mark.parametrize("repeat", races(20))
def test_one_vote_counts(task, voter, at_once, repeat):
    """Lock: the battle in `cast_vote`."""
    battle = send(task, voter).battle
    battle.task = task

    def vote(winner):
        return outcome(lambda: services.cast_vote(battle=battle, winner=winner, turns=1))

    found = at_once(vote, WINNERS)
    assert sorted(found, key=str).count(NotAllowed) == 3
    (row,) = Comparison.objects.all()
    (voted,) = [one for one in found if isinstance(one, Battle)]
    assert row.winner == voted.winner == Battle.objects.get().winner


@pytest.mark.parametrize("repeat", races(20))
def test_a_vote_and_a_message_never_both_win(task, voter, at_once, repeat):
    """Lock: the battle in `cast_vote` and in `begin_turn`."""
    battle = send(task, voter).battle
    battle.task = task
    acts = [
        lambda: services.cast_vote(battle=battle, winner="left", turns=1),
        lambda: send(task, voter, battle=battle.uuid, number=2, drawn_pair=None),
    ]
    found = at_once(lambda act: outcome(act), acts)
    assert found.count(StaleForm) == 1
    assert Turn.objects.count() == 2 - Comparison.objects.count()


@pytest.mark.parametrize("repeat", races(20))
def test_many_tabs_begin_one_battle_within_the_cap(voter, at_once, repeat):
    """Lock: the annotator in `begin_turn`."""
    task = battle_arena("small", models={"a": {"label": "1"}, "b": {"label": "2"}}, per_day=2)
    fight(task, voter)
    found = at_once(lambda _: outcome(lambda: send(task, voter, battle=None, number=1)), range(6))
    assert found.count(StaleForm) == 5
    assert Battle.objects.count() == 2


@pytest.mark.parametrize("repeat", races(20))
def test_two_tabs_get_one_gold_pair(task, voter, at_once, repeat):
    """Lock: the annotator in `begin_gold_battle`."""
    task.config_text = task.config_text.replace("gold: 0", "gold: 0.5")
    task.save()
    for n in range(3):
        GoldPair.objects.create(task=task, prompt=str(n), good="g", broken="b")
    fight(task, voter)
    found = at_once(lambda _: services.begin_gold_battle(voter=voter, task=task), range(4))
    assert len([one for one in found if one]) <= 1
    assert Battle.objects.filter(gold__isnull=False).count() <= 1


@pytest.mark.parametrize("repeat", races(20))
def test_answers_do_not_come_back_to_who_left(task, voter, at_once, repeat):
    """Lock: the battles in `erase_conversations`, and the battle in `finish_turn`."""
    turn = send(task, voter)
    Reply.objects.all().delete()
    Turn.objects.update(state="asking")
    turn.battle.task = task
    answer = Prediction({"answer": "Late."}, None, 0.1, {"digest": "scripted"})
    acts = [
        lambda: finish_turn(turn=turn, predictions=[answer] * 2, answers=["Late."] * 2),
        lambda: services.erase_conversations(voter=voter),
    ]
    at_once(lambda act: act(), acts)
    assert not Turn.objects.exists()
    assert not Reply.objects.exists()
