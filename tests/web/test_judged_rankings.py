"""LLM judges compare each pair of a ranked battle, in both orders."""

import pytest

from core.accounts.services import get_annotator
from leaderboard.arena.battles import services
from leaderboard.arena.judges.services import create_arena_judge
from leaderboard.jobs import ask_arena_judge
from leaderboard.models import ArenaJudge, ArenaVerdict, Battle, BattleSide, Contestant
from tests.support.arena_judges import FIRST, SECOND, judge_target
from tests.support.battles import battle_arena, send
from tests.support.chat_server import chat_server
from tests.support.factories import UserFactory

ANSWERS = {"m1": "Best.", "m2": "Fair.", "m3": "Poor."}
QUALITY = {text: place for place, text in enumerate(ANSWERS.values())}
BATTLES = 4
pytestmark = pytest.mark.django_db


def prefers_better(messages):
    """The choice of a judge that knows which answer is better."""
    first, second = messages[1]["content"].split(SECOND)
    texts = first.rpartition(FIRST)[2], second
    places = [next(QUALITY[answer] for answer in QUALITY if answer in text) for text in texts]
    return "first" if places[0] < places[1] else "second"


@pytest.fixture
def task(settings):
    """An arena with rankings of three answers by two people, one of whom ties the last two."""
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.0/8"]
    task = battle_arena(models={name: {"label": text} for name, text in ANSWERS.items()}, answers=3)
    for person, places in enumerate(((1, 2, 3), (1, 2, 2))):
        voter = get_annotator(UserFactory())
        services.give_consent(voter=voter, task=task, agrees=True)
        for number in range(BATTLES // 2):
            rank(task, voter, dict(zip(ANSWERS, places, strict=True)), f"Question {person}{number}")
    return task


def rank(task, voter, places, prompt):
    battle = send(task, voter, prompt).battle
    battle.task = task
    ranking = {side: places[battle.get_contestant(side).name] for side in battle.sides}
    services.cast_vote(battle=battle, winner="ranked", ranking=ranking, turns=1)


@pytest.fixture
def server():
    with chat_server({"chat-1": prefers_better}) as server:
        yield server


@pytest.fixture
def judge(task, server):
    return create_arena_judge(
        task=task, target=judge_target(task, server.url), name="first", prompt="Judge it.",
        most_calls=1000, actor=None,
    )  # fmt: skip


def ask(judge, **changes):
    ArenaJudge.objects.update(state="queued", not_before=None, **changes)
    ask_arena_judge(judge.pk)
    judge.refresh_from_db()
    return judge.report


def test_each_pair_of_a_ranking_is_asked_in_both_orders(judge, server):
    report = ask(judge)
    assert (judge.state, judge.error) == ("done", "")
    bodies = {body["messages"][1]["content"] for body in server.seen}
    assert len(bodies) == len(server.seen) == 6 * BATTLES == ArenaVerdict.objects.count()
    pairs = set(ArenaVerdict.objects.values_list("pair", flat=True))
    assert pairs == {"left-right", "left-s3", "right-s3"}
    # Battles calibrate a judge, and pairs are what it is measured on.
    assert (report["battles"], report["voters"], report["waiting"]) == (BATTLES, 2, 0)
    assert (report["consistency"]["value"], report["consistency"]["n"]) == (1, 3 * BATTLES)
    tied = report["counts"]["tie"]
    assert tied["left"] + tied["right"] == sum(tied.values()) == BATTLES // 2
    agreeing = report["counts"]["left"]["left"] + report["counts"]["right"]["right"]
    assert agreeing == 3 * BATTLES - BATTLES // 2
    for ranking, ties in (("ranking", 0), ("people", BATTLES // 2)):
        models = {model["name"]: model for model in report[ranking]["models"]}
        assert models["m1"]["wins"] == 2 * BATTLES
        assert (models["m2"]["ties"], models["m3"]["ties"]) == (ties, ties)
    assert report["ranking"]["models"][0]["name"] == "m1"


def test_a_judge_of_positions_decides_no_pair(judge, server):
    server.behaviours["chat-1"] = lambda messages: "first"
    report = ask(judge)
    assert report["consistency"]["value"] == 0
    assert (report["first_share"]["value"], report["first_share"]["n"]) == (1, 3 * BATTLES)


def test_a_ranking_counts_once_all_its_pairs_are_judged(judge, server):
    report = ask(judge, most_calls=8)
    assert (report["battles"], report["waiting"]) == (1, BATTLES - 1)
    assert report["consistency"]["n"] == 3
    ask(judge, most_calls=1000)
    assert len(server.seen) == 6 * BATTLES  # nothing was asked twice
    assert judge.report["waiting"] == 0


def test_no_model_judges_a_ranking_with_its_own_answer_on_any_side(task, judge, server):
    assert BattleSide.objects.count() == BATTLES
    Contestant.objects.filter(name="m3").update(target=judge.target)
    report = ask(judge)
    assert server.seen == []
    assert report["battles"] == 0


def test_rankings_and_votes_on_two_answers_are_judged_together(task, judge, server):
    Contestant.objects.filter(name="m3").update(is_live=False)
    voter = Battle.objects.earliest("pk").voter
    battle = send(task, voter, "Only two").battle
    battle.task = task
    better = {battle.get_contestant(side).name: side for side in battle.sides}["m1"]
    services.cast_vote(battle=battle, winner=better, turns=1)
    report = ask(judge)
    assert len(server.seen) == 6 * BATTLES + 2
    assert (report["battles"], report["consistency"]["n"]) == (BATTLES + 1, 3 * BATTLES + 1)
